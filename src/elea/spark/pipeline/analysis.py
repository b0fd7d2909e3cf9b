"""What Spark says of a pipeline before it runs: every statement is parsed and resolved against empty streams.

Nothing is read and no query is started. Places in SQL come out as places in the file.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError
from elea.spark.pipeline.frames import step_frame
from elea.spark.pipeline.lines import Path as Entry
from elea.spark.pipeline.parts import Reporter
from elea.spark.pipeline.problem import nearest
from elea.spark.pipeline.spec import Publish, Sink, Source, Spec, Table, kind_of

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["analyse", "empty"]

_CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")
_REST: Final = re.compile(r"\s*(?:SQLSTATE: |\(line \d+, pos \d+\)|; line \d+ pos \d+|\n).*", re.DOTALL)
_LINE: Final = re.compile(r"line (\d+),? pos (\d+)")
_FIXES: Final = {
    "PARSE_SYNTAX_ERROR": "look at the words before it: a comma, a bracket or a keyword is missing or misspelt",
    "UNRESOLVED_ROUTINE": "see the functions that Spark has: spark.apache.org/docs/latest/api/sql",
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN": "write a condition, such as speed > 0",
    "DATATYPE_MISMATCH": "cast one side: CAST(column AS DOUBLE)",
    "MISSING_AGGREGATION": "put the column into GROUP BY, or take any_value(column)",
    "AMBIGUOUS_REFERENCE": "write the name of the source or step before it: lights.key",
    "MISSING_GROUP_BY": "add GROUP BY",
}
_COLUMNS_OF_SAMPLES: Final = {"key", "payload", "encoding", "attachment", "kind", "timestamp"}


def analyse(spec: Spec, to: Reporter, spark: SparkSession) -> None:
    """Report what Spark finds wrong."""
    here = spark.newSession()  # views of its own
    with _quiet():
        _all(spec, to, here)


@contextmanager
def _quiet() -> Iterator[None]:
    """PySpark also logs every error that it raises, with all of the stack of the JVM."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it complains of the version of pandas, which is not used
            yield
    finally:
        logger.disabled = before


def _all(spec: Spec, to: Reporter, here: SparkSession) -> None:
    from pyspark.errors import PySparkException

    frames: dict[str, DataFrame] = {}
    for function in spec.functions:
        try:
            here.udf.register(function.name, function.python.load(spec.base), function.returns)
        except PySparkException as error:
            _say(to, ("function", function.name, "returns"), "returns", error, function.returns)
        except ConfigError as error:
            to.report(("function", function.name, "python"), f"python: {error.problem}", error.hint)
    for source in spec.sources:
        try:
            rows = empty(source, here)
        except PySparkException as error:
            _say(to, ("source", source.name, "schema"), "schema", error, source.schema or "")
            continue
        except ConfigError as error:
            to.report(("source", source.name, "schema"), f"schema: {error.problem}", error.hint)
            continue
        try:
            frames[source.name] = _watermarked(source, rows)
            frames[source.name].createOrReplaceTempView(source.name)
        except PySparkException as error:
            # The text that Spark saw begins with more than the user wrote, so the place is that of the whole.
            _say(to, ("source", source.name, "event_time"), "event_time", error, "")
    for step in spec.steps:
        if any(read not in frames for read in step.reads):
            continue  # what is wrong there is said there
        what = "sql" if step.python is None else "python"
        try:
            frames[step.name] = step_frame(here, spec, step)
            frames[step.name].createOrReplaceTempView(step.name)
        except PySparkException as error:
            _say(to, ("step", step.name, what), what, error, step.sql)
        except ConfigError as error:
            to.report(("step", step.name, what), f"{what}: {error.problem}", error.hint)
        except Exception as error:
            if step.python is None:
                raise
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            to.report(("step", step.name, what), f"python: {step.python} raised {said}", "it is called with empty rows")
    for sink in spec.sinks:
        if sink.reads in frames:
            _sink(spec, sink, frames[sink.reads], to, here)


def empty(source: Source, spark: SparkSession) -> DataFrame:
    """A stream, or table, with the columns of a source and no rows; without its watermark."""
    from pyspark.sql.functions import col, lit
    from pyspark.sql.types import StructType

    from elea.spark.options import ReadOptions
    from elea.spark.payload import struct_of, value_type
    from elea.spark.schema import VALUE, ddl_of

    if source.schema is not None:
        # By itself first, so that the place of a mistake is one in the schema.
        is_json = source.schema.lstrip().startswith("{")
        struct_of(StructType.fromDDL(value_type(source.schema) if is_json else source.schema))
    schema: Any = StructType.fromDDL(ddl_of(ReadOptions.parse(source.read_options())))
    if not source.is_stream:
        return spark.createDataFrame([], schema)
    ticks = spark.readStream.format("rate").load().where("false").withColumnRenamed(VALUE, "tick")
    columns = [
        col("timestamp") if field.name == "timestamp" else lit(None).cast(field.dataType).alias(field.name)
        for field in schema.fields
    ]
    return ticks.select(*columns)


