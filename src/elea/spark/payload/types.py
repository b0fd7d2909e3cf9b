"""The type of a payload: from what Spark has parsed to Arrow, and what is refused in it.

`DataType.fromDDL` asks a JVM, which Python workers do not have. So the text of `payloadSchema` goes into the schema of
the whole row (`value_type`), Spark parses that, and the reader takes the parsed type of `value` from there.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from elea.model.errors import ConfigError

__all__ = ["struct_of", "value_type"]


def value_type(payload_schema: str) -> str:
    """The DDL of the type of one payload, to be put behind the name of a column.

    Args:
        payload_schema: the user's `payloadSchema`: `id BIGINT, tags ARRAY<STRING>`, or `struct<…>`, or the JSON of a
            StructType (`schema.json()`).
    """
    text = payload_schema.strip()
    if text.startswith("{"):
        from pyspark.sql.types import StructType

        try:
            return _ddl(StructType.fromJson(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "give what schema.json() prints, or DDL such as id BIGINT, temp DOUBLE"
            raise ConfigError("payloadSchema", f"not the JSON of a StructType: {error!r}", hint) from error
    if not text:
        raise ConfigError("payloadSchema", "it is empty", "e.g. id BIGINT, temp DOUBLE")
    if text.lower().startswith("struct<") and text.endswith(">"):
        return text
    return f"STRUCT<{text}>"


def struct_of(schema: Any, *, read: bool = True) -> pa.StructType:
    """The Arrow struct of `schema`, which may be Arrow's or pyspark's.

    Raises:
        ConfigError: it is no struct, has no fields, or the same name twice; or, to be `read`, NOT NULL in it.
    """
    found = schema
    if isinstance(schema, pa.Schema):
        found = pa.struct(list(schema))
    elif not isinstance(schema, pa.DataType):
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import to_arrow_type

        try:
            found = to_arrow_type(schema, timezone="UTC")
        except PySparkException as error:
            raise ConfigError("payloadSchema", str(error), "choose types that Spark has in Arrow, too") from error
    if not pa.types.is_struct(found):
        raise ConfigError("payloadSchema", f"{found} is no struct", "name the fields: id BIGINT, temp DOUBLE")
    _check(found, "value", read)
    return found


def _check(given: pa.DataType, path: str, read: bool) -> None:
    if pa.types.is_struct(given):
        names = [field.name for field in given]
        if not names:
            raise ConfigError("payloadSchema", f"{path} has no fields", "name at least one")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError("payloadSchema", f"{path} has the field {twice!r} twice", "leave one of them out")
    for field in _inside(given):
        if read and not field.nullable:
            # A sender may leave out anything, and Spark takes a null in such a column for undefined behaviour.
            problem = f"{path}.{field.name} must not be null, which no sender can be held to"
            raise ConfigError("payloadSchema", problem, "leave out NOT NULL, and filter nulls in the query")
        _check(field.type, f"{path}.{field.name}", read)


def _inside(given: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(given):
        return [given.item_field]  # keys are never null
    if pa.types.is_list(given) or pa.types.is_large_list(given):
        return [given.value_field]
    return list(given) if pa.types.is_struct(given) else []


def _ddl(given: Any) -> str:
    """DDL with every name quoted, which `simpleString` leaves out."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(given, StructType):
        fields = (f"`{field.name.replace('`', '``')}`: {_ddl(field.dataType)}" for field in given.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(given, ArrayType):
        return f"ARRAY<{_ddl(given.elementType)}>"
    if isinstance(given, MapType):
        return f"MAP<{_ddl(given.keyType)}, {_ddl(given.valueType)}>"
    return str(given.simpleString())
