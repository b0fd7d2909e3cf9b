"""`elea store read LOCATOR KEYEXPR`: what a running broker has stored, over a session: printed, or into a file.

Exit codes: 0 done, 1 there is none, 3 nobody could be reached, 5 something is damaged.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from elea.cli import connection
from elea.cli.output import Output, sample_form
from elea.cli.style import CliError
from elea.model.errors import (
    InvalidSelector,
    NotStored,
    OperationTimeout,
    StoreCorrupt,
    StoreError,
    StoreReplaced,
    StoreTrimmed,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api.config import Config
    from elea.api.rangereader import Reading

__all__ = ["run"]

Write = Callable[["pa.RecordBatch"], None]


def run(args: argparse.Namespace, out: Output) -> int:
    """Reads the range and prints it, or writes it to a file."""
    if args.arrow is not None and args.parquet is not None:
        raise CliError("--arrow and --parquet both say what to write", "one of them", connection.USAGE)
    with connection.open_session(_config(args)) as session, _failures(args):
        reading = session.read(
            args.file, start=args.start, end=args.end, time=args.time, limit=args.limit,
            newest_first=args.newest_first, skip_damaged=args.skip_damaged, timeout=args.timeout,
        )  # fmt: skip
        with reading:
            return _read(reading, args, out)


def _config(args: argparse.Namespace) -> Config:
    try:
        locator, key = connection.locator(args.directory), connection.check_key(args.file or "")
    except argparse.ArgumentTypeError as error:
        example = "elea store read tcp/127.0.0.1:7447 'home/**'"
        raise CliError(str(error), example, connection.USAGE) from error
    args.file = key
    config = connection.base_config(args)
    with connection.config_errors():
        for path, value in (
            ("mode", "client"),
            ("connect/endpoints", [locator]),
            ("scouting/multicast/enabled", False),
        ):
            config.insert_json5(path, json.dumps(value))
    return config


def _read(reading: Reading, args: argparse.Namespace, out: Output) -> int:
    file = args.arrow or args.parquet
    rows = 0
    with _target(reading, args, out) as write:
        for batch in reading:
            write(batch)
            rows += batch.num_rows
            if file is not None:
                out.progress(_progress(rows, reading, args))
    out.progress("")
    if file is not None and file != "-":
        facts = {"file": file, "samples": rows, "log": reading.log, "epoch": reading.epoch}
        out.form({**facts, "first": reading.first, "next": reading.next, "end": reading.end})
        out.line(f"{out.style.paint('read', 'green')}  {rows} samples of log {reading.log} to {file}")
    if not rows and file is None:
        raise CliError(f"nothing of {args.file} in that range", "elea get '@store/info/**'  tells what there is", 1)
    return 0


def _progress(rows: int, reading: Reading, args: argparse.Namespace) -> str:
    """How far it is: by positions, since nobody knows how many of them are samples of these keys."""
    start = reading.first or 0 if args.start is None else args.start
    end = reading.end or 0 if args.end is None else min(args.end, reading.end or 0)
    at = reading.next or 0
    done = end - at if args.newest_first else at - start
    share = 100 * done // max(end - start, 1)
    if args.limit is not None:
        share = max(share, 100 * rows // args.limit)
    return f"{rows} samples, {min(max(share, 0), 100)} %"


# -- where it goes -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _target(reading: Reading, args: argparse.Namespace, out: Output) -> Iterator[Write]:
    if args.arrow is None and args.parquet is None:
        yield lambda batch: _print(batch, out)
    elif args.arrow == "-":
        with _file(sys.stdout.buffer, reading, parquet=False) as write:
            yield write
    else:
        file = args.arrow or args.parquet
        part = f"{file}.part"  # what was not read to its end must not look as if it were
        try:
            with open(part, "wb") as stream, _file(stream, reading, parquet=args.arrow is None) as write:
                yield write
            os.replace(part, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise


@contextlib.contextmanager
def _file(stream: Any, reading: Reading, *, parquet: bool) -> Iterator[Write]:
    """Batches as an Arrow IPC stream or as Parquet; a range without samples is a file without rows."""
    import pyarrow as pa

    writer: Any = None

    def begin(schema: pa.Schema) -> Any:
        if not parquet:
            return pa.ipc.new_stream(stream, schema)
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(stream, schema, compression="zstd")

    def write(batch: pa.RecordBatch) -> None:
        nonlocal writer
        writer = begin(batch.schema) if writer is None else writer
        writer.write_batch(batch)

    try:
        yield write
        if writer is None and reading.schema is not None:
            writer = begin(reading.schema)
    finally:
        if writer is not None:
            writer.close()


def _print(batch: pa.RecordBatch, out: Output) -> None:
    from elea.api.stored import samples_of

    for sample in samples_of(batch):
        if out.json:
            out.form({"position": sample.position, **sample_form(sample)})
        else:
            out.line(f"{out.style.paint(str(sample.position).rjust(10), 'dim')}  {out.sample_line(sample)}")


@contextlib.contextmanager
def _failures(args: argparse.Namespace) -> Iterator[None]:
    """What can go wrong with the range, and what to do about it."""
    try:
        yield
    except StoreTrimmed as error:
        raise CliError(str(error), f"--from {error.first}") from error
    except StoreCorrupt as error:
        raise CliError(str(error), "--skip-damaged takes what can be read", connection.AT_RISK) from error
    except NotStored as error:
        hint = f"elea broker --store DIR --persist '{args.file}'   keeps it from now on"
        raise CliError(str(error), hint) from error
    except StoreReplaced as error:
        raise CliError(str(error), "read it again from the start of the new log", connection.AT_RISK) from error
    except OperationTimeout as error:
        raise CliError(str(error), "--timeout for more time, or a smaller range", connection.UNREACHABLE) from error
    except StoreError as error:
        raise CliError(str(error), "elea get '@store/info/**'  tells which logs there are") from error
    except InvalidSelector as error:
        raise CliError(str(error), "--time '[2026-01-31T12:00:00Z..now()]'", connection.USAGE) from error
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", "another FILE") from error
