"""Streams into Delta tables, exactly once, without a Delta package for Spark: through `deltalake`.

::

    query = elea.spark.delta.write(df, "tables/bronze", checkpoint="checkpoints/bronze")
    # the same in Spark's own words:
    writer = elea.spark.delta.writer("tables/bronze")
    query = df.writeStream.foreachBatch(writer).option("checkpointLocation", "checkpoints/bronze").start()

Executors write files, the driver commits them all at once, together with the number of the batch under the name of the
query (an app transaction). A batch that comes again, because Spark died before it had noted it, is found there and left
out. Files that nobody committed are invisible to every Delta reader: DuckDB, Polars, pandas, Spark.
The place is a directory that all executors see, or in an object store (`elea.spark.tableplaces`).
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError, TableConflict
from elea.spark.arrowmap import ArrowMap
from elea.spark.deltafiles import DELTA, RESULT, Written, gathered, task
from elea.spark.deltaschema import HINT, fitted
from elea.spark.schema import nullable
from elea.spark.tableplaces import is_remote, place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Counts", "DeltaWriter", "start", "write", "writer"]

COMPACT_EVERY: Final = 300
"""Batches between two compactions: opening a table of 900 small commits takes four times as long as of 100."""

LOG_RETENTION: Final = "interval 7 days"
"""How long a table remembers its versions; Delta's own 30 days are a million files at a batch a second."""

PARTITIONS: Final = ("string", "integer", "long", "short", "byte", "boolean", "date")
"""Types of columns that a table can be partitioned by."""

CLUSTERS: Final = (*PARTITIONS, "timestamp", "float", "double", "binary")
"""Types of columns that a table can be sorted by."""

_log: Final = logging.getLogger("elea.spark")


@dataclass
class Counts:
    """What a writer has done since it was made."""

    batches: int = 0
    rows: int = 0
    files: int = 0
    repeated: int = 0
    """Batches that were in the table already, and were left out."""
    compactions: int = 0


