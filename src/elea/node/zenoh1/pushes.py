"""Samples on their way out: runs of PUSH messages rewritten for every neighbour at once.

A node gives each key one number for all its links, so the bytes of a rewritten run are the same whoever gets them.
Rewriting one sample is one dictionary look-up and two parts, header and payload. Spec: zenoh-1 §13.2.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from elea.model.limits import CACHED_KEY_CHARS, MAX_HEADERS, MAX_NUMBERS
from elea.node.stamper import FIRST_OCTET, Stamper, vle
from elea.wire.details import DEFAULT_QOS, STAMPED, read_stamp
from elea.wire.primitives import read_z
from elea.wire.timestampstack import CollectedStamps, StackedDetails
from elea.wire.zenoh1.codec import write_ts_stack
from elea.wire.zenoh1.messages import TsEntry, TsStack
from elea.wire.zenoh1.samples import Pushed

__all__ = ["Numbers", "OutgoingKey", "key_of", "stack_message", "stack_of"]

PUSH: Final = 0x1D
SUFFIX: Final = 0x20
SENDER: Final = 0x40
EXTENDED: Final = 0x80
QOS_EXTENSION: Final = 0x21
STACK_EXTENSION: Final = 0x47
PUT: Final = 0x01


class Numbers:
    """The numbers this node gives to keys, the same on every link; 0 when there are none left, or the key is too long
    to be remembered for ever.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, int] = {}
        self._lock = threading.Lock()

    def number(self, key: str) -> int:
        found = self._by_key.get(key)
        if found is None:
            with self._lock:  # any thread may look for a route
                found = self._by_key.get(key)
                if found is None:
                    if len(self._by_key) >= MAX_NUMBERS or len(key) > CACHED_KEY_CHARS:
                        return 0
                    found = self._by_key[key] = len(self._by_key) + 1
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
        """Everything before a payload of `size` bytes."""
        if meta is None:
            return self.prefix(qos) + b"\x01" + vle(size)
        return self._before(qos, meta) + meta + _size(meta, size)

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
                parts += (self._before(qos, meta) + meta + _size(meta, size), payload)
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
            _, _, rest = read_stamp(meta)
        return self._before(qos, meta) + bytes([meta[0] | STAMPED]) + stamp + meta[rest:] + vle(size)

    def _before(self, qos: int, meta: bytes) -> bytes:
        """The PUSH message up to its body, with the timestamps that a sample has collected, if it has."""
        prefix = self.prefix(qos)
        if type(meta) is not StackedDetails:
            return prefix
        body = bytearray()
        write_ts_stack(body, stack_message(meta.stack))
        qos_extension = b"" if qos == DEFAULT_QOS else bytes([QOS_EXTENSION | EXTENDED, qos])
        expr = prefix[1 : len(prefix) - len(qos_extension)]
        extension = bytes([STACK_EXTENSION]) + vle(len(body)) + bytes(body)
        return bytes([prefix[0] | EXTENDED]) + expr + qos_extension + extension


def key_of(parts: Sequence[bytes], ours: Mapping[int, str]) -> str:
    """The key of the first message of some parts, for the log; empty if it is no sample."""
    head = parts[0]
    if not head or head[0] & 0x1F != PUSH:
        return ""
    number, at = read_z(head, 1, 16, "zenoh1")
    key = ours.get(number, "") if number else ""
    if head[0] & SUFFIX:
        size, at = read_z(head, at, 16, "zenoh1")
        key += head[at : at + size].decode("utf-8", "replace")
    return key


def stack_message(stack: CollectedStamps) -> TsStack:
    """A stack as Zenoh 1.x says it."""
    return TsStack(stack.points, tuple([TsEntry(flags, stamp) for flags, stamp in stack.records]))


def stack_of(message: TsStack) -> CollectedStamps:
    """The opposite."""
    return CollectedStamps(message.conf, tuple([(entry.flags, entry.ts) for entry in message.stack]))


def _size(meta: bytes, size: int) -> bytes:
    """The length of the payload, which a deletion has not."""
    return vle(size) if meta[0] & 0x1F == PUT else b""
