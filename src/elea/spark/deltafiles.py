"""The executor's part of the Delta writer: the rows of a task to one Parquet file, with the statistics readers use.

A file that nobody commits is invisible to every Delta reader, so a task may die anywhere. Few rows are not worth a file
a task: they travel back to the driver, which writes one for all of them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["RESULT", "File", "Statistics", "parquet_writer", "task", "write_file"]

RESULT: Final = "query string, path string, size bigint, rows bigint, octets bigint, stats string, inline binary"
"""What a task hands back: the query it ran for, and either a file or the rows themselves; `octets` is their memory."""

INLINE_BYTES: Final = 2 << 20
"""Rows of a task that are not worth a file of their own."""

GROUP_ROWS: Final = 1 << 20
TEXT_CHARS: Final = 32
"""Longer texts get no statistics: a cut maximum would be too small."""


class File(NamedTuple):
    """A file that was written."""

    path: str
    size: int
    rows: int
    stats: str


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


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Who writes a new file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Octets are hardly ever the same twice, and nobody asks for the least of them.
    plain = [field.name for field in schema if not pa.types.is_binary(field.type)]
    return pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=plain, write_statistics=plain)


def write_file(directory: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> File:
    """Write rows to a new file below the directory, and wait until it is on the disk."""
    name = f"part-{uuid.uuid4()}.snappy.parquet"
    path = Path(directory) / name
    statistics = Statistics(schema)
    with parquet_writer(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=GROUP_ROWS)
            statistics.add(batch)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return File(name, path.stat().st_size, statistics.rows, statistics.form())


def task(batches: Iterator[pa.RecordBatch], directory: str, schema: bytes) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` runs: the rows of a task to a file, or back if they are few."""
    import pyarrow as pa

    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    octets = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal octets
        for batch in batches:
            if batch.num_rows:
                octets += batch.nbytes
                yield cast(batch, wanted)

    exact = counted()
    held: list[pa.RecordBatch] = []
    for batch in exact:
        held.append(batch)
        if octets > INLINE_BYTES:
            break
    if not held:
        return
    file, inline = None, None
    if octets > INLINE_BYTES:
        file = write_file(directory, _chain(held, exact), wanted)
    else:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, wanted) as stream:
            for batch in held:
                stream.write_batch(batch)
        inline = sink.getvalue().to_pybytes()
    rows = sum(batch.num_rows for batch in held) if file is None else file.rows
    yield pa.RecordBatch.from_arrays(
        [
            pa.array([_query()], pa.string()),
            pa.array([file and file.path], pa.string()),
            pa.array([file and file.size], pa.int64()),
            pa.array([rows], pa.int64()),
            pa.array([octets], pa.int64()),
            pa.array([file and file.stats], pa.string()),
            pa.array([inline], pa.binary()),
        ],
        names=["query", "path", "size", "rows", "octets", "stats", "inline"],
    )


def _chain(held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while held:
        yield held.pop(0)
    yield from rest


def _query() -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with exactly the columns of the table, in its order."""
    import pyarrow as pa

    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
