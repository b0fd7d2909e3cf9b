"""Payloads that are protobuf messages of one type: its columns by its descriptor, and the values.

A field with implicit presence that a message leaves out has its default, as protobuf has it; any other is null then.

| protobuf | Spark |
|---|---|
| bool, float, double, string, bytes | BOOLEAN, FLOAT, DOUBLE, STRING, BINARY |
| int32, sint32, sfixed32; int64, sint64, sfixed64 | INT; BIGINT |
| uint32, fixed32; uint64, fixed64 | BIGINT; DECIMAL(20,0) |
| enum | STRING: the name, or the number if it has none |
| message; `google.protobuf.Timestamp` | STRUCT; TIMESTAMP |
| repeated; map | ARRAY; MAP |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from elea.columnar.permissive import permissive
from elea.content.protobuf import TIMESTAMP
from elea.model.errors import ConfigError
from elea.model.limits import SCHEMA_DEPTH, SCHEMA_MEMBERS

__all__ = ["ProtobufColumns", "ProtobufRows", "struct_type"]

_STAMP: Final = pa.timestamp("us", "UTC")
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Years 1 to 9999, as `google.protobuf.Timestamp` and Spark have them."""

Column = Callable[[list[Any]], pa.Array]
"""Messages, or values of one field of them, to a column."""


# -- types -----------------------------------------------------------------------------------------------------------


def struct_type(descriptor: Any, inside: tuple[str, ...] = ()) -> pa.StructType:
    """The Arrow type of a message.

    Raises:
        ConfigError: it contains itself, or has no fields.
    """
    if not inside:
        _check_size(descriptor)
    if descriptor.full_name in inside:
        way = " in ".join((descriptor.full_name, *reversed(inside)))
        hint = "say in payloadSchema which fields are wanted: 'speed DOUBLE, at TIMESTAMP'"
        raise ConfigError("option payloadMessage", f"{way}: it contains itself", hint)
    if not descriptor.fields:
        raise ConfigError("option payloadMessage", f"{descriptor.full_name} has no fields", "leave payloadMessage out")
    deeper = (*inside, descriptor.full_name)
    return pa.struct([pa.field(field.name, _type(field, deeper)) for field in descriptor.fields])


def _check_size(descriptor: Any) -> None:
    """Count the fields with all that are within them: n messages of two others each have 2^n."""
    sizes: dict[str, int] = {}

    def size(kind: Any, depth: int) -> int:
        if depth > SCHEMA_DEPTH:
            problem = f"{descriptor.full_name} is deeper than {SCHEMA_DEPTH} (SCHEMA_DEPTH)"
            raise ConfigError("option payloadMessage", problem, "say in payloadSchema which fields are wanted")
        if kind.full_name not in sizes:
            sizes[kind.full_name] = 1  # while it is looked at; one that contains itself is refused elsewhere
            inner = (1 if field.message_type is None else size(field.message_type, depth + 1) for field in kind.fields)
            sizes[kind.full_name] = sum(inner)
        return sizes[kind.full_name]

    if size(descriptor, 0) > SCHEMA_MEMBERS:
        problem = f"{descriptor.full_name} has more than {SCHEMA_MEMBERS} fields with all within it (SCHEMA_MEMBERS)"
        raise ConfigError("option payloadMessage", problem, "say in payloadSchema which fields are wanted")


def _type(field: Any, inside: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_one_type(key, inside), _one_type(value, inside))
    one = _one_type(field, inside)
    return pa.list_(one) if field.is_repeated else one


def _one_type(field: Any, inside: tuple[str, ...]) -> pa.DataType:
    if field.message_type is None:
        return _SCALARS[field.type]
    return _STAMP if field.message_type.full_name == TIMESTAMP else struct_type(field.message_type, inside)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