class DeltaWriter:
    """A function for `foreachBatch` that appends each batch to a Delta table once; see `writer`."""

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "elea",
        query_id: str | None = None,
        checkpoint: str | Path | None = None,
        adopt: bool = False,
        compact_every: int | None = COMPACT_EVERY,
        log_retention: str = LOG_RETENTION,
        partition_by: str | Sequence[str] = (),
        cluster_by: str | Sequence[str] = (),
        evolve: bool = False,
    ) -> None:
        self.path = place_of(path)
        self.partition_by = _names(partition_by)
        self.cluster_by = _names(cluster_by)
        self.name = name
        self.counts = Counts()
        self._query_id = query_id
        self._checkpoint = checkpoint
        self._adopt = adopt
        self._compact_every = compact_every
        self._evolve = evolve
        self._configuration = {"delta.logRetentionDuration": log_retention}
        self._hint = HINT
        self._map = ArrowMap()

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Append a batch, unless it is in the table.

        Raises:
            ConfigError: the rows do not fit the table, or another query has written it under this name.
            TableConflict: another driver has committed this batch in the meantime.
        """
        table, schema = self._table(self._shape(rows))
        query = self._query_id or query_of(rows) or noted(self._checkpoint)
        if query is not None and self._is_done(table, query, batch_id):
            self._pass_over(rows)
            return
        found = self._written(rows, schema)
        if not found:
            return
        if query is None:  # tasks may know it
            query = found[0].query
            if query is None:
                hint = "give the writer the checkpoint of the query, as a directory that the server sees, or a query_id"
                raise ConfigError("query_id", "behind Spark Connect nobody says which query this is", hint)
            if self._is_done(table, query, batch_id):
                return
        files = list(gathered(map(_written, found), {"": (self.path, DELTA)}))
        self._commit(table, schema, files, query, batch_id)
        self.counts.batches += 1
        self.counts.rows += sum(file.rows for file in files)
        self.counts.files += len(files)
        if self._compact_every and batch_id and batch_id % self._compact_every == 0:
            self.compact()

    def _shape(self, rows: DataFrame) -> pa.Schema:
        """The columns of the table."""
        return schema_of(rows)

    def _written(self, rows: DataFrame, schema: pa.Schema) -> list[Any]:
        """Write the rows of a batch to files; what came of it (`deltafiles.RESULT`)."""
        octets = schema.serialize().to_pybytes()
        work = partial(task, directory=self.path, schema=octets, partition_by=self.partition_by)
        found = self._map(rows, work, RESULT)
        self._map.note(sum(one.rows for one in found), sum(one.octets for one in found))
        return found

    def _pass_over(self, rows: DataFrame) -> None:
        """What to do with a batch that the table has: it is computed all the same.

        Spark refuses to go on if the state of an aggregation is not, and learns from it how far time has come.
        """
        rows.write.format("noop").mode("overwrite").save()

    def compact(self) -> None:
        """Make few large files of many small ones. What was read before stays readable."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(self.path)
            if self.cluster_by:
                table.optimize.z_order(list(self.cluster_by))
            else:
                table.optimize.compact()
            table.create_checkpoint()
            table.cleanup_metadata()
        except DeltaError as error:  # somebody else may be at it; there is a next time
            _log.warning("table not compacted: table=%s problem=%s", self.path, error)
        else:
            self.counts.compactions += 1

    # -- the table -----------------------------------------------------------------------------------------------------

    def _table(self, schema: pa.Schema) -> tuple[DeltaTable, pa.Schema]:
        """The table, made if there is none, and the columns with which rows are written into it."""
        from deltalake import DeltaTable

        self._check_columns(schema)
        if not DeltaTable.is_deltatable(self.path):
            if not is_remote(self.path):
                Path(self.path).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                self.path,
                schema,
                mode="ignore",
                partition_by=list(self.partition_by),
                configuration=self._configuration,
            )
        table = DeltaTable(self.path)
        have = tuple(table.metadata().partition_columns)
        if have != self.partition_by:
            told = f"it is partitioned by {', '.join(have) or 'nothing'}"
            raise ConfigError(f"table {self.path}", told, "say the same in partition_by, or choose another path")
        return table, fitted(self.path, table, schema, evolve=self._evolve, hint=self._hint)

    def _check_columns(self, schema: pa.Schema) -> None:
        from deltalake import Schema

        kinds = {field.name: str(getattr(field.type, "type", field.type)) for field in Schema.from_arrow(schema).fields}
        for name in self.partition_by:
            if kinds.get(name) not in PARTITIONS:
                problem = f"it is {kinds[name]}" if name in kinds else "there is no such column"
                hint = f"partition by columns of these types: {', '.join(PARTITIONS)}"
                raise ConfigError(f"partition_by {name} of table {self.path}", problem, hint)
        for name in self.cluster_by:
            if kinds.get(name) not in CLUSTERS:
                problem = f"it is {kinds[name].split('(')[0]}" if name in kinds else "there is no such column"
                hint = f"cluster by columns of these types: {', '.join(CLUSTERS)}"
                raise ConfigError(f"cluster_by {name} of table {self.path}", problem, hint)
            if name in self.partition_by:
                hint = "cluster by other columns: those in a directory have the same value there"
                raise ConfigError(f"cluster_by {name} of table {self.path}", "the table is partitioned by it", hint)

    def _is_done(self, table: DeltaTable, query: str, batch_id: int) -> bool:
        """Whether the table has the batch. The answer and the commit must come from the same look at the table."""
        last = table.transaction_version(self._app_id(query))
        if last is not None:
            if last < batch_id:
                return False
            self.counts.repeated += 1
            _log.info("batch left out: table=%s batch=%d last=%d", self.path, batch_id, last)
            return True
        known = table.transaction_version(self.name)
        if known is not None and known != fingerprint(query):
            if not self._adopt:
                hint = (
                    "bring back the checkpoint of that query; or choose another name, or adopt=True, "
                    "if rows that are in the table already may come again"
                )
                raise ConfigError(
                    f"table {self.path}", f"another query has written it under the name {self.name!r}", hint
                )
            _log.warning("table adopted: table=%s name=%s query=%s", self.path, self.name, query)
        return False

    def _app_id(self, query: str) -> str:
        return f"{self.name}:{query}"

    def _commit(self, table: DeltaTable, schema: pa.Schema, files: list[Written], query: str, batch_id: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction

        now_ms = time.time_ns() // 1_000_000
        actions = [AddAction(one.path or "", one.size, one.partition, now_ms, True, one.stats) for one in files]
        # Under the plain name stands which query it is: a new checkpoint would number its batches from 0 again.
        marks = [Transaction(self._app_id(query), batch_id), Transaction(self.name, fingerprint(query))]
        try:
            table.create_write_transaction(
                list(actions),
                "append",
                schema,
                list(self.partition_by),
                commit_properties=CommitProperties(app_transactions=marks),
            )
        except CommitFailedError as error:
            last = DeltaTable(self.path).transaction_version(self._app_id(query))
            raise TableConflict(self.path, batch_id, last) from error


def writer(path: str | Path, **options: Any) -> DeltaWriter:
    """A function for `foreachBatch` that appends every batch of a stream to a Delta table once.

    Args:
        path: the directory of the table; made if there is none, with the columns of the first batch.
        name: under which the table remembers what this query has written; several queries may write to one table.
        query_id: of the query, if it is not the one that runs this function.
        checkpoint: of the query; behind Spark Connect its id is looked up there.
        adopt: write although another query, or one with a lost checkpoint, has written under the same name.
        compact_every: batches between compactions; None for never.
        log_retention: how long the table keeps its versions, set when it is made.
        partition_by: columns of which each value has a directory; the table keeps to it for ever.
        cluster_by: columns by which compactions sort (Z-order), so that filters on them read few files.
        evolve: add columns that the table lacks; otherwise rows that have them are refused.
    """
    return DeltaWriter(path, **options)


def write(
    rows: DataFrame,
    path: str | Path,
    *,
    checkpoint: str | Path,
    trigger: dict[str, Any] | None = None,
    mode: str = "append",
    **options: Any,
) -> StreamingQuery:
    """Start a query that puts a stream into a Delta table, exactly once.

    Args:
        checkpoint: where Spark notes what is done; it belongs to the table, and is not to be deleted without it.
        trigger: as of `DataStreamWriter.trigger`, e.g. `{"availableNow": True}`.
        mode: `append`, or `merge`: rows take the place of those with the same `keys`; `sequence_by` says which is the
            later one, `deletes` (a condition) which delete their key, `scd=2` keeps all with the time they were valid.
        options: as of `writer`; of a merge `name`, `partition_by`, `cluster_by`, `compact_every`.
    """
    if mode == "merge":
        from elea.spark.pipeline.tables import merge_writer

        merging = merge_writer(path, **options)
        return start(rows, merging, checkpoint, trigger, name=options.get("name"))
    if mode != "append":
        raise ConfigError("mode", f"there is no mode {mode!r}", "it is append or merge")
    made = writer(path, checkpoint=checkpoint, **options)
    return start(rows, made, checkpoint, trigger, name=options.get("name"))


def start(
    rows: DataFrame,
    made: Callable[[DataFrame, int], None],
    checkpoint: str | Path,
    trigger: dict[str, Any] | None,
    *,
    name: str | None,
) -> StreamingQuery:
    """Start the query of a writer."""
    stream = rows.writeStream.foreachBatch(made).option("checkpointLocation", str(checkpoint))
    stream = stream if name is None else stream.queryName(name)
    return (stream if trigger is None else stream.trigger(**trigger)).start()


# -- helpers -----------------------------------------------------------------------------------------------------------


def schema_of(rows: DataFrame) -> pa.Schema:
    """The columns as the table has them: times in UTC, and everything may be null."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return nullable(to_arrow_schema(rows.schema, timezone="UTC"))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def query_of(rows: DataFrame) -> str | None:
    context: Any = getattr(rows.sparkSession, "_sc", None)  # there is none behind Spark Connect
    found: str | None = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    return found


def noted(checkpoint: str | Path | None) -> str | None:
    """The id of a query as its checkpoint has it, if that is a directory here."""
    if checkpoint is None or ("://" in str(checkpoint) and not str(checkpoint).startswith("file:")):
        return None
    file = Path(place_of(checkpoint), "metadata")
    return str(json.loads(file.read_text())["id"]) if file.exists() else None


def fingerprint(query: str) -> int:
    """A query's id as a number that fits the version of an app transaction."""
    return uuid.uuid5(uuid.NAMESPACE_OID, query).int >> 65


def _written(one: Any) -> Written:
    """A row of `deltafiles.RESULT`."""
    inline = None if one.inline is None else bytes(one.inline)
    return Written("", one.path, one.size or 0, one.rows, one.stats or "", json.loads(one.partition), inline)
