"""`elea capture`: records the samples put to keys into a file.

Exit codes: 0 done, 2 wrong usage, 5 the disk is full, or samples were lost and `--strict` is set.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.explain import where
from elea.cli.output import Output, safe, size_text
from elea.cli.style import CliError
from elea.cli.sub import since
from elea.model.errors import CaptureDamaged, CaptureFull, EleaError

if TYPE_CHECKING:
    from elea.recorder import Figures, Recorder

__all__ = ["add_arguments", "capture_failures", "duration", "need_recorder", "run", "size"]

SHOW_EVERY: Final = 0.2
TELL_EVERY: Final = 1.0
UNITS: Final = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
SPANS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

EPILOG: Final = """\
Records until Ctrl-C, and tells how far it is behind and what was dropped. FILE ends with .mcap (for Foxglove, rosbag
tools and the like), .parquet, or .arrows (an Arrow IPC stream). Every file can be read up to what was written last if
this command is killed; of a Parquet file FILE.arrows is there then. examples:
  elea capture 'home/**' -o drive.mcap -e tcp/127.0.0.1:7447
  elea capture 'fleet/**' -o fast.parquet --where "speed > 2"
  elea capture 'home/**' -o day.mcap --max-size 1GB --max-time 1h      day-0001.mcap, day-0002.mcap, …
  elea capture 'home/**' -o hour.mcap --since 1h                       what a broker has kept, then what comes
  elea replay drive.mcap                                               puts it all again"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea capture`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("key", metavar="KEYEXPR", type=connection.check_key, help="which keys, such as 'home/**'")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to: .mcap, .parquet or .arrows")
    parser.add_argument(
        "--where", type=where, metavar="PREDICATE", help='only samples for which this holds: "speed > 2"'
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--history", type=connection.positive, metavar="N", help="begin with the last N kept by a broker")
    when.add_argument(
        "--since", type=since, metavar="WHEN", help="begin there, with what a broker has kept: 10m, a time, a position"
    )
    parser.add_argument(
        "-n", "--count", type=connection.positive, metavar="N", help="end with N samples, or a few more"
    )
    parser.add_argument("--for", dest="seconds", type=duration, metavar="TIME", help="end after it: 30s, 10m, 2h")
    parser.add_argument("--max-size", type=size, metavar="SIZE", help="begin another file at this size: 500MB, 2GB")
    parser.add_argument("--max-time", type=duration, metavar="TIME", help="begin another file after it: 10m, 1h, 1d")
    parser.add_argument(
        "--strict", action="store_true", help="the exit code is 5 if samples that came are not in the file"
    )
    parser.add_argument(
        "--overflow",
        choices=("drop", "block"),
        default="drop",
        help="when the disk is too slow: drop and count the oldest samples that wait, or hold up who sends (default: "
        "drop)",
    )
    parser.add_argument(
        "--buffer", type=size, default=64 << 20, metavar="SIZE", help="what may wait in memory (default: 64MiB)"
    )
    parser.add_argument(
        "--flush", type=duration, default=1.0, metavar="TIME", help="write after it at the latest (default: 1s)"
    )
    parser.add_argument(
        "--compression", choices=("zstd", "lz4", "none"), default="zstd", help="of an MCAP file (default: zstd)"
    )
    parser.add_argument("--overwrite", action="store_true", help="write over files that are there")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Records until it is told to end; 5 if samples were lost and that is not allowed."""
    need_recorder()
    from elea.recorder import Recorder, Rotation

    out = Output(args)
    with connection.stoppable() as stop, connection.open_session(connection.session_config(args), stop) as session:
        with capture_failures():
            recorder = Recorder(
                session,
                args.key,
                Path(args.output),
                where=args.where,
                history=args.history,
                since=args.since,
                rotation=Rotation(args.max_size, args.max_time),
                compression=args.compression,
                overflow=args.overflow,
                buffer=args.buffer,
                flush=args.flush,
                overwrite=args.overwrite,
            )
        if not connection.neighbours(session):
            out.note("no other node yet; waiting for one")
        out.note(f"recording {safe(args.key)} to {recorder.paths[0]}; Ctrl-C ends")
        with contextlib.suppress(KeyboardInterrupt):
            _watch(recorder, args, out, stop)
        out.progress("")
        with capture_failures():
            figures = recorder.close()
        _tell_end(recorder, figures, out)
    if figures.dropped:
        problem = f"{figures.dropped} samples came and are not in the capture"
        if args.strict:
            hint = "a faster disk, --compression lz4, a larger --buffer, a narrower KEYEXPR, or --overflow block"
            raise CliError(problem, hint, connection.AT_RISK)
        out.note(problem)
    return 0


def _watch(recorder: Recorder, args: argparse.Namespace, out: Output, stop: connection.Stop) -> None:
    """Shows how it goes until there is enough, or nothing can be written any more."""
    told, dropped = time.monotonic(), 0
    while recorder.problem is None:
        figures = recorder.figures()
        if figures.samples >= (args.count or float("inf")) or figures.seconds >= (args.seconds or float("inf")):
            return
        out.progress(figures_text(figures))
        now = time.monotonic()
        if now - told >= TELL_EVERY:
            told = now
            out.form(figures_form("progress", figures))
            if figures.dropped > dropped:
                out.progress("")
                out.note(
                    f"too slow: {figures.dropped - dropped:,} samples dropped, {figures.dropped:,} in all, "
                    f"{figures.lag:.1f} s behind"
                )
                dropped = figures.dropped
        with stop.waiting():
            time.sleep(SHOW_EVERY)


def figures_form(event: str, figures: Figures) -> dict[str, object]:
    """How it goes, as JSON."""
    return {
        "event": event,
        "samples": figures.samples,
        "dropped": figures.dropped,
        "lag": round(figures.lag, 3),
        "bytes": figures.size,
        "files": figures.files,
        "seconds": round(figures.seconds, 3),
    }


def figures_text(figures: Figures) -> str:
    """How it goes, on one line."""
    rate = figures.samples / max(figures.seconds, 1e-9)
    parts = [
        f"{figures.samples:,} samples",
        size_text(figures.size),
        f"{rate:,.0f}/s",
        f"lag {figures.lag:.1f} s",
        f"{figures.dropped:,} dropped",
    ]
    if figures.files > 1:
        parts.append(f"file {figures.files}")
    return "  ".join([*parts, f"{figures.seconds:.0f} s"])


def _tell_end(recorder: Recorder, figures: Figures, out: Output) -> None:
    paths = [str(path) for path in recorder.paths]
    out.form({**figures_form("done", figures), "paths": paths})
    names = paths[0] if len(paths) == 1 else f"{paths[0]} … {paths[-1]}"
    out.line(f"{out.style.paint('recorded', 'green')}  {figures_text(figures)}  {safe(names)}")


@contextlib.contextmanager
def capture_failures() -> Iterator[None]:
    """What can go wrong with files, as errors of the command."""
    try:
        yield
    except CaptureFull as error:
        raise CliError(str(error), "free some space, or another -o", connection.AT_RISK) from error
    except CaptureDamaged as error:
        raise CliError(str(error), "a copy of the file; what stands before can be read", connection.AT_RISK) from error
    except FileExistsError as error:
        raise CliError(f"{error.filename} exists", "--overwrite, or another -o", connection.USAGE) from error
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", "another FILE") from error
    except ValueError as error:
        if isinstance(error, EleaError):
            raise
        raise CliError(str(error), "drive.mcap, drive.parquet or drive.arrows", connection.USAGE) from error


def need_recorder() -> None:
    """Ends the command if what captures need is not installed."""
    missing = [name for name in ("mcap", "numpy", "pyarrow") if find_spec(name) is None]
    if missing:
        problem = f"captures need {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise CliError(problem, "in a clone of Elea: pip install '.[recorder]'")


def size(text: str) -> int:
    """For argparse: a number of bytes.

    >>> size("500MB"), size("64MiB"), size("4096")
    (500000000, 67108864, 4096)
    """
    lower = text.lower().removesuffix("b")
    binary = lower.endswith("i")
    digits = lower.removesuffix("i").rstrip("kmgt")
    unit = lower.removesuffix("i")[len(digits) :]
    if unit not in UNITS or not digits.isdecimal() or not int(digits) or (binary and not unit):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500MB, 64MiB or 4096")
    return int(digits) * (1024 ** list(UNITS).index(unit) if binary else UNITS[unit])


def duration(text: str) -> float:
    """For argparse: a time in seconds.

    >>> duration("10m"), duration("0.5")
    (600.0, 0.5)
    """
    digits = text.rstrip("smhd")
    unit = text[len(digits) :]
    try:
        value = float(digits) * SPANS[unit]
    except (ValueError, KeyError):
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 30s, 10m, 2h or 1d")
    return value
