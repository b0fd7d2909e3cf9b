"""`UUID`: identifiers of messages, which carry the time of their creation (RFC 9562, version 7)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from elea.uprotocol.protobuf import FIXED64, fields, fixed64
from elea.uprotocol.status import InvalidUuid

__all__ = ["UUID", "Clock", "new_uuid", "now_ms", "read_uuid", "write_uuid"]

Clock = Callable[[], int]
"""Milliseconds since 1970; a test brings its own."""

_TEXT: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_POOL: Final = 4096
"""Random octets fetched at a time: 256 identifiers for one call of the system, which costs as much as ten of them."""


class UUID(NamedTuple):
    """A version 7 identifier.

    >>> id = UUID.parse("01941f29-7c00-7abc-8123-456789abcdef")
    >>> id.time_ms, str(id), id.is_valid
    (1735689600000, '01941f29-7c00-7abc-8123-456789abcdef', True)
    """

    msb: int = 0
    lsb: int = 0

    @classmethod
    def parse(cls, text: str) -> UUID:
        """The identifier written as 8-4-4-4-12 hexadecimal digits.

        Raises:
            InvalidUuid: it is none of version 7, and why.
        """
        if not _TEXT.fullmatch(text):
            raise InvalidUuid(text, "its form is not 8-4-4-4-12 hexadecimal digits")
        digits = text.replace("-", "")
        id = cls(int(digits[:16], 16), int(digits[16:], 16))
        if problem := id.problem:
            raise InvalidUuid(text, problem)
        return id

    @classmethod
    def from_bytes(cls, data: bytes) -> UUID:
        """The identifier of a protobuf.

        Raises:
            DecodeError: the bytes are no protobuf.
            InvalidUuid: it is not of version 7.
        """
        id = read_uuid(data)
        if problem := id.problem:
            raise InvalidUuid(str(id), problem)
        return id

    def to_bytes(self) -> bytes:
        """The protobuf."""
        return write_uuid(self)

    def __str__(self) -> str:
        digits = f"{self.msb:016x}{self.lsb:016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def __repr__(self) -> str:
        return f"UUID({str(self)!r})"

    @property
    def time_ms(self) -> int:
        """When it was made, in milliseconds since 1970."""
        return self.msb >> 16

    @property
    def is_valid(self) -> bool:
        """Whether it is of version 7."""
        return self.msb & 0xF000 == 0x7000 and self.lsb >> 62 == 2

    @property
    def problem(self) -> str:
        """What keeps it from being of version 7; empty if nothing does."""
        if self.msb & 0xF000 != 0x7000:
            return f"its version is {self.msb >> 12 & 0xF} and not 7"
        return "" if self.lsb >> 62 == 2 else "its variant bits are not 10"

    @property
    def number(self) -> int:
        """The whole as one number of 128 bits."""
        return self.msb << 64 | self.lsb


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Random:
    """Random octets of the system, in portions. Threads may take turns at any time; a pop is one step for all."""

    def __init__(self) -> None:
        self._parts: list[int] = []

    def take(self) -> int:
        """A number of 128 bits that nobody else gets."""
        try:
            return self._parts.pop()
        except IndexError:
            data = os.urandom(_POOL)
            fresh = [int.from_bytes(data[at : at + 16]) for at in range(0, _POOL, 16)]
            self._parts.extend(fresh[1:])
            return fresh[0]

    def forget(self) -> None:
        """A forked child must not give the same ones."""
        self._parts.clear()


_random: Final = _Random()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.forget)


def new_uuid(clock: Clock = now_ms) -> UUID:
    """An identifier that no other message has."""
    random = _random.take()
    return UUID(clock() << 16 & 0xFFFF_FFFF_FFFF_0000 | 0x7000 | random & 0x0FFF, 1 << 63 | random >> 66)


def write_uuid(id: UUID) -> bytes:
    """The protobuf: two numbers of 64 bits, low octet first."""
    return (fixed64(1, id.msb) if id.msb else b"") + (fixed64(2, id.lsb) if id.lsb else b"")


def read_uuid(data: bytes) -> UUID:
    """What a protobuf says, also if it is of another version.

    Raises:
        DecodeError: it is no protobuf.
    """
    halves = [0, 0, 0]
    for field, wire, value in fields(data):
        if 1 <= field <= 2 and wire == FIXED64 and isinstance(value, int):
            halves[field] = value
    return UUID(halves[1], halves[2])
