"""The wire of protobuf: tags, numbers, lengths. What uProtocol needs of it, and nothing that knows a message.

Reading is that of the protobuf libraries: unknown fields and fields of another wire type are skipped, numbers are cut
to the width of their field, groups are skipped to a bounded depth. Everything else raises a `DecodeError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from elea.model.errors import BadText, EncodeError, Malformed, NaturalOverflow, Truncated
from elea.model.limits import PROTOBUF_DEPTH

__all__ = [
    "DIALECT",
    "FIXED64",
    "SIZED",
    "VARINT",
    "Field",
    "fields",
    "fixed64",
    "number",
    "sized",
    "text_of",
]

DIALECT: Final = "protobuf"

VARINT: Final = 0
FIXED64: Final = 1
SIZED: Final = 2
_GROUP: Final = 3
_GROUP_END: Final = 4
_FIXED32: Final = 5

_VARINT_BYTES: Final = 10
_MAX_TAG: Final = 0xFFFF_FFFF

Field = tuple[int, int, "int | bytes"]
"""Number, wire type, and what it holds: a number, or bytes if it is sized."""


def fields(data: bytes) -> Iterator[Field]:
    """The fields of a message in the order they were written; groups and 32-bit numbers are left out.

    >>> list(fields(bytes.fromhex("0a01681001")))
    [(1, 2, b'h'), (2, 0, 1)]
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _tag(data, at)
        wire = tag & 7
        if wire == VARINT:
            value, at = read_number(data, at)
            yield tag >> 3, wire, value
        elif wire == SIZED:
            size, at = read_number(data, at)
            if size > end - at:
                raise Truncated(DIALECT, at, size, end - at)
            yield tag >> 3, wire, data[at : at + size]
            at += size
        elif wire == FIXED64:
            if end - at < 8:
                raise Truncated(DIALECT, at, 8, end - at)
            yield tag >> 3, wire, int.from_bytes(data[at : at + 8], "little")
            at += 8
        else:
            at = _skip(data, at, tag)


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends; what is above 64 bits is cut off, as protobuf does."""
    value = 0
    for index in range(_VARINT_BYTES):
        if at >= len(data):
            raise Truncated(DIALECT, at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise NaturalOverflow(DIALECT, at, "a number of more than ten octets")


def _tag(data: bytes, at: int) -> tuple[int, int]:
    tag, end = read_number(data, at)
    if tag > _MAX_TAG or tag < 8:
        raise Malformed(DIALECT, at, f"{tag:#x} is no tag of a field")
    return tag, end


def _skip(data: bytes, at: int, tag: int) -> int:
    """Where a field ends that no message of ours has: a 32-bit number or a group with all that is in it."""
    groups: list[int] = []
    while True:
        wire = tag & 7
        if wire == VARINT:
            at = read_number(data, at)[1]
        elif wire == SIZED:
            size, at = read_number(data, at)
            at += size
        elif wire == FIXED64:
            at += 8
        elif wire == _FIXED32:
            at += 4
        elif wire == _GROUP:
            groups.append(tag >> 3)
            if len(groups) > PROTOBUF_DEPTH:
                raise Malformed(DIALECT, at, f"groups nested deeper than {PROTOBUF_DEPTH}")
        elif wire == _GROUP_END:
            if not groups or groups.pop() != tag >> 3:
                raise Malformed(DIALECT, at, "the end of a group that did not begin")
        else:
            raise Malformed(DIALECT, at, f"wire type {wire}, which does not exist")
        if at > len(data):
            raise Truncated(DIALECT, len(data), at - len(data))
        if not groups:
            return at
        tag, at = _tag(data, at)


def text_of(data: bytes, what: str) -> str:
    """A string field."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadText(DIALECT, error.start, f"{what} is not UTF-8") from None


def number(field: int, value: int, what: str = "number", *, bits: int = 32) -> bytes:
    """A field that holds a number, as varint.

    >>> number(6, 5000).hex()
    '308827'
    """
    if not 0 <= value < 1 << bits:
        raise EncodeError(what, f"{value} is not a number of {bits} bits")
    return varint(field << 3) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    """A field that holds a 64-bit number, low octet first."""
    return varint(field << 3 | FIXED64) + value.to_bytes(8, "little")


def sized(field: int, data: bytes) -> bytes:
    """A field that holds bytes, text or a message."""
    return varint(field << 3 | SIZED) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number, seven bits an octet, low bits first."""
    if value < 0x80:
        return _SINGLE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SINGLE: Final = tuple(bytes((value,)) for value in range(0x80))
