"""The receiving side of a running session of Zenoh 1.x: batches in, runs of network messages out.

It owns sequence numbers, reassembly, and the messages of the session itself. What network messages mean it leaves
to a `Sink`, which also knows where a run of them ends, because a FRAME has no length. Errors it raises all mean the
same: drop the link without a word. Spec: zenoh-1 §2, §4.3-4.8, §6, §22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from elea.model.errors import DecodeError, Malformed, RuleBroken, Truncated, UnknownMessage
from elea.model.limits import MAX_MESSAGE, REASSEMBLY_BYTES
from elea.protocol.zenoh1.memoryref import EXT_MEMORY, OAM_MEMORY, PLACE_BYTES, InMemory
from elea.protocol.zenoh1.reassembly import Budget, Reassembly
from elea.protocol.zenoh1.terms import Agreement
from elea.wire.primitives import Unknown, long_z, read_extension
from elea.wire.zenoh1.batch import FIRST_NETWORK_ID, decompress
from elea.wire.zenoh1.codec import DIALECT, read_network_message, read_transport_message
from elea.wire.zenoh1.frames import Frames
from elea.wire.zenoh1.messages import Close, KeepAlive, TransportOam
from elea.wire.zenoh1.samples import Pushed, read_large_push

__all__ = ["CONDUITS", "DEFAULT_PRIORITY", "FramesSink", "Receiver", "Sink"]

CONDUITS: Final = 16
"""Eight priorities, each reliable or not; conduit `priority << 1 | reliable`. Without QoS only 10 and 11 are used."""

DEFAULT_PRIORITY: Final = 5

ID: Final = 0x1F
CLOSE: Final = 0x03
KEEP_ALIVE: Final = 0x04
FRAME: Final = 0x05
FRAGMENT: Final = 0x06
HEAD: Final = 64
"""Bytes in which the head of a FRAGMENT ends, if no extension is longer than any we know."""

RELIABLE: Final = 0x20
MORE: Final = 0x40
EXTENDED: Final = 0x80
EXT_QOS: Final = 0x31
EXT_FIRST: Final = 0x02
EXT_DROP: Final = 0x03


class Sink(Protocol):
    """Who takes what a session carries."""

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        """Take the network messages that start at `at`; returns where the first thing that is none stands.

        Raises:
            DecodeError: one of them cannot be read, running off the end of `buf` included.
        """
        ...

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        """Take a sample that came in fragments."""
        ...

    def closed(self, reason: int, whole_session: bool) -> None:
        """The other node has closed this link, or all links of the session."""
        ...


class FramesSink(Sink, Protocol):
    """One who takes the samples of many frames at once."""

    def frames(self, buf: bytes, at: int, frames: Frames) -> tuple[int, Frames]:
        """Take samples from `at` on, in a frame and those behind it; returns where it stopped, and in which of them.

        What it leaves of that frame is for `network`.
        """
        ...


class Receiver:
    """Takes the batches of one link, without their length prefix, once the session is open.

    Counted are `batches` and `octets` (as received), `frames` and `fragments` taken, `duplicates` (also late ones)
    and `fragments_lost`, both dropped, `ignored` messages that mean nothing in a running session, and `missing`
    sequence numbers. The last are no proof of loss: eclipse-zenoh skips one before it fragments a message.

    A batch of one FRAME costs 0.8 µs besides what the sink does with its messages; the generated codec takes 2.1 µs
    to read one with a single sample. Reassembly of 5 MB takes 0.8 ms.
    """

    __slots__ = (
        "_budget",
        "_compression",
        "_last",
        "_lowlatency",
        "_marked",
        "_mask",
        "_qos",
        "_reassemblies",
        "batches",
        "closed",
        "duplicates",
        "expires_after",
        "fragments",
        "frames",
        "ignored",
        "last_heard",
        "max_message",
        "memory",
        "missing",
        "octets",
        "on_memory",
        "oversized",
    )

    def __init__(
        self,
        agreement: Agreement,
        now: float,
        *,
        max_message: int = MAX_MESSAGE,
        budget: int = REASSEMBLY_BYTES,
        more: Callable[[int], bool] | None = None,
        back: Callable[[int], None] | None = None,
    ) -> None:
        self.last_heard = now
        self.expires_after = agreement.peer_lease
        self.closed = False
        self.batches = 0
        self.octets = 0
        self.frames = 0
        self.fragments = 0
        self.duplicates = 0
        self.missing = 0
        self.ignored = 0
        self.oversized = 0
        """Messages given up because they, or all messages in the making together, were too large."""
        self._qos = agreement.qos
        self._lowlatency = agreement.lowlatency
        self._compression = agreement.compression
        self._mask = agreement.sn_mask
        self._last = [agreement.peer_sn - 1 & agreement.sn_mask] * CONDUITS
        self._reassemblies: dict[int, Reassembly] = {}
        self._marked = agreement.patch >= 1
        self.max_message = max_message
        self._budget = Budget(max(budget, max_message), more, back)
        self.memory: InMemory | None = None
        """What the other node shares, once it has said so; who ends the link takes it away."""
        self.on_memory: Callable[[bytes], InMemory | None] | None = None
        """What finds the memory of a token, where the other node may share some."""

    @property
    def expires_at(self) -> float:
        """When the other node has been silent for its whole lease."""
        return self.last_heard + self.expires_after

    @property
    def fragments_lost(self) -> int:
        """Fragments whose message never became whole."""
        return sum(each.lost for each in self._reassemblies.values())

    def give_up(self) -> None:
        """Free what the messages in the making have, since others need it; any thread may say so."""
        self._budget.granted = 0
        for reassembly in list(self._reassemblies.values()):
            reassembly.revoke()

    def settle(self) -> None:
        """Copy what is still part of a view that was received."""
        for reassembly in self._reassemblies.values():
            reassembly.settle()

    def receive(self, batch: bytes | memoryview, now: float, sink: Sink) -> None:
        """Take one batch. What follows a CLOSE is passed over.

        Parts of a view may be kept until `settle` is called, which must be done before its bytes change.

        Raises:
            DecodeError: the batch cannot be read.
            RuleBroken: a sequence number above the mask, or a priority in a session without QoS.
        """
        if self.closed:
            return
        self.last_heard = now
        self.batches += 1
        self.octets += len(batch)
        if isinstance(batch, memoryview):
            if batch[0] & ID == FRAGMENT and not self._lowlatency and not self._compression:
                self._fragment(batch, bytes(batch[:HEAD]), 0, sink)
                return
            batch = bytes(batch)
        if self._lowlatency:
            self._receive_bare(batch, sink)
            return
        if self._compression:
            batch = decompress(batch)
        self._receive_plain(batch, sink)

    def frames_in(self, octets: memoryview) -> int:
        """How many bytes at the beginning of a stream are whole batches that begin with a FRAME of one conduit."""
        size = len(octets)
        if size < 4 or self._lowlatency or self._compression:
            return 0
        header = octets[2]
        end = 0
        if header & ~RELIABLE == FRAME:
            while end + 4 <= size and octets[end + 2] == header:
                stop = end + 2 + (octets[end] | octets[end + 1] << 8)
                if stop > size:
                    break
                end = stop
        return end

    def receive_frames(self, octets: bytes, now: float, sink: FramesSink) -> None:
        """Take batches with their lengths, of which `frames_in` has said that they are frames; raises as `receive`.

        Many at once go to the sink: 64 KiB of messages cost 40 µs one by one, half of it steps between Python and the
        loops that read them.
        """
        self.last_heard = now
        header = octets[2]
        reliable = header & RELIABLE != 0
        conduit = DEFAULT_PRIORITY << 1 | reliable
        at = 0
        while at < len(octets) and not self.closed:
            stop = at + 2 + (octets[at] | octets[at + 1] << 8)
            self.batches += 1
            self.octets += stop - at - 2
            sn = self._last[conduit] + 1 & self._mask
            first = _number_end(octets, at + 3, stop, sn)
            if not first:  # it is not the next one, or cannot be read: one judge is enough
                self._receive_plain(octets[at + 2 : stop], sink)
                at = stop
                continue
            reached, last = sink.frames(octets, first, Frames(stop, header, sn, self._mask))
            self.frames += 1 + last.more
            self.batches += last.more
            self.octets += last.stop - stop - 2 * last.more
            self._last[conduit] = last.sn
            at = last.stop
            if reached < at:
                rest = octets[reached:at]
                end = sink.network(rest, 0, DEFAULT_PRIORITY, reliable)
                if end < len(rest):
                    self._receive_plain(rest[end:], sink)

    def _receive_plain(self, batch: bytes, sink: Sink) -> None:
        at = 0
        size = len(batch)
        while at < size:
            header = batch[at]
            if header & ID != FRAME:
                at = self._other(batch, at, sink)
                continue
            try:
                sn = batch[at + 1]
                at += 2
                if sn > 127:
                    sn, at = long_z(batch, at, sn, 32, DIALECT)
                priority = DEFAULT_PRIORITY
                if header & EXTENDED:
                    priority, at = _frame_priority(batch, at)
            except IndexError:
                raise Truncated(DIALECT, size) from None
            reliable = header & RELIABLE != 0
            if not self._is_next(sn, priority, reliable):
                at = _skip(batch, at)
                continue
            self.frames += 1
            if at < size:
                at = sink.network(batch, at, priority, reliable)

    def _is_next(self, sn: int, priority: int, reliable: bool) -> bool:
        """Whether a FRAME or FRAGMENT is to be taken, and then that it was."""
        mask = self._mask
        if sn > mask:
            raise RuleBroken("zenoh1-sn-mask", "drop-link", f"sequence number {sn} above {mask}")
        if priority != DEFAULT_PRIORITY and not self._qos:
            raise RuleBroken("zenoh1-priority", "drop-link", f"priority {priority} in a session without QoS")
        conduit = priority << 1 | reliable
        gap = sn - self._last[conduit] & mask
        if gap == 1:
            self._last[conduit] = sn
            return True
        # Gaps are accepted even on reliable conduits: not to lose anything is the business of the link.
        if 0 < gap <= mask >> 1:
            self._last[conduit] = sn
            self.missing += gap - 1
            return True
        self.duplicates += 1
        return False

    def _other(self, batch: bytes, at: int, sink: Sink) -> int:
        """Take a transport message that is no FRAME; returns where it ends."""
        if batch[at] == KEEP_ALIVE:
            return at + 1
        if batch[at] & ID == FRAGMENT:
            self._fragment(batch, batch, at, sink)
            return len(batch)
        try:
            message, end = read_transport_message(batch, at)
        except IndexError:
            raise Truncated(DIALECT, len(batch)) from None
        if isinstance(message, Close):
            self.closed = True
            sink.closed(message.reason, message.session)
            return len(batch)
        if isinstance(message, TransportOam) and message.id == OAM_MEMORY and self.on_memory is not None:
            self.memory = self.on_memory(message.body) if isinstance(message.body, bytes) else None
        elif not isinstance(message, KeepAlive):
            # INIT and OPEN that come late, JOIN, OAM: known, and without meaning here.
            self.ignored += 1
        return end

    def _fragment(self, batch: bytes | memoryview, head: bytes, at: int, sink: Sink) -> None:
        """Take the FRAGMENT that starts at `at` and ends with the batch, which begins with `head`."""
        header = head[at]
        try:
            sn, priority, first, drop, place, at = _fragment_head(head, at)
        except Truncated:
            # It has long extensions, or is cut off.
            sn, priority, first, drop, place, at = _fragment_head(bytes(batch), at)
        reliable = header & RELIABLE != 0
        if not self._is_next(sn, priority, reliable):
            return
        self.fragments += 1
        conduit = priority << 1 | reliable
        reassembly = self._reassemblies.get(conduit)
        if reassembly is None:
            reassembly = Reassembly(mask=self._mask, marked=self._marked, limit=self.max_message, budget=self._budget)
            self._reassemblies[conduit] = reassembly
        memory = self.memory
        laid = _fetched(memory, place) if place and memory is not None else b""  # else somebody else's extension
        chunks = reassembly.add(sn, batch[at:], more=header & MORE != 0, first=first, drop=drop, laid=laid)
        self.oversized = self._budget.exceeded
        if chunks is None:
            return
        sample = read_large_push(chunks)
        if sample is not None:
            sink.sample(sample, priority, reliable)
            return
        whole = b"".join(chunks)
        # Spec: the reference ignores what follows the one message; a sink may take it, as it would in a FRAME.
        if not whole or sink.network(whole, 0, priority, reliable) == 0:
            raise Malformed(DIALECT, 0, "fragments that are no network message")

    def _receive_bare(self, batch: bytes, sink: Sink) -> None:
        """A batch of a low-latency session: network messages, or KEEP_ALIVE, or CLOSE, and no FRAME round them."""
        at = 0
        while at < len(batch):
            header = batch[at]
            kind = header & ID
            if kind >= FIRST_NETWORK_ID:
                end = sink.network(batch, at, DEFAULT_PRIORITY, True)
                if end == at:
                    raise UnknownMessage(DIALECT, at, f"no network message has id {kind}")
                at = end
            elif kind in (KEEP_ALIVE, CLOSE):
                at = self._other(batch, at, sink)
            else:
                raise UnknownMessage(DIALECT, at, f"no message of a low-latency session has id {kind}")


def _fetched(memory: InMemory, place: bytes) -> bytes:
    """What lies at a place in the memory that the other node shares."""
    if len(place) != PLACE_BYTES:
        raise RuleBroken("elea-memory", "drop-link", f"a place of {len(place)} bytes, not {PLACE_BYTES}")
    return memory.fetch(int.from_bytes(place[:8], "little"), int.from_bytes(place[8:], "little"))


def _number_end(buf: bytes, at: int, stop: int, sn: int) -> int:
    """Where a sequence number ends, if it is the one expected; 0 otherwise."""
    try:
        found = buf[at]
        at += 1
        if found > 127:
            found, at = long_z(buf, at, found, 32, DIALECT)
    except (IndexError, DecodeError):
        return 0
    return at if found == sn and at <= stop else 0


def _frame_priority(buf: bytes, at: int) -> tuple[int, int]:
    """The priority in the extensions of a FRAME, and where they end."""
    priority = DEFAULT_PRIORITY
    unknown: tuple[Unknown, ...] = ()
    while True:
        header = buf[at]
        at += 1
        if header & 0x7F == EXT_QOS:
            value = buf[at]
            at += 1
            if value > 127:
                value, at = long_z(buf, at, value, 8, DIALECT)
            priority = value & 7
        else:
            unknown, at = read_extension(buf, at, header & 0x7F, unknown, DIALECT)
        if header < EXTENDED:
            return priority, at


def _fragment_head(buf: bytes, at: int) -> tuple[int, int, bool, bool, bytes, int]:
    """Number, priority, whether it is the first of its message or gives it up, its place in shared memory, and where
    the chunk begins.

    The generated codec has a value to make and the chunk to copy: 0.3 µs a fragment, where taking one costs 1 µs.
    """
    priority, first, drop, place = DEFAULT_PRIORITY, False, False, b""
    unknown: tuple[Unknown, ...] = ()
    try:
        more = buf[at] > 127
        sn = buf[at + 1]
        at += 2
        if sn > 127:
            sn, at = long_z(buf, at, sn, 32, DIALECT)
        while more:
            ext = buf[at]
            at += 1
            more = ext > 127
            ext &= 0x7F
            if ext == EXT_FIRST:
                first = True
            elif ext == EXT_DROP:
                drop = True
            elif ext == EXT_QOS:
                value = buf[at]
                at += 1
                if value > 127:
                    value, at = long_z(buf, at, value, 8, DIALECT)
                priority = value & 7
            else:
                unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
                if ext == EXT_MEMORY:
                    body = unknown[-1].body
                    place = body if isinstance(body, bytes) else b""
    except IndexError:
        raise Truncated(DIALECT, len(buf)) from None
    return sn, priority, first, drop, place, at


def _skip(buf: bytes, at: int) -> int:
    """Where the network messages from `at` on end: a FRAME that is not wanted must be read all the same."""
    try:
        while at < len(buf) and buf[at] & ID >= FIRST_NETWORK_ID:
            at = read_network_message(buf, at)[1]
    except IndexError:
        raise Truncated(DIALECT, len(buf)) from None
    return at