# The numbers that `FieldDescriptor.type` has: the types of `descriptor.proto`.
_SCALARS: Final = {
    1: pa.float64(),
    2: pa.float32(),
    3: pa.int64(),
    4: pa.decimal128(20, 0),
    5: pa.int32(),
    6: pa.decimal128(20, 0),
    7: pa.int64(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    13: pa.int64(),
    14: pa.string(),
    15: pa.int32(),
    16: pa.int64(),
    17: pa.int32(),
    18: pa.int64(),
}


# -- values ----------------------------------------------------------------------------------------------------------


class ProtobufRows:
    """Messages of one type to structs. The library reads them one by one; columns are made of all."""

    def __init__(self, descriptor: Any, wanted: pa.StructType) -> None:
        """Choose the fields of `wanted`.

        Raises:
            ConfigError: the message has no such field, or one of another type.
        """
        from google.protobuf import message_factory

        self._read = message_factory.GetMessageClass(descriptor).FromString
        self._columns = _structs(descriptor, wanted, descriptor.full_name)
        self._nothing = pa.nulls(1, wanted)

    def together(self, payloads: pa.Array) -> pa.Array | None:
        """All of them, or None if one is no such message."""
        try:
            return self._columns(list(map(self._read, payloads.to_pylist())))
        except _bad():
            return None

    def one_by_one(self, payloads: pa.Array) -> pa.Array:
        """Each for itself; null where it is no such message."""
        found = (self.together(payloads.slice(at, 1)) for at in range(len(payloads)))
        return pa.concat_arrays([self._nothing if one is None else one for one in found])


class ProtobufColumns:
    """Decodes columns of messages of one type.

    Raises:
        ConfigError: the message contains itself, or has no fields.
    """

    def __init__(self, descriptor: Any) -> None:
        self.type = struct_type(descriptor)
        self._rows = ProtobufRows(descriptor, self.type)

    def decode(self, payloads: pa.Array) -> pa.Array:
        """A struct for each payload; null where it is null, or no such message."""
        return permissive(payloads, self.type, self._rows.together, self._rows.one_by_one)[0]


def _bad() -> tuple[type[Exception], ...]:
    """What a payload that is no such message, or a value that no column holds, makes the libraries raise."""
    from google.protobuf.message import DecodeError

    return (DecodeError, pa.ArrowException, ValueError, OverflowError, AttributeError, TypeError)


def _structs(descriptor: Any, wanted: pa.StructType, path: str) -> Column:
    known = descriptor.fields_by_name
    columns = []
    for field in wanted:
        if field.name not in known:
            near = get_close_matches(field.name, list(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"fields are {', '.join(known)}"
            raise ConfigError("payloadSchema", f"{path} has no field {field.name}", hint)
        columns.append(_column(known[field.name], field.type, f"{path}.{field.name}"))
    return lambda messages: pa.StructArray.from_arrays([make(messages) for make in columns], fields=list(wanted))


def _column(field: Any, wanted: pa.DataType, path: str) -> Column:
    get = attrgetter(field.name)
    if _is_map(field):
        return partial(_maps, get, *_map_columns(field, wanted, path), wanted)
    if field.is_repeated:
        _check(pa.types.is_list(wanted), field, wanted, path)
        return partial(_lists, get, _values(field, wanted.value_type, path), wanted)
    values = _values(field, wanted, path)
    if not field.has_presence:
        return lambda messages: values(list(map(get, messages)))
    return partial(_optional, field.name, get, values)


def _values(field: Any, wanted: pa.DataType, path: str) -> Column:
    """Single values of a field to a column."""
    kind = field.message_type
    if kind is not None and kind.full_name != TIMESTAMP:
        _check(pa.types.is_struct(wanted), field, wanted, path)
        return _structs(kind, wanted, path)
    _check(wanted == _one_type(field, ()), field, wanted, path)
    if kind is not None:
        return lambda stamps: pa.array(list(map(_micros, stamps)), _STAMP)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda numbers: pa.array([names.get(number) or str(number) for number in numbers], pa.string())
    return lambda values: pa.array(values, wanted)


def _check(is_right: bool, field: Any, wanted: pa.DataType, path: str) -> None:
    if not is_right:
        hint = "leave out payloadSchema, or write the type that docs/payloads.md has for it"
        raise ConfigError("payloadSchema", f"{path} is {_type_text(field)}, and cannot be {wanted}", hint)


def _type_text(field: Any) -> str:
    try:
        return str(_type(field, ()))
    except ConfigError:  # it contains itself
        return "a struct"


def _optional(name: str, get: Callable[[Any], Any], values: Column, messages: list[Any]) -> pa.Array:
    has = [message.HasField(name) for message in messages]
    column = values([get(message) for message, there in zip(messages, has, strict=True) if there])
    if len(column) == len(messages):
        return column
    places = accumulate(has)
    return column.take(pa.array([at - 1 if there else None for at, there in zip(places, has, strict=True)], pa.int64()))


def _lists(get: Callable[[Any], Any], values: Column, wanted: pa.DataType, messages: list[Any]) -> pa.Array:
    parts = list(map(get, messages))
    return pa.ListArray.from_arrays(_offsets(parts), values(list(chain.from_iterable(parts))), type=wanted)


def _map_columns(field: Any, wanted: pa.DataType, path: str) -> tuple[Column, Column]:
    _check(pa.types.is_map(wanted), field, wanted, path)
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    return _values(key, wanted.key_type, f"{path}.key"), _values(value, wanted.item_type, f"{path}.value")


def _maps(
    get: Callable[[Any], Any], keys: Column, values: Column, wanted: pa.DataType, messages: list[Any]
) -> pa.Array:
    parts = list(map(get, messages))
    # In order: a table that is read again must be the same, and the library has another one in every process.
    ordered = list(map(sorted, parts))
    names = list(chain.from_iterable(ordered))
    items = [part[name] for part, own in zip(parts, ordered, strict=True) for name in own]
    made = pa.MapArray.from_arrays(_offsets(parts), keys(names), values(items))
    return made if made.type == wanted else made.cast(wanted)


def _offsets(parts: Iterable[Any]) -> pa.Array:
    return pa.array(accumulate(map(len, parts), initial=0), pa.int32())


def _micros(stamp: Any) -> int:
    """Of a `google.protobuf.Timestamp`; raises ValueError if it is none."""
    if not _FIRST_SECOND <= stamp.seconds <= _LAST_SECOND or not 0 <= stamp.nanos < 1_000_000_000:
        raise ValueError(f"{stamp.seconds} seconds and {stamp.nanos} nanoseconds are no time")
    return int(stamp.seconds * 1_000_000 + stamp.nanos // 1000)
