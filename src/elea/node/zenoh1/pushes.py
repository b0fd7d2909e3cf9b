"""Samples on their way out: runs of PUSH messages rewritten for every neighbour at once.

A node gives each key one number for all its links, so the octets of a rewritten run are the same whoever gets them.
Rewriting one sample is one dictionary look-up and two parts, header and payload; stamping adds two short
concatenations, since consecutive timestamps differ in one octet. Spec: zenoh-1 §13.2, §16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elea.model.limits import CACHED_KEY_CHARS, MAX_HEADERS, MAX_NUMBERS
from elea.model.timestamp import Hlc
from elea.wire.primitives import write_z
from elea.wire.zenoh1.codec import read_timestamp
from elea.wire.zenoh1.samples import DEFAULT_QOS, Pushed

__all__ = ["Numbers", "OutgoingKey", "Stamper", "stamped"]

PUSH: Final = 0x1D
SUFFIX: Final = 0x20
SENDER: Final = 0x40
EXTENDED: Final = 0x80
QOS_EXTENSION: Final = 0x21
PUT: Final = 0x01
STAMPED: Final = 0x20
BLOCK: Final = 128
"""Numbers reserved beyond those asked for; they pass within 30 ns."""

FIRST_OCTET: Final = tuple(bytes([low | 0x80]) for low in range(128))


def vle(value: int) -> bytes:
    out = bytearray()
    write_z(out, value, 64, "size")
    return bytes(out)


class Numbers:
    """The numbers this node gives to keys, the same on every link; 0 when there are none left, or the key is too long
    to be remembered for ever.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, int] = {}

    def number(self, key: str) -> int:
        found = self._by_key.get(key)
        if found is None:
            if len(self._by_key) >= MAX_NUMBERS or len(key) > CACHED_KEY_CHARS:
                return 0
            found = self._by_key[key] = len(self._by_key) + 1
        return found


class Stamps:
    """Timestamps of one clock that differ in their first octet only, 128 of them."""

    __slots__ = ("head", "high", "tails")

    def __init__(self, ntp64: int, id: bytes) -> None:
        out = bytearray()
        write_z(out, ntp64, 64, "timestamp")
        self.high = ntp64 >> 7
        self.head = bytes(out[1:]) + id
        self.tails: dict[int, bytes] = {}
        """By payload size: what follows the first octet, up to the payload."""

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
        if now_ns != self._block_ns or count > self._left:
            # Two threads may do this at once: both get numbers of their own, and one of the blocks is forgotten.
            first = self.clock.reserve(now_ns, count + BLOCK)
            self._block_ns, self._next, self._left = now_ns, first + count, BLOCK
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
        """Whether the timestamp of a PUT may stay: of a node, and not more than the drift ahead of this clock."""
        self._block_ns = -1  # what is stamped next must be above this one
        stamp, _ = read_timestamp(meta, 1)
        if stamp.id.strip(b"\0") and self.clock.accepts(stamp.ntp64, now_ns):
            if stamp.ntp64 > self.accepted:
                self.accepted = stamp.ntp64
            return True
        self.replaced += 1
        return False


def stamped(run: Sequence[Pushed], stamper: Stamper, now_ns: int) -> list[Pushed]:
    """A run with a timestamp on every sample, deletions too: who keeps it and who gets it see the same one."""
    low, left, stamps = stamper.take(now_ns, len(run))
    found: list[Pushed] = []
    for header, scope, suffix, qos, meta, payload in run:
        if left == 0:
            low, left, stamps = stamper.take(now_ns, len(run) - len(found))
        if meta is None:
            meta = b"\x21" + FIRST_OCTET[low] + stamps.head
        elif meta[0] & STAMPED and stamper.acceptable(meta, now_ns):
            if stamper.is_passed(low, stamps):
                left = 1  # the next sample of this key is newer than this one, so it needs other numbers
        else:
            rest = read_timestamp(meta, 1)[1] if meta[0] & STAMPED else 1
            meta = bytes([meta[0] | STAMPED]) + FIRST_OCTET[low] + stamps.head + meta[rest:]
        found.append((header, scope, suffix, qos, meta, payload))
        low += 1
        left -= 1
    return found


