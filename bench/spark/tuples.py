"""The same source, yielding tuples instead of Arrow batches: what Arrow saves. Spark's workers import it by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from elea.spark.source import ZenohDataSource
from elea.spark.stream import ZenohStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

__all__ = ["TupleSource"]


class TupleSource(ZenohDataSource):
    """`format("zenoh.tuples")`."""

    @classmethod
    def name(cls) -> str:
        return "zenoh.tuples"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - the name is Spark's
        return TupleReader(self._read_options(schema), schema)


class TupleReader(ZenohStreamReader):
    """Makes an object of everything."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for batch in super().read(partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
