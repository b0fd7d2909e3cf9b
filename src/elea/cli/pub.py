"""`elea pub`: puts samples on a key again and again, and shows how fast that goes."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe, size_text
from elea.cli.put import qos_of
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["add_arguments", "run"]

SHOW_EVERY: Final = 0.2
TELL_EVERY: Final = 1.0
MAX_SIZE: Final = 1 << 30

EPILOG: Final = """\
Without --value and --size, each line of standard input is one sample. Ctrl-C ends. examples:
  elea pub home/1/temp --value 21.5 --rate 10/s
  elea pub test/load --size 1024 --rate max --congestion block -e tcp/127.0.0.1:7447
  tail -f log | elea pub logs/web

The exit code is 5 if samples were dropped before they left this node."""


@dataclass(slots=True)
class Progress:
    """What has been sent since when."""

    began: float
    sent: int = 0
    octets: int = 0
    dropped: int = 0
    shown: float = 0.0
    matching: bool = True
    """Whether anybody subscribed at the end."""

    def form(self, event: str) -> dict[str, object]:
        """The JSON form."""
        passed = time.monotonic() - self.began
        rate = self.sent / passed if passed > 0 else 0.0
        return {
            "event": event,
            "sent": self.sent,
            "dropped": self.dropped,
            "octets": self.octets,
            "seconds": round(passed, 3),
            "rate": round(rate, 1),
        }

    def text(self) -> str:
        """The line for people."""
        passed = max(time.monotonic() - self.began, 1e-9)
        speed = f"{self.sent / passed:,.0f}/s  {size_text(self.octets / passed)}/s"
        return f"{self.sent:,} sent  {self.dropped:,} dropped  {speed}  {passed:.1f} s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea pub`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("key", metavar="KEY", type=connection.check_key, help="where to put them, such as home/1/temp")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--value", metavar="TEXT", help="put this text each time")
    what.add_argument("--size", type=_size, metavar="BYTES", help="put so many octets of zero each time")
    parser.add_argument(
        "--rate",
        type=_rate,
        metavar="N/s",
        help="samples a second, or max (default: 1/s; lines of standard input: as they come)",
    )
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N samples")
    parser.add_argument("--encoding", help="what the values are, such as text/plain")
    connection.add_qos_arguments(parser)
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Puts until there is no more to put; 5 if something was dropped."""
    out = Output(args)
    progress = Progress(time.monotonic())
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        connection.need_neighbours(session)
        out.note(f"publishing on {safe(args.key)}; Ctrl-C ends")
        progress.began = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt):
            _publish(session, args, progress, out, stop)
        progress.dropped = connection.lost(session)
    out.progress("")
    out.form({**progress.form("done"), "matching": progress.matching})
    out.line(progress.text())
    if not progress.matching:
        out.note(f"nobody subscribes to {safe(args.key)}, so samples went no further than this node")
    if progress.dropped:
        problem = f"{progress.dropped} of {progress.sent} samples were dropped before they left this node"
        raise CliError(problem, "--congestion block, or a lower --rate", connection.AT_RISK)
    return 0


def _publish(
    session: Session, args: argparse.Namespace, progress: Progress, out: Output, stop: connection.Stop
) -> None:
    typed = args.value is None and args.size is None
    rate = args.rate if args.rate is not None else float("inf") if typed else 1.0
    gap = 1 / rate
    with session.declare_publisher(args.key, encoding=args.encoding, **qos_of(args)) as publisher:
        for value in itertools.islice(_values(args, stop), args.count):
            if stop.requested:
                break
            ahead = progress.began + progress.sent * gap - time.monotonic()
            if ahead > 0:
                _wait(ahead, session, progress, out, stop)
            publisher.put(value)
            progress.sent += 1
            progress.octets += len(value)
            if not progress.sent & 63:
                _show(session, progress, out)
        progress.matching = publisher.matching_status.matching


def _wait(seconds: float, session: Session, progress: Progress, out: Output, stop: connection.Stop) -> None:
    """Waits, with the progress kept up to date."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        _show(session, progress, out)
        with stop.waiting():
            time.sleep(min(left, SHOW_EVERY))


def _show(session: Session, progress: Progress, out: Output) -> None:
    now = time.monotonic()
    if now - progress.shown < (TELL_EVERY if out.json else SHOW_EVERY):
        return
    progress.shown = now
    progress.dropped = connection.lost(session)
    if progress.sent:
        out.form(progress.form("progress"))
        out.progress(progress.text())


def _values(args: argparse.Namespace, stop: connection.Stop) -> Iterator[bytes]:
    if args.value is not None:
        return itertools.repeat(os.fsencode(args.value))
    if args.size is not None:
        return itertools.repeat(bytes(args.size))
    return _lines(stop)


def _lines(stop: connection.Stop) -> Iterator[bytes]:
    while True:
        with stop.waiting():
            line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line.rstrip(b"\r\n")


def _rate(text: str) -> float:
    if text == "max":
        return float("inf")
    try:
        value = float(text.removesuffix("/s"))
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate such as 10/s, 0.5/s or max")
    return value


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_SIZE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of octets up to {MAX_SIZE}")
    return int(text)
