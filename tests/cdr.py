"""CDR for tests: random declared types with values, and a writer that is as plain as the standard, both versions.

The writer follows XTypes 1.3 step by step and knows nothing of the readers; its bytes are those of cyclonedds for what
tests/unit/content/test_cdr.py has recorded.
"""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from elea.content.schema.declared import (
    BOOLEAN,
    CHAR,
    PRIMITIVES,
    UINT8,
    Array,
    Declared,
    EnumType,
    Extensibility,
    Member,
    Primitive,
    Sequence,
    Struct,
    Text,
)
from elea.model.predicate.types import Enumeration

__all__ = ["HEADS", "rosmsg_text", "structs", "values", "write"]

FINAL, APPENDABLE, MUTABLE = Extensibility.FINAL, Extensibility.APPENDABLE, Extensibility.MUTABLE
HEADS = {(1, FINAL): 0, (1, APPENDABLE): 0, (1, MUTABLE): 2, (2, FINAL): 6, (2, APPENDABLE): 8, (2, MUTABLE): 10}


def write(its: Struct, value: dict[str, Any], *, version: int = 1, little: bool = True, padded: bool = False) -> bytes:
    """A payload with its head."""
    writer = _Writer(version, "<" if little else ">")
    writer.value(its, value)
    head = bytes([0, HEADS[version, its.extensibility or FINAL] | little, 0, 0])
    return head + writer.data + bytes(-len(writer.data) % 4 if padded else 0)


class _Writer:
    def __init__(self, version: int, order: str) -> None:
        self.version, self.order = version, order
        self.data = b""

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % min(size, 8 if self.version == 1 else 4))

    def number(self, code: str, value: Any) -> None:
        self.align(struct.calcsize(code))
        self.data += struct.pack(self.order + code, value)

    def value(self, its: Declared, value: Any) -> None:
        if isinstance(its, Primitive):
            self.number(its.code, value.encode("latin-1") if its == CHAR else value)
        elif isinstance(its, EnumType):
            self.number({1: "b", 2: "h", 4: "i"}[its.size], value)
        elif isinstance(its, Text):
            self.number("I", len(value.encode()) + 1)
            self.data += value.encode() + b"\0"
        elif isinstance(its, Struct):
            self.struct(its, value)
        elif self.version == 2 and not isinstance(its.element, Primitive):
            self.delimited(lambda: self.elements(its, value))
        else:
            self.elements(its, value)

    def elements(self, its: Sequence | Array, value: Any) -> None:
        if isinstance(its, Sequence):
            self.number("I", len(value))
        else:
            for _ in its.sizes[1:]:
                value = [element for row in value for element in row]
        for element in value:
            self.value(its.element, element)

    def delimited(self, write: Any) -> None:
        self.number("I", 0)
        start = len(self.data)
        write()
        size = struct.pack(f"{self.order}I", len(self.data) - start)
        self.data = self.data[: start - 4] + size + self.data[start:]

    def struct(self, its: Struct, value: dict[str, Any]) -> None:
        how = its.extensibility or FINAL
        if how is MUTABLE:
            self.delimited(lambda: self.mutable2(its, value)) if self.version == 2 else self.mutable1(its, value)
        elif how is APPENDABLE and self.version == 2:
            self.delimited(lambda: self.members(its, value))
        else:
            self.members(its, value)

    def members(self, its: Struct, value: dict[str, Any]) -> None:
        for member in its.members:
            own = value[member.name]
            if not member.is_optional:
                self.value(member.type, own)
            elif self.version == 2:
                self.data += bytes([own is not None])
                if own is not None:
                    self.value(member.type, own)
            else:
                self.parameter(member, own)

    def parameter(self, member: Member, value: Any) -> None:
        inner = _Writer(1, self.order)
        if value is not None:
            inner.value(member.type, value)
            inner.data += bytes(-len(inner.data) % 4)
        self.align(4)
        if member.id % 2 or len(inner.data) > 0xFFFF:  # both forms are used
            self.data += struct.pack(f"{self.order}HHII", 0x7F01, 8, member.id, len(inner.data))
        else:
            self.data += struct.pack(f"{self.order}HH", member.id, len(inner.data))
        self.data += inner.data

    def mutable1(self, its: Struct, value: dict[str, Any]) -> None:
        for member in reversed(its.members):
            if value[member.name] is not None:
                self.parameter(member, value[member.name])
        self.align(4)
        self.data += struct.pack(f"{self.order}HH", 0x7F02, 0)

    def mutable2(self, its: Struct, value: dict[str, Any]) -> None:
        for member in reversed(its.members):
            own = value[member.name]
            if own is None:
                continue
            its_size = member.type.size if isinstance(member.type, Primitive | EnumType) else 0
            if its_size:
                self.number("I", {1: 0, 2: 1, 4: 2, 8: 3}[its_size] << 28 | member.id)
                self.value(member.type, own)
            elif isinstance(member.type, Text):
                self.number("I", 5 << 28 | member.id)
                self.value(member.type, own)
            else:
                self.number("I", 4 << 28 | member.id)
                self.delimited(lambda own=own, its=member.type: self.value(its, own))


