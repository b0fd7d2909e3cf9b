"""Conduit and RSpace markers of the early dialects, written by hand.

In the compact form the id sits in two flags of the header and counts from one (Z18-MRK-05). The generated shape
would be "a number, or two flags"; programs want the id.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from elea.model.errors import EncodeError
from elea.wire.primitives import read_nat, write_nat
from elea.wire.values import message

__all__ = ["Conduit", "RSpace", "read_marker", "write_marker"]

COMPACT = 0x80
HIGH = 0x40
LOW = 0x20


@message
class Conduit(NamedTuple):
    """The next message travels on conduit `id`."""

    id: int
    compact: bool = False


@message
class RSpace(NamedTuple):
    """The ids of the next message belong to resource space `id`."""

    id: int
    compact: bool = False


Marker = TypeVar("Marker", Conduit, RSpace)


def read_marker(cls: type[Marker], buf: bytes, at: int, header: int, dialect: str) -> tuple[Marker, int]:
    """A marker whose header octet has been read."""
    if header & COMPACT:
        return cls(1 + (header >> 5 & 1) + (header >> 5 & 2), True), at
    # Spec Z18-ENC-02: H and L are undefined here, whatever they hold.
    id_, at = read_nat(buf, at, dialect)
    return cls(id_, False), at


def write_marker(out: bytearray, m: Conduit | RSpace, kind: int) -> None:
    """Append a marker; the compact form holds ids 1 to 4."""
    if not m.compact:
        out.append(kind)
        write_nat(out, m.id, "id")
        return
    if not 1 <= m.id <= 4:
        raise EncodeError("id", f"{m.id} does not fit the compact form, which holds 1 to 4")
    short = m.id - 1
    out.append(kind | COMPACT | (HIGH if short & 2 else 0) | (LOW if short & 1 else 0))
