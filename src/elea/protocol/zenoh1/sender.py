"""The sending side of a running session of Zenoh 1.x: network messages in, batches out.

A queue of a link holds the messages of one conduit as flat parts, two for each message: what comes before the
payload, and the payload (empty if there is none). They are cut at message borders only. Small parts are joined, once;
large ones are left to a scatter write.
Spec: zenoh-1 §2, §4.3-4.6, §6.1-6.3, §6.6, §6.7.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from elea.model.errors import LocalProtocolError
from elea.protocol.zenoh1.memoryref import EXT_MEMORY, PLACE_BYTES, OutMemory, announcement
from elea.protocol.zenoh1.terms import Agreement
from elea.protocol.zenoh1.transport import CONDUITS, DEFAULT_PRIORITY
from elea.wire.zenoh1.batch import compress
from elea.wire.zenoh1.samples import Pushed, read_pushes

__all__ = ["Sender", "count_messages"]

Octets: TypeAlias = bytes | bytearray | memoryview

RELIABLE: Final = 0x20
MORE: Final = 0x40
EXTENDED: Final = 0x80
FRAME: Final = 0x05
FRAGMENT: Final = 0x06
CLOSE: Final = 0x03
WHOLE_SESSION: Final = 0x20
KEEP_ALIVE: Final = b"\x04"
EXT_QOS: Final = 0x31
EXT_FIRST: Final = 0x02
EXT_DROP: Final = 0x03

PREFIX: Final = 2
LONG_PREFIX: Final = 4
SCAN: Final = 8192
"""Parts looked at for one batch; more than that of the smallest messages would not fit."""

FEW: Final = 8
"""Parts that are measured one by one, which takes less than what serves many: a reply and its end are four."""

SCATTERED: Final = 2048
"""Bytes of a part, on average, from which on handing the kernel many pieces is cheaper than joining them."""

BARE: Final = 128
"""Parts of a queue that a low-latency session sends together."""

NEVER: Final = 1 << 62
"""More than anything has: nothing is worth laying in memory, or everything may be taken."""

FRAME_HEADER: Final = 7
"""The most a FRAME takes before its messages: header, sequence number of 28 bits, priority."""


class Sender:
    """Makes the batches of one link, ready to be written: with their length prefix if `prefix`, as streams need.

    `room` is how many bytes of messages fit into one batch of any conduit, 0 if that is not how they are sent.
    `oversized` counts messages that cannot be sent at all, which only a low-latency session has.
    """

    __slots__ = (
        "_bare",
        "_capacity",
        "_compression",
        "_marked",
        "_mask",
        "_memory",
        "_next",
        "_prefix",
        "_qos",
        "_worth",
        "oversized",
        "room",
    )

    def __init__(self, agreement: Agreement, *, prefix: bool = True) -> None:
        self.oversized = 0
        self._qos = agreement.qos
        self._bare = agreement.lowlatency
        self._compression = agreement.compression
        self._marked = agreement.patch >= 1
        self._mask = agreement.sn_mask
        self._next = [agreement.own_sn] * CONDUITS
        self._prefix = (LONG_PREFIX if agreement.lowlatency else PREFIX) if prefix else 0
        self._capacity = agreement.batch_size - self._prefix - agreement.compression
        self.room = 0 if self._bare else self._capacity - FRAME_HEADER
        self._memory: OutMemory | None = None
        self._worth = NEVER

    def share(self, memory: OutMemory, worth: int) -> None:
        """Lay payloads from `worth` bytes on in memory that the other node shares."""
        if self._marked and not self._bare and not self._compression:
            self._memory = memory
            self._worth = worth

    def take(self, key: int, queue: list[bytes], queued: int, most: int = NEVER) -> tuple[list[list[Octets]], int, int]:
        """The messages at the front of a queue as one batch, or the first alone as fragments; nothing is removed.

        Nothing at all if they are to wait for a place in shared memory.

        `key` is the conduit, `priority << 1 | reliable`. Returns the batches, each in pieces that need no joining on a
        stream, how many parts of the queue are in them, and the bytes of these. `queued` is what the whole queue
        holds, as far as the caller knows: where it says that all messages have one size, none of them is measured.
        Parts behind the first `most` are left alone.

        20 ns a message for 900 messages of 68 bytes; joining them alone takes 13.
        """
        if self._bare:
            return self._take_bare(queue, most)
        conduit = key if self._qos else DEFAULT_PRIORITY << 1 | key & 1
        first = len(queue[0]) + len(queue[1])
        if len(queue[1]) >= self._worth:
            laid = self._laid(conduit, queue[0], queue[1])
            if laid is not None:
                return (laid, 2, first) if laid else (laid, 0, 0)
        if first > self._capacity:
            return self._fragments(conduit, queue[0], queue[1]), 2, first
        head = self._head(conduit, FRAME)
        room = self._capacity - len(head)
        count = min(len(queue), most)
        if first > room:
            return self._fragments(conduit, queue[0], queue[1]), 2, first
        if 2 < count <= FEW:
            few = queue[:count]
            size = 0
            for part in few:
                size += len(part)
            if size <= room:
                batch = self._sealed(head, few, size)
                assert batch is not None  # these were measured
                self._advance(conduit)
                return [batch], count, size
        if count > 2:
            if 2 * queued == first * count and first:
                count = min(count, room // first * 2)
                size = first * count >> 1
                batch = self._sealed(head, queue[:count], size)
                if batch is not None:
                    self._advance(conduit)
                    return [batch], count, size
            ends = list(accumulate(map(len, queue[: min(count, SCAN)])))
            count = bisect_right(ends, room) & ~1
            size = ends[count - 1]
        else:
            size = first
        batch = self._sealed(head, queue[:count], size)
        assert batch is not None  # these were measured
        self._advance(conduit)
        return [batch], count, size

    def batches(self, priority: int, reliable: bool, parts: list[bytes]) -> list[bytes]:
        """Batches for any number of messages of any size, joined: what `take` makes of a whole queue."""
        if len(parts) & 1:
            raise LocalProtocolError(f"{len(parts)} parts: every message has two, its payload may be empty")
        out: list[bytes] = []
        rest = list(parts)
        while rest:
            batches, count, _ = self.take(priority << 1 | reliable, rest, sum(map(len, rest)))
            out += map(b"".join, batches)
            del rest[:count]
        return out

    def abandon(self, priority: int, reliable: bool) -> bytes | None:
        """What tells the other node to forget a message of which only some fragments were written.

        None if it was not agreed to say so; it will find out by the missing sequence numbers.
        """
        if not self._marked or self._bare:
            return None
        conduit = (priority if self._qos else DEFAULT_PRIORITY) << 1 | reliable
        head = self._head(conduit, FRAGMENT, EXT_DROP)
        self._advance(conduit)
        return self._alone(head)

    def announcement(self, token: bytes) -> bytes:
        """A batch that tells the other node of memory to share."""
        return self._alone(announcement(token))

    def keep_alive(self) -> bytes:
        """A batch that only shows that we live."""
        return self._alone(KEEP_ALIVE)

    def close(self, reason: int = 0, *, whole_session: bool = False) -> bytes:
        """A batch that ends the link, or the session with all its links."""
        return self._alone(bytes((CLOSE | WHOLE_SESSION if whole_session else CLOSE, reason)))

    def _advance(self, conduit: int) -> None:
        self._next[conduit] = self._next[conduit] + 1 & self._mask

    def _head(self, conduit: int, kind: int, mark: int = 0) -> bytes:
        """The header of the FRAME or FRAGMENT that is next in a conduit."""
        if conduit & 1:
            kind |= RELIABLE
        priority = conduit >> 1
        sn, size = _vle(self._next[conduit])
        if priority == DEFAULT_PRIORITY:
            if not mark:
                return (kind | sn << 8).to_bytes(1 + size, "little")
            return (kind | EXTENDED | sn << 8 | mark << 8 + 8 * size).to_bytes(2 + size, "little")
        number = sn.to_bytes(size, "little")
        if mark:
            return b"%c%b%c%c%c" % (kind | EXTENDED, number, EXT_QOS | EXTENDED, priority, mark)
        return b"%c%b%c%c" % (kind | EXTENDED, number, EXT_QOS, priority)

    def _laid(self, conduit: int, before: bytes, payload: bytes) -> list[list[Octets]] | None:
        """One message whose payload lies in shared memory; empty if it is to wait for a place, None if there is none.

        What of the payload has no place there follows in further fragments.
        """
        memory = self._memory
        if memory is None or len(before) > self._capacity >> 1:
            return None
        size = memory.room(len(payload))
        if size <= 0:
            return [] if size else None
        more = size < len(payload)
        position = memory.lay(memoryview(payload)[:size] if more else payload)
        place = (size << 64 | position).to_bytes(PLACE_BYTES, "little")
        head = self._head(conduit, FRAGMENT | MORE if more else FRAGMENT, EXT_FIRST | EXTENDED)
        batch = self._sealed(b"%b%c%c%b" % (head, EXT_MEMORY, PLACE_BYTES, place), (before,), len(before))
        assert batch is not None
        self._advance(conduit)
        return [batch, *self._fragments(conduit, b"", payload, size)] if more else [batch]

    def _fragments(self, conduit: int, before: bytes, payload: bytes, at: int = 0) -> list[list[Octets]]:
        """One message cut into FRAGMENTs that fill their batches; the payload from `at` on, if it has begun."""
        view = memoryview(payload)
        left = len(before) + len(payload) - at
        mark = EXT_FIRST if self._marked and not at else 0
        out: list[list[Octets]] = []
        begun = 0  # of what comes before; to cut off what is done would copy the rest, for each fragment once more
        while left:
            head = self._head(conduit, FRAGMENT | MORE, mark)
            size = self._capacity - len(head)
            if left <= size:
                size = left
                head = self._head(conduit, FRAGMENT, mark)
            start = before[begun : begun + size]  # empty, from the second fragment on, unless details are very long
            end = at + size - len(start)
            if self._prefix and not self._compression:
                head = (len(head) + size).to_bytes(self._prefix, "little") + head + start
                out.append([head, view[at:end]] if end - at > SCATTERED else [head + view[at:end]])
            else:
                batch = self._sealed(head, (start, view[at:end]), size)
                assert batch is not None
                out.append(batch)
            self._advance(conduit)
            begun += len(start)
            at = end
            left -= size
            mark = 0
        return out

    def _take_bare(self, queue: list[bytes], most: int) -> tuple[list[list[Octets]], int, int]:
        """Messages of a low-latency session, each with its own length."""
        out: list[list[Octets]] = []
        total = 0
        count = min(len(queue), most, BARE)
        for at in range(0, count, 2):
            before, payload = queue[at], queue[at + 1]
            size = len(before) + len(payload)
            total += size
            if size > self._capacity:
                self.oversized += 1
                continue
            batch = self._sealed(before, [payload], len(payload))
            assert batch is not None
            out.append(batch)
        return out, count, total

    def _sealed(self, head: bytes, parts: Sequence[Octets], size: int) -> list[Octets] | None:
        """A batch of a head and parts of `size` bytes together; None if they are not of that size."""
        if self._prefix and not self._compression:
            head = (len(head) + size).to_bytes(self._prefix, "little") + head
            if size > SCATTERED * len(parts):
                return [head, *parts] if sum(map(len, parts)) == size else None
        joined = b"".join([head, *parts])
        if len(joined) != len(head) + size:
            return None
        if self._compression:
            joined = compress(joined)
            if self._prefix:
                joined = len(joined).to_bytes(self._prefix, "little") + joined
        return [joined]

    def _alone(self, message: bytes) -> bytes:
        """A batch of one short transport message."""
        batch = self._sealed(message, (), 0)
        assert batch is not None
        return b"".join(batch)


def count_messages(parts: Sequence[bytes]) -> int:
    """How many messages a queue holds: two parts each, or several samples joined to one part and nothing behind it."""
    count = 0
    for at in range(0, len(parts), 2):
        joined: list[Pushed] = []
        if not parts[at + 1]:
            read_pushes(parts[at], 0, joined)
        count += len(joined) or 1
    return count


def _vle(value: int) -> tuple[int, int]:
    """The bytes of a sequence number, as a number whose lowest byte is the first, and how many they are.

    At most four, because the widest mask has 28 bits. Numbers are joined to a head at a third of the cost of bytes.
    """
    if value > 0x1F_FFFF:
        low = value & 0x7F | (value & 0x3F80) << 1 | (value & 0x1F_C000) << 2
        return low | (value & 0xFE0_0000) << 3 | 0x80_8080, 4
    if value > 0x3FFF:
        return value & 0x7F | (value & 0x3F80) << 1 | (value & 0x1F_C000) << 2 | 0x8080, 3
    return (value & 0x7F | (value & 0x3F80) << 1 | 0x80, 2) if value > 0x7F else (value, 1)
