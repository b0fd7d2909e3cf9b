"""Timestamps for samples that have none, and for those whose own cannot stay.

They are written into the packed details of a sample (`elea.wire.details`). Consecutive ones differ in one byte, so that
stamping a sample is two short concatenations. Spec: zenoh-1 §16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elea.model.timestamp import Hlc
from elea.wire.details import STAMPED, RawSample, read_stamp
from elea.wire.primitives import write_z
from elea.wire.timestampstack import restacked

__all__ = ["FIRST_OCTET", "Stamper", "stamped", "vle"]

STAMPS_AHEAD: Final = 128
"""Numbers reserved beyond those asked for; they pass within 30 ns."""

FIRST_OCTET: Final = tuple(bytes([low | 0x80]) for low in range(128))


def vle(value: int) -> bytes:
    """A natural in its shortest form."""
    out = bytearray()
    write_z(out, value, 64, "size")
    return bytes(out)


class Stamps:
    """Timestamps of one clock that differ in their first byte only, 128 of them."""

    __slots__ = ("head", "high", "tails")

    def __init__(self, ntp64: int, id: bytes) -> None:
        out = bytearray()
        write_z(out, ntp64, 64, "timestamp")
        self.high = ntp64 >> 7
        self.head = bytes(out[1:]) + id
        self.tails: dict[int, bytes] = {}
        """By payload size: what follows the first byte, up to the payload."""

    def tail(self, size: int) -> bytes:
        tail = self.tails[size] = self.head + vle(size)
        return tail


class Stamper:
    """Gives timestamps to samples that have none, and judges those that have one."""

    def __init__(self, clock: Hlc) -> None:
        self.clock = clock
        self.replaced = 0
        self.accepted = 0
        """The newest timestamp of another node that may stay, so far."""
        self._id = vle(len(bytes(clock.id))) + bytes(clock.id)
        self._block_ns = -1
        self._next = 0
        self._left = 0
        self.stamps = Stamps(0, self._id)

    def _take(self, now_ns: int, count: int) -> int:
        """The first of `count` consecutive numbers. Asked for one by one, as many keys are, they come from a block."""
        if now_ns != self._block_ns or count > self._left or self._next <= self.accepted:
            # Two threads may do this at once: both get numbers of their own, and one of the blocks is forgotten.
            first = self.clock.reserve(now_ns, count + STAMPS_AHEAD)
            self._block_ns, self._next, self._left = now_ns, first + count, STAMPS_AHEAD
            return first
        first = self._next
        self._next = first + count
        self._left -= count
        return first

    def take(self, now_ns: int, wanted: int) -> tuple[int, int, Stamps]:
        """Consecutive timestamps, `wanted` of them or fewer: the index of the first, how many, and what they share.

        An index is small where the number itself is not: counting it up costs next to nothing in compiled code.
        """
        ntp64 = self._take(now_ns, wanted)
        stamps = self.stamps
        if stamps.high != ntp64 >> 7:
            stamps = self.stamps = Stamps(ntp64, self._id)
        low = ntp64 & 127
        return low, min(wanted, 128 - low), stamps

    def is_passed(self, low: int, stamps: Stamps) -> bool:
        """Whether the next of the timestamps that were taken before is not above all that were accepted since."""
        return (stamps.high << 7) + low + 1 <= self.accepted

    def acceptable(self, meta: bytes, now_ns: int) -> bool:
        """Whether the timestamp of a sample may stay: of a node, and not more than the drift ahead of this clock."""
        ntp64, id, _ = read_stamp(meta)
        if id.strip(b"\0") and self.clock.accepts(ntp64, now_ns):
            if ntp64 > self.accepted:
                self.accepted = ntp64
            return True
        self.replaced += 1
        return False


def stamped(run: Sequence[RawSample], stamper: Stamper, now_ns: int) -> list[RawSample]:
    """A run with a timestamp on every sample, deletions too: who keeps it and who gets it see the same one."""
    low, left, stamps = stamper.take(now_ns, len(run))
    found: list[RawSample] = []
    for header, scope, suffix, qos, meta, payload in run:
        if left == 0:
            low, left, stamps = stamper.take(now_ns, len(run) - len(found))
        if meta is None:
            meta = b"\x21" + FIRST_OCTET[low] + stamps.head
        elif meta[0] & STAMPED and stamper.acceptable(meta, now_ns):
            if stamper.is_passed(low, stamps):
                left = 1  # the next sample of this key is newer than this one, so it needs other numbers
        else:
            rest = read_stamp(meta)[2] if meta[0] & STAMPED else 1
            meta = restacked(bytes([meta[0] | STAMPED]) + FIRST_OCTET[low] + stamps.head + meta[rest:], meta)
        found.append((header, scope, suffix, qos, meta, payload))
        low += 1
        left -= 1
    return found
