"""One table or publish of a running pipeline: its query, and what Spark reports of it."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import EleaError
from elea.model.limits import MERGED_POSITIONS
from elea.spark.deltaingest import landing
from elea.spark.pipeline.frames import frame_of, landing_source, source_id
from elea.spark.pipeline.maintenance import Upkeep
from elea.spark.pipeline.report import SinkReport
from elea.spark.pipeline.rowsplitter import GOOD
from elea.spark.pipeline.spec import Foreach, Publish, Sink, Spec, Table
from elea.spark.pipeline.tables import TableWriter
from elea.spark.progress import Figures, Progress, figures_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Query", "Static"]

FIGURES: Final = 2000
"""Micro-batches that a report keeps; of a longer run every second, fourth, …"""

LATE: Final = "Python worker failed to connect back"
"""Spark gives a new process ten seconds, however busy the machine is."""

RESTARTS: Final = 10
START_SECONDS: Final = 60.0
PUBLISHED: Final = "published"


class Query:
    """The query of a sink whose rows go on for ever."""

    def __init__(self, spec: Spec, sink: Sink) -> None:
        self.sink = sink
        self._spec = spec
        self._query: Any = None
        self._writer: TableWriter | None = None
        self._upkeep: Upkeep | None = None
        if isinstance(sink, Table):
            self._writer = TableWriter(sink, spec.name)
            self._upkeep = Upkeep(self._writer.targets.values(), sink.retention)
            self._writer.after = self._upkeep
        self._seen = ""
        self._figures: list[Figures] = []
        self._batches = self._late = self._published = self._restarts = 0
        self._losses: dict[str, int] = {}
        self._problem: str | None = None

    def start(self, spark: SparkSession) -> None:
        """Plan and start it, from its checkpoint if there is one; returns when its sources are there."""
        while True:
            try:
                self._query = self._writing(self._frame(spark)).start()
            except Exception as error:
                if LATE in str(error) and self._restarts < RESTARTS:
                    self._restarts += 1
                    continue
                self._problem = cause_of(error)
                raise
            break
        # Each starts several processes, and Spark is not patient with them: one query after the other.
        until = time.monotonic() + START_SECONDS
        while self.is_active and str(self._query.status.get("message")).startswith("Initializing"):
            if time.monotonic() > until:
                break
            time.sleep(0.05)

    def _frame(self, spark: SparkSession) -> DataFrame:
        source = landing_source(self._spec, self.sink)
        if source is None or self._writer is None:
            limit = MERGED_POSITIONS if self.sink.mode == "merge" else None
            return frame_of(spark, self._spec, self.sink.reads, self.sink.name, limit=limit)
        # Samples as they are: nothing has to pass through Spark's rows.
        options = {"sourceId": source_id(self._spec, self.sink.name, source.name), **source.read_options()}
        files, made = landing(spark, None, self._writer.targets[GOOD].directory, options=options)
        self._writer.landed = made.columns
        return files

    def _writing(self, rows: DataFrame) -> Any:
        if self._writer is not None:
            writing = rows.writeStream.foreachBatch(self._writer)
        elif isinstance(self.sink, Foreach):
            function = self.sink.python.load(self._spec.base)
            writing = _counted(rows).writeStream.foreachBatch(lambda batch, number: function(batch, number))
        else:
            assert isinstance(self.sink, Publish)
            writing = _counted(rows).writeStream.format("zenoh").options(**self.sink.write_options())
        place = self._spec.checkpoints / self.sink.name
        writing = writing.outputMode(self._spec.output_mode(self.sink)).option("checkpointLocation", str(place))
        writing = writing.queryName(f"{self._spec.name}-{self.sink.name}-{uuid.uuid4().hex[:8]}")
        if self._spec.is_once:
            return writing.trigger(availableNow=True)
        return writing.trigger(processingTime=self._spec.trigger)

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._query is not None and bool(self._query.isActive)

    @property
    def is_busy(self) -> bool:
        """Whether it is in the middle of a batch."""
        return self.is_active and bool(self._query.status.get("isTriggerActive"))

    def stop(self) -> None:
        """End it here."""
        self._query.stop()

    def has_failed(self, restart: Callable[[Query], None]) -> bool:
        """Whether it has ended with an error; one that is the machine's, not the query's, is answered by a restart."""
        error = None if self._query is None or self._query.isActive else self._query.exception()
        if error is None:
            return False
        if LATE in str(error) and self._restarts < RESTARTS:
            self._restarts += 1
            restart(self)
            return False
        self._problem = cause_of(self._writer.error if self._writer is not None and self._writer.error else error)
        return True

    # -- what Spark reports

    def look(self) -> Iterator[Progress]:
        """What there is since the last look, one for each micro-batch."""
        if self._query is None:
            return
        last = self._query.lastProgress
        if last is None or _form(last)["timestamp"] == self._seen:
            return
        reports = [_form(one) for one in self._query.recentProgress]
        for report in [one for one in reports if one["timestamp"] > self._seen]:
            self._seen = report["timestamp"]
            self._take(report)
            yield Progress([report], self.sink.name)

    def _take(self, report: Mapping[str, Any]) -> None:
        figures = figures_of(report)
        self._figures.append(figures)
        if len(self._figures) > FIGURES:
            del self._figures[1:-1:2]
        self._batches += "addBatch" in (report.get("durationMs") or {})
        self._losses = {**self._losses, **{name: count for name, count in figures.losses.items() if count}}
        for state in report.get("stateOperators") or []:
            self._late += int(state.get("numRowsDroppedByWatermark") or 0)
        observed = (report.get("observedMetrics") or {}).get(PUBLISHED)
        if observed is not None:
            self._published += int(observed["rows"] if isinstance(observed, Mapping) else observed.rows)

    def report(self) -> SinkReport:
        """What it has done in this run."""
        counts: dict[str, Any] = {"rows_in": self._published, "rows_out": self._published}
        if self._writer is not None:
            counts = _counts(self._writer)
        if self._upkeep is not None:
            counts |= {"compactions": self._upkeep.compactions, "removed_files": self._upkeep.removed}
        return SinkReport(
            **_names(self.sink),
            **counts,
            batches=self._batches,
            late=self._late,
            losses=dict(self._losses),
            restarts=self._restarts,
            figures=tuple(self._figures),
            problem=self._problem,
        )


class Static:
    """A sink whose rows are there at once: written when the run starts, in the place of what was there."""

    def __init__(self, spec: Spec, sink: Sink) -> None:
        self.sink = sink
        self._spec = spec
        self._writer = TableWriter(sink, spec.name, is_stream=False) if isinstance(sink, Table) else None
        self._count = 0
        self._problem: str | None = None

    def write(self, spark: SparkSession) -> None:
        """Do it."""
        try:
            self._write(spark)
        except Exception as error:
            self._problem = cause_of(error)
            raise

    def _write(self, spark: SparkSession) -> None:
        rows = frame_of(spark, self._spec, self.sink.reads, self.sink.name)
        if self._writer is not None:
            self._writer.write(rows, str(uuid.uuid4()), 0)
        elif isinstance(self.sink, Foreach):
            self.sink.python.load(self._spec.base)(rows, 0)
        elif isinstance(self.sink, Publish):
            self._count = rows.count()
            rows.write.format("zenoh").mode("append").options(**self.sink.write_options()).save()

    def report(self) -> SinkReport:
        """What was written."""
        counts = {"rows_in": self._count, "rows_out": self._count} if self._writer is None else _counts(self._writer)
        return SinkReport(**_names(self.sink), **counts, batches=1, problem=self._problem)


# -- helpers -----------------------------------------------------------------------------------------------------------


def _counted(rows: DataFrame) -> DataFrame:
    from pyspark.sql.functions import count, lit

    return rows.observe(PUBLISHED, count(lit(1)).alias("rows"))


def _names(sink: Sink) -> dict[str, Any]:
    if isinstance(sink, Table):
        return {"name": sink.name, "kind": "table", "where": str(sink.path)}
    if isinstance(sink, Foreach):
        return {"name": sink.name, "kind": "foreach", "where": str(sink.python)}
    return {"name": sink.name, "kind": "publish", "where": ",".join(sink.connect)}


def _counts(writer: TableWriter) -> dict[str, Any]:
    counts = writer.counts
    return {
        "rows_in": counts.rows_in,
        "rows_out": counts.rows_out,
        "quarantined": counts.quarantined,
        "dropped": counts.dropped,
        "repeated": counts.repeated,
        "rules": dict(Counter(counts.rules)),
        "merged": writer.merged,
    }


def _form(report: Any) -> dict[str, Any]:
    """A report as a dictionary; newer versions of PySpark have a class for it."""
    found: dict[str, Any] = dict(report) if isinstance(report, Mapping) else json.loads(report.json)
    return found


def cause_of(error: BaseException) -> str:
    """What is behind one of Spark's exceptions, in a line; ours are told as they are."""
    if isinstance(error, EleaError):
        return f"{type(error).__name__}: {error}"
    text = str(error)
    ours = re.findall(r"elea\.model\.errors\.(\w+: .+)", text)
    if ours:
        return str(ours[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
