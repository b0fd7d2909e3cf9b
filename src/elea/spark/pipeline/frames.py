"""The DataFrames of a pipeline: sources with their watermarks, steps as views of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from elea.model.errors import ConfigError
from elea.spark.pipeline.spec import Sink, Source, Spec, Step, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_of", "landing_source", "register_functions", "source_frame", "source_id", "step_frame"]


def source_id(spec: Spec, sink: str, source: str) -> str:
    """The name of the cursor by which a query holds its place in a log."""
    return f"{spec.name}-{sink}-{source}"


def source_frame(
    spark: SparkSession,
    source: Source,
    cursor: str | None = None,
    *,
    limit: int | None = None,
    batch: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a source: a stream, or a table; `limit` is for the positions of a batch, unless options say one.

    Args:
        batch: a part of a stream is read as a table instead; the options that say which.
    """
    if source.is_stream and batch is not None:
        plain = {_plain(name) for name in batch} | {"startingtimestamp"}
        kept = {name: text for name, text in source.read_options().items() if _plain(name) not in plain}
        return _with_event_time(spark.read.format("zenoh").options(**kept, **batch).load(), source)
    reader = spark.readStream if source.is_stream else spark.read
    options = source.read_options()
    if source.is_stream and cursor is not None:
        options.setdefault("sourceId", cursor)
    if source.is_stream and limit is not None and not any("pertrigger" in _plain(name) for name in options):
        options["maxOffsetsPerTrigger"] = str(limit)
    rows = reader.format("zenoh").options(**options).load()
    if not source.is_stream:
        return rows
    rows = _with_event_time(rows, source)
    return rows if source.watermark is None else rows.withWatermark(source.event_column, source.watermark.text)


def _with_event_time(rows: DataFrame, source: Source) -> DataFrame:
    if source.event_column == source.event_time:
        return rows
    # One payload with another idea of time is not the end of the stream: the row has none.
    return rows.selectExpr("*", f"try_cast({source.event_time} AS TIMESTAMP) AS {source.event_column}")


def landing_source(spec: Spec, sink: Sink) -> Source | None:
    """The source whose samples go into a table as they are, one after the other; None if something is done to them."""
    if not isinstance(sink, Table) or sink.expect or sink.partition_by:
        return None
    if sink.format != "delta" or sink.mode != "append":
        return None
    plain = (one for one in spec.sources if one.is_stream and one.event_column == one.event_time)
    return next((one for one in plain if one.name == sink.reads), None)


def frame_of(
    spark: SparkSession,
    spec: Spec,
    reads: str,
    sink: str,
    *,
    limit: int | None = None,
    batch: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a source or step, with sources read under the name of the sink they are for.

    Sources and steps become temporary views of the session, and stay until the next sink makes its own: two sinks that
    read the same have a place of their own in the log.
    """
    register_functions(spark, spec)
    for view in spec.upstream(reads):
        if isinstance(view, Source):
            made = source_frame(spark, view, source_id(spec, sink, view.name), limit=limit, batch=batch)
        else:
            made = step_frame(spark, spec, view)
        made.createOrReplaceTempView(view.name)
    return spark.table(reads)


def step_frame(spark: SparkSession, spec: Spec, step: Step) -> DataFrame:
    """The rows of a step, whose sources and steps are views.

    Raises:
        ConfigError: a function of Python cannot be had, or gives no DataFrame.
    """
    if step.python is None:
        return spark.sql(step.sql)
    made = step.python.load(spec.base)(*(spark.table(read) for read in step.reads))
    if not hasattr(made, "createOrReplaceTempView"):
        raise ConfigError(
            f"python {step.python} of step {step.name}", f"it returned {type(made).__name__}", "return a DataFrame"
        )
    return made  # type: ignore[no-any-return]


def register_functions(spark: SparkSession, spec: Spec) -> None:
    """Let SQL of this session call the functions of a pipeline."""
    for one in spec.functions:
        spark.udf.register(one.name, one.python.load(spec.base), one.returns)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
