"""Payloads of declared types, CDR and protobuf: `value` by the schema that the data space has, or a file.

`payloadMessage` names the type; unless it is given, the rule that the data space has for the key expression does.
`payloadDescriptor` is a file with the schema (IDL, a ROS message, a descriptor set); unless it is given, the schema is
asked for below `@schema`, by the driver when it plans and by each process that decodes.

| declared | Spark |
|---|---|
| boolean, int8 … int64, float, double | BOOLEAN, TINYINT … BIGINT, FLOAT, DOUBLE |
| uint8 (octet), uint16, uint32, uint64 | SMALLINT, INT, BIGINT, DECIMAL(20,0) |
| char, string, enumeration | STRING: the label |
| several octets | BINARY |
| sequence, array; struct | ARRAY; STRUCT |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.content.registry import SchemaRegistry, struct_of, type_key
from elea.model.encoding import Encoding
from elea.model.errors import ConfigError, InvalidSchema
from elea.spark.options import ReadOptions
from elea.spark.payload.types import struct_of as arrow_struct_of
from elea.spark.payload.types import value_type
from elea.spark.rows import Made, payload_of
from elea.spark.schema import CORRUPT, VALUE

__all__ = ["declared_columns", "declared_ddl"]

_ENCODINGS: Final = {"cdr": Encoding.APPLICATION_CDR, "protobuf": Encoding.APPLICATION_PROTOBUF}
_SPARK: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


class Columns(Protocol):
    """What decodes columns of payloads of one type."""

    type: pa.StructType

    def decode(self, payloads: pa.Array) -> pa.Array: ...


class _Declared(NamedTuple):
    key: str
    """Where the type is declared, which also tells it from others."""
    columns: Columns


def declared_ddl(options: ReadOptions) -> str:
    """The type of `value` in Spark's language.

    Raises:
        ConfigError: nothing declares the type, or not as it should be.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    found: Any = from_arrow_type(_spark_type(_declared(options).columns.type))
    return value_type(found.json())


def declared_columns(value: Any, options: ReadOptions) -> Made:
    """What makes `value` and `_corrupt` of a batch in the columns of a log."""
    wanted = arrow_struct_of(value)
    declared = _declared(options)
    encoding = _ENCODINGS[options.payload_format]

    def made(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        payloads = payload_of(batch)
        others = _of_other_types(batch, encoding, declared.key)
        asked = payloads if others is None else pc.if_else(others, pa.scalar(None, payloads.type), payloads)
        values = _fitted(declared.columns.decode(asked), wanted)
        is_corrupt = pc.and_(values.is_null(), payloads.is_valid())
        return {VALUE: values, CORRUPT: pc.if_else(is_corrupt, payloads, pa.scalar(None, payloads.type))}

    return made


def _declared(options: ReadOptions) -> _Declared:
    format = options.payload_format
    encoding = _ENCODINGS[format]
    try:
        if options.payload_descriptor is None:
            return _in_space(options, encoding)
        assert options.payload_message is not None  # the options were checked
        key = type_key(encoding, options.payload_message)
        data = Path(options.payload_descriptor).read_bytes()
        return _Declared(key, _columns(format, options.payload_message, None, data))
    except (InvalidSchema, UnicodeDecodeError, KeyError, RecursionError) as error:  # the last two: descriptors of maps
        raise ConfigError("option payloadMessage", str(error), "see docs/payloads.md") from error
    except OSError as error:
        raise ConfigError("option payloadDescriptor", str(error), "name a file on every machine") from error


def _in_space(options: ReadOptions, encoding: Encoding) -> _Declared:
    from elea.spark.sessions import session_of

    schemas: SchemaRegistry = session_of(options)._node.schemas.ask()
    name = options.payload_message
    if name is None:
        rules = {schemas.rule(expr) for expr in options.key_exprs}
        told = rules.pop() if len(rules) == 1 else None
        if told is None or told[0] != encoding.id:
            hint = f"write .option('payloadMessage', 'TYPE'), or elea schema keys KEYEXPR '{encoding};TYPE'"
            problem = f"nothing says of which type the payloads of {','.join(options.key_exprs)} are"
            raise ConfigError("option payloadMessage", problem, hint)
        name = (told[1] or b"").decode()
    key = type_key(encoding, name)
    for known, language, data in schemas.texts():
        if known == key:
            return _Declared(key, _columns(options.payload_format, name, language, data))
    hint = f"elea schema put '{encoding};{name}' FILE, or name a file with payloadDescriptor"
    raise ConfigError("option payloadMessage", f"the data space declares no {name}", hint)


def _columns(format: str, name: str, language: str | None, data: bytes) -> Columns:
    if format == "protobuf":
        from elea.columnar.protobufcolumns import ProtobufColumns
        from elea.content.protobuf import descriptor_in

        return ProtobufColumns(descriptor_in(data, name))
    from elea.columnar.cdrcolumns import CdrColumns

    place = type_key(_ENCODINGS[format], name).split("/", 2)[2]
    return CdrColumns(struct_of(place, language, data.decode()))


def _of_other_types(batch: pa.RecordBatch, encoding: Encoding, key: str) -> pa.Array | None:
    """Which samples say that they are of another type; None if none does."""
    schemas = pc.unique(batch.column("schema")).to_pylist()
    others = [each for each in schemas if each is not None and _key_of(encoding, each) != key]
    if not others:
        return None
    is_other = pc.is_in(batch.column("schema"), pa.array(others, batch.column("schema").type))
    return pc.and_(is_other, pc.equal(batch.column("encoding"), encoding.id))


def _key_of(encoding: Encoding, schema: bytes) -> str | None:
    try:
        return type_key(encoding, schema.decode())
    except (InvalidSchema, UnicodeDecodeError):
        return None


# -- types -----------------------------------------------------------------------------------------------------------


def _spark_type(its: pa.DataType) -> pa.DataType:
    """The nearest type that Spark has."""
    if pa.types.is_struct(its):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in its])
    if pa.types.is_list(its):
        return pa.list_(_spark_type(its.value_type))
    return _SPARK.get(its, its)


def _fitted(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values in another type: fields by name, those that are not there null.

    Raises:
        ConfigError: a value does not fit.
    """
    if values.type == wanted:
        return values
    if pa.types.is_struct(wanted) and pa.types.is_struct(values.type):
        own = {field.name: column for field, column in zip(values.type, values.flatten(), strict=True)}
        columns = [
            _fitted(own[field.name], field.type) if field.name in own else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=values.is_null())
    if pa.types.is_list(wanted) and pa.types.is_list(values.type):
        inner = _fitted(values.flatten(), wanted.value_type)
        sizes = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
        offsets = np.zeros(len(values) + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), inner, type=wanted, mask=values.is_null())
    try:
        return values.cast(wanted)
    except pa.ArrowException as error:
        hint = "leave out payloadSchema, or choose types that hold all values"
        raise ConfigError("option payloadSchema", f"{values.type} is no {wanted}: {error}", hint) from error
