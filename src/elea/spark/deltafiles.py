"""The executor's part of the Delta writer: the rows of a task to Parquet files, with the statistics readers use.

A file that nobody commits is invisible to every Delta reader, so a task may die anywhere. Few rows are not worth a file
a task: they travel back to the driver, which writes one for all of them. Each partition has files of its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from elea.spark.tableplaces import finished, new_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = [
    "DELTA",
    "RESULT",
    "Piece",
    "Statistics",
    "Written",
    "batches_of",
    "cast",
    "gathered",
    "parquet_writer",
    "parts",
    "task",
    "told",
]

RESULT: Final = (
    "query string, path string, size bigint, rows bigint, octets bigint, stats string, partition string, inline binary"
)
"""What a task hands back: the query it ran for, and either a file or the rows themselves; `octets` is their memory."""

DELTA: Final = ".snappy.parquet"
"""How names of files end in a Delta table."""

INLINE_BYTES: Final = 2 << 20
"""Rows of a task that are not worth a file of their own."""

GROUP_ROWS: Final = 1 << 20
TEXT_CHARS: Final = 32
"""Longer texts get no statistics: a cut maximum would be too small."""


class Statistics:
    """Rows, nulls, least and greatest value of each column, as Delta wants them."""

    def __init__(self, schema: pa.Schema) -> None:
        # One number for a column with fields makes readers leave out all the statistics of a file.
        self._nulls = {field.name: 0 for field in schema if not _has_fields(field.type)}
        self._least: dict[str, Any] = {}
        self._most: dict[str, Any] = {}
        self._open = {field.name for field in schema if _has_order(field.type)}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._nulls:
                self._nulls[name] += column.null_count
            if name not in self._open or column.null_count == len(column):
                continue
            if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
                self._open.discard(name)  # there is no order with it
                continue
            bounds = pc.min_max(column)
            least, most = bounds["min"].as_py(), bounds["max"].as_py()
            if isinstance(most, str) and max(len(least), len(most)) > TEXT_CHARS:
                self._open.discard(name)
                continue
            self._least[name] = min(least, self._least.get(name, least))
            self._most[name] = max(most, self._most.get(name, most))

    def form(self) -> str:
        """The JSON of the table's log."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: told(value) for name, value in self._least.items() if name in self._open},
                "maxValues": {name: told(value) for name, value in self._most.items() if name in self._open},
                "nullCount": self._nulls,
            }
        )


def _has_fields(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(type_))


def _has_order(type_: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return any(is_it(type_) for is_it in kinds)


def told(value: Any) -> Any:
    if hasattr(value, "hour"):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if value.tzinfo else "")
    return value.isoformat() if hasattr(value, "isoformat") else value


def parquet_writer(path: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Who writes a new file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Octets are hardly ever the same twice, and nobody asks for the least of them.
    plain = [field.name for field in schema if not pa.types.is_binary(field.type)]
    return pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=plain, write_statistics=plain)


@dataclass(frozen=True)
class Written:
    """A file, or some rows that wait for one, of a target and partition."""

    target: str
    path: str | None
    size: int
    rows: int
    stats: str
    partition: dict[str, str | None] = field(default_factory=dict)
    inline: bytes | None = None


