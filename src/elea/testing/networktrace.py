"""What crossed which link when: the record of a simulated network, for assertions and for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from elea.model.errors import DecodeError
from elea.node.zenoh1.face import Zenoh1Face
from elea.space.face import Face
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.batch import BatchStream, decode_batch, decode_low_latency, decompress

__all__ = ["Crossing", "Fate", "Form", "Trace", "form_of"]


class Fate(Enum):
    """What became of bytes on their way."""

    ARRIVED = "arrived"
    LATE = "late"
    """Arrived, but held back so that others may have overtaken it."""
    COPY = "copy"
    """Arrived once more."""
    LOST = "lost"
    UNREAD = "unread"
    """Came to an end that had been closed."""


class Form(Enum):
    """How batches are written; the handshake agrees on one."""

    PLAIN = "plain"
    COMPRESSED = "compressed"
    LOW_LATENCY = "low latency"


def form_of(face: Face | None) -> Form:
    """How the batches of a session are written."""
    if isinstance(face, Zenoh1Face):
        if face.agreement.lowlatency:
            return Form.LOW_LATENCY
        if face.agreement.compression:
            return Form.COMPRESSED
    return Form.PLAIN


@dataclass(frozen=True)
class Crossing:
    """One write on a stream, or one datagram; `link` counts the attempts to connect two nodes."""

    sent: float
    ended: float
    source: str
    target: str
    link: int
    fate: Fate
    data: bytes
    streamed: bool
    form: Form

    @cached_property
    def batches(self) -> tuple[bytes, ...]:
        """The batches in it, without their length prefix."""
        if not self.streamed:
            return (self.data,)
        return tuple(BatchStream(4 if self.form is Form.LOW_LATENCY else 2).feed(self.data))

    @cached_property
    def messages(self) -> tuple[m.TransportMessage | m.NetworkMessage, ...]:
        """The messages in it; those of a FRAME are inside of it."""
        return tuple(message for batch in self.batches for message in _decoded(batch, self.form))

    def __str__(self) -> str:
        what = ", ".join(_told(message) for message in self.messages) or "end of the link"
        return f"{self.sent:.6f} {self.ended:.6f} {self.source} > {self.target} #{self.link} {self.fate.value}: {what}"


class Trace:
    """The crossings of a network in the order their fate was decided; the oldest are forgotten beyond a limit."""

    def __init__(self, limit: int) -> None:
        self.forgotten = 0
        self._crossings: deque[Crossing] = deque(maxlen=limit)

    def add(self, crossing: Crossing) -> None:
        self.forgotten += len(self._crossings) == self._crossings.maxlen
        self._crossings.append(crossing)

    def between(self, source: object, target: object) -> list[Crossing]:
        """Those from one node to another; nodes or their names."""
        return [each for each in self._crossings if (each.source, each.target) == (str(source), str(target))]

    def network(self) -> Iterator[tuple[Crossing, m.NetworkMessage]]:
        """The network messages in it (samples, declarations, queries), each with the crossing that carried it."""
        for crossing in self._crossings:
            for message in crossing.messages:
                for inner in message.messages if isinstance(message, m.Frame) else (message,):
                    if not isinstance(inner, m.TransportMessage):
                        yield crossing, inner

    def __len__(self) -> int:
        return len(self._crossings)

    def __iter__(self) -> Iterator[Crossing]:
        return iter(self._crossings)

    def __str__(self) -> str:
        return "\n".join(map(str, self._crossings))


def _decoded(batch: bytes, form: Form) -> tuple[m.TransportMessage | m.NetworkMessage, ...]:
    try:
        if form is Form.LOW_LATENCY:
            return decode_low_latency(batch)
        return decode_batch(decompress(batch) if form is Form.COMPRESSED else batch)
    except DecodeError:
        return ()  # what was sent could not be read by anybody; the bytes are in `data`


def _told(message: object) -> str:
    """A message for people: its name, those inside of it, and its key."""
    if isinstance(message, m.Frame):
        inside = " ".join(map(_told, message.messages))
        return f"Frame({message.sn}{'' if message.reliable else ' best effort'}: {inside})"
    if isinstance(message, m.Fragment):
        return f"Fragment({message.sn}{'+' if message.more else ''})"
    name = type(message).__name__
    if isinstance(message, m.Init | m.Open):
        return name + ("Ack" if message.ack else "Syn")
    body = getattr(message, "body", None)
    inner = "" if body is None else f" {type(body).__name__}"
    key = _key(message) or _key(body)
    return f"{name}{inner}{f' {key}' if key else ''}"


def _key(message: object) -> str:
    options = getattr(message, "options", None)
    expr = getattr(options or message, "wire_expr", None)
    if expr is None:
        return getattr(message, "suffix", None) or ""
    number = f"<{expr.scope}>" if expr.scope else ""
    return f"{number}{expr.suffix or ''}"
