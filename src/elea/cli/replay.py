"""`elea replay`: puts the samples of captures again.

Exit codes: 0 all were put, 3 nobody could be reached, 5 a file is damaged or samples were dropped, 130 interrupted.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.capture import SHOW_EVERY, TELL_EVERY, capture_failures, need_recorder
from elea.cli.explain import where
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.recorder import Replayer

__all__ = ["add_arguments", "run"]

BAR: Final = 24

EPILOG: Final = """\
FILE is what `elea capture` wrote, an MCAP file of another recorder, or what `elea store export` or `elea store read`
wrote; several files are replayed in the order of their first samples. --times original puts samples with the timestamps
they had; shifted moves all of them by the same time, so that the first sample is from now (the last one, if it goes
faster than recorded); now gives new ones. examples:
  elea replay drive.mcap -e tcp/127.0.0.1:7447
  elea replay day-*.mcap --pace 10 --key 'home/*/temp' --times shifted
  elea replay fleet.parquet --pace max --where "speed > 2"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea replay`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", metavar="FILE", help="captures: .mcap, .parquet or .arrows")
    parser.add_argument(
        "--pace", type=_pace, default=1.0, metavar="F", help="so much faster than recorded, or max (default: 1)"
    )
    parser.add_argument(
        "--times", choices=("original", "shifted", "now"), default="original", help="see below (default: original)"
    )
    parser.add_argument("--key", metavar="KEYEXPR", type=connection.check_key, help="only these keys")
    parser.add_argument(
        "--where", type=where, metavar="PREDICATE", help='only samples for which this holds: "speed > 2"'
    )
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Puts the samples; 130 if that was interrupted."""
    need_recorder()
    from elea.recorder import Replayer, open_captures

    out = Output(args)
    with capture_failures():  # what is no capture is told before anybody is connected
        for capture in open_captures(args.files):
            next(iter(capture), None)
    is_done = False
    dropped = 0
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        connection.need_neighbours(session)
        with capture_failures():
            replayer = Replayer(
                session, args.files, pace=args.pace, times=args.times, key_expr=args.key, where=args.where
            )
            _replay(replayer, out, stop)
        is_done = True
        dropped = connection.lost(session)
    out.progress("")
    if not is_done:
        raise KeyboardInterrupt
    _tell_end(replayer, out, dropped)
    if dropped:
        problem = f"{dropped} of {replayer.sent} samples were dropped before they left this node"
        raise CliError(problem, "a faster link, or a lower --pace", connection.AT_RISK)
    return 0


def _replay(replayer: Replayer, out: Output, stop: connection.Stop) -> None:
    began = shown = told = time.monotonic()
    for delay in replayer.steps():
        until = time.monotonic() + delay
        while True:
            now = time.monotonic()
            if now - shown >= SHOW_EVERY:
                shown = now
                out.progress(_progress(replayer, now - began))
            if now - told >= TELL_EVERY:
                told = now
                out.form(_form("progress", replayer, now - began))
            with stop.waiting():
                if until - now <= 0:
                    break
                time.sleep(min(until - now, SHOW_EVERY))


def _share(replayer: Replayer) -> float:
    return min(replayer.done / max(replayer.size, 1), 1.0)


def _progress(replayer: Replayer, seconds: float) -> str:
    """A bar of how much of the files has been read, and how fast it goes."""
    share = _share(replayer)
    filled = round(share * BAR)
    bar = "█" * filled + "░" * (BAR - filled)
    rate = replayer.sent / max(seconds, 1e-9)
    late = f"  {replayer.late:.1f} s late" if replayer.late >= 0.1 else ""
    return f"{bar} {100 * share:3.0f} %  {replayer.sent:,} sent  {rate:,.0f}/s{late}"


def _form(event: str, replayer: Replayer, seconds: float) -> dict[str, object]:
    return {
        "event": event,
        "sent": replayer.sent,
        "passed_over": replayer.passed_over,
        "share": round(_share(replayer), 4),
        "late": round(replayer.late, 3),
        "seconds": round(seconds, 3),
    }


def _tell_end(replayer: Replayer, out: Output, dropped: int) -> None:
    out.form({"event": "done", "sent": replayer.sent, "passed_over": replayer.passed_over, "dropped": dropped})
    for path in replayer.cut:
        out.note(f"{safe(str(path))} ends before it is whole: its recorder was killed, or the disk was full")
    others = f", {replayer.passed_over:,} passed over" if replayer.passed_over else ""
    out.line(f"{out.style.paint('replayed', 'green')}  {replayer.sent:,} samples{others}")


def _pace(text: str) -> float | None:
    if text == "max":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor such as 1, 0.5 or 10, nor max")
    return value
