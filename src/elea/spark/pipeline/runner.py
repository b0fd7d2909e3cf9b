"""Running a pipeline: a query for each table and publish, watched until all are done, one fails, or they are stopped.

Every query has a checkpoint and cursors of its own, named after the pipeline and the sink. A run that is cut off
anywhere goes on where it was: tables and brokers leave out what they have.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError, PipelineBusy, PipelineFailed
from elea.spark.pipeline import backfill as backfilling
from elea.spark.pipeline import definitions, rangebackfill
from elea.spark.pipeline.metricspage import serving
from elea.spark.pipeline.query import Query, Static
from elea.spark.pipeline.rangebackfill import Range, RangeTable
from elea.spark.pipeline.report import Report, SinkReport
from elea.spark.pipeline.spec import AVAILABLE_NOW, Spec
from elea.spark.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

POLL_SECONDS: Final = 0.2
FINISH_SECONDS: Final = 30.0
"""How long a batch may take to its end when the run is stopped; after that it is cut off, which does no harm."""

_starting: Final = threading.Lock()
"""Views have names in a session: queries are planned one after the other."""


def run(
    spec: Spec,
    spark: SparkSession | None = None,
    *,
    once: bool = False,
    progress: Callable[[Progress], None] | None = None,
    backfill: bool = False,
    accept_loss: bool = False,
    accept_change: bool = False,
    stop: threading.Event | None = None,
    tables: Sequence[str] = (),
    times: Range | None = None,
    metrics: str | None = None,
    finished: Callable[[Report], None] | None = None,
) -> Report:
    """Run a pipeline.

    ::

        report = run(reading.read("fleet.toml"), once=True)

    Args:
        spark: the session to run in; without it one is made, and stopped in the end.
        once: end when everything is through that was there at the start; as the trigger `available now`.
        progress: called for each new micro-batch of a query.
        backfill: compute all tables anew, from the beginning of the logs, and put the results in their place as new
            versions; publishes are left out. Ends by itself, and the next run goes on from there.
        accept_loss: backfill although a log has lost its beginning, or a range although a log was made anew.
        accept_change: go on although the definition of a table is not the one that its rows were computed with.
        stop: ends the run when set; so does control-C.
        tables: of a backfill: those to compute anew; all, if none is named.
        times: of a backfill: only rows of this range are computed anew, and all others stay.
        metrics: `host:port` of a page for Prometheus.
        finished: called with the report of each run but the last, if the pipeline runs `every` so often.

    Raises:
        PipelineBusy: it runs already.
        PipelineChanged: a table would get rows of two definitions.
        PipelineFailed: a query has ended with an error; all others were stopped. `report` is what was done until then.
        ConfigError: something cannot be done at all.
    """
    from elea.spark.sparksession import session

    is_mine = spark is None
    spark = session(f"elea-{spec.name}") if spark is None else spark
    try:
        if getattr(spark, "_sc", None) is None:
            hint = "run it where the driver is: local, local-cluster, spark://"
            raise ConfigError("session", "a pipeline does not run through Spark Connect", hint)
        runs: list[_Run] = []
        figures = serving(metrics, spec.name, lambda: [one for run in runs for one in run.figures()])
        with _lock(spec), figures:
            backfilling.settle(spec)
            stop = stop or threading.Event()
            if backfill:
                chosen = backfilling.chosen(spec, tables)
                if times is not None:
                    rangebackfill.check(chosen)
                    notes = definitions.check(replace(chosen, publishes=(), foreachs=()), accept_change=accept_change)
                    runs.append(_Run(chosen, spark, progress, stop, True, notes))
                    return runs[-1].go_through(times, accept_loss=accept_loss)
                backfilling.check(chosen, accept_loss=accept_loss)
                backfilling.begin(chosen)
                runs.append(_Run(backfilling.rebuilding(chosen), spark, progress, stop, True))
                report = runs[-1].go()
                if report.ended == "done":
                    backfilling.ready(chosen)
                    backfilling.settle(chosen)
                return report
            is_run_to_the_end = once or spec.every is not None
            wanted = replace(spec, trigger=AVAILABLE_NOW) if is_run_to_the_end else spec
            notes = definitions.check(spec, accept_change=accept_change)
            while True:
                begun = time.monotonic()
                runs[:] = [_Run(wanted, spark, progress, stop, False, notes)]
                report = runs[-1].go()
                if once or spec.every is None or report.ended != "done":
                    return report
                # From beginning to beginning, as a clock has it; a run that takes longer is followed at once.
                if stop.wait(max(begun + spec.every.seconds - time.monotonic(), 0)):
                    return report
                if finished is not None:
                    finished(report)
                notes = ()
    finally:
        if is_mine:
            spark.stop()


class _Run:
    """One run of all queries."""

    def __init__(
        self,
        spec: Spec,
        spark: SparkSession,
        progress: Callable[[Progress], None] | None,
        stop: threading.Event,
        is_backfill: bool,
        notes: tuple[str, ...] = (),
    ) -> None:
        self._spec = spec
        self._spark = spark
        self._progress = progress
        self._stop = stop
        self._is_backfill = is_backfill
        self._notes = notes
        self._queries: list[Query] = []
        self._statics: list[Static] = []
        self._started = datetime.now(UTC)
        self._begun = time.monotonic()

    def go_through(self, times: Range, *, accept_loss: bool) -> Report:
        """Compute a range of each table anew."""
        found = [RangeTable(self._spec, table, times, accept_loss=accept_loss) for table in self._spec.tables]
        with _starting:  # whatever is refused is refused before a table is touched
            for one in found:
                one.prepare(self._spark)
        self._statics += found
        return self.go()

    def go(self) -> Report:
        """Start everything, watch it, end it."""
        ended, cause = "failed", None
        try:
            self._start()
            ended = self._watch()
        except KeyboardInterrupt:
            ended = "stopped"
        except Exception as error:
            cause = error
            if not any(one.report().problem for one in self._sinks()):
                raise
        finally:
            self._end()
        report = self._report(ended)
        for one in report.sinks:
            if one.problem is not None:
                raise PipelineFailed(one.name, one.problem, report) from cause
        return report

    def figures(self) -> list[SinkReport]:
        """What there is to say of the run while it goes on."""
        return [one.report() for one in self._sinks()]

    def _sinks(self) -> list[Query | Static]:
        return [*self._statics, *self._queries]

    def _start(self) -> None:
        with _starting:
            for one in self._statics:
                one.write(self._spark)
            for sink in () if self._statics else self._spec.sinks:
                if self._spec.is_stream(sink.reads):
                    query = Query(self._spec, sink)
                    self._queries.append(query)
                    query.start(self._spark)
                elif not self._is_backfill:
                    static = Static(self._spec, sink)
                    self._statics.append(static)
                    static.write(self._spark)
            for view in self._spec.views:
                self._spark.catalog.dropTempView(view)

    def _watch(self) -> str:
        while True:
            for query in self._queries:
                for one in query.look():
                    if self._progress is not None:
                        self._progress(one)
            if any(query.has_failed(self._restart) for query in self._queries):
                return "failed"
            if not any(query.is_active for query in self._queries):
                return "done"
            if self._stop.wait(POLL_SECONDS):
                return "stopped"

    def _restart(self, query: Query) -> None:
        with _starting:
            query.start(self._spark)
            for view in self._spec.views:
                self._spark.catalog.dropTempView(view)

    def _end(self) -> None:
        """Stop what runs, between two batches if that comes soon."""
        until = time.monotonic() + FINISH_SECONDS
        waiting = [query for query in self._queries if query.is_active]
        while waiting and time.monotonic() < until:
            for query in list(waiting):
                if not query.is_busy:
                    query.stop()
                    waiting.remove(query)
            time.sleep(POLL_SECONDS / 4)
        for query in waiting:
            query.stop()
        for query in self._queries:
            for one in query.look():
                if self._progress is not None:
                    self._progress(one)

    def _report(self, ended: str) -> Report:
        context: Any = self._spark.sparkContext
        hide = self._spec.variables.hide
        return Report(
            pipeline=self._spec.name,
            file=str(self._spec.file),
            started=self._started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - self._begun,
            ended=ended,
            spark=str(self._spark.version),
            master=str(context.master),
            backfill=self._is_backfill,
            notes=tuple(map(hide, self._notes)),
            sinks=tuple(
                replace(one, where=hide(one.where), problem=one.problem and hide(one.problem))
                for one in (sink.report() for sink in self._sinks())
            ),
        )


@contextlib.contextmanager
def _lock(spec: Spec) -> Iterator[None]:
    """One run at a time: two drivers would take turns in committing the same batches."""
    import fcntl

    spec.checkpoints.mkdir(parents=True, exist_ok=True)
    with (spec.checkpoints / ".lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise PipelineBusy(spec.name, str(spec.checkpoints), file.read() or "process unknown") from error
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
