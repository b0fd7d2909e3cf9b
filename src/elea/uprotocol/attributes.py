"""`UAttributes`: what a message is, whose, for whom and how urgent; as a value and as protobuf."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from elea.uprotocol.protobuf import SIZED, VARINT, fields, number, sized, text_of
from elea.uprotocol.uuid7 import UUID, read_uuid, write_uuid
from elea.uprotocol.uuri import UUri, read_uuri, write_uuri

__all__ = [
    "RPC_PRIORITY",
    "UAttributes",
    "UMessageType",
    "UPayloadFormat",
    "UPriority",
    "is_expired",
    "read_attributes",
    "write_attributes",
]


class UMessageType(IntEnum):
    """The four kinds of messages; 0 is none of them."""

    UNSPECIFIED = 0
    PUBLISH = 1
    REQUEST = 2
    RESPONSE = 3
    NOTIFICATION = 4


class UPriority(IntEnum):
    """How urgent a message is; unspecified is CS1. The numbers are one above the names."""

    UNSPECIFIED = 0
    CS0 = 1
    CS1 = 2
    CS2 = 3
    CS3 = 4
    CS4 = 5
    CS5 = 6
    CS6 = 7


class UPayloadFormat(IntEnum):
    """What the bytes of a payload are."""

    UNSPECIFIED = 0
    PROTOBUF_WRAPPED_IN_ANY = 1
    PROTOBUF = 2
    JSON = 3
    SOMEIP = 4
    SOMEIP_TLV = 5
    RAW = 6
    TEXT = 7
    SHM = 8

    @property
    def media_type(self) -> str:
        """The media type; empty if it is unspecified."""
        return _MEDIA_TYPES[self]


RPC_PRIORITY: Final = UPriority.CS4
"""Requests and responses have at least this one."""

_MEDIA_TYPES: Final = (
    "",
    "application/x-protobuf",
    "application/protobuf",
    "application/json",
    "application/x-someip",
    "application/x-someip_tlv",
    "application/octet-stream",
    "text/plain",
    "application/x-shm",
)

E = TypeVar("E", bound=IntEnum)


class UAttributes(NamedTuple):
    """Everything about a message but its payload. A number that an enumeration does not have stays a number.

    >>> topic = UUri.parse("//vcu/10AB/3/80CD")
    >>> UAttributes(UUID.parse("01941f29-7c00-7abc-8123-456789abcdef"), UMessageType.PUBLISH, topic).source
    UUri('//vcu/10AB/3/80CD')
    """

    id: UUID | None = None
    type: int = UMessageType.UNSPECIFIED
    source: UUri | None = None
    sink: UUri | None = None
    priority: int = UPriority.UNSPECIFIED
    ttl: int | None = None
    permission_level: int | None = None
    commstatus: int | None = None
    reqid: UUID | None = None
    token: str | None = None
    traceparent: str | None = None
    payload_format: int = UPayloadFormat.UNSPECIFIED

    def to_bytes(self) -> bytes:
        """The protobuf."""
        return write_attributes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> UAttributes:
        """What a protobuf says; whether it is a valid message, `elea.uprotocol.validation` knows.

        Raises:
            DecodeError: it is no protobuf.
        """
        return read_attributes(data)


def is_expired(attributes: UAttributes, now_ms: int) -> bool:
    """Whether the message is too old to be delivered. A ttl of 0 is none."""
    id, ttl = attributes.id, attributes.ttl
    # Spec: the public Rust library also counts the very instant; the spec says "after".
    return bool(ttl) and id is not None and now_ms > id.time_ms + ttl  # type: ignore[operator]


def write_attributes(attributes: UAttributes) -> bytes:
    """The protobuf: fields in order. Optional numbers are written even if they are 0."""
    id, type, source, sink, priority, ttl, level, status, reqid, token, trace, form = attributes
    return b"".join(
        (
            sized(1, write_uuid(id)) if id is not None else b"",
            number(2, type, "type") if type else b"",
            sized(3, write_uuri(source)) if source is not None else b"",
            sized(4, write_uuri(sink)) if sink is not None else b"",
            number(5, priority, "priority") if priority else b"",
            number(6, ttl, "ttl") if ttl is not None else b"",
            number(7, level, "permission_level") if level is not None else b"",
            number(8, status, "commstatus") if status is not None else b"",
            sized(9, write_uuid(reqid)) if reqid is not None else b"",
            sized(10, token.encode()) if token is not None else b"",
            sized(11, trace.encode()) if trace is not None else b"",
            number(12, form, "payload_format") if form else b"",
        )
    )


def read_attributes(data: bytes) -> UAttributes:
    """What a protobuf says.

    Raises:
        DecodeError: it is no protobuf.
    """
    numbers: dict[int, int] = {}
    pieces: dict[int, list[bytes]] = {}
    texts: dict[int, str] = {}
    for field, wire, value in fields(data):
        if wire == VARINT and field in _NUMBERS and isinstance(value, int):
            numbers[field] = value & 0xFFFF_FFFF
        elif wire == SIZED and isinstance(value, bytes):
            if field in _MESSAGES:
                pieces.setdefault(field, []).append(value)
            elif field in _TEXTS:
                texts[field] = text_of(value, _TEXTS[field])
    # A message that is given twice is merged, and that is what its parts one after the other mean.
    whole = {field: b"".join(parts) for field, parts in pieces.items()}
    return UAttributes(
        read_uuid(whole[1]) if 1 in whole else None,
        _member(_TYPES, numbers.get(2, 0)),
        read_uuri(whole[3]) if 3 in whole else None,
        read_uuri(whole[4]) if 4 in whole else None,
        _member(_PRIORITIES, numbers.get(5, 0)),
        numbers.get(6),
        numbers.get(7),
        numbers.get(8),
        read_uuid(whole[9]) if 9 in whole else None,
        texts.get(10),
        texts.get(11),
        _member(_FORMATS, numbers.get(12, 0)),
    )


_NUMBERS: Final = frozenset((2, 5, 6, 7, 8, 12))
_MESSAGES: Final = frozenset((1, 3, 4, 9))
_TEXTS: Final = {10: "token", 11: "traceparent"}
_TYPES: Final = tuple(UMessageType)
_PRIORITIES: Final = tuple(UPriority)
_FORMATS: Final = tuple(UPayloadFormat)


def _member(members: tuple[E, ...], value: int) -> E | int:
    return members[value] if value < len(members) else value
