"""Capture files: classic pcap (micro- and nanoseconds) and pcapng, of either byte order.

Owns the file formats only; what a packet holds is `elea.wire.pcap.packet`'s business. Damage raises
`Malformed`, `Truncated` or `Oversize` with dialect "pcap" and the offset in the file; packets
before it have been given out by then.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from elea.model.errors import Malformed, Oversize, Truncated
from elea.model.limits import CAPTURE_BLOCK_BYTES, CAPTURE_INTERFACES, CAPTURE_PACKET_BYTES

__all__ = ["Captured", "Readable", "looks_like_capture", "read_capture"]

DIALECT: Final = "pcap"

# First four octets of a pcap file -> (byte order, nanoseconds per unit of the fraction).
PCAP_MAGIC: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"
ORDER_MAGIC: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}

SECTION_HEADER: Final = 0x0A0D0D0A
INTERFACE: Final = 1
OLD_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
READ_WHOLE: Final = frozenset({INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET})

OPTION_END: Final = 0
OPTION_RESOLUTION: Final = 9
OPTION_TIME_OFFSET: Final = 14

SKIP_CHUNK: Final = 65_536


class Readable(Protocol):
    """What a capture is read from: any binary file object."""

    def read(self, size: int, /) -> bytes: ...


class Captured(NamedTuple):
    """One packet as captured; `time` is in nanoseconds since 1970, None where the file has none."""

    time: int | None
    link_type: int
    data: bytes


def looks_like_capture(head: bytes) -> bool:
    """Whether a file that starts with `head` (four octets or more) is a capture."""
    return head[:4] in PCAP_MAGIC or head[:4] == PCAPNG_MAGIC


def read_capture(source: Readable) -> Iterator[Captured]:
    """The packets of a pcap or pcapng file, one at a time.

    Raises:
        Malformed, Truncated, Oversize: the file is damaged at offset `at`.
    """
    reader = _Source(source)
    magic = reader.take(4)
    if magic in PCAP_MAGIC:
        return _read_pcap(reader, *PCAP_MAGIC[magic])
    if magic == PCAPNG_MAGIC:
        return _read_pcapng(reader)
    raise Malformed(DIALECT, 0, f"magic number {magic.hex()} is of no capture format")


class _Source:
    """Exact reads with the offset kept, so that errors can say where."""

    __slots__ = ("_source", "at")

    def __init__(self, source: Readable) -> None:
        self._source = source
        self.at = 0

    def take(self, size: int) -> bytes:
        data = self.take_or_end(size)
        if data is None:
            raise Truncated(DIALECT, self.at, need=size)
        return data

    def take_or_end(self, size: int) -> bytes | None:
        """`size` octets, or None when the file ends exactly here."""
        data = self._source.read(size)
        # Pipes give short reads; only an empty one is the end.
        while len(data) < size and (more := self._source.read(size - len(data))):
            data += more
        if not data and size:
            return None
        if len(data) < size:
            raise Truncated(DIALECT, self.at + len(data), need=size - len(data))
        self.at += size
        return data

    def skip(self, size: int) -> None:
        while size > 0:
            size -= len(self.take(min(size, SKIP_CHUNK)))


# -- pcap ----------------------------------------------------------------------------------------------------


def _read_pcap(reader: _Source, order: str, unit: int) -> Iterator[Captured]:
    major, _, _, _, _, link = struct.unpack(order + "HHiIII", reader.take(20))
    if major != 2:
        raise Malformed(DIALECT, 4, f"pcap version {major} is unknown")
    link &= 0xFFFF  # The upper bits tell the length of a frame check sequence, which IP lengths make needless.
    header = struct.Struct(order + "IIII")
    while (head := reader.take_or_end(16)) is not None:
        seconds, fraction, size, _ = header.unpack(head)
        _check_packet_size(reader.at - 8, size)
        yield Captured(seconds * 1_000_000_000 + fraction * unit, link, reader.take(size))


def _check_packet_size(at: int, size: int) -> None:
    if size > CAPTURE_PACKET_BYTES:
        raise Oversize(DIALECT, at, "captured packet", size, CAPTURE_PACKET_BYTES)


# -- pcapng --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    snap_length: int
    per_second: int
    offset: int  # seconds to add

    def nanoseconds(self, ticks: int) -> int:
        return self.offset * 1_000_000_000 + ticks * 1_000_000_000 // self.per_second


def _read_pcapng(reader: _Source) -> Iterator[Captured]:
    order = _section_header(reader)
    interfaces: list[_Interface] = []
    while (head := reader.take_or_end(4)) is not None:
        if head == PCAPNG_MAGIC:
            # A new section has its own byte order and numbers its interfaces afresh.
            order, interfaces = _section_header(reader), []
            continue
        kind = struct.unpack(order + "I", head)[0]
        start = reader.at - 4
        body = _block_body(reader, order, kind)
        if kind == INTERFACE:
            interfaces.append(_interface(order, body, start, len(interfaces)))
        elif kind in READ_WHOLE:
            yield _packet(order, kind, body, interfaces, start)


def _section_header(reader: _Source) -> str:
    """Reads a section header after its type; returns the section's byte order."""
    start = reader.at - 4
    size_bytes, magic = reader.take(4), reader.take(4)
    order = ORDER_MAGIC.get(magic)
    if order is None:
        raise Malformed(DIALECT, start + 8, f"byte-order magic {magic.hex()} is unknown")
    size = int(struct.unpack(order + "I", size_bytes)[0])
    if size < 28 or size % 4:
        raise Malformed(DIALECT, start + 4, f"section header of {size} octets")
    major = int(struct.unpack(order + "H", reader.take(2))[0])
    if major != 1:
        raise Malformed(DIALECT, start + 12, f"pcapng version {major} is unknown")
    reader.skip(size - 18)
    _check_trailer(reader, order, size)
    return order


