"""What a source in Python can do at best: it has one batch of rows, and yields it again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["ReadySource"]

TASKS = 2
ROWS = 5000  # of a batch: those that suit Spark best


class ReadySource(DataSource):
    """`format("ready")`: about so many `rows`, with the columns of `format("zenoh")`."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        from elea.spark.options import ReadOptions
        from elea.spark.schema import ddl_of

        return ddl_of(ReadOptions.parse({"path": "**"}))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema, int(self.options["rows"]))


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, rows: int) -> None:
        self._schema = schema
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task) for task in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from bench.spark.stage import batch_of
        from elea.spark.rows import Rows

        made = batch_of(ROWS)
        rows = Rows(self._schema, None).schema
        columns = {"encoding": pa.repeat("zenoh/bytes", ROWS), "kind": pa.repeat("PUT", ROWS)}
        columns |= {"timestamp": pa.array(range(ROWS)), "key": made["key"], "payload": made["payload"]}
        columns |= {"source_id": pa.repeat(bytes(range(16)), ROWS), "sn": pa.array(range(ROWS))}
        arrays = [columns.get(field.name, pa.nulls(ROWS)).cast(field.type) for field in rows]
        batch = pa.RecordBatch.from_arrays(arrays, schema=rows)
        for _ in range(self._rows // TASKS // ROWS):
            yield batch
