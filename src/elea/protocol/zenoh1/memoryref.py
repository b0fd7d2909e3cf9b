"""Large payloads that lie in memory shared by two nodes of one machine, instead of going through their link.

Ours alone, and never said to a node that has not shown to be one of ours: a FRAGMENT whose extension `EXT_MEMORY` tells
where the rest of its chunk lies. So order, numbers and reassembly are those of any fragment. A transport OAM of id
`OAM_MEMORY` brings the token of the memory before it is used. How memory is shared, `elea.io.sharedmemory` knows.
"""

from __future__ import annotations

from typing import Final, Protocol

from elea.wire.zenoh1.codec import write_transport_message
from elea.wire.zenoh1.messages import BodyForm, TransportOam

__all__ = ["EXT_MEMORY", "OAM_MEMORY", "PLACE_BYTES", "TOKEN_BYTES", "InMemory", "OutMemory", "announcement"]

EXT_MEMORY: Final = 0x4E
"""Bytes, not mandatory: where a payload lies and how long it is, two numbers of 64 bits, lowest byte first."""

OAM_MEMORY: Final = 0xE1EA
PLACE_BYTES: Final = 16
TOKEN_BYTES: Final = 16


class OutMemory(Protocol):
    """Where the sender of a link lays payloads."""

    def room(self, size: int) -> int:
        """How many bytes of a payload there is a place for; 0 if it is to go through the link, -1 if to wait."""
        ...

    def lay(self, payload: bytes | memoryview) -> int:
        """Lay as many bytes as `room` has just said; returns the position of their place."""
        ...


class InMemory(Protocol):
    """Where the receiver of a link finds them."""

    def fetch(self, position: int, size: int) -> bytes:
        """The bytes at a position, which is free from now on.

        Raises:
            RuleBroken: there is no such place.
        """
        ...


def announcement(token: bytes) -> bytes:
    """The message that tells the other node which memory is meant."""
    out = bytearray()
    write_transport_message(out, TransportOam(BodyForm.ZBufForm, OAM_MEMORY, body=token))
    return bytes(out)
