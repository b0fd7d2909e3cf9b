"""Recorded traffic: capture files to packets, packets to datagrams and TCP streams.

Three steps, each usable alone: `read_capture` (pcap and pcapng files), `parse_packet` (link, IP, UDP and TCP
headers), `Reassembler` (TCP segments to streams). Nothing here knows Zenoh, and nothing opens a file:
the caller passes an object with `read`.
"""

from elea.wire.pcap.capture import Captured, Readable, looks_like_capture, read_capture
from elea.wire.pcap.packet import Datagram, Flow, PacketCounters, Segment, parse_packet
from elea.wire.pcap.tcpstream import End, Gap, Piece, Reassembler, Start, StreamEvent

__all__ = [
    "Captured",
    "Datagram",
    "End",
    "Flow",
    "Gap",
    "PacketCounters",
    "Piece",
    "Readable",
    "Reassembler",
    "Segment",
    "Start",
    "StreamEvent",
    "looks_like_capture",
    "parse_packet",
    "read_capture",
]
