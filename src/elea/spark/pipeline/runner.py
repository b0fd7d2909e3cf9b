"""Running a pipeline: a query for each table and publish, watched until all are done, one fails, or they are stopped.

Every query has a checkpoint and cursors of its own, named after the pipeline and the sink. A run that is cut off
anywhere goes on where it was: tables and brokers leave out what they have.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError, PipelineBusy, PipelineFailed
from elea.spark.pipeline import backfill as backfilling
from elea.spark.pipeline import definitions
from elea.spark.pipeline.query import Query, Static
from elea.spark.pipeline.report import Report
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
        accept_loss: backfill although a log has lost its beginning.
        accept_change: go on although the definition of a table is not the one that its rows were computed with.
        stop: ends the run when set; so does control-C.

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
        with _lock(spec):
            backfilling.settle(spec)
            if backfill:
                backfilling.check(spec, accept_loss=accept_loss)
                backfilling.begin(spec)
                report = _Run(backfilling.rebuilding(spec), spark, progress, stop or threading.Event(), True).go()
                if report.ended == "done":
                    backfilling.ready(spec)
                    backfilling.settle(spec)
                return report
            wanted = _triggered(spec, AVAILABLE_NOW) if once else spec
            notes = definitions.check(spec, accept_change=accept_change)
            return _Run(wanted, spark, progress, stop or threading.Event(), False, notes).go()
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

    def _sinks(self) -> list[Query | Static]:
        return [*self._statics, *self._queries]

    def _start(self) -> None:
        with _starting:
            for sink in self._spec.sinks:
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
        return Report(
            pipeline=self._spec.name,
            file=str(self._spec.file),
            started=self._started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - self._begun,
            ended=ended,
            spark=str(self._spark.version),
            master=str(context.master),
            backfill=self._is_backfill,
            notes=self._notes,
            sinks=tuple(one.report() for one in self._sinks()),
        )


def _triggered(spec: Spec, trigger: str) -> Spec:
    from dataclasses import replace

    return replace(spec, trigger=trigger)


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
