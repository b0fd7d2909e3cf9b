"""`elea.spark.ingest`: samples as they are into a Delta table, without their rows passing through Spark.

The source writes: a task fetches its range as Arrow and puts it into a file of the table (option `landing`). What Spark
sees are rows that name files; batches, offsets, checkpoints and retries are Spark's as ever, and the driver commits the
files of a batch as `elea.spark.delta` does. A row costs a fifth of what it costs through Spark's rows and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elea.spark.delta import DeltaWriter, schema_of, start
from elea.spark.progress import LANDED
from elea.spark.tableplaces import place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["LandingWriter", "ingest", "landing"]


class LandingWriter(DeltaWriter):
    """The writer of `ingest`: the rows of its batches are files that tasks have written."""

    def __init__(self, path: str | Path, schema: pa.Schema, **options: Any) -> None:
        super().__init__(path, **options)
        self.columns = schema
        """Those of the table."""

    def _shape(self, rows: DataFrame) -> pa.Schema:
        return self.columns

    def _written(self, rows: DataFrame, schema: pa.Schema) -> list[Any]:
        return list(rows.collect())

    def _pass_over(self, rows: DataFrame) -> None:
        """Nothing: to compute it would write its files once more."""


def ingest(
    spark: SparkSession,
    key_expr: str,
    path: str | Path,
    *,
    checkpoint: str | Path,
    options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    trigger: dict[str, Any] | None = None,
    **writing: Any,
) -> StreamingQuery:
    """Start a query that appends samples as they are to a Delta table, exactly once: the way for the first table.

    The same rows as `write` makes of `spark.readStream.format("zenoh").options(**options).load(key_expr)`, several
    times as fast: tasks write what they have fetched to files, and only these pass through Spark.

    Args:
        options: of the source, docs/spark.md.
        columns: those of the table, if not all are wanted.
        checkpoint, trigger: as of `write`.
        writing: as of `writer`.
    """
    files, made = landing(spark, key_expr, path, options=options, columns=columns, checkpoint=checkpoint, **writing)
    return start(files, made, checkpoint, trigger, name=writing.get("name"))


def landing(
    spark: SparkSession,
    key_expr: str | None,
    path: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    **writing: Any,
) -> tuple[DataFrame, LandingWriter]:
    """The two halves of it, for `foreachBatch`: a stream of files, and who commits them."""
    from pyspark.sql.functions import sum as total

    place = place_of(path)
    source = spark.readStream.format("zenoh").options(**(options or {}))
    shape = source.load(key_expr)
    shape = shape if columns is None else shape.select(*columns)
    made = LandingWriter(place, schema_of(shape), **writing)
    source = source.option("landing", place).option("landingSchema", shape.schema.json())
    if made.partition_by:
        source = source.option("landingPartitions", json.dumps(made.partition_by))
    return source.load(key_expr).observe(LANDED, total("rows").alias("rows")), made
