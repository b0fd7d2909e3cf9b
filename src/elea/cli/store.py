"""`elea store`: what is in a log, whether it is sound, and out of and into files.

`info`, `verify` and `export` only read, and work beside a running broker; `import` and `compact` need the log for
themselves. Exit codes: 0 done, 1 there is none, 4 another process has it, 5 something is damaged.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from elea.cli import connection
from elea.cli.output import Output, safe, size_text
from elea.cli.storedirectory import check_import, logs_in, one_log
from elea.cli.style import CliError
from elea.model.errors import (
    InvalidSelector,
    StampAhead,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreTrimmed,
)

if TYPE_CHECKING:
    from elea.store import Damage, Log, Range

__all__ = ["add_arguments", "run"]

ACTIONS: Final = ("info", "verify", "export", "import", "compact", "read")

EPILOG: Final = """\
DIR is the directory given to a broker as --store, or that of one storage in it.

info     what each log holds, its cursors, and known damage
verify   reads everything and checks every checksum; the exit code is 5 if something is damaged
export   writes samples to FILE (- is standard output): an Arrow IPC stream, or with --format json a line a sample
import   appends the samples of FILE, as export writes them; numbered samples that are there already are left out
compact  joins small blocks, which single puts make; with --accept-loss forgets damage that was looked into
read     prints what a running broker has stored of KEYEXPR, or writes it to a file: over the network, at LOCATOR

examples:
  elea store info /var/lib/elea
  elea store export /var/lib/elea/default hour.arrows --key 'home/**' --time '[now(-1h)..]'
  elea store import /tmp/copy hour.arrows
  elea store read tcp/127.0.0.1:7447 'home/**' --from 1000 --limit 10
  elea store read tcp/127.0.0.1:7447 'home/**' --time '[now(-1h)..]' --parquet hour.parquet"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea store`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=ACTIONS, help="what to do; see below")
    parser.add_argument("directory", metavar="DIR|LOCATOR", help="the directory of the log; read: where the broker is")
    parser.add_argument(
        "file",
        metavar="FILE|KEYEXPR",
        nargs="?",
        help="export, import: the file, - for standard streams; read: which keys",
    )
    parser.add_argument("--format", choices=("arrow", "json"), default="arrow", help="of FILE (default: arrow)")
    parser.add_argument("--key", metavar="KEYEXPR", type=connection.check_key, help="export: only these keys")
    parser.add_argument("--time", metavar="RANGE", help="export, read: only these timestamps, such as '[now(-1h)..]'")
    parser.add_argument("--start", "--from", type=_position, metavar="N", help="export, read: from this position on")
    parser.add_argument("--end", "--to", type=_position, metavar="N", help="export, read: up to it, not included")
    parser.add_argument("-n", "--limit", type=connection.positive, metavar="N", help="export, read: at most N samples")
    parser.add_argument("--newest-first", "--newest", action="store_true", help="export, read: in the opposite order")
    parser.add_argument("--skip-damaged", action="store_true", help="export, read: pass over what cannot be read")
    parser.add_argument("--accept-loss", action="store_true", help="compact: forget known damage and lost cursors")
    parser.add_argument("--restamp", action="store_true", help="import: give samples of the future the time of now")
    parser.add_argument("--arrow", metavar="FILE", help="read: write an Arrow IPC stream to FILE; - is standard output")
    parser.add_argument("--parquet", metavar="FILE", help="read: write Parquet to FILE")
    parser.add_argument(
        "--timeout",
        type=connection.seconds,
        default=10.0,
        metavar="S",
        help="read: seconds for each 8 MB (default: 10)",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="read: configuration of the session")


