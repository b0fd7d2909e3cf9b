"""What every dialect offers, whatever its bytes look like: decode, encode, the JSON form, and a dissection.

A *unit* says what a piece of bytes is: one message, a packet, a whole stream. The units of a dialect are
listed in `Dialect.units`, the commonest first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from elea.model.errors import DecodeError
from elea.notation.jsonform import Json
from elea.notation.walk import Walker

__all__ = ["Dialect", "Field", "Json", "dissection", "moved"]

SHOWN_BYTES = 32
"""Octets of a value that a dissection prints."""


class Field(NamedTuple):
    """One line of a dissection: octets `start` to `end` are `name`, worth `text`."""

    depth: int
    name: str
    start: int
    end: int
    text: str
    error: DecodeError | None = None


class Dialect(Protocol):
    """One wire language. `decode` and `encode` are inverses for every unit; both raise only documented errors."""

    @property
    def name(self) -> str: ...

    @property
    def units(self) -> tuple[str, ...]: ...

    def decode(self, unit: str, data: bytes) -> object:
        """The value of `data`; raises DecodeError."""
        ...

    def encode(self, unit: str, value: object) -> bytes:
        """The canonical bytes of `value`; raises EncodeError."""
        ...

    def to_json(self, unit: str, value: object, *, full: bool = False) -> Json:
        """The JSON form of a value; unless `full`, long payloads are summarised by length, head and tail."""
        ...

    def from_json(self, unit: str, form: Json) -> object:
        """The value of a JSON form; raises EncodeError naming the member that is wrong."""
        ...

    def dissect(self, unit: str, data: bytes) -> list[Field]:
        """Field by field, with offsets; never raises: what cannot be read is a last line with `error`."""
        ...


def dissection(walker: Walker, walk: Callable[[], None], decode: Callable[[], object]) -> list[Field]:
    """The lines of a walk. Whether and where the bytes are wrong is the decoder's word, not the walker's."""
    error: DecodeError | None = None
    try:
        decode()
    except DecodeError as found:
        error = found
    with contextlib.suppress(DecodeError):
        walk()
    pieces = walker.pieces if error is None else [piece for piece in walker.pieces if piece.start <= error.at]
    fields = [Field(p.depth, p.name, p.start, p.end, _text(p.value)) for p in pieces]
    if error is not None:
        fields.append(Field(0, "error", error.at, error.at, str(error), error))
    return fields


def moved(fields: list[Field], by: int, depth: int = 0) -> list[Field]:
    """Lines of a part, as lines of the whole in which it starts at octet `by`."""
    return [
        Field(f.depth + depth, f.name, f.start + by, f.end + by, f.text, f.error and f.error.moved(by)) for f in fields
    ]


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Enum():
            return f"{value.name} ({value.value})"
        case bytes():
            shown = value[:SHOWN_BYTES].hex()
            return f"{shown}… ({len(value)} octets)" if len(value) > SHOWN_BYTES else shown
        case str():
            return value
        case _:
            return str(value)
