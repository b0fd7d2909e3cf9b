"""The Zenoh units in a capture: which streams and datagrams speak the dialect, and where each unit begins.

TCP streams are cut by their dialect's framing (`elea.wire.framing`). Datagrams are units as they are; of those
on other than Zenoh's ports only the ones that decode are taken: a capture of a network is full of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from elea.model.errors import DecodeError, Malformed, Truncated
from elea.model.limits import UDP_ENDPOINTS
from elea.wire.dialect import Dialect
from elea.wire.framing import Direction, EarlyDirection, Handshake, Zenoh1Direction
from elea.wire.pcap import (
    Captured,
    Datagram,
    End,
    Flow,
    PacketCounters,
    Piece,
    Readable,
    Reassembler,
    Start,
    StreamEvent,
    parse_packet,
    read_capture,
)

__all__ = ["DATA_PORT", "GAP", "CapturedUnit", "NotCaptured", "Ports", "Traffic"]

DATA_PORT: Final = 7447
SCOUTING_PORT: Final = 7446

GAP: Final = "GAP"


class NotCaptured(Malformed):
    """Octets of a stream that the capture does not hold."""

    code = GAP


class CapturedUnit(NamedTuple):
    """One unit of a dialect as it went from `flow.source` to `flow.target`, or what is there in its stead."""

    time: int | None
    flow: Flow
    unit: str
    data: bytes
    error: DecodeError | None = None


@dataclass(frozen=True, slots=True)
class Ports:
    """Which ports are Zenoh's: the usual ones unless some are `named`; `every` TCP stream if asked for."""

    named: frozenset[int] = frozenset()
    every: bool = False

    def speaks(self, flow: Flow) -> bool:
        """Whether a TCP stream is taken."""
        return self.every or bool(self._data & {flow.source_port, flow.target_port})

    def sure(self, flow: Flow) -> bool:
        """Whether a datagram is Zenoh's for sure, so that one which does not decode is an error."""
        return bool((self._data | {SCOUTING_PORT}) & {flow.source_port, flow.target_port})

    def maybe(self) -> bool:
        """Whether datagrams on other ports are tried."""
        return self.every or not self.named

    @property
    def _data(self) -> frozenset[int]:
        return self.named or frozenset({DATA_PORT})


@dataclass(slots=True)
class Traffic:
    """Finds the units of `dialect` in captures: `for unit in Traffic(dialect).units(open(path, "rb")): …`."""

    dialect: Dialect
    ports: Ports = field(default_factory=Ports)
    counters: PacketCounters = field(default_factory=PacketCounters)
    streams: Reassembler = field(default_factory=Reassembler)
    passed_over: int = 0
    """Datagrams and streams that are not Zenoh's."""
    _directions: dict[Flow, Direction] = field(default_factory=dict)
    _handshakes: dict[Flow, Handshake] = field(default_factory=dict)
    _scouts: dict[tuple[bytes, int], None] = field(default_factory=dict)

    def units(self, capture: Readable) -> Iterator[CapturedUnit]:
        """Every unit of a capture, in the order in which they were complete.

        Raises:
            DecodeError: the capture itself is damaged; its dialect is "pcap".
        """
        damage: DecodeError | None = None
        try:
            for packet in read_capture(capture):
                yield from self._packet(packet)
        except DecodeError as error:
            damage = error
        # A damaged capture ends early, but what it held until then is told first.
        for event in self.streams.finish():
            yield from self.stream(event)
        if damage is not None:
            raise damage

    def _packet(self, packet: Captured) -> Iterator[CapturedUnit]:
        found = parse_packet(packet, self.counters)
        if isinstance(found, Datagram):
            yield from self.datagram(found)
        elif found is not None and self.ports.speaks(found.flow):
            for event in self.streams.feed(found):
                yield from self.stream(event)

    # -- datagrams ------------------------------------------------------------------------------------------

    def datagram(self, datagram: Datagram) -> Iterator[CapturedUnit]:
        """The unit in a datagram, if it is Zenoh's."""
        flow, data = datagram.flow, datagram.data
        if not data and not datagram.missing:
            return  # Z18-FRM-07: an empty datagram is ignored.
        unit = self.datagram_unit(flow)
        if datagram.missing:
            if self.ports.sure(flow):
                error = Truncated(self.dialect.name, len(data), need=datagram.missing)
                yield CapturedUnit(datagram.time, flow, unit, data, error)
        elif self.ports.sure(flow) or unit == "scouting" or (self.ports.maybe() and self._decodes(unit, data)):
            yield CapturedUnit(datagram.time, flow, unit, data)
        else:
            self.passed_over += 1

    def datagram_unit(self, flow: Flow) -> str:
        """What a datagram of `flow` is. Remembers who scouts, so it must see all of them in their order."""
        if self.dialect.name != "zenoh1":
            return "packet"
        if flow.target_port == SCOUTING_PORT:
            # The answers come to this address, from ports that say nothing.
            self._scouts[flow.source, flow.source_port] = None
            if len(self._scouts) > UDP_ENDPOINTS:
                del self._scouts[next(iter(self._scouts))]
            return "scouting"
        answer = (flow.target, flow.target_port) in self._scouts
        return "scouting" if answer or flow.source_port == SCOUTING_PORT else "batch"

    def _decodes(self, unit: str, data: bytes) -> bool:
        try:
            self.dialect.decode(unit, data)
        except DecodeError:
            return False
        return True

    # -- streams --------------------------------------------------------------------------------------------

    def stream(self, event: StreamEvent) -> Iterator[CapturedUnit]:
        """The units completed by what has happened to a TCP stream."""
        flow, time = event.flow, event.time
        if isinstance(event, Start):
            self._directions[flow] = self._direction(flow, event.whole)
            return
        direction = self._directions[flow]
        if isinstance(event, Piece):
            framed = direction.feed(event.data)
        elif isinstance(event, End):
            framed = direction.end()
            self._forget(flow)
        else:
            framed = direction.lose(event.size)
            problem = f"{event.size} octets of the stream were not captured"
            yield CapturedUnit(time, flow, "stream", b"", NotCaptured(self.dialect.name, event.at, problem))
        for found in framed:
            if isinstance(found, DecodeError):
                yield CapturedUnit(time, flow, "stream", b"", found)
            else:
                yield CapturedUnit(time, flow, *found)

    def _direction(self, flow: Flow, whole: bool) -> Direction:
        if self.dialect.name != "zenoh1":
            return EarlyDirection(self.dialect, whole)
        handshake = self._handshakes.setdefault(min(flow, flow.reverse()), Handshake())
        return Zenoh1Direction(self.dialect, whole, handshake)

    def _forget(self, flow: Flow) -> None:
        del self._directions[flow]
        if flow.reverse() not in self._directions:
            self._handshakes.pop(min(flow, flow.reverse()), None)
