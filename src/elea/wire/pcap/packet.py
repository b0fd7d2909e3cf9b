"""The headers around UDP datagrams and TCP segments: link layer, IPv4, IPv6.

A packet that cannot be used is counted by reason and passed over, never an error: captures of real networks
are full of other traffic. IP fragments are among them, because Zenoh keeps its datagrams below the
fragmentation limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, NamedTuple

from elea.wire.pcap.capture import Captured

__all__ = ["Datagram", "Flow", "PacketCounters", "Segment", "parse_packet"]

NULL: Final = 0
ETHERNET: Final = 1
RAW_TYPES: Final = frozenset({12, 14, 101, 228, 229})
LOOP: Final = 108
COOKED: Final = 113
COOKED2: Final = 276

ETHERTYPE_IP: Final = frozenset({b"\x08\x00", b"\x86\xdd"})
ETHERTYPE_VLAN: Final = frozenset({b"\x81\x00", b"\x88\xa8", b"\x91\x00"})

TCP: Final = 6
UDP: Final = 17
FRAGMENT: Final = 44
AUTHENTICATION: Final = 51
# Hop-by-hop, routing, destination options, mobility, host identity, shim6: all start with next and length.
EXTENSIONS: Final = frozenset({0, 43, 60, 135, 139, 140})

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04


class Flow(NamedTuple):
    """One direction between two endpoints; addresses are packed octets."""

    source: bytes
    source_port: int
    target: bytes
    target_port: int

    def reverse(self) -> Flow:
        """The other direction."""
        return Flow(self.target, self.target_port, self.source, self.source_port)

    @property
    def source_text(self) -> str:
        """`host:port` of the sender."""
        return _endpoint(self.source, self.source_port)

    @property
    def target_text(self) -> str:
        """`host:port` of the receiver."""
        return _endpoint(self.target, self.target_port)


class Datagram(NamedTuple):
    """One UDP datagram; `missing` octets at its end were not captured."""

    time: int | None
    flow: Flow
    data: bytes
    missing: int


class Segment(NamedTuple):
    """One TCP segment; `missing` octets at its end were not captured."""

    time: int | None
    flow: Flow
    sequence: int
    data: bytes
    missing: int = 0
    syn: bool = False
    fin: bool = False
    rst: bool = False


@dataclass(slots=True)
class PacketCounters:
    """What became of the packets of a capture."""

    packets: int = 0
    datagrams: int = 0
    segments: int = 0
    fragments: int = 0
    """IP fragments, passed over."""
    malformed: int = 0
    """Packets whose headers do not fit."""
    other: int = 0
    """Not IP, or neither UDP nor TCP, or of a link type not known here."""


def parse_packet(packet: Captured, counters: PacketCounters) -> Datagram | Segment | None:
    """The datagram or segment in a packet, or None after counting why there is none."""
    counters.packets += 1
    start = _ip_offset(packet.link_type, packet.data)
    if start is None:
        counters.other += 1
        return None
    try:
        found = _parse_ip(packet, start, counters)
    except IndexError:
        # Reading a header field past the end of the captured octets.
        counters.malformed += 1
        return None
    if isinstance(found, Datagram):
        counters.datagrams += 1
    elif isinstance(found, Segment):
        counters.segments += 1
    return found


def _endpoint(address: bytes, port: int) -> str:
    host = str(ip_address(address))
    return f"[{host}]:{port}" if len(address) == 16 else f"{host}:{port}"


def _ip_offset(link_type: int, data: bytes) -> int | None:
    """Where the IP header starts, None when the frame carries something else."""
    if link_type == ETHERNET:
        at = 12
        while data[at : at + 2] in ETHERTYPE_VLAN:
            at += 4
        return at + 2 if data[at : at + 2] in ETHERTYPE_IP else None
    if link_type == COOKED:
        return 16 if data[14:16] in ETHERTYPE_IP else None
    if link_type == COOKED2:
        return 20 if data[0:2] in ETHERTYPE_IP else None
    if link_type in (NULL, LOOP):
        # The address family differs between systems; the IP version that follows does not.
        return 4
    return 0 if link_type in RAW_TYPES else None


def _u16(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _parse_ip(packet: Captured, at: int, counters: PacketCounters) -> Datagram | Segment | None:
    version = packet.data[at] >> 4
    if version == 4:
        return _parse_ipv4(packet, at, counters)
    if version == 6:
        return _parse_ipv6(packet, at, counters)
    counters.other += 1
    return None


def _parse_ipv4(packet: Captured, at: int, counters: PacketCounters) -> Datagram | Segment | None:
    data = packet.data
    header = (data[at] & 0x0F) * 4
    total = _u16(data, at + 2)
    if _u16(data, at + 6) & 0x3FFF:  # more fragments, or an offset
        counters.fragments += 1
        return None
    if header < 20 or (total and total < header):
        counters.malformed += 1
        return None
    # Length 0 is what a capture sees of a packet that the network card will cut: all captured octets count.
    end = at + total if total else len(data)
    addresses = data[at + 12 : at + 16], data[at + 16 : at + 20]
    return _parse_payload(packet, data[at + 9], addresses, (at + header, end), counters)


def _parse_ipv6(packet: Captured, at: int, counters: PacketCounters) -> Datagram | Segment | None:
    data = packet.data
    length = _u16(data, at + 4)
    next_header = data[at + 6]
    addresses = data[at + 8 : at + 24], data[at + 24 : at + 40]
    at += 40
    end = at + length if length else len(data)
    while True:
        if next_header in EXTENSIONS:
            size = (data[at + 1] + 1) * 8
        elif next_header == AUTHENTICATION:
            size = (data[at + 1] + 2) * 4
        elif next_header == FRAGMENT:
            if _u16(data, at + 2) & 0xFFF9:
                counters.fragments += 1
                return None
            size = 8  # An "atomic" fragment is the whole packet.
        else:
            break
        next_header, at = data[at], at + size
    return _parse_payload(packet, next_header, addresses, (at, end), counters)


def _parse_payload(
    packet: Captured,
    protocol: int,
    addresses: tuple[bytes, bytes],
    span: tuple[int, int],
    counters: PacketCounters,
) -> Datagram | Segment | None:
    at, end = span
    data = packet.data
    if protocol not in (TCP, UDP):
        counters.other += 1
        return None
    flow = Flow(addresses[0], _u16(data, at), addresses[1], _u16(data, at + 2))
    if protocol == UDP:
        size = _u16(data, at + 4) or end - at  # 0: a jumbogram
        if size < 8 or at + size > end:
            counters.malformed += 1
            return None
        payload = data[at + 8 : at + size]
        return Datagram(packet.time, flow, payload, size - 8 - len(payload))
    header = (data[at + 12] >> 4) * 4
    if header < 20 or at + header > end:
        counters.malformed += 1
        return None
    sequence = _u16(data, at + 4) << 16 | _u16(data, at + 6)
    flags = data[at + 13]
    payload = data[at + header : end]
    missing = end - at - header - len(payload)
    return Segment(
        packet.time, flow, sequence, payload, missing, bool(flags & SYN), bool(flags & FIN), bool(flags & RST)
    )
