"""The rows of `format("zenoh")`: which columns there are, and of which types. `elea.spark.rows` makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from elea.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from elea.spark.options import ReadOptions

__all__ = [
    "COLUMNS",
    "CORRUPT",
    "MESSAGE",
    "METADATA",
    "UPROTOCOL",
    "VALUE",
    "checked",
    "ddl_of",
    "landed",
    "names_of",
    "nullable",
]

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

UPROTOCOL: Final = "uprotocol"
MESSAGE: Final = {
    "id": "string",
    "type": "string",
    "source": "string",
    "sink": "string",
    "priority": "string",
    "ttl": "bigint",
    "created": "timestamp",
    "commstatus": "string",
    "reqid": "string",
    "permission_level": "bigint",
    "traceparent": "string",
    "payload_format": "string",
    "problem": "string",
}
"""What it has besides with `payloadFormat=uprotocol`. The `priority` is that of the message then, which says the lane
of Zenoh as well. A token is the secret of a caller: it is in the attachment and becomes no column."""

VALUE: Final = "value"
CORRUPT: Final = "_corrupt"
_ALL: Final = {**COLUMNS, **METADATA}


def names_of(payload_format: str, *, metadata: bool, has_value: bool = True) -> tuple[str, ...]:
    """The names of the columns that there are with a format of payloads."""
    message = MESSAGE if payload_format == UPROTOCOL else {}
    decoded = () if payload_format == "raw" else (*((VALUE,) if has_value else ()), CORRUPT)
    return (*dict.fromkeys((*(_ALL if metadata else COLUMNS), *message)), *decoded)


def ddl_of(options: ReadOptions) -> str:
    """The schema in Spark's language."""
    wanted = _ALL if options.include_metadata else COLUMNS
    if options.payload_format == UPROTOCOL:
        wanted = {**wanted, **MESSAGE}
    parts = [f"`{name}` {kind}" for name, kind in wanted.items()]
    if options.payload_format != "raw":
        value = _value_ddl(options)
        parts += [*([] if value is None else [f"`{VALUE}` {value}"]), f"`{CORRUPT}` binary"]
    return ", ".join(parts)


def _value_ddl(options: ReadOptions) -> str | None:
    """The type of a decoded payload; None if nothing says what is in it, and nothing needs to."""
    from elea.spark.payload import value_type

    if options.payload_schema is not None:
        _look_at(options.payload_schema)
        return value_type(options.payload_schema)
    from elea.spark.payload import DECLARED

    if options.payload_format in DECLARED:
        from elea.spark.payload.declared_format import declared_ddl

        return declared_ddl(options)
    if options.payload_format != UPROTOCOL:
        hint = "write .option('payloadSchema', 'speed double, name string')"
        raise ConfigError("option payloadSchema", f"payloadFormat={options.payload_format} needs it", hint)
    if options.payload_message is None:
        return None
    from elea.spark.payload import load
    from elea.spark.payload.protobuf_rows import descriptor_of, value_ddl

    load(options.payload_format, options.payload_module)
    return value_ddl(descriptor_of(options.payload_message, options.payload_descriptor))


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
    is_decoded = options.payload_format != "raw"
    types = {**_ALL, **(MESSAGE if options.payload_format == UPROTOCOL else {})}
    for column in schema.fields:
        path = f"column {column.name}"
        if column.name == VALUE and is_decoded:
            if column.dataType.typeName() != "struct":
                raise ConfigError(path, f"it is a struct, not {column.dataType.simpleString()}", "see payloadSchema")
            continue
        known = "binary" if column.name == CORRUPT and is_decoded else types.get(column.name)
        if known is None:
            names = names_of(options.payload_format, metadata=True)
            more = "" if is_decoded else f"; {VALUE} and {CORRUPT} come with payloadFormat"
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
