"""The rows of `format("zenoh")`: which columns there are, and of which types. `elea.spark.rows` makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from elea.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from elea.spark.options import ReadOptions

__all__ = ["COLUMNS", "CORRUPT", "METADATA", "VALUE", "checked", "ddl_of", "landed", "nullable"]

COLUMNS: Final = {
    "key": "string",
    "payload": "binary",
    "encoding": "string",
    "timestamp": "timestamp",
    "kind": "string",
    "attachment": "binary",
    "source_id": "binary",
    "sn": "bigint",
}
"""What a row has unless the user says otherwise, with the types of Spark."""

METADATA: Final = {
    "hlc": "binary",
    "priority": "tinyint",
    "congestion": "string",
    "express": "boolean",
    "log": "string",
    "offset": "bigint",
    "ingest_time": "timestamp",
    "source_eid": "bigint",
}
"""What it has besides with `includeMetadata`, or if a schema names it."""

VALUE: Final = "value"
CORRUPT: Final = "_corrupt"
_ALL: Final = {**COLUMNS, **METADATA}


def ddl_of(options: ReadOptions) -> str:
    """The schema in Spark's language."""
    wanted = _ALL if options.include_metadata else COLUMNS
    parts = [f"`{name}` {kind}" for name, kind in wanted.items()]
    if options.payload_format != "raw":
        from elea.spark.payload import value_type

        if options.payload_schema is None:
            hint = "write .option('payloadSchema', 'speed double, name string')"
            raise ConfigError("option payloadSchema", f"payloadFormat={options.payload_format} needs it", hint)
        _look_at(options.payload_schema)
        parts += [f"`{VALUE}` {value_type(options.payload_schema)}", f"`{CORRUPT}` binary"]
    return ", ".join(parts)


def _look_at(payload_schema: str) -> None:
    """Say what is wrong in a `payloadSchema`: Spark, which parses it as part of a row, names neither option nor place.

    Raises:
        ConfigError: it is no schema, and what to write instead.
    """
    if payload_schema.lstrip().startswith("{") or not payload_schema.strip():
        return  # `value_type` looks at those
    from elea.spark.pipeline.ddl import fields_of, is_left_to_spark
    from elea.spark.pipeline.problem import Wrong

    try:
        fields_of(payload_schema)
    except Wrong as error:
        if not is_left_to_spark(payload_schema, error.at):
            problem = f"{payload_schema!r} does not do: {error.what} (character {error.at + 1})"
            raise ConfigError("option payloadSchema", problem, error.fix) from error


def checked(schema: StructType, options: ReadOptions) -> None:
    """Look whether every column is one that there is.

    Raises:
        ConfigError: it has another type, or nobody knows it.
    """
    has_value = options.payload_format != "raw"
    for column in schema.fields:
        path = f"column {column.name}"
        if column.name == VALUE and has_value:
            if column.dataType.typeName() != "struct":
                raise ConfigError(path, f"it is a struct, not {column.dataType.simpleString()}", "see payloadSchema")
            continue
        known = "binary" if column.name == CORRUPT and has_value else _ALL.get(column.name)
        if known is None:
            names = [*_ALL, *((VALUE, CORRUPT) if has_value else ())]
            more = "" if has_value else f"; {VALUE} and {CORRUPT} come with payloadFormat"
            raise ConfigError(path, "there is no such column", f"columns are {', '.join(names)}{more}")
        if column.dataType.simpleString() != known:
            hint = f"write it as {column.name} {known}, and cast it afterwards"
            raise ConfigError(path, f"it is of type {known}, not {column.dataType.simpleString()}", hint)


def landed(options: ReadOptions) -> StructType:
    """The columns of the files of `landing`.

    Raises:
        ConfigError: they are not given, or not ours.
    """
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromJson(json.loads(options.landing_schema or ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "use elea.spark.ingest"
        raise ConfigError("option landingSchema", f"it is the JSON of a schema: {error}", hint) from error
    checked(schema, options)
    return schema


def nullable(schema: pa.Schema) -> pa.Schema:
    """The same columns; everything may be null, as tables have it."""
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in schema])