def _block_body(reader: _Source, order: str, kind: int) -> bytes:
    start = reader.at - 4
    size = int(struct.unpack(order + "I", reader.take(4))[0])
    if size < 12 or size % 4:
        raise Malformed(DIALECT, start + 4, f"block of {size} octets")
    body = b""
    if kind not in READ_WHOLE:
        reader.skip(size - 12)
    elif size > CAPTURE_BLOCK_BYTES:
        raise Oversize(DIALECT, start + 4, "block", size, CAPTURE_BLOCK_BYTES)
    else:
        body = reader.take(size - 12)
    _check_trailer(reader, order, size)
    return body


def _check_trailer(reader: _Source, order: str, size: int) -> None:
    again = int(struct.unpack(order + "I", reader.take(4))[0])
    if again != size:
        raise Malformed(DIALECT, reader.at - 4, f"block of {size} octets ends with length {again}")


def _interface(order: str, body: bytes, start: int, known: int) -> _Interface:
    if known >= CAPTURE_INTERFACES:
        raise Oversize(DIALECT, start, "number of interfaces", known + 1, CAPTURE_INTERFACES)
    if len(body) < 8:
        raise Malformed(DIALECT, start, "interface block without its fields")
    link, _, snap = struct.unpack_from(order + "HHI", body)
    per_second, offset = 1_000_000, 0
    at = 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == OPTION_END:
            break
        if code == OPTION_RESOLUTION and size == 1 and value:
            exponent = value[0] & 0x7F
            per_second = 1 << exponent if value[0] & 0x80 else int(10**exponent)
        elif code == OPTION_TIME_OFFSET and len(value) == 8:
            offset = int(struct.unpack(order + "q", value)[0])
        at += 4 + (size + 3 & ~3)
    return _Interface(link, snap, per_second, offset)


def _packet(order: str, kind: int, body: bytes, interfaces: list[_Interface], start: int) -> Captured:
    index, ticks, size, at = _packet_fields(order, kind, body, start)
    if index >= len(interfaces):
        raise Malformed(DIALECT, start + 8, f"packet of interface {index}, of which there is no description")
    interface = interfaces[index]
    if kind == SIMPLE_PACKET:
        # It has no captured length of its own: the original one, cut at the snap length.
        size = min(size, interface.snap_length or size, len(body) - at)
    _check_packet_size(start, size)
    if at + size > len(body):
        raise Malformed(DIALECT, start, f"packet of {size} octets in a block that holds {len(body) - at}")
    time = None if ticks is None else interface.nanoseconds(ticks)
    return Captured(time, interface.link_type, body[at : at + size])


def _packet_fields(order: str, kind: int, body: bytes, start: int) -> tuple[int, int | None, int, int]:
    """Interface number, time stamp, captured size and where the octets begin."""
    layout = {ENHANCED_PACKET: "IIIII", OLD_PACKET: "HHIIII", SIMPLE_PACKET: "I"}[kind]
    if len(body) < struct.calcsize(order + layout):
        raise Malformed(DIALECT, start, "packet block without its fields")
    fields = struct.unpack_from(order + layout, body)
    if kind == SIMPLE_PACKET:
        return 0, None, fields[0], 4
    index, high, low, size = fields[0], fields[-4], fields[-3], fields[-2]
    return index, high << 32 | low, size, 20
