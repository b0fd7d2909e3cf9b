"""The sending half of a channel: numbers for messages, packets of them, and what may have to be sent again.

Packets are at most an MTU; a sample that does not fit becomes fragments, samples of one id become one BatchedData where
the other node takes that. A reliable channel holds each message until it is acknowledged, and sends nothing new while
its window is full. Two things fill it: what is *under way*, which the buffers of the network must have room for, and,
with more room, what is held. What is missing at the other node is not under way, and neither is what waits there for
it: else one lost message would stop everything behind it. Spec: zenoh-2018 §5.9, §5.10, §5.13, Z18-CON-08.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from elea.model.limits import ACKNACK_SPAN, EARLY_HELD_WINDOWS
from elea.protocol.early.acknack import requested
from elea.protocol.early.numbered import BATCHED, BYTE, DATA, HEAD, RELIABLE, STREAM, SYNC, frag_marker, vle
from elea.protocol.early.serial import distance, successor, window_limit

__all__ = ["Held", "Sender"]

KIND_AND_PRID: Final = 0x9F
COUNT_BYTES: Final = 3
"""Of how many samples are in a batch, at most: no packet has room for 2^21."""

MOST_IGNORED: Final = 3
"""How often in a row a request to send something again is not heeded, since it was just done (Z18-REL-05)."""

MOST_COPIES: Final = 3
"""How many copies of a message are sent at once, if it was lost so often: everything behind it waits for it."""

MOST_SENT: Final = 256
"""Notes of messages sent again, beyond twice what is held, before those that say nothing any more are left out."""

UNASKED_SECONDS: Final = 0.001
"""How long a message of which nobody knows whether it is the last one waits until an acknowledgement is asked for."""

HARMLESS: Final = 200_000
"""New numbers a second that no node reaches: with more to spare nobody need keep their time."""


class Held:
    """A message that has been sent: its number, what stands before and behind that, and when it was sent last."""

    __slots__ = ("at", "front", "header", "ignored", "is_under_way", "losses", "sn", "tail")

    def __init__(self, sn: int, front: bytes, header: int, tail: bytes, at: float) -> None:
        self.sn = sn
        self.front = front
        self.header = header
        self.tail = tail
        self.at = at
        self.ignored = 0
        self.losses = 0
        """How often it was lost, as it seems."""
        self.is_under_way = True

    def head(self, sync: bool) -> bytes:
        """What stands before the tail, asking for an acknowledgement or not."""
        return self.front + BYTE[self.header | SYNC if sync else self.header] + vle(self.sn)


class Packer:
    """Packets in the making."""

    __slots__ = ("_alone", "_filled", "_mtu", "_parts", "packets")

    def __init__(self, mtu: int, alone: bool) -> None:
        self.packets: list[bytes] = []
        self._mtu = mtu
        self._alone = alone
        self._parts: list[bytes] = []
        self._filled = 0

    def add(self, held: Held, sync: bool) -> int:
        """Add a message: its bytes."""
        head = held.head(sync)
        size = len(head) + len(held.tail)
        if self._filled and (self._alone or self._filled + size > self._mtu):
            self.flush()
        self._parts.append(head)
        self._parts.append(held.tail)
        self._filled += size
        return size

    def flush(self) -> None:
        """End the packet."""
        if self._filled:
            self.packets.append(b"".join(self._parts))
            self._parts = []
            self._filled = 0


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
        self.under_way = 0
        """Bytes that were sent and neither have arrived, as far as it is known, nor are lost."""
        self.is_recovering = False
        """Whether the last AckNack has asked for something."""
        self.is_asking = False
        """Whether an acknowledgement was asked for and none has come since."""
        self.resent = 0
        self.oversized = 0
        """Messages that no packet and no row of fragments can carry, dropped."""
        self.progress = 0.0
        """When something was acknowledged last, or the first message was sent that waits for it."""
        self.paced_until: float | None = None
        """When a number may be used again, if that is what the queue waits for."""
        self.asked: list[Held] = []
        """What the last AckNack has asked for and was sent so recently that it may still arrive (`repeat`)."""
        self._asked_at = float("-inf")
        self._sent: deque[tuple[float, Held]] = deque()  # what is under way, in its order; or not any more
        self._alone = alone
        self._holds = reliable and holds
        self._mtu = mtu
        self._marker = marker
        self._sn_bytes = len(vle((1 << sn_bits) - 1))
        half = 1 << (sn_bits - 1)
        self._window = max(1, min(window, half // 2 if lifetime else window_limit(sn_bits)))
        self._window_bytes = window_bytes
        self._enough = max(1, window_bytes - min(mtu, window_bytes // 4))
        """Bytes under way from which on nothing is sent: the next message could be one too much."""
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

    def take(self, queue: list[bytes], most: int, now: float, limit: int = 1 << 30) -> tuple[list[bytes], int, int]:
        """Number the messages at the front of a queue of entries, as many as may be sent now.

        Returns packets, how many parts of the queue they are (two an entry, `most` at most), and the bytes of those.
        `limit` is about how many bytes of packets are wanted.
        """
        packer = Packer(self._mtu, self._alone)
        used = octets = made = 0
        while used < most and made < limit:
            if not self._may_send(1, now):
                break
            front, body = queue[used], queue[used + 1]
            is_data = front[0] & DATA != 0
            behind = 1 + (front[0] & HEAD)
            head, rest = front[1 : behind - 1], front[behind:]
            header = front[behind - 1]
            count = 2
            size = len(front) + len(body)
            room = self._mtu - len(self._marker) - len(self.before) - len(head) - 1 - self._sn_bytes
            tail = body
            if is_data:
                tail = b""
                if self.batches and header & KIND_AND_PRID == STREAM and used + 2 < most:
                    run, joined, run_size = self._run(queue, used, most, rest, room)
                    if run > 2:
                        count, tail, size = run, joined, run_size
                        header = BATCHED | header & RELIABLE
                if count == 2:
                    tail = rest + vle(len(body)) + body
            is_end = used + count >= len(queue) and (not is_data or self._is_idle(now))
            if len(tail) > room:
                pieces = self._pieces(head, header, rest, body) if is_data else []
                if not pieces:
                    self.oversized += 1
                elif not self._may_send(len(pieces), now):
                    break
                else:
                    mark = frag_marker(self.next, len(pieces)) + head
                    for index, piece in enumerate(pieces):
                        held = self._number(mark, header, piece, now)
                        is_last = is_end and index == len(pieces) - 1
                        made += packer.add(held, self._wants_ack(is_last, len(piece), now))
            else:
                held = self._number(head, header, tail, now)
                made += packer.add(held, self._wants_ack(is_end, len(tail), now))
            octets += size
            used += count
        packer.flush()
        return packer.packets, used, octets

    def _run(self, queue: list[bytes], first: int, most: int, id: bytes, room: int) -> tuple[int, bytes, int]:
        """Samples of one id that fit one message: how many parts of the queue, the rest of that message, their bytes.

        Samples of one size, which most runs are, are joined in one go: compiled, 12 ns each of 64 bytes.
        """
        front = queue[first]
        alike = len(queue[first + 1])
        prefix = vle(alike)
        left = room - len(id) - COUNT_BYTES
        fits = left // (len(prefix) + alike)
        if fits < 2:
            return 0, b"", 0
        at, end = first, min(most, first + 2 * fits)
        while at < end and (queue[at] is front or queue[at] == front) and len(queue[at + 1]) == alike:
            at += 2
        count = (at - first) >> 1
        parts = [prefix.join([b"", *queue[first + 1 : at : 2]])]
        size = count * (len(front) + alike)
        left -= count * (len(prefix) + alike)
        while at < most and (queue[at] is front or queue[at] == front):
            payload = queue[at + 1]
            prefix = vle(len(payload))
            left -= len(prefix) + len(payload)
            if left < 0:
                break
            parts.append(prefix)
            parts.append(payload)
            size += len(front) + len(payload)
            at += 2
        return at - first, b"".join([id, vle((at - first) >> 1), *parts]), size

    def _pieces(self, head: bytes, header: int, rest: bytes, payload: bytes) -> list[bytes]:
        """What the fragments of a sample have behind their numbers; none if it cannot be cut (Z18-FRG-01, 06, 07)."""
        # The header says the kind: the name of a WriteData stands in its first fragment only.
        again = b"\0" if header & 0x1F not in (STREAM, BATCHED) else rest
        fixed = len(self._marker) + len(self.before) + len(head) + len(rest) + 2 + 2 * self._sn_bytes
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
            if (
                len(self.held) + count > self._window
                or self.under_way >= self._enough
                or self.held_bytes >= EARLY_HELD_WINDOWS * self._window_bytes
            ):
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

    def _wants_ack(self, is_last: bool, size: int, now: float) -> bool:
        """Whether the newest message asks for an acknowledgement: nothing follows, or a window fills (Z18-REL-07).

        Args:
            size: its bytes. A window of bytes fills, too; if nobody asked then, all would wait for a Synch.
        """
        if not self._holds:
            return False
        wants = (
            is_last
            or _passes_quarter(len(self.held), 1, self._window)
            or _passes_quarter(self.under_way, size, self._enough)
            or _passes_quarter(self.held_bytes, size, EARLY_HELD_WINDOWS * self._window_bytes)
        )
        if wants:
            self.is_asking = True
            self._asked_at = now
        return wants

    def _is_idle(self, now: float) -> bool:
        """Whether a sample asks for an acknowledgement because nothing follows.

        Of a stream of samples nearly every packet is the last for a moment, and each answer is a packet, too. So who
        has just asked does not ask for that again; if nothing more is sent for such a moment, a Synch asks.
        """
        return self.is_recovering or (not self.is_asking and now >= self._asked_at + UNASKED_SECONDS)

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
            self.under_way += len(tail)
            self._sent.append((now, held))
        return held

    # -- what became of them ------------------------------------------------------------------------------------------

    def acknowledged(self, sn: int, mask: int | None, now: float, patience: float) -> list[bytes] | None:
        """An AckNack: packets to be sent again; None if it is about numbers that are not under way (Z18-REL-12).

        Args:
            patience: seconds in which what was sent may still arrive.
        """
        done = distance(self._oldest(), sn, self.sn_bits)
        if done > len(self.held):
            return None
        for _ in range(done):
            held = self.held.popleft()
            self.held_bytes -= len(held.tail)
            self._end_of(held)
        if done:
            self.progress = now
            sent = self._sent
            while sent and (not sent[0][1].is_under_way or sent[0][1].at != sent[0][0]):
                sent.popleft()
        self.is_recovering = mask is not None
        self.is_asking = self.is_recovering  # what is sent again asks
        again: list[Held] = []
        self.asked = []
        for wanted in requested(sn, mask, self.sn_bits):
            index = distance(sn, wanted, self.sn_bits)
            if index >= len(self.held):
                break
            held = self.held[index]
            if now - held.at < patience:
                # Only the first one is sent again for having been asked for often. If all were, each AckNack of a
                # crowd would bring dozens of messages, and these the next crowd: a storm that feeds itself.
                held.ignored += not index
                if index or held.ignored <= MOST_IGNORED:
                    self.asked.append(held)
                    continue
            else:
                held.losses += 1
            again.append(held)
        return self._again(again, now)

    def resend(self, numbers: Sequence[int], now: float, patience: float) -> list[bytes]:
        """Packets of those numbers that are held and were not sent within the last `patience` seconds."""
        oldest = self._oldest()
        wanted = {distance(oldest, sn, self.sn_bits) for sn in numbers}
        held = [one for index, one in enumerate(self.held) if index in wanted and now - one.at >= patience]
        return self._again(held, now)

    def landed(self, since: float) -> None:
        """The other node has read what was sent until then, as far as it has arrived; or it was lost.

        Of no interest while nothing is missing: what it has read and does not acknowledge, it may have no room for.
        """
        sent = self._sent
        while self.is_recovering and sent and sent[0][0] <= since:
            at, held = sent.popleft()
            if held.at == at:  # else it has been sent again
                self._end_of(held)

    def _end_of(self, held: Held) -> None:
        if held.is_under_way:
            held.is_under_way = False
            self.under_way -= len(held.tail)

    def repeats_at(self, patience: float) -> float | None:
        """When `repeat` has something to do."""
        return min([held.at for held in self.asked]) + patience if self.asked else None

    def repeat(self, now: float, patience: float) -> list[bytes]:
        """What was asked for too soon, if nothing has been heard of it since: else it would wait for the next Synch."""
        again = [held for held in self.asked if held.at + patience <= now]
        self.asked = [held for held in self.asked if held.at + patience > now]
        for held in again:
            held.losses += 1
        return self._again(again, now)

    def _again(self, again: Sequence[Held], now: float) -> list[bytes]:
        """Send messages again; those that were lost twice, twice as well, in packets of their own.

        One copy more if so much is held that no AckNack could ask for all of it: nothing gets on before these do.
        """
        packer = Packer(self._mtu, self._alone)
        more = 1 if len(self.held) > ACKNACK_SPAN else 0
        copies = 1
        left = list(again)
        while left:
            self.resent += len(left)
            for held in left:
                packer.add(held, held is left[-1])  # one answer is enough (Z18-REL-05)
            packer.flush()
            left = [held for held in left if copies < min(held.losses + more, MOST_COPIES)]
            copies += 1
        for held in again:
            self.is_asking = True
            if not held.is_under_way or held.at != now:
                self._sent.append((now, held))
            held.at, held.ignored = now, 0
            if not held.is_under_way:
                held.is_under_way = True
                self.under_way += len(held.tail)
        if len(self._sent) > 2 * len(self.held) + MOST_SENT:
            self._sent = deque([(at, held) for at, held in self._sent if held.is_under_way and held.at == at])
        return packer.packets

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
