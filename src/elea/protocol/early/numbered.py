"""Messages of a channel before they have a number: the octets around it.

Declare, Pull and the three data messages are all *markers, header, sn, rest*; the bit that asks for an acknowledgement
is the same in each header. So a channel numbers, sends and sends again what it does not look into. An *entry* is two
byte strings, since outboxes hold two a message. The first is the size of the head (with the top bit set for data), the
head (an RSpace marker, the header) and, for data, what stands between sn and payload. The second is the payload, or for
other messages all that follows the sn. Spec: zenoh-2018 §2.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from elea.model.limits import CACHED_KEY_CHARS
from elea.protocol.early.generation import Generation
from elea.wire.primitives import write_nat

__all__ = [
    "BATCHED",
    "BYTE",
    "DATA",
    "HEAD",
    "RELIABLE",
    "STREAM",
    "SYNC",
    "Entry",
    "conduit_marker",
    "frag_marker",
    "plain_entry",
    "stream_entry",
    "vle",
    "write_entry",
]

Entry = tuple[bytes, bytes]

DATA: Final = 0x80
HEAD: Final = 0x7F
SYNC: Final = 0x20
RELIABLE: Final = 0x40
HAS_PRID: Final = 0x80
STREAM: Final = 7
BATCHED: Final = 8
WRITE: Final = 9
RSPACE: Final = 24
CONDUIT: Final = 19
FRAG: Final = 18
COMPACT: Final = 0x80

BYTE: Final = tuple([bytes([value]) for value in range(256)])
"""Every byte by itself."""


def vle(value: int) -> bytes:
    """A natural in its shortest form."""
    if value < 128:
        return BYTE[value]
    if value < 16384:
        return BYTE[value & 0x7F | 0x80] + BYTE[value >> 7]
    out = bytearray()
    write_nat(out, value, "value")
    return bytes(out)


@lru_cache(maxsize=256)
def _marker(kind: int, id: int) -> bytes:
    if not id:
        return b""
    return bytes([kind | COMPACT | (id - 1) << 5]) if id <= 4 else bytes([kind]) + vle(id)


def conduit_marker(id: int) -> bytes:
    """What says that the next message is on a conduit; nothing for conduit 0 (Z18-CON-02)."""
    return _marker(CONDUIT, id)


def space_marker(id: int) -> bytes:
    """What says that the next message's ids are of a resource space; nothing for space 0."""
    return _marker(RSPACE, id)


def frag_marker(base: int, count: int) -> bytes:
    """What says that the next message is one of `count` fragments; told in each of them (Z18-FRG-03)."""
    return bytes([FRAG | 0x40]) + vle(base) + vle(count)


def stream_entry(id: int, payload: bytes, *, reliable: bool, prid: int | None = None, space: int = 0) -> Entry:
    """A StreamData."""
    return _stream_front(id, reliable, prid, space), payload


@lru_cache(maxsize=4096)
def _stream_front(id: int, reliable: bool, prid: int | None, space: int) -> bytes:
    header = STREAM | (RELIABLE if reliable else 0) | (0 if prid is None else HAS_PRID)
    return _front(space, header, vle(id) + (b"" if prid is None else vle(prid)))


def write_entry(name: bytes, payload: bytes, *, reliable: bool, space: int = 0) -> Entry:
    """A WriteData."""
    if len(name) > CACHED_KEY_CHARS:
        return _write_front(name, reliable, space), payload
    return _cached_write_front(name, reliable, space), payload


@lru_cache(maxsize=4096)
def _cached_write_front(name: bytes, reliable: bool, space: int) -> bytes:
    return _write_front(name, reliable, space)


def _write_front(name: bytes, reliable: bool, space: int) -> bytes:
    return _front(space, WRITE | (RELIABLE if reliable else 0), vle(len(name)) + name)


def _front(space: int, header: int, rest: bytes) -> bytes:
    head = space_marker(space) + bytes([header])
    return bytes([len(head) | DATA]) + head + rest


def plain_entry(generation: Generation, message: Any, *, space: int = 0) -> Entry:
    """Any other message of a channel, which has sn 0 for now."""
    octets = generation.encode(message)
    head = space_marker(space) + octets[:1]
    return bytes([len(head)]) + head, octets[2:]
