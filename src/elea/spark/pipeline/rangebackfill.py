"""A backfill of a range of time: rows of a table whose time lies in it are computed anew, all others stay as they are.

What the table has got so far is read once more as a batch, up to the place in the log that its query has reached, and
goes through the steps into a table beside (`<path>_range`). Then one commit takes the rows of the range out of the
table and puts the new ones in. The checkpoint is left alone: the next run goes on where it was. Cut off anywhere, the
table is as before or as after; asked for again, all of it is done again and gives the same.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError, TableConflict
from elea.spark.logs import Logs
from elea.spark.offsets import Offset, Place, form_of, parse
from elea.spark.options import ReadOptions
from elea.spark.pipeline.frames import frame_of
from elea.spark.pipeline.problem import nearest
from elea.spark.pipeline.query import Static
from elea.spark.pipeline.spec import Source, Spec, Table
from elea.spark.pipeline.tables import TableWriter, targets_of
from elea.spark.pipeline.targets import DeltaTarget
from elea.spark.sessions import close_all
from elea.spark.tableplaces import beside, remove
from elea.spark.texts import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Range", "RangeTable", "check"]

TIMESTAMP: Final = "timestamp"
WHOLE: Final = "make it anew as a whole: run --backfill without --from and --until"

_log: Final = logging.getLogger("elea.spark")


@dataclass(frozen=True, slots=True)
class Range:
    """From a time on, up to another, which is not included; in microseconds since 1970, as rows have them."""

    begin_us: int
    end_us: int
    by: str | None = None
    """The column of the table that says which time a row is of; None for the time of its sample."""

    @classmethod
    def parse(cls, begin: str, end: str, by: str | None = None) -> Range:
        """A range from times as options of the source have them.

        Raises:
            ConfigError: they are none.
        """
        found = []
        for name, text in (("--from", begin), ("--until", end)):
            try:
                found.append(instant(text) // 1000)
            except ValueError as error:
                raise ConfigError(name, f"{text!r} does not do: {error}", "such as 2026-03-01T00:00:00Z") from error
        if found[0] >= found[1]:
            raise ConfigError("--until", f"{end} is not behind {begin}", "the end of the range is not included")
        return cls(found[0], found[1], by)

    def condition(self, column: str) -> str:
        """As SQL, in the words that Spark, Delta and predicates have in common."""
        return f"{column} >= '{_iso(self.begin_us)}' AND {column} < '{_iso(self.end_us)}'"

    def __str__(self) -> str:
        return f"{_iso(self.begin_us)} to {_iso(self.end_us)}"


def _iso(microseconds: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def check(spec: Spec) -> None:
    """Look whether a part of each table can be computed by itself.

    Raises:
        ConfigError: it cannot, and what to do about it.
    """
    for table in spec.tables:
        path = f"range of table {table.name}"
        if table.format != "delta" or table.mode != "append":
            what = "parquet" if table.format != "delta" else f'mode = "{table.mode}"'
            raise ConfigError(path, f"{what} has no rows that can be computed by themselves", WHOLE)
        if not spec.is_stream(table.reads):
            raise ConfigError(path, "every run writes it anew", "run the pipeline without --backfill")
        if len(_streams(spec, table)) != 1:
            raise ConfigError(path, "several streams are put together in it", WHOLE)
        if (spec.checkpoints / table.name / "state").is_dir():
            raise ConfigError(path, "it is computed over several samples: windows, groups or joins of streams", WHOLE)


def _streams(spec: Spec, table: Table) -> list[Source]:
    return [one for one in spec.upstream(table.reads) if isinstance(one, Source) and one.is_stream]


class RangeTable(Static):
    """A table of which a range is computed anew when the run starts."""

    def __init__(self, spec: Spec, table: Table, times: Range, *, accept_loss: bool) -> None:
        path = beside(table.path, "_range")
        staged = replace(table, path=path, quarantine=beside(path, "_quarantine"))
        super().__init__(spec, table)
        self._table = table
        self._staged = staged
        self._times = times
        self._accept_loss = accept_loss
        self._planned: tuple[str, DataFrame] | None = None
        self._writer = TableWriter(staged, spec.name, is_stream=False)

    def prepare(self, spark: SparkSession) -> None:
        """Find out what is to be read.

        Raises:
            ConfigError: the range cannot be computed by itself.
        """
        self._planned = self._rows(spark)

    def _write(self, spark: SparkSession) -> None:
        assert self._writer is not None
        assert self._planned is not None, "prepare comes first"
        column, rows = self._planned
        self._clear()  # of one that was killed
        try:
            self._writer.write(rows, str(uuid.uuid4()), 0)
            for name, target in targets_of(self._table, self._spec.name).items():
                staged = self._writer.targets[name]
                if isinstance(target, DeltaTarget) and isinstance(staged, DeltaTarget):
                    self._replace(target, staged, column)
        finally:
            self._clear()

    def _clear(self) -> None:
        for target in targets_of(self._staged, self._spec.name).values():
            remove(target.directory)

    def _replace(self, target: DeltaTarget, staged: DeltaTarget, column: str) -> None:
        """Take the rows of the range out of a table and put those in that are staged, as one commit."""
        import pyarrow as pa
        from deltalake import CommitProperties, DeltaTable, write_deltalake
        from deltalake.exceptions import CommitFailedError

        rows = pa.RecordBatchReader.from_stream(DeltaTable(staged.path).scan())
        target.open(rows.schema)  # adds the columns that are new
        try:
            write_deltalake(
                DeltaTable(target.path),
                rows,
                mode="overwrite",
                predicate=self._times.condition(f"`{column}`"),
                # Another writer in between is told to whoever asked, who can ask again.
                commit_properties=CommitProperties(
                    custom_metadata={"elea.backfill": str(self._times)}, max_commit_retries=0
                ),
            )
        except CommitFailedError as error:
            raise TableConflict(target.path, 0, None) from error
        _log.info("range replaced: table=%s times=%s", target.path, self._times)

    # -- what is read

    def _rows(self, spark: SparkSession) -> tuple[str, DataFrame]:
        """The column that has the time, and the rows of the range."""
        table, (source,) = self._table, _streams(self._spec, self._table)
        done = self._done(source)
        options = ReadOptions.parse(source.read_options())
        try:
            logs = Logs(options)
            heads = logs.heads()
            start = {log: Place(head.epoch, head.first) for log, head in heads.items()}
            if options.starting_timestamp is not None:
                start = _later(start, logs, options.starting_timestamp)
            end = _ends(table.name, start, done, accept_loss=self._accept_loss)
            rows = self._frame(spark, source, start, end)
            column = self._column(rows, source)
            # The time of a row is that of its sample, if Spark says so: then the broker can leave out the others.
            is_stamp = _is_stamp(spark, rows, column, source, self._spec.upstream(table.reads))
            first = {log: head.first for log, head in heads.items() if head.first > 0}
            if is_stamp:
                start = _later(start, logs, self._times.begin_us * 1000)
                first = {log: at for log, at in first.items() if start[log].next <= at}
                rows = self._frame(spark, source, start, end, self._times.condition(TIMESTAMP))
            else:
                _log.warning("the whole log is read: table=%s column=%s is not the samples' own", table.name, column)
        finally:
            close_all()
        if first and not self._accept_loss:
            log, at = next(iter(first.items()))
            hint = "choose a later --from, or accept with --accept-loss that the table loses rows of the range"
            problem = f"log {log} begins at position {at}: retention has removed samples that may be of this time"
            raise ConfigError(f"range of table {table.name}", problem, hint)
        return column, rows.where(self._times.condition(f"`{column}`"))

    def _done(self, source: Source) -> Offset:
        """Up to where the query of the table has read: what it reads later is not to be there twice."""
        from deltalake import DeltaTable

        table, place = self._table, self._spec.checkpoints / self._table.name
        target = targets_of(table, self._spec.name)["good"]
        path = f"range of table {table.name}"
        if not isinstance(target, DeltaTarget) or not DeltaTable.is_deltatable(target.path) or not place.is_dir():
            raise ConfigError(path, "nothing has been computed so far", "run the pipeline without --backfill")
        numbers = [int(one.name) for one in (place / "commits").glob("*") if one.name.isdigit()]
        query = str(json.loads((place / "metadata").read_text(encoding="utf-8").splitlines()[-1])["id"])
        # The table may have a batch of which Spark does not know yet, and Spark batches that had no rows.
        written = target.last_batch(query)
        last = max([*numbers, *([] if written is None else [written])], default=None)
        offsets = None if last is None else _offsets(place / "offsets" / str(last))
        if offsets is None:
            raise ConfigError(path, f"its checkpoint {place} does not say how far it has come", WHOLE)
        return offsets

    def _frame(
        self, spark: SparkSession, source: Source, start: Offset, end: Offset, condition: str | None = None
    ) -> DataFrame:
        options = {"startingOffsets": json.dumps(form_of(start)), "endingOffsets": json.dumps(form_of(end))}
        own = next((text for name, text in source.options.items() if name.lower() == "predicate"), None)
        if condition is not None:
            options["predicate"] = condition if own is None else f"({own}) AND {condition}"
        return frame_of(spark, self._spec, self._table.reads, self._table.name, batch=options)

    def _column(self, rows: DataFrame, source: Source) -> str:
        types = {field.name: field.dataType.typeName() for field in rows.schema.fields}
        wanted = [self._times.by] if self._times.by is not None else [TIMESTAMP, source.event_column]
        found = next((name for name in wanted if types.get(name) == "timestamp"), None)
        if found is None:
            times = [name for name, kind in types.items() if kind == "timestamp"]
            hint = f"name it with --by: {nearest(wanted[0], times)}" if times else WHOLE
            problem = f"it has no column of times called {' or '.join(dict.fromkeys(wanted))}"
            raise ConfigError(f"range of table {self._table.name}", problem, hint)
        return found


# -- helpers -----------------------------------------------------------------------------------------------------------


def _later(start: Offset, logs: Logs, time_ns: int) -> Offset:
    """Places from which on there are samples of a time, if they are behind others."""
    return {log: Place(one.epoch, max(one.next, logs.position_at(log, time_ns))) for log, one in start.items()}


def _ends(table: str, start: Offset, done: Offset, *, accept_loss: bool) -> Offset:
    """Up to where logs are read: as far as the query has come.

    Of a log that it does not know, or that was made anew, it has read nothing: the next run begins there.

    Raises:
        ConfigError: rows of the range came out of a log that is not there any more, and nobody has accepted that.
    """
    gone = [log for log, place in done.items() if log not in start or start[log].epoch != place.epoch]
    if gone and not accept_loss:
        log = gone[0]
        what = f"was made anew, with the epoch {start[log].epoch}" if log in start else "is offered by no broker"
        problem = f"log {log} {what}: the table was computed from its epoch {done[log].epoch}, which cannot be read"
        hint = "bring that log back, or accept with --accept-loss that the table loses the rows of the range from it"
        raise ConfigError(f"range of table {table}", problem, hint)
    return {
        log: Place(one.epoch, done[log].next if log in done and log not in gone else one.next)
        for log, one in start.items()
    }


def _offsets(file: Path) -> Offset | None:
    """The offset in one of Spark's notes, if it has one source: a version, facts of the batch, a line each source."""
    try:
        version, _, *sources = file.read_text(encoding="utf-8").splitlines()
        form: Mapping[str, Any] = json.loads(sources[0])
    except (OSError, ValueError, IndexError):
        return None
    return parse(form) if version == "v1" and len(sources) == 1 else None


def _is_stamp(spark: SparkSession, rows: DataFrame, column: str, source: Source, views: tuple[Any, ...]) -> bool:
    """Whether a column is that of the source, passed on as it is: it has the same id, and nothing is read twice."""
    table: Any = rows
    here: Any = spark.table(source.name)
    mine = _ids(here).get(TIMESTAMP)
    leaves = table._jdf.queryExecution().analyzed().collectLeaves().size()
    sources = sum(isinstance(one, Source) for one in views)
    return mine is not None and _ids(table).get(column) == mine and leaves == sources


def _ids(rows: Any) -> dict[str, str]:
    found = rows._jdf.queryExecution().analyzed().output()
    return {found.apply(at).name(): found.apply(at).exprId().toString() for at in range(found.size())}
