"""Octets every dialect shares: variable-length naturals, sized regions, text, unknown extensions.

Generated codecs read one-octet numbers in place and come here for the rest. They index `bytes` without checking
first: running off the end raises IndexError, which `whole` and `sized` turn into `Truncated`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from elea.model.errors import (
    BadText,
    DecodeError,
    EncodeError,
    Malformed,
    NaturalOverflow,
    Oversize,
    PaddedNatural,
    TrailingBytes,
    Truncated,
    UnknownMandatoryExtension,
)
from elea.model.limits import MAX_EXTENSIONS
from elea.wire.values import MessageValue

__all__ = [
    "Unknown",
    "bits",
    "long_nat",
    "long_z",
    "read_extension",
    "read_nat",
    "read_text",
    "read_z",
    "sized",
    "sized_bytes",
    "whole",
    "write_extensions",
    "write_nat",
    "write_sized",
    "write_z",
]

T = TypeVar("T")
M = TypeVar("M")

MANDATORY: Final = 0x10
FORM: Final = 0x60
FORM_Z64: Final = 0x20
FORM_ZBUF: Final = 0x40
FORM_RESERVED: Final = 0x60


class Unknown(MessageValue):
    """An extension nobody here knows: its header without the "more" bit, and its body."""

    header: int
    body: int | bytes | None


# -- naturals of the early dialects: at most ten octets, minimal -----------------------------------------------------


def read_nat(buf: bytes, at: int, dialect: str) -> tuple[int, int]:
    """A natural and the offset behind it."""
    first = buf[at]
    if first < 128:
        return first, at + 1
    return long_nat(buf, at + 1, first, dialect)


def long_nat(buf: bytes, at: int, first: int, dialect: str) -> tuple[int, int]:
    """The rest of a natural whose first octet, already read, has its top bit set."""
    value = first & 0x7F
    shift = 7
    while True:
        octet = buf[at]
        at += 1
        if shift == 63 and octet > 1:
            raise NaturalOverflow(dialect, at - 1, "number above 64 bits")
        value |= (octet & 0x7F) << shift
        if octet < 128:
            if octet == 0:
                raise PaddedNatural(dialect, at - 1, "number with needless octets")
            return value, at
        shift += 7


def write_nat(out: bytearray, value: int, what: str) -> None:
    """Append a natural in its shortest form."""
    if not 0 <= value < 1 << 64:
        raise EncodeError(what, f"{value} is not a natural below 2^64")
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


# -- naturals of Zenoh 1.x: at most nine octets, the ninth full; padding accepted ------------------------------------


def read_z(buf: bytes, at: int, limit: int, dialect: str) -> tuple[int, int]:
    """A natural below 2^limit and the offset behind it."""
    first = buf[at]
    if first < 128:
        return first, at + 1
    return long_z(buf, at + 1, first, limit, dialect)


def long_z(buf: bytes, at: int, first: int, limit: int, dialect: str) -> tuple[int, int]:
    """The rest of a natural whose first octet, already read, has its top bit set."""
    value = first & 0x7F
    shift = 7
    while True:
        octet = buf[at]
        at += 1
        if shift == 56:
            value |= octet << 56
            break
        value |= (octet & 0x7F) << shift
        if octet < 128:
            break
        shift += 7
    if value >> limit:
        raise NaturalOverflow(dialect, at - 1, f"{value} is above {limit} bits")
    return value, at


def write_z(out: bytearray, value: int, limit: int, what: str) -> None:
    """Append a natural below 2^limit in its shortest form."""
    if value < 0 or value >> limit:
        raise EncodeError(what, f"{value} is not a natural below 2^{limit}")
    if value >= 1 << 56:
        _write_nine(out, value)
        return
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_nine(out: bytearray, value: int) -> None:
    """Nine octets, as every timestamp has: eight groups of seven bits spread at once (0.4 µs; a loop takes 1.1)."""
    low = value & 0xFF_FFFF_FFFF_FFFF
    low = (low & 0x0FFF_FFFF) | (low & 0xFF_FFFF_F000_0000) << 4
    low = (low & 0x0000_3FFF_0000_3FFF) | (low & 0x0FFF_C000_0FFF_C000) << 2
    low = (low & 0x007F_007F_007F_007F) | (low & 0x3F80_3F80_3F80_3F80) << 1
    out += (low | 0x8080_8080_8080_8080).to_bytes(8, "little")
    out.append(value >> 56)


# -- regions, text, bits ---------------------------------------------------------------------------------------------


def read_text(buf: bytes, at: int, size: int, dialect: str) -> tuple[str, int]:
    """UTF-8 text of `size` octets and the offset behind it."""
    end = at + size
    if end > len(buf):
        raise Truncated(dialect, len(buf), size, len(buf) - at)
    try:
        return str(buf[at:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise BadText(dialect, at + error.start, f"text is not UTF-8: {error.reason}") from None


def sized_bytes(buf: bytes, at: int, dialect: str) -> tuple[bytes, int]:
    """A length and that many octets."""
    size, at = read_z(buf, at, 32, dialect)
    end = at + size
    if end > len(buf):
        raise Truncated(dialect, len(buf), size, len(buf) - at)
    return buf[at:end], end


def sized(buf: bytes, at: int, read: Callable[[bytes, int], tuple[T, int]], dialect: str) -> tuple[T, int]:
    """A length, then a region of that length which one value must fill."""
    body, end = sized_bytes(buf, at, dialect)
    try:
        return whole(body, read, dialect), end
    except DecodeError as error:
        raise error.moved(end - len(body)) from None


def whole(buf: bytes, read: Callable[[bytes, int], tuple[T, int]], dialect: str) -> T:
    """The one value that `buf` is from its first octet to its last."""
    try:
        value, at = read(buf, 0)
    except IndexError:
        raise Truncated(dialect, len(buf)) from None
    if at != len(buf):
        raise TrailingBytes(dialect, at, f"{len(buf) - at} octets left over")
    return value


def write_sized(out: bytearray, body: bytes | bytearray, what: str) -> None:
    """Append a length and `body`."""
    write_z(out, len(body), 32, what)
    out += body


def bits(value: int, width: int, what: str) -> int:
    """`value`, which must fit in `width` bits of a header."""
    if value < 0 or value >> width:
        raise EncodeError(what, f"{value} does not fit in {width} bits")
    return value


# -- extensions ------------------------------------------------------------------------------------------------------


def read_extension(
    buf: bytes, at: int, header: int, before: tuple[Unknown, ...], dialect: str
) -> tuple[tuple[Unknown, ...], int]:
    """Add an extension the message does not know to those `before` it; `at` is behind its header octet."""
    if header & MANDATORY:
        raise UnknownMandatoryExtension(dialect, at - 1, header)
    if len(before) >= MAX_EXTENSIONS:
        raise Oversize(dialect, at - 1, "chain of unknown extensions", len(before) + 1, MAX_EXTENSIONS)
    form = header & FORM
    body: int | bytes | None = None
    if form == FORM_Z64:
        body, at = read_z(buf, at, 64, dialect)
    elif form == FORM_ZBUF:
        body, at = sized_bytes(buf, at, dialect)
    elif form == FORM_RESERVED:
        raise Malformed(dialect, at - 1, f"extension {header:#04x} has the reserved body form")
    return (*before, Unknown(header, body)), at


def write_extensions(out: bytearray, unknown: tuple[Unknown, ...], last: int) -> int:
    """Append unknown extensions as they came; returns where the last header of the chain stands."""
    for header, body in unknown:
        last = len(out)
        out.append(header | 0x80)
        if isinstance(body, int):
            write_z(out, body, 64, "extension")
        elif body is not None:
            write_sized(out, body, "extension")
    return last