class Piece:
    """Rows of one target and partition: held while they are few, then written to a file as they come."""

    def __init__(
        self,
        target: str,
        directory: str,
        schema: pa.Schema,
        partition: dict[str, str | None],
        *,
        suffix: str,
        hold: int = INLINE_BYTES,
    ) -> None:
        self._target = target
        self._directory = directory
        self._schema = schema
        self._partition = partition
        self._suffix = suffix
        self._hold = hold
        self._held: list[pa.RecordBatch] = []
        self._octets = 0
        self._writer: Any = None
        self._sink: Any = None
        self._path = ""
        self._statistics = Statistics(schema)

    def add(self, rows: pa.RecordBatch) -> None:
        """Take in some rows."""
        self._octets += rows.nbytes
        if self._writer is None and self._octets <= self._hold:
            self._held.append(rows)
            return
        if self._writer is None:
            self._open()
            for held in self._held:
                self._write(held)
            self._held.clear()
        self._write(rows)

    def finish(self) -> Written:
        """The file, on the disk; or the rows."""
        if self._writer is None:
            rows = sum(batch.num_rows for batch in self._held)
            return Written(self._target, None, 0, rows, "", self._partition, _inline(self._schema, self._held))
        self._writer.close()
        statistics = self._statistics
        size = finished(self._directory, self._path, self._sink)
        return Written(self._target, self._path, size, statistics.rows, statistics.form(), self._partition)

    def _open(self) -> None:
        below = [f"{name}={_folder(value)}" for name, value in self._partition.items()]
        self._path = "/".join([*below, f"part-{uuid.uuid4()}{self._suffix}"])
        self._sink = new_file(self._directory, self._path)
        self._writer = parquet_writer(self._sink, self._schema)

    def _write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows, row_group_size=GROUP_ROWS)
        self._statistics.add(rows)


def parts(rows: pa.RecordBatch, by: tuple[str, ...]) -> Iterator[tuple[dict[str, str | None], pa.RecordBatch]]:
    """The rows of each partition, without the columns that are the same for all of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not by:
        yield {}, rows
        return
    rest = [name for name in rows.schema.names if name not in by]
    for values in pa.table(rows.select(by)).group_by(by, use_threads=False).aggregate([]).to_pylist():
        chosen = None
        for name in by:
            column, value = rows.column(name), values[name]
            same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)
            chosen = same if chosen is None else pc.and_(chosen, same)
        yield {name: _told(values[name]) for name in by}, rows.filter(chosen).select(rest)


def _told(value: Any) -> str | None:
    """A value of a partition, as Delta and the names of directories have it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folder(value: str | None) -> str:
    """The directory of a partition, from which many readers take the value."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None or value == "" else quote(value, safe="")


def _inline(schema: pa.Schema, batches: list[pa.RecordBatch]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def gathered(found: Iterable[Written], places: Mapping[str, tuple[str, str]]) -> Iterator[Written]:
    """Files as they are, and one for all rows of a target and partition that tasks have sent back.

    Args:
        places: of each target, where its files go and what their names end with.
    """
    few: dict[tuple[str, str], Piece] = {}
    for one in found:
        if one.inline is None:
            yield one
            continue
        at = (one.target, json.dumps(one.partition))
        for batch in batches_of(one.inline):
            if at not in few:
                directory, suffix = places[one.target]
                few[at] = Piece(one.target, directory, batch.schema, one.partition, suffix=suffix, hold=-1)
            few[at].add(batch)
    for piece in few.values():
        yield piece.finish()


def batches_of(inline: bytes) -> Iterator[pa.RecordBatch]:
    """The rows that a task has sent back instead of writing a file."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(inline)) as stream:
        yield from stream


def task(
    batches: Iterator[pa.RecordBatch], directory: str, schema: bytes, partition_by: tuple[str, ...] = ()
) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` runs: the rows of a task to files, one for each partition, or back if they are few."""
    import pyarrow as pa

    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    octets = 0
    pieces: dict[str, Piece] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        octets += batch.nbytes
        for partition, part in parts(cast(batch, wanted), partition_by):
            at = json.dumps(partition)
            if at not in pieces:
                pieces[at] = Piece("", directory, part.schema, partition, suffix=DELTA)
            pieces[at].add(part)
    found = [piece.finish() for piece in pieces.values()]
    if not found:
        return
    query = _query()
    # The memory of all rows stands with the first: who reads it adds up.
    rows = [
        (query, one.path, one.size, one.rows, 0 if at else octets, one.stats, json.dumps(one.partition), one.inline)
        for at, one in enumerate(found)
    ]
    number, text = pa.int64(), pa.string()
    types = [text, text, number, number, number, text, text, pa.binary()]
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, names=[one.split()[0] for one in RESULT.split(", ")])


def _query() -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with exactly the columns of the table, in its order."""
    import pyarrow as pa

    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