def _watermarked(source: Source, rows: DataFrame) -> DataFrame:
    if source.is_stream and source.event_column != source.event_time:
        rows = rows.selectExpr("*", f"try_cast({source.event_time} AS TIMESTAMP) AS {source.event_column}")
    return rows if source.watermark is None else rows.withWatermark(source.event_column, source.watermark.text)


def _sink(spec: Spec, sink: Sink, frame: DataFrame, to: Reporter, spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    kind = kind_of(sink)
    path = (kind, sink.name)
    try:
        _check_streaming(frame, spec.output_mode(sink), spark)
    except PySparkException as error:
        _say(to, (*path, "from"), f"{kind} {sink.name}", error, "")
    if isinstance(sink, Table):
        _table(path, sink, frame, to)
    elif isinstance(sink, Publish):
        _publish(path, sink, frame, to)


def _check_streaming(frame: DataFrame, mode: str, spark: SparkSession) -> None:
    """What Spark checks when a query starts; a session behind Spark Connect says it only then."""
    jvm: Any = getattr(spark, "_jvm", None)
    plan: Any = getattr(frame, "_jdf", None)
    if jvm is None or plan is None or not frame.isStreaming:
        return
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    wanted = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode]()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(plan.queryExecution().analyzed(), wanted)


def _table(path: Entry, table: Table, frame: DataFrame, to: Reporter) -> None:
    from pyspark.errors import PySparkException

    for number, rule in enumerate(table.expect):
        try:
            frame.where(rule.check)
        except PySparkException as error:
            _say(to, (*path, "expect", number, "check"), f"check of {rule.name!r}", error, rule.check)
    for what, names in table.named.items():
        for name in names:
            if name.lower() not in (one.lower() for one in frame.columns):
                fix = nearest(name, frame.columns, "columns are")
                to.report_value((*path, what), f"{what}: {table.reads} has no column {name}", fix)
    if table.merge is not None and table.merge.deletes is not None:
        try:
            frame.where(table.merge.deletes)
        except PySparkException as error:
            _say(to, (*path, "deletes"), "deletes", error, table.merge.deletes)


def _publish(path: Entry, publish: Publish, frame: DataFrame, to: Reporter) -> None:
    columns = {one.lower() for one in frame.columns}
    if "key" not in columns and publish.key is None:
        fix = f"let {publish.reads} say  concat('alerts/', …) AS key , or add key = \"alerts/all\""
        to.report((*path, "from"), f"nobody says the key: {publish.reads} has no column key", fix)
    if publish.format == "raw":
        if "payload" not in columns:
            fix = 'add format = "json", which packs the columns, or a column payload'
            to.report((*path, "from"), f"raw needs a column payload, and {publish.reads} has none", fix)
        more = sorted(columns - _COLUMNS_OF_SAMPLES)
        if more:
            fix = 'leave them out, or write format = "json", which packs them'
            to.report((*path, "from"), f"a sample has no {', '.join(more)}", fix)


# -- what Spark says ---------------------------------------------------------------------------------------------------


def _say(to: Reporter, path: Entry, what: str, error: PySparkException, text: str) -> None:
    # The same is said once: a broken step also breaks what reads it.
    to.report_value(path, f"{what}: {_message(error)}", _fix(error), _at(error, text))


def _message(error: PySparkException) -> str:
    said = _REST.sub("", _CLASS.sub("", str(error).strip())).strip().rstrip(".")
    return said[:1].lower() + said[1:] if said[1:2].islower() else said


def _fix(error: PySparkException) -> str:
    name = str(error.getCondition() or "") if hasattr(error, "getCondition") else ""
    parameters = error.getMessageParameters() or {}
    proposal = parameters.get("proposal") or parameters.get("fields")
    if proposal:
        wanted = str(parameters.get("objectName") or parameters.get("fieldName") or "").strip("`")
        return nearest(wanted, [one.strip().replace("`", "") for one in proposal.split(",")], "there are")
    return next((fix for start, fix in _FIXES.items() if name.startswith(start)), "see docs/pipelines.md")


def _at(error: PySparkException, text: str) -> int:
    """The character of the text, from 0."""
    for context in error.getQueryContext() or []:
        try:
            found = int(context.startIndex())
        except Exception:  # noqa: BLE001 - contexts of other kinds have no place, and say so in several ways
            continue
        if 0 <= found < len(text):
            return found
    place = _LINE.search(str(error))
    if place is None:
        return 0
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    return starts[min(int(place[1]), len(starts)) - 1] + int(place[2])
