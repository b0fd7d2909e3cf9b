"""TCP streams out of captured segments: order, copies, overlaps, holes, sequence numbers that wrap.

A capture is not an end of the connection: it may begin in the middle, miss what the receiver got, and see the
same octets twice. A hole is waited for until the limit of held octets, then declared a `Gap`; the stream
goes on behind it. Memory is bounded per direction, over all directions, and in the number of directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

from elea.model.limits import TCP_FLOWS, TCP_PENDING_BYTES, TCP_PENDING_TOTAL, TCP_STRAY_BYTES
from elea.wire.pcap.packet import Flow, Segment

__all__ = ["End", "Gap", "Piece", "Reassembler", "Start", "StreamEvent"]

SEQUENCE: Final = 1 << 32
HALF: Final = 1 << 31

# What a held segment costs beside its octets; without it, one-octet segments would escape the limit.
HELD_COST: Final = 128


class Start(NamedTuple):
    """A direction appears; `whole` if from its very first octet."""

    flow: Flow
    time: int | None
    whole: bool


class Piece(NamedTuple):
    """The next octets of a direction; `at` counts from its start."""

    flow: Flow
    time: int | None
    at: int
    data: bytes


class Gap(NamedTuple):
    """`size` octets from `at` on were not captured."""

    flow: Flow
    time: int | None
    at: int
    size: int


class End(NamedTuple):
    """A direction has ended, been reset, been given up, or the capture is over."""

    flow: Flow
    time: int | None


StreamEvent = Start | Piece | Gap | End


@dataclass(slots=True)
class _Direction:
    flow: Flow
    next: int
    """Sequence number of the next octet wanted."""
    at: int = 0
    """How many octets came before it."""
    first: int = -1
    """Sequence number after the SYN, to know a repeated one from a new connection; -1 without SYN."""
    finish: int = -1
    """Offset at which the stream ends, once a FIN has told."""
    ended: bool = False
    last: int | None = None
    """Time of the last segment seen."""
    held: list[tuple[int, int, int | None, bytes]] = field(default_factory=list)
    """Heap of (offset, order of arrival, time, octets) behind a hole."""
    cost: int = 0


class Reassembler:
    """Follows all TCP connections of a capture: `feed` it each segment, `finish` when there are no more."""

    def __init__(
        self, *, flows: int = TCP_FLOWS, pending: int = TCP_PENDING_BYTES, total: int = TCP_PENDING_TOTAL
    ) -> None:
        self._limits = flows, pending, total
        self._directions: dict[Flow, _Direction] = {}  # in order of last use
        self._cost = 0
        self._arrivals = 0
        self.gaps = 0
        self.missing = 0
        self.stray = 0

    def feed(self, segment: Segment) -> list[StreamEvent]:
        """What a segment brings about."""
        return list(self._feed(segment))

    def finish(self) -> Iterator[StreamEvent]:
        """The capture is over: gives out what is still held, then ends every direction."""
        for direction in self._directions.values():
            yield from self._end(direction)
        self._directions.clear()

    def _feed(self, segment: Segment) -> Iterator[StreamEvent]:
        direction = self._directions.pop(segment.flow, None)
        if segment.syn:
            first = (segment.sequence + 1) % SEQUENCE
            if direction is None or direction.first != first:
                if direction is not None:
                    yield from self._end(direction)
                direction = _Direction(segment.flow, first, first=first)
                yield Start(segment.flow, segment.time, whole=True)
        elif direction is None:
            # A bare acknowledgement may be a keep-alive one octet back: only data tells where the stream is.
            if not segment.data:
                return
            direction = _Direction(segment.flow, segment.sequence)
            yield Start(segment.flow, segment.time, whole=False)
        self._directions[segment.flow] = direction
        direction.last = segment.time
        if not direction.ended:
            yield from self._take(direction, segment)
        yield from self._keep_limits(segment)

    def _take(self, direction: _Direction, segment: Segment) -> Iterator[StreamEvent]:
        if segment.rst:
            yield from self._end(direction)
            return
        sequence = segment.sequence + 1 if segment.syn else segment.sequence
        distance = (sequence - direction.next + HALF) % SEQUENCE - HALF
        if abs(distance) > TCP_STRAY_BYTES:
            self.stray += 1
            return
        offset = direction.at + distance
        if segment.fin and direction.finish < 0:
            direction.finish = offset + len(segment.data) + segment.missing
        if segment.data and offset + len(segment.data) > direction.at:
            if offset > direction.at or direction.held:
                self._hold(direction, offset, segment)
                yield from self._release(direction)
            else:
                yield self._advance(direction, segment.time, segment.data[direction.at - offset :])
        if segment.missing and direction.at == offset + len(segment.data):
            # The capture keeps only the head of each packet: waiting for the rest would be in vain.
            yield self._pass_hole(direction, direction.at + segment.missing, segment.time)
        if 0 <= direction.finish <= direction.at:
            yield from self._end(direction)

    def _hold(self, direction: _Direction, offset: int, segment: Segment) -> None:
        self._arrivals += 1
        heappush(direction.held, (offset, self._arrivals, segment.time, segment.data))
        direction.cost += len(segment.data) + HELD_COST
        self._cost += len(segment.data) + HELD_COST

    def _release(self, direction: _Direction) -> Iterator[StreamEvent]:
        """Gives out held octets up to the next hole; of copies that differ, the one starting first wins."""
        while direction.held and direction.held[0][0] <= direction.at:
            offset, _, time, data = heappop(direction.held)
            direction.cost -= len(data) + HELD_COST
            self._cost -= len(data) + HELD_COST
            if offset + len(data) > direction.at:
                yield self._advance(direction, time, data[direction.at - offset :])

    def _advance(self, direction: _Direction, time: int | None, data: bytes) -> Piece:
        piece = Piece(direction.flow, time, direction.at, data)
        direction.at += len(data)
        direction.next = (direction.next + len(data)) % SEQUENCE
        return piece

    def _pass_hole(self, direction: _Direction, upto: int, time: int | None) -> Gap:
        size = upto - direction.at
        gap = Gap(direction.flow, time, direction.at, size)
        direction.at = upto
        direction.next = (direction.next + size) % SEQUENCE
        self.gaps += 1
        self.missing += size
        return gap

    def _give_up_hole(self, direction: _Direction) -> Iterator[StreamEvent]:
        offset, _, time, _ = direction.held[0]
        yield self._pass_hole(direction, offset, time)
        yield from self._release(direction)

    def _end(self, direction: _Direction) -> Iterator[StreamEvent]:
        if direction.ended:
            return
        while direction.held:
            yield from self._give_up_hole(direction)
        if direction.finish > direction.at:
            yield self._pass_hole(direction, direction.finish, direction.last)
        # The direction stays known, so that copies of its last segments do not look like a new stream.
        direction.ended = True
        yield End(direction.flow, direction.last)

    def _keep_limits(self, segment: Segment) -> Iterator[StreamEvent]:
        flows, pending, total = self._limits
        direction = self._directions[segment.flow]
        while direction.held and (direction.cost > pending or self._cost > total):
            yield from self._give_up_hole(direction)
        if len(self._directions) > flows:
            oldest = self._directions.pop(next(iter(self._directions)))
            yield from self._end(oldest)
