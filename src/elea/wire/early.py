"""Packets and streams of the early dialects, on top of their generated codecs.

A packet is a row of messages, each with its markers in front; a stream is packets with their sizes, and after a
size of 0 bare messages for ever. Spec: Z18-FRM, Z18-MRK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, NamedTuple

from elea.model.errors import (
    DecodeError,
    EncodeError,
    FrameTooLarge,
    MarkerOrder,
    MarkerTarget,
    Oversize,
    Truncated,
)
from elea.model.limits import MAX_PACKET, RESCAN_BYTES
from elea.wire.primitives import read_nat, write_nat
from elea.wire.values import message

__all__ = ["Codec", "Decorated", "Packet", "PacketStream", "Stream", "decode_stream", "encode_stream"]

STREAM_DATA: Final = 7
WRITE_DATA: Final = 9
CONDUIT, FRAG, RSPACE = 19, 18, 24
KIND: Final = 0x1F

FRAGMENTS: Final = frozenset({STREAM_DATA, WRITE_DATA})
"""What Frag may decorate (Z18-MRK-04)."""

SPACED: Final = frozenset({6, STREAM_DATA, 8, WRITE_DATA, 11, 20})
"""What RSpace may decorate: Declare, the data messages, Pull, Migrate."""


@message
class Decorated(NamedTuple):
    """A message with the markers in front of it, in their order: Conduit, Frag, RSpace."""

    message: Any
    markers: tuple[Any, ...] = ()


@message
class Packet(NamedTuple):
    """What travels as one datagram, or between two sizes of a stream."""

    messages: tuple[Decorated, ...]


@message
class Stream(NamedTuple):
    """A whole stream: sized packets, and what came after a size of 0."""

    packets: tuple[Packet, ...]
    unbounded: Packet | None = None


@dataclass(frozen=True, slots=True)
class Codec:
    """The generated functions of one early dialect, and which headers are markers, by rank."""

    dialect: str
    read_message: Callable[[bytes, int], tuple[Any, int]]
    write_message: Callable[[bytearray, Any], None]
    markers: dict[int, int]
    assigned: frozenset[int]

    @classmethod
    def of(cls, functions: ModuleType) -> Codec:
        """The codec made of a generated module."""
        readers: dict[int, object] = functions._READ_MESSAGE
        ranks = [kind for kind in (CONDUIT, FRAG, RSPACE) if kind in readers]
        return cls(
            functions.DIALECT,
            functions.read_message,
            functions.write_message,
            {kind: rank for rank, kind in enumerate(ranks, 1)},
            frozenset(readers),
        )

    def read_decorated(self, buf: bytes, at: int) -> tuple[Decorated, int]:
        """A message with its markers, and the offset behind it."""
        kind = buf[at] & KIND
        if kind not in self.markers:
            found, at = self.read_message(buf, at)
            return Decorated(found), at
        rank = seen = 0
        markers: list[Any] = []
        while kind in self.markers:
            if self.markers[kind] <= rank:
                raise MarkerOrder(self.dialect, at, "marker repeated or out of the order Conduit, Frag, RSpace")
            rank = self.markers[kind]
            seen |= 1 << kind
            marker, at = self.read_message(buf, at)
            markers.append(marker)
            kind = buf[at] & KIND
        # An unknown or reserved id is the fault to report, before a marker that does not fit it.
        if kind in self.assigned:
            if seen & 1 << FRAG and kind not in FRAGMENTS:
                raise MarkerTarget(self.dialect, at, f"message {kind} cannot be a fragment")
            if seen & 1 << RSPACE and kind not in SPACED:
                raise MarkerTarget(self.dialect, at, f"message {kind} has no resource space")
        found, at = self.read_message(buf, at)
        return Decorated(found, tuple(markers)), at

    def messages(self, buf: bytes) -> Iterator[Decorated]:
        """The messages of a packet; those before an error come out before it is raised (Z18-FRM-07)."""
        at = 0
        while at < len(buf):
            try:
                found, at = self.read_decorated(buf, at)
            except IndexError:
                raise Truncated(self.dialect, len(buf)) from None
            yield found

    def decode_packet(self, buf: bytes) -> Packet:
        return Packet(tuple(self.messages(buf)))

    def encode_packet(self, packet: Packet) -> bytes:
        out = bytearray()
        for decorated in packet.messages:
            for marker in decorated.markers:
                self.write_message(out, marker)
            self.write_message(out, decorated.message)
        return bytes(out)


class PacketStream:
    """Cuts a stream of one direction into packets, however it is split on the way.

    `feed` returns the packets that became complete; after a size of 0 each is the messages that did.
    """

    def __init__(self, codec: Codec, limit: int = MAX_PACKET) -> None:
        self.codec = codec
        self.limit = limit
        self.unbounded = False
        self.sized = 0  # packets that had a size
        self.consumed = 0  # octets of the stream that are done with
        self._pending = bytearray()
        self._scanned = 0
        self._held: DecodeError | None = None

    def feed(self, data: bytes) -> list[Packet]:
        """Take more octets and return what they complete.

        Raises:
            DecodeError: at the first octet that cannot be, with its offset in the stream. What came before it in the
                same call is returned first: then the next call raises, whatever the split.
        """
        self._raise_held()
        self._pending += data
        packets: list[Packet] = []
        try:
            while not self.unbounded:
                packet = self._next_packet()
                if packet is None:
                    return packets
                if not self.unbounded:
                    packets.append(packet)
                    self.sized += 1
            self._loose_messages(packets)
        except DecodeError as error:
            self._held = error.moved(self.consumed)
            if not packets:
                self._raise_held()
        return packets

    def _raise_held(self) -> None:
        if self._held is not None:
            raise self._held

    def close(self) -> None:
        """The stream has ended: raises Truncated if it did so inside a packet."""
        self._raise_held()
        if self._pending:
            raise Truncated(self.codec.dialect, self.consumed + len(self._pending))

    def _next_packet(self) -> Packet | None:
        head = bytes(self._pending[:10])
        try:
            size, start = read_nat(head, 0, self.codec.dialect)
        except IndexError:
            return None
        if size > self.limit:
            raise FrameTooLarge(self.codec.dialect, 0, "frame", size, self.limit)
        if size == 0:
            self.unbounded = True
            self._drop(start)
            return Packet(())
        if len(self._pending) < start + size:
            return None
        body = bytes(self._pending[start : start + size])
        try:
            packet = self.codec.decode_packet(body)
        except DecodeError as error:
            raise error.moved(start) from None
        self._drop(start + size)
        return packet

    def _loose_messages(self, packets: list[Packet]) -> None:
        """Add the messages of an unbounded stream that are complete, as one packet."""
        buf = bytes(self._pending)
        at = 0
        found: list[Decorated] = []
        try:
            while at < len(buf):
                try:
                    decorated, end = self.codec.read_decorated(buf, at)
                except (IndexError, Truncated):
                    break  # in an unbounded stream that means wait (Z18-FRM-06)
                if end - at > self.limit:
                    raise FrameTooLarge(self.codec.dialect, at, "message", end - at, self.limit)
                found.append(decorated)
                at = end
                self._scanned = 0
        except DecodeError as error:
            raise error.moved(-at) from None
        finally:
            if found:
                packets.append(Packet(tuple(found)))
            self._drop(at)
        self._bound_pending(len(buf) - at)

    def _bound_pending(self, size: int) -> None:
        if size > self.limit:
            raise FrameTooLarge(self.codec.dialect, 0, "message", size, self.limit)
        self._scanned += size
        if self._scanned > RESCAN_BYTES:
            raise Oversize(self.codec.dialect, 0, "rescan of a message sent in crumbs", self._scanned, RESCAN_BYTES)

    def _drop(self, size: int) -> None:
        del self._pending[:size]
        self.consumed += size


def decode_stream(codec: Codec, data: bytes, limit: int = MAX_PACKET) -> Stream:
    """A whole stream at once."""
    reader = PacketStream(codec, limit)
    packets = reader.feed(data)
    reader.close()
    if not reader.unbounded:
        return Stream(tuple(packets))
    return Stream(tuple(packets[: reader.sized]), Packet(sum((p.messages for p in packets[reader.sized :]), ())))


def _sized(codec: Codec, packet: Packet) -> bytes:
    body = codec.encode_packet(packet)
    if not body:
        raise EncodeError("packet", "a packet has at least one message")
    out = bytearray()
    write_nat(out, len(body), "size")
    return bytes(out) + body


def encode_stream(codec: Codec, stream: Stream) -> bytes:
    """Packets with their sizes; an unbounded part after a size of 0."""
    out = b"".join(_sized(codec, packet) for packet in stream.packets)
    if stream.unbounded is not None:
        out += b"\0" + codec.encode_packet(stream.unbounded)
    return out
