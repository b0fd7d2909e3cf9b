"""Captures in which connections may speak different dialects, or of which only some connections are wanted.

The dialect of a connection is the first in the order given of which a unit decodes. Until one does, what the connection
says is held back, up to a limit; then the first dialect is taken, and its errors are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from elea.model.errors import DecodeError
from elea.model.limits import CAPTURE_HELD_BYTES, CAPTURE_HELD_TOTAL, TCP_FLOWS
from elea.wire.dialect import Dialect
from elea.wire.pcap import (
    Datagram,
    End,
    Flow,
    PacketCounters,
    Piece,
    Readable,
    Reassembler,
    Segment,
    Start,
    StreamEvent,
    parse_packet,
    read_capture,
)
from elea.wire.traffic import CapturedUnit, Ports, Traffic

__all__ = ["Detected", "MixedTraffic", "connection_of"]

GUESSES: Final = 16
"""Pieces of a connection after which its dialect is no longer looked for."""


class Detected(NamedTuple):
    """A unit, the packet that completed it (from 1), and what it travelled in."""

    packet: int
    transport: str
    dialect: Dialect
    found: CapturedUnit


def connection_of(flow: Flow) -> Flow:
    """The same for both directions."""
    return min(flow, flow.reverse())


@dataclass(slots=True)
class _Connection:
    """A TCP connection: the traffic that reads it, once its dialect is known, and what is held until then."""

    traffic: Traffic | None = None
    live: set[Flow] = field(default_factory=set)
    held: list[tuple[int, StreamEvent]] = field(default_factory=list)
    cost: int = 0
    pieces: int = 0


class MixedTraffic:
    """Finds the units of several dialects in a capture; only of the connections that `keep` wants.

    `keep` is asked with `connection_of(flow)`.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        ports: Ports | None = None,
        keep: Callable[[Flow], bool] | None = None,
    ) -> None:
        self.counters = PacketCounters()
        self.streams = Reassembler()
        self.passed_over = 0
        self._ports = ports or Ports()
        self._keep = keep
        self._traffics = [Traffic(dialect, self._ports) for dialect in dialects]
        self._connections: dict[Flow, _Connection] = {}
        self._datagrams: dict[Flow, Traffic] = {}
        self._held = 0

    def units(self, capture: Readable) -> Iterator[Detected]:
        """Every unit of a capture, each connection in its order.

        Raises:
            DecodeError: the capture itself is damaged; its dialect is "pcap". What it held until then is told first.
        """
        damage: DecodeError | None = None
        try:
            for packet in read_capture(capture):
                found = parse_packet(packet, self.counters)
                if isinstance(found, Datagram):
                    yield from self._datagram(found)
                elif found is not None:
                    yield from self._segment(found)
        except DecodeError as error:
            damage = error
        for event in self.streams.finish():
            yield from self._stream(event)
        if damage is not None:
            raise damage

    def _wanted(self, flow: Flow) -> bool:
        return self._keep is None or self._keep(connection_of(flow))

    # -- datagrams -----------------------------------------------------------------------------------------------------

    def _datagram(self, datagram: Datagram) -> Iterator[Detected]:
        flow = datagram.flow
        if not self._wanted(flow):
            for traffic in self._traffics:
                traffic.datagram_unit(flow)  # The answer to a scout may be wanted where the scout is not.
            return
        known = self._datagrams.get(connection_of(flow))
        traffic = known or self._fitting(datagram) or self._traffics[0]
        for found in traffic.datagram(datagram):
            yield Detected(self.counters.packets, "udp", traffic.dialect, found)
        self.passed_over += sum(each.passed_over for each in self._traffics)
        for each in self._traffics:
            each.passed_over = 0

    def _fitting(self, datagram: Datagram) -> Traffic | None:
        if datagram.missing or not datagram.data:
            return None
        for traffic in self._traffics:
            if _decodes(traffic.dialect, traffic.datagram_unit(datagram.flow), datagram.data):
                self._datagrams[connection_of(datagram.flow)] = traffic
                if len(self._datagrams) > TCP_FLOWS:
                    del self._datagrams[next(iter(self._datagrams))]
                return traffic
        return None

    # -- streams -------------------------------------------------------------------------------------------------------

    def _segment(self, segment: Segment) -> Iterator[Detected]:
        if self._ports.speaks(segment.flow) and self._wanted(segment.flow):
            for event in self.streams.feed(segment):
                yield from self._stream(event)

    def _stream(self, event: StreamEvent) -> Iterator[Detected]:
        name = connection_of(event.flow)
        connection = self._connections.setdefault(name, _Connection())
        if isinstance(event, Start):
            connection.live.add(event.flow)
        elif isinstance(event, End):
            connection.live.discard(event.flow)
        if connection.traffic is not None:
            yield from self._units(connection.traffic, self.counters.packets, event)
        else:
            self._hold(connection, event)
            chosen = self._choice(connection, event)
            if chosen is not None:
                connection.traffic = chosen
                yield from self._release(connection)
        if not connection.live:
            del self._connections[name]

    def _units(self, traffic: Traffic, packet: int, event: StreamEvent) -> Iterator[Detected]:
        for found in traffic.stream(event):
            yield Detected(packet, "tcp", traffic.dialect, found)

    def _hold(self, connection: _Connection, event: StreamEvent) -> None:
        connection.held.append((self.counters.packets, event))
        if isinstance(event, Piece):
            connection.pieces += 1
            connection.cost += len(event.data)
            self._held += len(event.data)

    def _choice(self, connection: _Connection, event: StreamEvent) -> Traffic | None:
        """Who reads the connection; None while that is open."""
        if len(self._traffics) == 1:
            return self._traffics[0]
        if isinstance(event, Piece):
            for traffic in self._traffics:
                if self._fits(traffic, connection.held):
                    return traffic
        over = connection.cost > CAPTURE_HELD_BYTES or connection.pieces >= GUESSES or self._held > CAPTURE_HELD_TOTAL
        return self._traffics[0] if over or not connection.live else None

    def _fits(self, traffic: Traffic, held: list[tuple[int, StreamEvent]]) -> bool:
        trial = Traffic(traffic.dialect, self._ports)
        units = (found for _, event in held for found in trial.stream(event))
        return any(found.error is None and _decodes(trial.dialect, found.unit, found.data) for found in units)

    def _release(self, connection: _Connection) -> Iterator[Detected]:
        held, connection.held = connection.held, []
        self._held -= connection.cost
        connection.cost = 0
        traffic = connection.traffic
        assert traffic is not None
        for packet, event in held:
            yield from self._units(traffic, packet, event)


def _decodes(dialect: Dialect, unit: str, data: bytes) -> bool:
    try:
        dialect.decode(unit, data)
    except DecodeError:
        return False
    return bool(data)
