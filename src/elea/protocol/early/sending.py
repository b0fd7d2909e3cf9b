"""The sending half of a channel: numbers for messages, packets of them, and what may have to be sent again.

Packets are at most an MTU; a sample that does not fit becomes fragments, samples of one id become one BatchedData where
the other node takes that. A reliable channel holds each message until it is acknowledged, and sends nothing new while
its window is full. Spec: zenoh-2018 §5.9, §5.10, §5.13, Z18-CON-08.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from elea.protocol.early.acknack import requested
from elea.protocol.early.numbered import BATCHED, DATA, HEAD, RELIABLE, STREAM, SYNC, frag_marker, vle
from elea.protocol.early.serial import distance, successor, window_limit

__all__ = ["Held", "Sender"]

KIND_AND_PRID: Final = 0x9F
MOST_IGNORED: Final = 3
"""How often in a row a request to send something again is not heeded, since it was just done (Z18-REL-05)."""

HARMLESS: Final = 200_000
"""New numbers a second that no node reaches: with more to spare nobody need keep their time."""


class Held:
    """A message that has been sent: its number, what stands before and behind that, and when it was sent last."""

    __slots__ = ("at", "front", "header", "ignored", "sn", "tail")

    def __init__(self, sn: int, front: bytes, header: int, tail: bytes, at: float) -> None:
        self.sn = sn
        self.front = front
        self.header = header
        self.tail = tail
        self.at = at
        self.ignored = 0

    def octets(self, sync: bool) -> bytes:
        """The message, asking for an acknowledgement or not."""
        return self.front + bytes([self.header | SYNC if sync else self.header]) + vle(self.sn) + self.tail


class Sender:
    """One channel of one conduit, towards the other node.

    Args:
        marker: the Conduit marker before each message.
        alone: whether each message is a packet.
        holds: whether a reliable channel waits for acknowledgements; one over a link that loses nothing need not.
        lifetime: seconds an old datagram may still arrive in. Numbers are not used so fast that one could be mistaken.
    """

    def __init__(
        self,
        sn_bits: int,
        *,
        reliable: bool,
        mtu: int,
        marker: bytes = b"",
        window: int = 1 << 30,
        window_bytes: int = 1 << 30,
        lifetime: float = 0.0,
        batches: bool = False,
        alone: bool = False,
        holds: bool = True,
    ) -> None:
        self.sn_bits = sn_bits
        self.reliable = reliable
        self.next = 0
        self.batches = batches
        self.before = b""
        """What has to stand before the next message, whenever that is sent: a Migrate."""
        self.held: deque[Held] = deque()
        self.held_bytes = 0
        self.resent = 0
        self.oversized = 0
        """Messages that no packet and no row of fragments can carry, dropped."""
        self.progress = 0.0
        """When something was acknowledged last, or the first message was sent that waits for it."""
        self.paced_until: float | None = None
        """When a number may be used again, if that is what the queue waits for."""
        self.asked: list[Held] = []
        """What the last AckNack has asked for and was sent so recently that it may still arrive (`repeat`)."""
        self._alone = alone
        self._holds = reliable and holds
        self._mtu = mtu
        self._marker = marker
        self._sn_octets = len(vle((1 << sn_bits) - 1))
        half = 1 << (sn_bits - 1)
        self._window = max(1, min(window, half // 2 if lifetime else window_limit(sn_bits)))
        self._window_bytes = window_bytes
        self._lifetime = lifetime
        self._quota = half - self._window if reliable else half // 2
        self._recent: deque[float] | None = deque() if lifetime and self._quota / lifetime < HARMLESS else None

    def limit(self, mtu: int) -> None:
        """Make no larger packets from now on."""
        self._mtu = min(self._mtu, mtu)

    @property
    def window(self) -> int:
        """How many messages may wait for an acknowledgement."""
        return self._window

    def __len__(self) -> int:
        return len(self.held)

    # -- new messages -------------------------------------------------------------------------------------------------

    def take(self, queue: Sequence[bytes], most: int, now: float, limit: int = 1 << 30) -> tuple[list[bytes], int, int]:
        """Number the messages at the front of a queue of entries, as many as may be sent now.

        Returns packets, how many parts of the queue they are (two an entry, `most` at most), and the octets of those.
        `limit` is about how many octets of packets are wanted.
        """
        packets: list[bytes] = []
        packet = bytearray()
        used = octets = made = 0
        while used < most and made < limit:
            if not self._may_send(1, now):
                break
            front, body = queue[used], queue[used + 1]
            head = front[1 : 1 + (front[0] & HEAD)]
            rest = front[len(head) + 1 :]
            count = 2
            room = self._mtu - len(self._marker) - len(self.before) - len(head) - self._sn_octets
            if not front[0] & DATA:
                tail = body
            else:
                tail = rest + vle(len(body)) + body
                if self.batches and head[-1] & KIND_AND_PRID == STREAM and len(tail) < room:
                    run, joined = self._run(queue, used, most, rest, room)
                    if run > 2:
                        count = run
                        head, tail = head[:-1] + bytes([BATCHED | head[-1] & RELIABLE]), joined
            if len(tail) > room:
                pieces = self._pieces(head, rest, body) if front[0] & DATA else []
                if not pieces:
                    self.oversized += 1
                elif not self._may_send(len(pieces), now):
                    break
                else:
                    base = self.next
                    mark = frag_marker(base, len(pieces))
                    for index, piece in enumerate(pieces):
                        held = self._number(mark + head[:-1], head[-1], piece, now)
                        is_last = index == len(pieces) - 1 and used + count >= len(queue)
                        made += self._add(packets, packet, held, self._wants_ack(is_last, len(piece)))
            else:
                held = self._number(head[:-1], head[-1], tail, now)
                made += self._add(packets, packet, held, self._wants_ack(used + count >= len(queue), len(tail)))
            for index in range(used, used + count):
                octets += len(queue[index])
            used += count
        if packet:
            packets.append(bytes(packet))
        return packets, used, octets

    def _run(self, queue: Sequence[bytes], first: int, most: int, id: bytes, room: int) -> tuple[int, bytes]:
        """Samples of one id that fit one message: how many parts of the queue, and the rest of that message."""
        front = queue[first]
        size = len(id) + 3
        parts: list[bytes] = []
        at = first
        while at < most and (queue[at] is front or queue[at] == front):
            payload = queue[at + 1]
            prefix = vle(len(payload))
            size += len(prefix) + len(payload)
            if size > room:
                break
            parts += (prefix, payload)
            at += 2
        return at - first, id + vle(len(parts) // 2) + b"".join(parts)

    def _pieces(self, head: bytes, rest: bytes, payload: bytes) -> list[bytes]:
        """What the fragments of a sample have behind their numbers; none if it cannot be cut (Z18-FRG-01, 06, 07)."""
        # The header says the kind: the name of a WriteData stands in its first fragment only.
        again = b"\0" if head[-1] & 0x1F not in (STREAM, BATCHED) else rest
        fixed = len(self._marker) + len(self.before) + len(head) + self._sn_octets + len(rest) + 1 + self._sn_octets
        count = 2
        while True:
            room = self._mtu - fixed - len(vle(count))
            room -= len(vle(max(room, 0))) if room > 0 else 0
            if room < 1:
                return []
            needed = -(-len(payload) // room)
            if len(vle(needed)) <= len(vle(count)):
                break
            count = needed
        if needed < 2 or needed > self._most_fragments():
            return []
        cut = [payload[at : at + room] for at in range(0, len(payload), room)]
        return [(again if index else rest) + vle(len(one)) + one for index, one in enumerate(cut)]

    def _most_fragments(self) -> int:
        return self._window if self.reliable else min(self._quota, window_limit(self.sn_bits))

    def _may_send(self, count: int, now: float) -> bool:
        self.paced_until = None
        if self.reliable and self.held:
            if len(self.held) + count > self._window or self.held_bytes >= self._window_bytes:
                return False
        recent = self._recent
        if recent is None:
            return True
        while recent and recent[0] + self._lifetime <= now:
            recent.popleft()
        if len(recent) + count > self._quota:
            self.paced_until = recent[0] + self._lifetime
            return False
        return True

    def _wants_ack(self, is_last: bool, size: int) -> bool:
        """Whether the newest message asks for an acknowledgement: nothing follows, or a window fills (Z18-REL-07).

        Args:
            size: its octets. A window of octets fills, too; if nobody asked then, all would wait for a Synch.
        """
        if not self._holds:
            return False
        return (
            is_last
            or _passes_quarter(len(self.held), 1, self._window)
            or _passes_quarter(self.held_bytes, size, self._window_bytes)
        )

    def _number(self, front: bytes, header: int, tail: bytes, now: float) -> Held:
        held = Held(self.next, self.before + self._marker + front, header, tail, now)
        self.before = b""
        self.next = successor(self.next, self.sn_bits)
        if self._recent is not None:
            self._recent.append(now)
        if self._holds:
            if not self.held:
                self.progress = now
            self.held.append(held)
            self.held_bytes += len(tail)
        return held

    def _add(self, packets: list[bytes], packet: bytearray, held: Held, sync: bool) -> int:
        octets = held.octets(sync)
        if packet and (self._alone or len(packet) + len(octets) > self._mtu):
            packets.append(bytes(packet))
            packet.clear()
        packet += octets
        return len(octets)

    # -- what became of them ------------------------------------------------------------------------------------------

    def acknowledged(self, sn: int, mask: int | None, now: float, timeout: float) -> list[bytes] | None:
        """An AckNack: packets to be sent again; None if it is about numbers that are not under way (Z18-REL-12).

        Args:
            timeout: seconds after which what was sent must have arrived.
        """
        done = distance(self._oldest(), sn, self.sn_bits)
        if done > len(self.held):
            return None
        for _ in range(done):
            self.held_bytes -= len(self.held.popleft().tail)
        if done:
            self.progress = now
        again: list[Held] = []
        self.asked = []
        for wanted in requested(sn, mask, self.sn_bits):
            index = distance(sn, wanted, self.sn_bits)
            if index >= len(self.held):
                break
            held = self.held[index]
            if now - held.at < timeout:
                # Only the first one is sent again for having been asked for often. If all were, each AckNack of a
                # crowd would bring dozens of messages, and these the next crowd: a storm that feeds itself.
                held.ignored += not index
                if index or held.ignored <= MOST_IGNORED:
                    self.asked.append(held)
                    continue
            again.append(held)
        return self._again(again, now)

    def repeats_at(self, timeout: float) -> float | None:
        """When `repeat` has something to do."""
        return min(held.at for held in self.asked) + timeout if self.asked else None

    def repeat(self, now: float, timeout: float) -> list[bytes]:
        """What was asked for too soon, if nothing has been heard of it since: else it would wait for the next Synch."""
        again = [held for held in self.asked if held.at + timeout <= now]
        self.asked = [held for held in self.asked if held.at + timeout > now]
        return self._again(again, now)

    def _again(self, again: Sequence[Held], now: float) -> list[bytes]:
        self.resent += len(again)
        packets: list[bytes] = []
        packet = bytearray()
        for held in again:
            held.at, held.ignored = now, 0
            self._add(packets, packet, held, held is again[-1])  # one answer is enough (Z18-REL-05)
        if packet:
            packets.append(bytes(packet))
        return packets

    def _oldest(self) -> int:
        return successor(self.next, self.sn_bits, steps=-len(self.held))

    @property
    def last(self) -> int:
        """The number used last; the one before 0 if none was (Z18-CON-09)."""
        return successor(self.next, self.sn_bits, steps=-1)


def _passes_quarter(filled: int, more: int, window: int) -> bool:
    """Whether the last `more` of what fills a window have filled three quarters of it, or a further one, or all."""
    quarter = max(1, window // 4)
    return filled >= window or (filled >= 3 * quarter and filled // quarter != (filled - more) // quarter)
