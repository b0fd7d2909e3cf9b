"""Samples as the hot path holds them, back to messages and octets."""

from __future__ import annotations

from elea.wire.zenoh1.codec import write_network_message
from elea.wire.zenoh1.messages import Push
from elea.wire.zenoh1.samples import Pushed, details, wire_expr_of

__all__ = ["octets_of", "push_of"]


def push_of(sample: Pushed) -> Push:
    """The message of a sample, everything looked at."""
    header, scope, suffix, qos, meta, payload = sample
    return Push(wire_expr_of(header, scope, suffix), details(meta, payload), qos=qos if header & 0x80 else None)


def octets_of(sample: Pushed) -> bytes:
    """The octets of a sample."""
    out = bytearray()
    write_network_message(out, push_of(sample))
    return bytes(out)
