"""Protobuf messages described by a table: those of the core services, which are not on anybody's hot path.

They look like messages of the protobuf library where that is needed: `SerializeToString`, `FromString`, and a
`DESCRIPTOR` that knows the full name. So one writes and reads payloads with either.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, Self

from elea.uprotocol.protobuf import SIZED, VARINT, fields, number, sized, text_of

__all__ = ["Descriptor", "Member", "ProtoMessage", "each", "flag", "message", "optional", "text"]


class _Coded(Protocol):
    """A value that knows its protobuf: `UUri`, `UStatus`, `UMessage`, or a message of this module."""

    def to_bytes(self) -> bytes: ...

    @classmethod
    def from_bytes(cls, data: bytes) -> Any: ...


class Member(NamedTuple):
    """A field: its number and name; what it holds (a class, `str` or `int`); and whether it is there 0..n times, or
    may be absent.
    """

    number: int
    name: str
    kind: Any
    repeated: bool = False
    present: bool = False

    @property
    def default(self) -> Any:
        """What it is when nobody has said."""
        if self.repeated:
            return ()
        return self.kind() if self.kind in (str, int) and not self.present else None

    def encode(self, value: Any) -> bytes:
        """One value."""
        if self.kind is int:
            return number(self.number, value, self.name, bits=64)
        return sized(self.number, value.encode() if self.kind is str else value.to_bytes())

    def decode(self, wire: int, value: int | bytes) -> Any:
        """One value, or None if it is of another wire type."""
        if self.kind is int:
            return value if wire == VARINT else None
        if wire != SIZED or not isinstance(value, bytes):
            return None
        return text_of(value, self.name) if self.kind is str else self.kind.from_bytes(value)


def message(number: int, name: str, kind: type[_Coded]) -> Member:
    """A field that holds a message, or nothing."""
    return Member(number, name, kind, present=True)


def each(number: int, name: str, kind: type[_Coded]) -> Member:
    """A field that holds any number of messages."""
    return Member(number, name, kind, repeated=True)


def text(number: int, name: str) -> Member:
    """A field that holds text."""
    return Member(number, name, str)


def flag(number: int, name: str) -> Member:
    """A field that holds a number or a symbol, 0 unless given."""
    return Member(number, name, int)


def optional(number: int, name: str, kind: type = int) -> Member:
    """A field that holds a number or text, or nothing."""
    return Member(number, name, kind, present=True)


class Descriptor(NamedTuple):
    """What a message is called."""

    full_name: str


class ProtoMessage:
    """A message: its class names the members, a value has them as attributes."""

    DESCRIPTOR: ClassVar[Descriptor]
    MEMBERS: ClassVar[tuple[Member, ...]] = ()

    def __init__(self, **values: Any) -> None:
        for member in self.MEMBERS:
            setattr(self, member.name, values.pop(member.name, member.default))
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def to_bytes(self) -> bytes:
        """The protobuf."""
        out = []
        for member in self.MEMBERS:
            value = getattr(self, member.name)
            if member.repeated:
                out += [member.encode(one) for one in value]
            elif value is not None and (value or member.present):
                out.append(member.encode(value))
        return b"".join(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The message of a protobuf.

        Raises:
            DecodeError: it is none.
            InvalidUri: an address in it is none.
        """
        members = {member.number: member for member in cls.MEMBERS}
        values: dict[str, Any] = {}
        for field, wire, raw in fields(data):
            member = members.get(field)
            value = None if member is None else member.decode(wire, raw)
            if member is None or value is None:
                continue
            if member.repeated:
                values.setdefault(member.name, []).append(value)
            else:
                values[member.name] = value
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    def SerializeToString(self) -> bytes:  # noqa: N802 - as in the protobuf library
        """The protobuf."""
        return self.to_bytes()

    @classmethod
    def FromString(cls, data: bytes) -> Self:  # noqa: N802 - as in the protobuf library
        """The message of a protobuf."""
        return cls.from_bytes(data)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value not in (None, (), "", 0))
        return f"{type(self).__name__}({shown})"
