"""Packets of the early dialects on links: a datagram each, or behind their sizes in a stream. Spec: zenoh-2018 §5.2."""

from __future__ import annotations

from collections.abc import Iterable

from elea.io.batchreader import BatchReader
from elea.io.link import Link
from elea.model.errors import FrameTooLarge, NaturalOverflow, Oversize, Truncated
from elea.model.limits import RESCAN_BYTES
from elea.protocol.early.generation import Generation
from elea.protocol.early.numbered import vle
from elea.wire.primitives import read_nat

__all__ = ["PacketReader", "sized"]


def sized(packets: Iterable[bytes], streamed: bool) -> list[bytes]:
    """Packets as a link takes them."""
    return [vle(len(packet)) + packet for packet in packets] if streamed else list(packets)


def padded_nat(buf: bytes, at: int, dialect: str) -> tuple[int, int]:
    """A natural that may have needless bytes, and the offset behind it.

    >>> padded_nat(bytes.fromhex("8200"), 0, "zenoh2018")
    (2, 2)
    """
    value = 0
    for shift in range(0, 64, 7):
        value |= (buf[at] & 0x7F) << shift
        at += 1
        if buf[at - 1] < 128:
            return value, at
    raise NaturalOverflow(dialect, at - 1, "number above 64 bits")


class PacketReader(BatchReader):
    """Cuts packets off what a link brings; behind a size of 0 whole messages, for ever (Z18-FRM-03)."""

    def __init__(self, link: Link, generation: Generation, limit: int) -> None:
        super().__init__(link)
        self.limit = limit
        self.unbounded = False
        self.is_lenient = False
        """Whether sizes may be padded."""
        self._generation = generation
        self._streamed_here = link.streamed
        self._scanned = 0

    def cut(self) -> bytes | memoryview | None:
        """The next packet that is complete.

        Raises:
            FrameTooLarge: the other node announced more than the limit.
        """
        dialect = self._generation.name
        if not self._streamed_here:
            packet = super().cut()
            if packet is not None and len(packet) > self.limit:
                raise FrameTooLarge(dialect, 0, "datagram", len(packet), self.limit)
            return packet
        if self.unbounded:
            return self._messages()
        waiting = self.waiting
        try:
            size, start = (padded_nat if self.is_lenient else read_nat)(bytes(waiting[:10]), 0, dialect)
        except IndexError:
            return None
        if not size:
            self.unbounded = True
            self.pass_over(start)
            return self._messages()
        if size > self.limit:
            raise FrameTooLarge(dialect, 0, "frame", size, self.limit)
        if len(waiting) < start + size:
            return None
        packet = bytes(waiting[start : start + size])
        self.pass_over(start + size)
        return packet

    def _messages(self) -> bytes | None:
        """What is complete of an unbounded stream."""
        octets = bytes(self.waiting[: self.limit + 1])
        codec = self._generation.codec
        at = 0
        while at < len(octets):
            try:
                _, at = codec.read_decorated(octets, at)
            except (IndexError, Truncated):
                break
            self._scanned = 0
        if at:
            self.pass_over(at)
            return octets[:at]
        if len(octets) > self.limit:
            raise FrameTooLarge(codec.dialect, 0, "message", len(octets), self.limit)
        self._scanned += len(octets)
        if self._scanned > RESCAN_BYTES:
            raise Oversize(codec.dialect, 0, "rescan of a message sent in crumbs", self._scanned, RESCAN_BYTES)
        return None