class OutgoingKey:
    """What all samples of one key have in common on the wire."""

    __slots__ = ("_plain", "_prefixes", "_stamping", "_stamping_qos", "key", "number")

    def __init__(self, key: str, number: int) -> None:
        self.key = key
        self.number = number
        self._prefixes: dict[int, bytes] = {}
        self._plain: dict[int, bytes] = {}
        self._stamping_qos, self._stamping = -1, b""

    def prefix(self, qos: int) -> bytes:
        """The PUSH message up to its body."""
        found = self._prefixes.get(qos)
        if found is None:
            header = PUSH | SENDER | (0 if self.number else SUFFIX) | (0 if qos == DEFAULT_QOS else EXTENDED)
            expr = vle(self.number) if self.number else b"\0" + vle(len(self.key.encode())) + self.key.encode()
            extension = b"" if qos == DEFAULT_QOS else bytes([QOS_EXTENSION, qos])
            found = self._prefixes[qos] = bytes([header]) + expr + extension
        return found

    def header(self, meta: bytes | None, size: int, qos: int) -> bytes:
        """Everything before a payload of `size` octets."""
        return self.prefix(qos) + (b"\x01" + vle(size) if meta is None else meta + _size(meta, size))

    def rewrite(self, run: list[Pushed], parts: list[bytes]) -> None:
        """Append header, payload, header, payload … of a run as it is."""
        plain = self._plain
        for _, _, _, qos, meta, payload in run:
            size = len(payload)
            if meta is None:
                header = plain.get(size << 8 | qos)
                if header is None:
                    header = self.header(None, size, qos)
                    if len(plain) < MAX_HEADERS:
                        plain[size << 8 | qos] = header
            else:
                header = self.header(meta, size, qos)
            parts += (header, payload)

    def stamping(self, qos: int) -> bytes:
        """The PUSH message up to the timestamp of a PUT that has nothing else."""
        if qos != self._stamping_qos:
            self._stamping_qos, self._stamping = qos, self.prefix(qos) + b"\x21"
        return self._stamping

    def stamp(self, run: list[Pushed], parts: list[bytes], stamper: Stamper, now_ns: int) -> None:
        """The same with a timestamp on every put that had none, or one too far ahead; deletions are left alone."""
        rest = len(run)
        low, left, stamps = stamper.take(now_ns, rest)
        for _, _, _, qos, meta, payload in run:
            size = len(payload)
            if left == 0:
                low, left, stamps = stamper.take(now_ns, rest)
            if meta is None:
                tail = stamps.tails.get(size) or stamps.tail(size)
                parts += (self.stamping(qos) + FIRST_OCTET[low] + tail, payload)
            elif meta[0] & 0x1F != PUT or (meta[0] & STAMPED and stamper.acceptable(meta, now_ns)):
                parts += (self.prefix(qos) + meta + _size(meta, size), payload)
                if stamper.is_passed(low, stamps):
                    left = 1  # the next sample is newer than this one, so it needs other numbers
            else:
                parts += (self._stamped(qos, meta, FIRST_OCTET[low] + stamps.head, size), payload)
            low += 1
            left -= 1
            rest -= 1

    def _stamped(self, qos: int, meta: bytes, stamp: bytes, size: int) -> bytes:
        rest = 1
        if meta[0] & STAMPED:
            _, rest = read_timestamp(meta, 1)
        return self.prefix(qos) + bytes([meta[0] | STAMPED]) + stamp + meta[rest:] + vle(size)


def _size(meta: bytes, size: int) -> bytes:
    """The length of the payload, which a deletion has not."""
    return vle(size) if meta[0] & 0x1F == PUT else b""
