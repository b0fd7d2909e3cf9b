"""Streams into Delta tables, exactly once, without a Delta package for Spark: through `deltalake`.

::

    query = elea.spark.delta.write(df, "tables/bronze", checkpoint="checkpoints/bronze")
    # the same in Spark's own words:
    writer = elea.spark.delta.writer("tables/bronze")
    query = df.writeStream.foreachBatch(writer).option("checkpointLocation", "checkpoints/bronze").start()

Executors write files, the driver commits them all at once, together with the number of the batch under the name of the
query (an app transaction). A batch that comes again, because Spark died before it had noted it, is found there and left
out. Files that nobody committed are invisible to every Delta reader: DuckDB, Polars, pandas, Spark.
The directory must be one that all executors see.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from elea.model.errors import ConfigError, TableConflict
from elea.spark.arrowmap import ArrowMap
from elea.spark.deltafiles import RESULT, File, task, write_file
from elea.spark.schema import nullable

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
    ) -> None:
        self.path = local_path(path)
        self.name = name
        self.counts = Counts()
        self._query_id = query_id
        self._checkpoint = checkpoint
        self._adopt = adopt
        self._compact_every = compact_every
        self._log_retention = log_retention
        self._map = ArrowMap()

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Append a batch, unless it is in the table.

        Raises:
            ConfigError: the rows do not fit the table, or another query has written it under this name.
            TableConflict: another driver has committed this batch in the meantime.
        """
        schema = self._shape(rows)
        table = self._table(schema)
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
        files = [File(one.path, one.size, one.rows, one.stats) for one in found if one.path is not None]
        few = [one.inline for one in found if one.inline is not None]
        if few:
            files.append(write_file(self.path, _inline(few), schema))
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
        found = self._map(rows, partial(task, directory=self.path, schema=schema.serialize().to_pybytes()), RESULT)
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
            table.optimize.compact()
            table.create_checkpoint()
            table.cleanup_metadata()
        except DeltaError as error:  # somebody else may be at it; there is a next time
            _log.warning("table not compacted: table=%s problem=%s", self.path, error)
        else:
            self.counts.compactions += 1

    # -- the table -----------------------------------------------------------------------------------------------------

    def _table(self, schema: pa.Schema) -> DeltaTable:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.path):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                self.path, schema, mode="ignore", configuration={"delta.logRetentionDuration": self._log_retention}
            )
        table = DeltaTable(self.path)
        check_schema(self.path, table, schema)
        return table

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

    def _commit(self, table: DeltaTable, schema: pa.Schema, files: list[File], query: str, batch_id: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction

        now_ms = time.time_ns() // 1_000_000
        actions = [AddAction(file.path, file.size, {}, now_ms, True, file.stats) for file in files]
        # Under the plain name stands which query it is: a new checkpoint would number its batches from 0 again.
        marks = [Transaction(self._app_id(query), batch_id), Transaction(self.name, fingerprint(query))]
        try:
            table.create_write_transaction(
                list(actions), "append", schema, commit_properties=CommitProperties(app_transactions=marks)
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
    """
    return DeltaWriter(path, **options)


def write(
    rows: DataFrame, path: str | Path, *, checkpoint: str | Path, trigger: dict[str, Any] | None = None, **options: Any
) -> StreamingQuery:
    """Start a query that appends a stream to a Delta table, exactly once.

    Args:
        checkpoint: where Spark notes what is done; it belongs to the table, and is not to be deleted without it.
        trigger: as of `DataStreamWriter.trigger`, e.g. `{"availableNow": True}`.
        options: as of `writer`.
    """
    made = writer(path, checkpoint=checkpoint, **options)
    return start(rows, made, checkpoint, trigger, named="name" in options)


def start(
    rows: DataFrame, made: DeltaWriter, checkpoint: str | Path, trigger: dict[str, Any] | None, *, named: bool
) -> StreamingQuery:
    """Start the query of a writer."""
    stream = rows.writeStream.foreachBatch(made).option("checkpointLocation", str(checkpoint))
    stream = stream.queryName(made.name) if named else stream
    return (stream if trigger is None else stream.trigger(**trigger)).start()


# -- helpers -----------------------------------------------------------------------------------------------------------


def local_path(path: str | Path) -> str:
    text = str(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme and "://" in text:
        hint = "name a directory that the driver and all executors see"
        raise ConfigError(f"table {text}", f"tables on {parts.scheme} cannot be written from executors", hint)
    return str(Path(text).absolute())


def schema_of(rows: DataFrame) -> pa.Schema:
    """The columns as the table has them: times in UTC, and everything may be null."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return nullable(to_arrow_schema(rows.schema, timezone="UTC"))


def check_schema(path: str, table: DeltaTable, schema: pa.Schema) -> None:
    from deltalake import Schema

    wanted = {field.name: field.type for field in Schema.from_arrow(schema).fields}
    have = {field.name: field.type for field in table.schema().fields}
    if wanted == have:
        return
    problems = [f"column {name} is not in the table" for name in wanted if name not in have]
    problems += [f"column {name} is not in the rows" for name in have if name not in wanted]
    problems += [
        f"column {name} is {_kind(have[name])} in the table and {_kind(wanted[name])} in the rows"
        for name in wanted
        if name in have and wanted[name] != have[name]
    ]
    hint = "select and cast the columns of the table, or write to another table"
    raise ConfigError(f"table {path}", "; ".join(problems), hint)


def _kind(type_: Any) -> str:
    return str(getattr(type_, "type", type_))


def query_of(rows: DataFrame) -> str | None:
    context: Any = getattr(rows.sparkSession, "_sc", None)  # there is none behind Spark Connect
    found: str | None = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    return found


def noted(checkpoint: str | Path | None) -> str | None:
    """The id of a query as its checkpoint has it, if that is a directory here."""
    if checkpoint is None or ("://" in str(checkpoint) and not str(checkpoint).startswith("file:")):
        return None
    file = Path(local_path(checkpoint), "metadata")
    return str(json.loads(file.read_text())["id"]) if file.exists() else None


def fingerprint(query: str) -> int:
    """A query's id as a number that fits the version of an app transaction."""
    return uuid.uuid5(uuid.NAMESPACE_OID, query).int >> 65


def _inline(parts: list[Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for part in parts:
        with pa.ipc.open_stream(pa.py_buffer(bytes(part))) as stream:
            yield from stream
