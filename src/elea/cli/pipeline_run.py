"""`elea pipeline run`: a pipeline in this process, watched while it runs; Ctrl-C ends it in good order."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.cli.output import Output, safe
from elea.cli.pipeline import read_file, session
from elea.cli.style import CliError, Style, print_end

if TYPE_CHECKING:
    from elea.spark.pipeline.report import Report
    from elea.spark.progress import Figures, Progress

__all__ = ["run"]

REFUSED: Final = 4
STATUS_INTERRUPTED: Final = 130


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the pipeline of FILE until it ends or is told to, and prints its report."""
    if args.table and not args.backfill:
        raise CliError("--table is for --backfill", f"elea pipeline run {args.file} --backfill --table NAME", 2)
    is_range = args.since is not None or args.until is not None or args.by is not None
    if is_range and (not args.backfill or args.since is None or args.until is None):
        example = f"elea pipeline run {args.file} --backfill --from 2026-03-01T00:00:00Z --until 2026-03-02T00:00:00Z"
        raise CliError("--from and --until are the two ends of a range for --backfill", example, 2)
    read_file(args, out)  # a file that is wrong by itself costs no start of Spark

    from pyspark import SparkContext
    from pyspark.errors import PySparkException

    from elea.model.errors import PipelineBusy, PipelineChanged, PipelineFailed
    from elea.spark.pipeline import runner
    from elea.spark.pipeline.query import cause_of
    from elea.spark.pipeline.rangebackfill import Range
    from elea.spark.pipeline.report import Report

    times = Range.parse(args.since, args.until, args.by) if is_range else None
    is_mine = SparkContext._active_spark_context is None
    watch = _Watch(out)
    with _told_to_end() as (stop, catch_again):
        spark = session(args, out)
        catch_again()  # Spark has taken Ctrl-C for itself
        try:
            # Spark would say the same when it starts the queries, but not in which line.
            spec = read_file(args, out, lambda: spark)
            report = runner.run(
                spec,
                spark,
                once=args.once,
                progress=watch,
                backfill=args.backfill,
                accept_loss=args.accept_loss,
                accept_change=args.accept_change,
                stop=stop,
                tables=args.table,
                times=times,
                metrics=args.metrics,
                finished=lambda one: _report(one, args, out),
            )
        except PipelineBusy as error:
            raise CliError(str(error), "one run at a time; elea pipeline plan shows what it does", REFUSED) from error
        except PipelineChanged as error:
            raise CliError(safe(str(error)), f"elea pipeline run {args.file} --backfill", REFUSED) from error
        except PipelineFailed as error:
            out.progress("")
            if isinstance(error.report, Report):
                _report(error.report, args, out)
            raise CliError(
                safe(str(error)), f"elea pipeline check {args.file}; then run it again: it goes on there"
            ) from error
        except PySparkException as error:
            raise CliError(safe(cause_of(error)), f"elea pipeline check {args.file}") from error
        finally:
            out.progress("")
            if is_mine:
                spark.stop()
    _report(report, args, out)
    return 0


@contextlib.contextmanager
def _told_to_end() -> Iterator[tuple[threading.Event, Callable[[], None]]]:
    """Ctrl-C and SIGTERM let micro-batches come to their end; a second time they do not. While Spark starts there are
    none, and they end everything at once.

    Yields what they set, and a function that says that Spark runs, and takes them back from it.
    """
    stop = threading.Event()
    running = False

    def handle(*_: object) -> None:
        if not running:
            _end_at_once()
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    caught = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = [signal.getsignal(one) for one in caught]

    def catch_again() -> None:
        nonlocal running
        running = True
        for one in caught:
            signal.signal(one, handle)

    for one in caught:
        signal.signal(one, handle)
    root = logging.getLogger()
    root.addFilter(_is_no_interrupt)
    try:
        yield stop, catch_again
    finally:
        root.removeFilter(_is_no_interrupt)
        for one, handler in zip(caught, before, strict=True):
            signal.signal(one, handler)


def _end_at_once() -> None:
    """End this process and the Java it is starting.

    An exception would go through the middle of py4j, which tells of it at length, and leave a Java behind that has lost
    its program, complains of that, and stays.
    """
    print_end("elea pipeline: interrupted", Style.for_stream(sys.stderr), as_json=False)
    for children in Path("/proc/self/task").glob("*/children"):  # Linux; elsewhere Java ends when it finds out
        for pid in children.read_text().split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
    os._exit(STATUS_INTERRUPTED)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Whether a line is not that of py4j with which it tells of Ctrl-C, a traceback long."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


class _Watch:
    """Shows micro-batches: one line for all queries on a terminal, an object each with `--json`."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._newest: dict[str, Figures] = {}

    def __call__(self, progress: Progress) -> None:
        if not progress.figures:
            return
        newest = self._newest[progress.name] = progress.figures[-1]
        self._out.form({"event": "batch", "query": progress.name, **dataclasses.asdict(newest)})
        parts = [f"{name} #{one.batch} {one.done_per_second:,.0f}/s{_lag(one)}" for name, one in self._newest.items()]
        width = shutil.get_terminal_size().columns - 1
        self._out.progress(" · ".join(parts)[:width])


def _lag(figures: Figures) -> str:
    return f" lag {figures.lag:,}" if figures.lag else ""


def _report(report: Report, args: argparse.Namespace, out: Output) -> None:
    from elea.spark.pipeline.report import html

    out.form({"event": "report", **report.form()})
    for line in report.lines():
        out.line(safe(line))
    if args.report is not None:
        Path(args.report).write_text(html(report), encoding="utf-8")
        out.line(f"report with plots in {args.report}")