# -- random types and values -------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
_ENUMS = st.builds(
    lambda count, size: EnumType("E", Enumeration(tuple((f"L{at}", at * at - 1) for at in range(count))), size),
    st.integers(1, 5),
    st.sampled_from([1, 2, 4]),
)


def _many(inner: st.SearchStrategy[Declared], dimensions: int) -> st.SearchStrategy[Declared]:
    sizes: Any = st.lists(st.integers(1, 3), min_size=1, max_size=dimensions).map(tuple)
    return st.builds(Sequence, inner) | st.builds(Array, inner, sizes)


def _types(ros: bool, inner: st.SearchStrategy[Declared]) -> st.SearchStrategy[Declared]:
    if ros:  # there are no lists of lists
        return _structs(ros, inner | _many(inner, 1))
    return _many(inner, 2) | _structs(ros, inner)


def _structs(ros: bool, inner: st.SearchStrategy[Declared]) -> st.SearchStrategy[Struct]:
    def make(types: list[Declared], how: Extensibility, optional: list[bool]) -> Struct:
        members = zip(NAMES, types, optional, strict=False)
        made = tuple(Member(name, its, at, not ros and is_opt) for at, (name, its, is_opt) in enumerate(members))
        return Struct("demo/msg/T", made, how)

    how = st.just(FINAL) if ros else st.sampled_from([FINAL, FINAL, APPENDABLE, MUTABLE])
    flags = st.lists(st.sampled_from([False, False, False, True]), min_size=len(NAMES), max_size=len(NAMES))
    return st.builds(make, st.lists(inner, min_size=1, max_size=len(NAMES)), how, flags)


def structs(*, ros: bool = False) -> st.SearchStrategy[Struct]:
    """Random types; those that ROS has, too, with `ros`."""
    numbers = [its for its in PRIMITIVES.values() if not ros or its != CHAR]
    leaves: st.SearchStrategy[Declared] = st.sampled_from(numbers) | st.just(Text())
    if not ros:
        leaves |= _ENUMS
    inner = st.recursive(leaves, lambda inner: _types(ros, inner), max_leaves=6)
    return _structs(ros, inner | _many(inner, 1) if ros else inner)


def values(its: Declared) -> st.SearchStrategy[Any]:
    """Values of a type, as the reader gives them."""
    if isinstance(its, Struct):
        return st.fixed_dictionaries(
            {
                member.name: values(member.type) | st.none() if member.is_optional else values(member.type)
                for member in its.members
            }
        )
    if isinstance(its, Text):
        return st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
    if isinstance(its, EnumType):
        return st.sampled_from([number for _, number in its.labels.labels])
    if isinstance(its, Sequence):
        return st.binary(max_size=5) if its.element == UINT8 else st.lists(values(its.element), max_size=3)
    if isinstance(its, Array):
        return _arrays(its)
    if its == BOOLEAN:
        return st.booleans()
    if its == CHAR:
        return st.characters(max_codepoint=255)
    if its.code in "fd":
        return st.floats(width=32 if its.code == "f" else 64, allow_nan=False)
    bits = 8 * its.size
    return st.integers(0, 2**bits - 1) if its.code.isupper() else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _arrays(its: Array) -> st.SearchStrategy[Any]:
    if its.element == UINT8 and len(its.sizes) == 1:
        return st.binary(min_size=its.sizes[0], max_size=its.sizes[0])
    found = values(its.element)
    for size in reversed(its.sizes):
        found = st.lists(found, min_size=size, max_size=size)
    return found


def rosmsg_text(its: Struct, name: str = "demo/T") -> str:
    """The definition of a type that ROS has, with all that is within it."""
    parts: list[str] = []
    _rosmsg(its, name, parts)
    first, *others = parts
    return "\n".join([first, *(f"{'=' * 80}\n{other}" for other in others)])


def _rosmsg(its: Struct, name: str, parts: list[str]) -> None:
    place = len(parts)
    parts.append("")
    lines = [] if not place else [f"MSG: {name}"]
    for member in its.members:
        element, ending = member.type, ""
        if isinstance(element, Sequence):
            element, ending = element.element, "[]"
        elif isinstance(element, Array):
            ending = f"[{element.count}]"
            element = element.element
        lines.append(f"{_ros_name(element, parts)}{ending} {member.name}")
    parts[place] = "\n".join(lines)


def _ros_name(its: Declared, parts: list[str]) -> str:
    if isinstance(its, Primitive):
        return "bool" if its == BOOLEAN else its.name
    if isinstance(its, Text):
        return "string"
    assert isinstance(its, Struct)
    name = f"demo/T{len(parts)}"
    _rosmsg(its, name, parts)
    return name
