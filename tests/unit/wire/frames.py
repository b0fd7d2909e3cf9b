"""Builds captures for tests: Ethernet, IP, TCP and UDP around given octets, in pcap and pcapng files."""

from __future__ import annotations

import struct
from ipaddress import ip_address

CLIENT = "10.0.0.1"
SERVER = "10.0.0.2"
PORT = 7447

ETHERNET_HEADER = bytes(12)


def udp(data: bytes, *, source: int = 40000, target: int = PORT) -> bytes:
    return struct.pack("!HHHH", source, target, 8 + len(data), 0) + data


def tcp(data: bytes, *, seq: int, flags: str = "A", source: int = 40000, target: int = PORT) -> bytes:
    bits = sum({"F": 1, "S": 2, "R": 4, "A": 16}[flag] for flag in flags)
    return struct.pack("!HHIIBBHHH", source, target, seq % 2**32, 0, 5 << 4, bits, 65535, 0, 0) + data


def ipv4(payload: bytes, protocol: int, *, source: str = CLIENT, target: str = SERVER, fragment: int = 0) -> bytes:
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, fragment, 64, protocol, 0)
    return header + ip_address(source).packed + ip_address(target).packed + payload


def ipv6(payload: bytes, next_header: int, *, source: str = "fe80::1", target: str = "fe80::2") -> bytes:
    header = struct.pack("!IHBB", 6 << 28, len(payload), next_header, 64)
    return header + ip_address(source).packed + ip_address(target).packed + payload


def ethernet(packet: bytes) -> bytes:
    return ETHERNET_HEADER + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet


def segment(data: bytes, *, seq: int, flags: str = "A", reverse: bool = False, port: int = PORT) -> bytes:
    """An Ethernet frame of a connection from CLIENT to SERVER, or back."""
    if reverse:
        return ethernet(
            ipv4(tcp(data, seq=seq, flags=flags, source=port, target=40000), 6, source=SERVER, target=CLIENT)
        )
    return ethernet(ipv4(tcp(data, seq=seq, flags=flags, target=port), 6))


def datagram(data: bytes, *, source: int = 40000, target: int = PORT) -> bytes:
    return ethernet(ipv4(udp(data, source=source, target=target), 17))


def conversation(data: bytes, *, size: int, start: int = 1000) -> list[bytes]:
    """The segments of one direction: SYN, `data` in pieces of `size`, FIN."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    frames = [segment(b"", seq=start, flags="S")]
    frames += [segment(piece, seq=start + 1 + size * i) for i, piece in enumerate(pieces)]
    return [*frames, segment(b"", seq=start + 1 + len(data), flags="FA")]


def pcap(
    frames: list[bytes], *, link: int = 1, order: str = "<", nano: bool = False, time: int = 1_700_000_000
) -> bytes:
    """A pcap file; the frames are one microsecond (or nanosecond) apart."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    file = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for i, frame in enumerate(frames):
        file += struct.pack(order + "IIII", time, i, len(frame), len(frame)) + frame
    return file


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(*, link: int = 1, order: str = "<", resolution: int | None = None, offset: int = 0) -> bytes:
    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset:
        options += struct.pack(order + "HHq", 14, 8, offset)
    return block(1, struct.pack(order + "HHI", link, 0, 0) + options + bytes(4), order)


def enhanced(frame: bytes, *, ticks: int = 0, index: int = 0, order: str = "<") -> bytes:
    head = struct.pack(order + "IIIII", index, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, head + frame, order)


def pcapng(frames: list[bytes], *, link: int = 1, order: str = "<") -> bytes:
    return section(order) + interface(link=link, order=order) + b"".join(enhanced(f, order=order) for f in frames)
