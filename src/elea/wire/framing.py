"""Cuts one direction of a captured connection into units, as the receiver of that direction would.

`zenoh1`: a 16-bit length before each batch; after a handshake that agreed on it, batches with a compression
header, or single messages after a 32-bit length. Early dialects: packets after a variable-length size, or
bare messages after a size of 0.

Unlike a receiver, a capture may begin in the middle or have holes. A direction is then *lost*: each captured
segment is searched for a boundary, which is mostly at its start, until one holds a whole unit that decodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from elea.model.errors import DecodeError, FrameTooLarge, Malformed, NaturalOverflow, Oversize, Truncated
from elea.model.limits import MAX_BATCH, MAX_PACKET
from elea.wire.dialect import Dialect

__all__ = ["Direction", "EarlyDirection", "Handshake", "Zenoh1Direction"]

Framed = Iterator[tuple[str, bytes] | DecodeError]

OAM: Final = 0
INIT: Final = 1
OPEN: Final = 2
CLOSE: Final = 3
MESSAGE_ID: Final = 0x1F

PREFIX_SIZE: Final = {"batch": 2, "compressed": 2, "lowlatency": 4}

VLE_OCTETS: Final = 10

CANDIDATES: Final = 32
"""Boundaries tried in one segment; lengths that lead to its end by chance are rare."""


@dataclass(slots=True)
class Handshake:
    """What the two INIT messages of a connection said; shared by its directions."""

    offered: frozenset[str] | None = None
    answered: frozenset[str] | None = None

    def agreed(self) -> str:
        """The framing after OPEN. The answer holds only what both want; the offer is asked to be sure."""
        both = self.answered or frozenset()
        if self.offered is not None:
            both &= self.offered
        if "lowlatency" in both:
            return "lowlatency"
        return "compressed" if "compression" in both else "batch"


class Direction(ABC):
    """One direction of a connection; gives (unit, octets), or an error with its place in the stream."""

    def __init__(self, dialect: Dialect, whole: bool) -> None:
        self.dialect = dialect
        self._buffer = bytearray()
        self._at = 0
        """Where in the stream the buffer starts."""
        self._lost = not whole
        self._passed_over = 0

    def feed(self, data: bytes) -> Framed:
        """The units completed by `data`, the next octets of the direction."""
        if self._lost:
            start = self._boundary(data)
            self._pass_over(start)
            if start == len(data):
                return
            yield from self._found_again()
            data = data[start:]
        self._buffer += data
        while not self._lost:
            try:
                framed = self._next()
            except DecodeError as error:
                yield error.moved(self._at)
                yield from self.lose()
                return
            if framed is None:
                return
            yield framed

    def lose(self, gap: int = 0) -> Framed:
        """The boundaries are lost, after `gap` octets that were not captured; what was begun is dropped."""
        self._lost = True
        self._pass_over(len(self._buffer))
        self._buffer.clear()
        self._at += gap
        return iter(())

    def end(self) -> Framed:
        """The direction has ended."""
        if self._buffer:
            yield Truncated(self.dialect.name, self._at + len(self._buffer))
        yield from self._found_again()

    def _pass_over(self, size: int) -> None:
        self._passed_over += size
        self._at += size

    def _found_again(self) -> Framed:
        self._lost = False
        if self._passed_over:
            problem = f"{self._passed_over} octets passed over in search of the start of a unit"
            yield Malformed(self.dialect.name, self._at, problem)
        self._passed_over = 0

    @abstractmethod
    def _next(self) -> tuple[str, bytes] | None:
        """Takes the next unit from the buffer, None while it is incomplete."""

    @abstractmethod
    def _boundary(self, data: bytes) -> int:
        """Where in `data`, the octets of one segment, a unit starts; its length if nowhere."""

    def _take(self, start: int, size: int) -> bytes | None:
        if len(self._buffer) < start + size:
            return None
        data = bytes(self._buffer[start : start + size])
        self._drop(start + size)
        return data

    def _drop(self, size: int) -> None:
        del self._buffer[:size]
        self._at += size

    def _decodes(self, unit: str, data: bytes) -> bool:
        try:
            self.dialect.decode(unit, data)
        except DecodeError:
            return False
        return True


class Zenoh1Direction(Direction):
    """Batches after a 16-bit length, until the handshake says otherwise."""

    def __init__(self, dialect: Dialect, whole: bool, handshake: Handshake) -> None:
        super().__init__(dialect, whole)
        self._handshake = handshake
        self._framing = "batch"
        # Whether the framing is known; a capture from the middle has to guess it.
        self._known = whole

    def _next(self) -> tuple[str, bytes] | None:
        prefix = PREFIX_SIZE[self._framing]
        if len(self._buffer) < prefix:
            return None
        if prefix == 4 and self._buffer[:2] == b"\2\0" and self._buffer[2] & MESSAGE_ID == CLOSE:
            # eclipse-zenoh ends a low-latency session with a CLOSE behind a 16-bit length. As a 32-bit length
            # these octets would be far above the limit, so there is no doubt.
            self._framing, prefix = "batch", 2
        size = int.from_bytes(self._buffer[:prefix], "little")
        if size > MAX_BATCH:
            raise Oversize(self.dialect.name, 0, "batch", size, MAX_BATCH)
        data = self._take(prefix, size)
        if data is None:
            return None
        framed = self._framing, data
        if data:
            self._watch(data)
        return framed

    def _watch(self, data: bytes) -> None:
        """Changes the framing where the protocol does."""
        kind = data[0] & MESSAGE_ID
        if self._framing == "batch" and kind == INIT:
            self._watch_init(data)
        elif self._framing == "batch" and kind == OPEN:
            self._framing, self._known = self._handshake.agreed(), True

    def _watch_init(self, data: bytes) -> None:
        try:
            form = self.dialect.to_json("batch", self.dialect.decode("batch", data))
        except DecodeError:
            return  # It is an error where it is shown; here it just agrees on nothing.
        # A handshake message is alone in its batch; a list of messages agrees on nothing either.
        members = form if isinstance(form, dict) else {}
        extensions = members.get("ext")
        names = frozenset(extensions) if isinstance(extensions, dict) else frozenset()
        if members.get("_") == "INIT_ACK":
            self._handshake.answered = names
        else:
            self._handshake.offered, self._handshake.answered = names, None

    def _boundary(self, data: bytes) -> int:
        framings = (self._framing,) if self._known else tuple(PREFIX_SIZE)
        for framing in framings:
            for start in _chain_starts(data, PREFIX_SIZE[framing]):
                if self._plausible(framing, data, start):
                    self._framing, self._known = framing, True
                    return start
        return len(data)

    def _plausible(self, framing: str, data: bytes, start: int) -> bool:
        """Whether a whole unit that decodes is at `start`."""
        begin = start + PREFIX_SIZE[framing]
        size = int.from_bytes(data[start:begin], "little")
        unit = data[begin : begin + size]
        if not 0 < size <= MAX_BATCH or len(unit) < size:
            return False
        # A batch that starts with 0 is more likely one with a compression header than an OAM message.
        unlikely = framing == "batch" and not self._known and unit[0] & MESSAGE_ID == OAM
        return not unlikely and self._decodes(framing, unit)


def _chain_starts(data: bytes, prefix: int) -> list[int]:
    """Places where a unit may start: the first octet, and each from which lengths lead to the very end.

    Senders write whole units, so the end of a segment is mostly the end of one. Found from the end on, in one
    pass; only the first few are worth the price of decoding.
    """
    leads = bytearray(len(data) + 1)
    leads[len(data)] = 1
    for at in range(len(data) - prefix - 1, 0, -1):
        size = data[at] | data[at + 1] << 8
        end = at + prefix + size
        if size and end <= len(data) and leads[end] and (prefix == 2 or not (data[at + 2] or data[at + 3])):
            leads[at] = 1
    starts = [at for at in range(1, len(data)) if leads[at]]
    return [0, *starts[:CANDIDATES]]


class EarlyDirection(Direction):
    """Packets after a variable-length size (Z18-FRM-02); after a size of 0, bare messages (Z18-FRM-03)."""

    def __init__(self, dialect: Dialect, whole: bool) -> None:
        super().__init__(dialect, whole)
        self._unbounded = False
        self._wait_for = 0

    def end(self) -> Framed:
        if self._unbounded and self._buffer and self._decodes("packet", bytes(self._buffer)):
            yield "packet", bytes(self._buffer)
            self._drop(len(self._buffer))
        yield from super().end()

    def _next(self) -> tuple[str, bytes] | None:
        if self._unbounded:
            return self._next_bare()
        prefix = _read_size(self._buffer, self.dialect.name)
        if prefix is None:
            return None
        size, start = prefix
        if size > MAX_PACKET:
            raise FrameTooLarge(self.dialect.name, 0, "packet", size, MAX_PACKET)
        if size == 0:
            self._drop(start)
            self._unbounded = True
            return self._next_bare()
        data = self._take(start, size)
        return None if data is None else ("packet", data)

    def _next_bare(self) -> tuple[str, bytes] | None:
        """All bare messages in the buffer as one packet, once the last of them is complete."""
        if not self._buffer or len(self._buffer) < self._wait_for:
            return None
        data = bytes(self._buffer)
        try:
            self.dialect.decode("packet", data)
        except Truncated as error:
            if len(data) > MAX_PACKET:
                raise Oversize(self.dialect.name, 0, "message", len(data), MAX_PACKET) from error
            # At least what is known to be missing, and so much that one-octet segments do not cost a square.
            self._wait_for = len(data) + max(1, error.need - error.have, len(data) // 64)
            return None
        except DecodeError:
            # Given out all the same, to be shown with its error; what follows has no known start.
            self._lost = True
        self._wait_for = 0
        self._drop(len(data))
        return "packet", data

    def _boundary(self, data: bytes) -> int:
        return 0 if self._plausible(data) else len(data)

    def _plausible(self, data: bytes) -> bool:
        if self._unbounded:
            return self._decodes("packet", data)
        try:
            prefix = _read_size(data, self.dialect.name)
        except DecodeError:
            return False
        if prefix is None or not 0 < prefix[0] <= MAX_PACKET:
            return False
        size, start = prefix
        return len(data) >= start + size and self._decodes("packet", data[start : start + size])


def _read_size(data: bytes | bytearray, dialect: str) -> tuple[int, int] | None:
    """The size before a packet and how many octets it takes; None while it is incomplete."""
    value = 0
    for i, octet in enumerate(data[:VLE_OCTETS]):
        value |= (octet & 0x7F) << 7 * i
        if octet < 0x80:
            return value, i + 1
    if len(data) < VLE_OCTETS:
        return None
    raise NaturalOverflow(dialect, 0, "packet size of more than 64 bits")
