"""`format("zenoh")`: what Spark is told of it. The rest is imported when it is needed, in the process that needs it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from elea.spark.saidfirst import says_first

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from elea.spark.options import Access

__all__ = ["ZenohDataSource"]


@says_first
class ZenohDataSource(DataSource):
    """Samples of a data space as rows.

    ::

        spark.read.format("zenoh").option("connect", "tcp/broker:7447").load("fleet/**")
        spark.readStream.format("zenoh").option("startingOffsets", "earliest").load("fleet/**")
        df.write.format("zenoh").mode("append").save("fleet/summary")

    Options, schema and guarantees are in docs/spark.md: a stream from a broker with a store brings every acknowledged
    sample once; what is written to one is stored once.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark makes one for each `load()`, and copies it into every process that plans or reads for it.
        self._load = uuid.uuid4().hex

    @classmethod
    def name(cls) -> str:
        return "zenoh"

    def schema(self) -> str:
        from elea.spark.deltafiles import RESULT
        from elea.spark.options import ReadOptions
        from elea.spark.schema import ddl_of
        from elea.spark.sessions import settle

        options = ReadOptions.parse(self.options)
        _load(options)
        found = ddl_of(options) if options.landing is None else RESULT
        settle()
        return found

    def reader(self, schema: StructType) -> DataSourceReader:
        from elea.spark.batch import ZenohBatchReader, ZenohPushdownReader

        options = self._read_options(schema)
        options.check_batch()
        if options.pushdown:
            return ZenohPushdownReader(options, schema, self._load)
        return ZenohBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - the name is Spark's
        from elea.spark.stream import ZenohStreamReader

        options = self._read_options(schema)
        options.check_stream()
        return ZenohStreamReader(options, schema)

    def _read_options(self, schema: StructType) -> Any:
        from elea.spark.options import ReadOptions
        from elea.spark.schema import checked

        options = ReadOptions.parse(self.options)
        _load(options)
        if options.landing is None:
            checked(schema, options)
        return options

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from elea.spark.options import WriteOptions
        from elea.spark.sink import BatchSink

        options = WriteOptions.parse(self.options)
        _load(options)
        return BatchSink(schema, options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        from elea.spark.options import WriteOptions
        from elea.spark.sink import StreamSink

        options = WriteOptions.parse(self.options)
        _load(options)
        return StreamSink(schema, options, overwrite)


def _load(options: Access) -> None:
    """Have the format of payloads in this process; one that nobody knows is told before anything runs."""
    if options.payload_format != "raw":
        from elea.spark.payload import load

        load(options.payload_format, options.payload_module)
