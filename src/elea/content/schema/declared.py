"""Declared types: what IDL and ROS message definitions say of the bytes of CDR payloads.

A type is finite: a struct does not contain itself, and with everything within it has at most `SCHEMA_MEMBERS` members.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from elea.model.limits import SCHEMA_DEPTH, SCHEMA_ELEMENTS, SCHEMA_MEMBERS
from elea.model.predicate.types import Enumeration, ListOf, Record, Scalar, Type
from elea.model.values import value_class

__all__ = [
    "BOOLEAN",
    "CHAR",
    "PRIMITIVES",
    "UINT8",
    "Array",
    "Declared",
    "EnumType",
    "Extensibility",
    "Member",
    "Primitive",
    "Sequence",
    "Struct",
    "Text",
    "check_array",
    "check_size",
    "is_bytes",
    "is_plain",
    "predicate_type",
]


class Extensibility(Enum):
    """How a struct may change: what stands before its members in XCDR2, and in XCDR1 if it is mutable."""

    FINAL = "final"
    APPENDABLE = "appendable"
    MUTABLE = "mutable"


@value_class
class Primitive:
    """A number, a boolean or a character: `code` is that of `struct`, and `size` its alignment, too."""

    name: str
    code: str
    size: int


@value_class
class Text:
    """A string in UTF-8, perhaps with a greatest length in bytes."""

    bound: int | None = None


@value_class
class EnumType:
    """Labels with numbers, in 1, 2 or 4 bytes."""

    name: str
    labels: Enumeration
    size: int = 4


@value_class
class Sequence:
    """Any number of elements, perhaps with a greatest one."""

    element: Declared
    bound: int | None = None


@value_class
class Array:
    """A fixed number of elements in each of some dimensions."""

    element: Declared
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        count = 1
        for size in self.sizes:
            count *= size
        return count


@value_class
class Member:
    """One member of a struct; `id` tells it in mutable ones."""

    name: str
    type: Declared
    id: int
    is_optional: bool = False


@value_class
class Struct:
    """Named members in order. `extensibility` is None if the text does not say it."""

    name: str
    members: tuple[Member, ...]
    extensibility: Extensibility | None = None


Declared = Primitive | Text | EnumType | Sequence | Array | Struct

BOOLEAN: Final = Primitive("boolean", "?", 1)
CHAR: Final = Primitive("char", "c", 1)
UINT8: Final = Primitive("uint8", "B", 1)
PRIMITIVES: Final[dict[str, Primitive]] = {
    each.name: each
    for each in (
        BOOLEAN,
        CHAR,
        UINT8,
        Primitive("int8", "b", 1),
        Primitive("int16", "h", 2),
        Primitive("uint16", "H", 2),
        Primitive("int32", "i", 4),
        Primitive("uint32", "I", 4),
        Primitive("int64", "q", 8),
        Primitive("uint64", "Q", 8),
        Primitive("float32", "f", 4),
        Primitive("float64", "d", 8),
    )
}


def is_bytes(its: Declared) -> bool:
    """Whether it is an array or a sequence of bytes, which is one value."""
    if isinstance(its, Array) and len(its.sizes) > 1:
        return False
    return isinstance(its, Sequence | Array) and its.element == UINT8


def is_plain(its: Declared) -> bool:
    """Whether elements of it stand one behind the other, without a length before them in XCDR2."""
    return isinstance(its, Primitive)


def check_size(its: Struct, sizes: dict[int, tuple[int, int]]) -> str | None:
    """What is wrong with the size of a type, too many members or too deep; None if nothing is.

    Args:
        sizes: members and depth of structs of the same text by their identity, so that each is looked at once.
    """

    def measure(each: Declared) -> tuple[int, int]:
        if isinstance(each, Struct):
            known = sizes.get(id(each))
            if known is None:
                parts = [measure(member.type) for member in each.members]
                known = (sum(members for members, _ in parts), 1 + max(depth for _, depth in parts))
                sizes[id(each)] = known
            return known
        if isinstance(each, Sequence | Array):
            members, depth = measure(each.element)
            return members, depth + 1
        return 1, 0

    members, depth = measure(its)
    if members > SCHEMA_MEMBERS:
        return f"{its.name} has {members} members with all within it, the limit is {SCHEMA_MEMBERS} (SCHEMA_MEMBERS)"
    if depth > SCHEMA_DEPTH:
        return f"{its.name} is {depth} deep, the limit is {SCHEMA_DEPTH} (SCHEMA_DEPTH)"
    return None


def check_array(sizes: tuple[int, ...]) -> str | None:
    """What is wrong with the dimensions of an array, if anything."""
    count = 1
    for size in sizes:
        if size < 1:
            return "an array has at least one element"
        count *= size
    if count > SCHEMA_ELEMENTS:
        return f"an array of {count} elements is above the limit of {SCHEMA_ELEMENTS} (SCHEMA_ELEMENTS)"
    return None


def predicate_type(its: Declared) -> Type:
    """What predicates may do with values of a type."""
    if isinstance(its, Struct):
        return Record(tuple((member.name, predicate_type(member.type)) for member in its.members))
    if isinstance(its, EnumType):
        return its.labels
    if isinstance(its, Text) or its == CHAR:
        return Scalar.STRING
    if isinstance(its, Sequence):
        return Scalar.BINARY if is_bytes(its) else ListOf(predicate_type(its.element))
    if isinstance(its, Array):
        if is_bytes(its):
            return Scalar.BINARY
        found: Type = predicate_type(its.element)
        for _ in its.sizes:
            found = ListOf(found)
        return found
    if its == BOOLEAN:
        return Scalar.BOOLEAN
    assert isinstance(its, Primitive)
    return Scalar.FLOAT if its.code in "fd" else Scalar.INTEGER
