"""Sequence numbers of Zenoh 1.x: how wide they are and where they start. Spec: zenoh-1 §5.3."""

from __future__ import annotations

from typing import Final

from elea.model.node_id import NodeId

__all__ = ["SN_MASKS", "initial_sn"]

try:
    # The plain module: `hashlib` would load OpenSSL, 3.4 MB that a client without TLS has no use for.
    from _sha3 import shake_128
except ImportError:  # pragma: no cover - another Python
    from hashlib import shake_128

SN_MASKS: Final[dict[int, int]] = {
    8: 0x7F,
    16: 0x3FFF,
    32: 0x0FFF_FFFF,
    64: (1 << 63) - 1,
}
"""From the resolution in bits to the largest sequence number.

Narrower than the name says, so that a number never needs more bytes on the wire than the resolution has.
"""


def initial_sn(own: NodeId, other: NodeId, mask: int) -> int:
    """The first sequence number `own` uses towards `other`.

    A function of both ids and not of chance, so that all links between two nodes agree without talking.

    >>> initial_sn(NodeId.parse("c1"), NodeId.parse("a1"), SN_MASKS[32])
    115181617
    """
    digest = shake_128(own.data + other.data).digest(4)
    return int.from_bytes(digest, "little") & mask