def run(args: argparse.Namespace) -> int:
    """Does what `action` says."""
    if find_spec("pyarrow") is None:
        raise CliError("the store needs pyarrow, which is not installed", "in a clone of Elea: pip install '.[broker]'")
    if args.action == "read":
        from elea.cli.store_read import run as read

        return read(args, Output(args))
    args.directory = Path(args.directory)
    if args.action in ("export", "import") and args.file is None:
        raise CliError(f"{args.action} needs a FILE", f"elea store {args.action} {args.directory} samples.arrows", 2)
    actions = {"info": _info, "verify": _verify, "export": _export, "import": _import, "compact": _compact}
    with _failures():
        return actions[args.action](args, Output(args))


def _position(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("a position is not negative")
    return number


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Errors of the store as errors of the command."""
    try:
        yield
    except StoreInUse as error:
        raise CliError(str(error), "stop the broker first; info, verify and export work beside it", 4) from error
    except StoreCorrupt as error:
        raise CliError(str(error), "--skip-damaged takes what can be read", connection.AT_RISK) from error
    except StoreTrimmed as error:
        raise CliError(str(error), f"--from {error.first}") from error
    except StoreFull as error:
        raise CliError(str(error), "free some space and run it again", connection.AT_RISK) from error
    except StampAhead as error:
        hint = "set the clock of this machine, or --restamp: such samples get the time of now"
        raise CliError(f"{error}; {error.stored} samples were imported before", hint, 4) from error
    except StoreError as error:
        raise CliError(str(error), "elea store verify DIR shows what is wrong") from error
    except InvalidSelector as error:
        raise CliError(str(error), "--time '[2026-01-31T12:00:00Z..now()]'", 2) from error
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", "another FILE or DIR") from error


@contextlib.contextmanager
def _opened(path: Path, *, write: bool = False, create: bool = False) -> Iterator[Log]:
    from elea.store import open_log

    with open_log(path, read_only=not write, create=create) as log:
        yield log


# -- info ------------------------------------------------------------------------------------------------------


def _info(args: argparse.Namespace, out: Output) -> int:
    return max(_info_of(path, out) for path in logs_in(args.directory))


def _info_of(path: Path, out: Output) -> int:
    with _opened(path) as log:
        sizes = log.shelf.sizes()
        facts: dict[str, object] = {
            "path": str(path),
            "epoch": log.epoch,
            "first": log.first,
            "end": log.end,
            "samples": log.end - log.first,
            "keys": log.keys,
            "segments": len(sizes),
            "octets": sum(size for _, _, size, _ in sizes),
            "cursors": log.cursors(),
            "damage": [damage._asdict() for damage in log.damage],
        }
        damage = log.damage
    out.form(facts)
    for name, value in facts.items():
        if name not in ("cursors", "damage"):
            text = size_text(float(str(value))) if name == "octets" else str(value)
            out.line(f"{out.style.paint(name.ljust(12), 'cyan')}{text}")
    for cursor, position in log_cursors(facts).items():
        out.line(f"{out.style.paint('cursor'.ljust(12), 'cyan')}{safe(cursor)} at {position}")
    _show_damage(damage, out)
    return connection.AT_RISK if damage else 0


def log_cursors(facts: dict[str, object]) -> dict[str, int]:
    """The cursors among the facts."""
    cursors = facts["cursors"]
    assert isinstance(cursors, dict)
    return cursors


def _show_damage(damage: list[Damage], out: Output) -> None:
    for one in damage:
        lost = f"positions {one.first} to {one.last} lost" if one.last >= one.first else "no sample lost"
        out.line(f"{out.style.paint('damage'.ljust(12), 'red')}{one.segment} at octet {one.offset}, {lost}: {one.why}")


# -- verify ----------------------------------------------------------------------------------------------------


def _verify(args: argparse.Namespace, out: Output) -> int:
    return max(_verify_of(path, out) for path in logs_in(args.directory))


def _verify_of(path: Path, out: Output) -> int:
    from elea.store.verify import verify

    report = verify(path, lambda done, total: out.progress(f"{100 * done // max(total, 1)} % checked"))
    out.progress("")
    out.form(
        {
            "path": str(path),
            "sound": report.sound,
            "segments": report.segments,
            "blocks": report.blocks,
            "samples": report.samples,
            "octets": report.octets,
            "lost": report.lost,
            "damage": [damage._asdict() for damage in report.damage],
            "torn": [{"segment": name, "offset": offset, "size": size} for name, offset, size in report.torn],
        }
    )
    _show_damage(report.damage, out)
    for name, offset, size in report.torn:
        out.line(f"{'unfinished'.ljust(12)}{name} at octet {offset}, {size} octets: cut when the log is opened next")
    held = f"{report.samples} samples in {report.segments} segments, {size_text(report.octets)}"
    verdict = out.style.paint("sound", "green") if report.sound else out.style.paint(f"{report.lost} lost", "red")
    out.line(f"{verdict}  {path}: {held}")
    return 0 if report.sound else connection.AT_RISK


# -- export, import, compact -----------------------------------------------------------------------------------


def _export(args: argparse.Namespace, out: Output) -> int:
    from elea.store.transfer import export_arrow, export_json

    with _opened(one_log(args.directory)) as log, _stream(args.file, "wb") as target:
        wanted = _range(args)
        if args.format == "json":
            what = f"{export_json(log, wanted, target)} samples"
        else:
            what = size_text(export_arrow(log, wanted, target))
    if args.file != "-":
        out.form({"file": args.file, "written": what})
        out.line(f"{out.style.paint('exported', 'green')}  {what} to {args.file}")
    return 0


def _range(args: argparse.Namespace) -> Range:
    from elea.model.timerange import TimeRange
    from elea.store import Range

    when = None if args.time is None else TimeRange.parse(args.time).resolve(time.time_ns())
    return Range(
        keys=args.key, start=args.start, end=args.end, time=when, limit=args.limit, newest_first=args.newest_first,
        skip_damaged=args.skip_damaged,
    )  # fmt: skip


def _import(args: argparse.Namespace, out: Output) -> int:
    from elea.io.systemrandom import SystemRandom
    from elea.model.node_id import NodeId
    from elea.model.timestamp import Hlc
    from elea.store.transfer import Times, import_arrow, import_json

    check_import(args.directory)
    take = import_json if args.format == "json" else import_arrow
    with _stream(args.file, "rb") as source, _opened(args.directory, write=True, create=True) as log:
        times = Times(log, Hlc(NodeId.random(SystemRandom())), time.time_ns(), restamp=args.restamp)
        count = take(log, source, lambda done: out.progress(f"{done} samples"), times)
        end = log.end
    out.progress("")
    out.form({"imported": count, "end": end, "restamped": times.restamped})
    others = f", {times.restamped} with the time of now" if times.restamped else ""
    out.line(f"{out.style.paint('imported', 'green')}  {count} new samples{others}, the log ends at {end}")
    return 0


def _compact(args: argparse.Namespace, out: Output) -> int:
    return max(_compact_one(path, args, out) for path in logs_in(args.directory))


def _compact_one(path: Path, args: argparse.Namespace, out: Output) -> int:
    from elea.store.disk import DiskShelf

    with _opened(path, write=True) as log:
        assert isinstance(log.shelf, DiskShelf)
        if args.accept_loss:
            log.shelf.accept_loss()
        before = sum(size for _, _, size, _ in log.shelf.sizes())
        log.shelf.roll()  # nobody else writes, so the newest segment can be compacted too
        count = log.compact(lambda done, total: out.progress(f"{done} of {total} segments"))
        after = sum(size for _, _, size, _ in log.shelf.sizes())
    out.progress("")
    out.form({"path": str(path), "compacted": count, "octets_before": before, "octets_after": after})
    saved = f"{size_text(before)} before, {size_text(after)} after"
    out.line(f"{out.style.paint('compacted', 'green')}  {path}: {count} segments, {saved}")
    return 0


@contextlib.contextmanager
def _stream(name: str, mode: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer if mode == "wb" else sys.stdin.buffer
        return
    with open(name, mode) as stream:
        yield stream  # type: ignore[misc]  # a mode that is not spelled out makes it an IO[Any]
