"""The Arrow types of declared types, and what the decoder of single samples gives as Arrow takes it."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from elea.content.schema.declared import (
    BOOLEAN,
    CHAR,
    Array,
    Declared,
    EnumType,
    Primitive,
    Sequence,
    Struct,
    Text,
    is_bytes,
)
from elea.model.predicate.types import Enumeration, Label

__all__ = ["arrow_type", "as_arrow", "enumerations_of"]

_NUMBERS: Final = {
    "b": pa.int8(),
    "B": pa.uint8(),
    "h": pa.int16(),
    "H": pa.uint16(),
    "i": pa.int32(),
    "I": pa.uint32(),
    "q": pa.int64(),
    "Q": pa.uint64(),
    "f": pa.float32(),
    "d": pa.float64(),
}


def arrow_type(its: Declared) -> pa.DataType:
    """The type of a column; enumerations are their labels, arrays are lists."""
    if isinstance(its, Struct):
        return pa.struct([pa.field(member.name, arrow_type(member.type)) for member in its.members])
    if isinstance(its, Text | EnumType) or its == CHAR:
        return pa.string()
    if is_bytes(its):
        return pa.binary()
    if isinstance(its, Sequence):
        return pa.list_(arrow_type(its.element))
    if isinstance(its, Array):
        found = arrow_type(its.element)
        for _ in its.sizes:
            found = pa.list_(found)
        return found
    assert isinstance(its, Primitive)
    return pa.bool_() if its == BOOLEAN else _NUMBERS[its.code]


def as_arrow(value: Any) -> Any:
    """A decoded value with the labels of enumerations as text."""
    if isinstance(value, dict):
        return {name: as_arrow(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_arrow(each) for each in value]
    return value.name if isinstance(value, Label) else value


def enumerations_of(its: Declared, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Enumeration]:
    """Which fields have labels, for predicates over columns."""
    if isinstance(its, EnumType):
        return {path: its.labels}
    if isinstance(its, Sequence):
        return enumerations_of(its.element, (*path, "[]"))
    if isinstance(its, Array):
        return enumerations_of(its.element, (*path, *(("[]",) * len(its.sizes))))
    found: dict[tuple[str, ...], Enumeration] = {}
    if isinstance(its, Struct):
        for member in its.members:
            found |= enumerations_of(member.type, (*path, member.name))
    return found
