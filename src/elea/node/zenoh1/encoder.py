"""Samples to neighbours that speak Zenoh 1.x: the ways of keys, and puts of this process over them.

A key has one number on all links of the node, so one encoded run serves every neighbour of a way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from elea.io.linkerrors import LinkClosed, worse
from elea.io.outbox import Outbox
from elea.model.limits import MAX_HEADERS
from elea.node.zenoh1.fanout import Fanout, Zenoh1Way
from elea.node.zenoh1.pushes import Numbers, OutgoingKey
from elea.space.way import Collector, Encoder, Publication, Way

if TYPE_CHECKING:
    from elea.io.loop import Loop
    from elea.model.errors import EleaError
    from elea.node.stamper import Stamper
    from elea.node.zenoh1.face import Zenoh1Face
    from elea.space.face import Face

__all__ = ["Zenoh1Encoder"]

LEAST_ROOM: Final = 1_024
"""Bytes a batch must have for rows to be written to it many at a time."""

TOGETHER: Final = 1 << 18
"""Bytes of frames written together: each write costs a system call, and mostly wakes the other end."""


class Zenoh1Encoder(Encoder):
    """The encoder of all 1.x faces of a node."""

    def __init__(self, loop: Loop, stamper: Stamper | None) -> None:
        self._loop = loop
        self._stamper = stamper
        self._numbers = Numbers()

    def way(self, key: str, faces: tuple[Face, ...], declared: bool) -> Way:
        neighbours = cast("tuple[Zenoh1Face, ...]", faces)
        # A link that loses messages may lose the one that says what a number means, so the key itself goes there.
        number = 0
        if declared and all(face.takes_number(key) for face in neighbours):
            number = self._numbers.number(key)
        for face in neighbours:
            face.tell(number, key)
        return PutWay(key, neighbours, self, OutgoingKey(key, number))

    def collector(self, *, waits: bool = True) -> Collector:
        return Fanout(self._loop, self._stamper, waits)


class PutWay(Zenoh1Way):
    """A way with what puts of this process need."""

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        parts = (self.outgoing.header(meta, len(payload), qos), payload)
        size = len(parts[0]) + len(payload)
        droppable = not reliable or not qos & 8
        lost: EleaError | None = None
        for face in self.neighbours:
            try:
                if qos & 16:
                    face.outbox.put_now((qos & 7) << 1 | reliable, parts, size, droppable)
                else:
                    face.outbox.put((qos & 7) << 1 | reliable, parts, size, droppable)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return Zenoh1Publication(self.outgoing, [face.outbox for face in self.neighbours], meta, qos, reliable)

    def is_full(self, qos: int, reliable: bool) -> bool:
        for face in self.neighbours:
            outbox = face.outbox
            if outbox.error is None and outbox.is_full((qos & 7) << 1 | reliable):
                return True
        return False

    def put_columns(self, columns: Any, ways: Sequence[Way], chosen: Any, qos: int) -> bool | EleaError:
        room = min([face.room for face in self.neighbours])
        if room < LEAST_ROOM:
            return False
        heads = [way.outgoing.prefix(qos) for way in cast("Sequence[Zenoh1Way]", ways)]
        parts: list[bytes] = []
        size = count = 0
        lost: EleaError | None = None
        for piece in columns.pieces(heads, chosen, room):
            if not isinstance(piece, int):
                parts += (piece[0], b"")
                size += len(piece[0])
                count += piece[1]
                if size < TOGETHER:
                    continue
            lost = self._put_pieces(parts, size, count, qos, lost)
            parts, size, count = [], 0, 0
            if isinstance(piece, int):  # too large to be written with others
                code, meta, payload = columns.sample(piece if chosen is None else int(chosen[piece]))
                alone = cast(Zenoh1Way, ways[code]).put(meta, payload, qos, True)
                lost = worse(lost, alone)
        lost = self._put_pieces(parts, size, count, qos, lost)
        return True if lost is None else lost

    def _put_pieces(
        self, parts: list[bytes], size: int, count: int, qos: int, lost: EleaError | None
    ) -> EleaError | None:
        """Send `count` samples in pieces of a frame each."""
        for face in self.neighbours if parts else ():
            try:
                face.outbox.put((qos & 7) << 1 | 1, parts, size, False, count)
                face.joined += count - (len(parts) >> 1)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost


class Zenoh1Publication(Publication):
    """One look-up for the bytes before the payload, which depend on its size only; one append for each neighbour."""

    def __init__(
        self, outgoing: OutgoingKey, outboxes: list[Outbox], meta: bytes | None, qos: int, reliable: bool
    ) -> None:
        self._outgoing = outgoing
        self._outboxes = outboxes
        self._meta = meta
        self._qos = qos
        self._conduit = (qos & 7) << 1 | reliable
        self._droppable = not reliable or not qos & 8
        self._express = bool(qos & 16)
        self._headers: dict[int, tuple[bytes, int]] = {}

    def put(self, payload: bytes) -> EleaError | None:
        found = self._headers.get(len(payload))
        if found is None:
            found = self._remember(len(payload))
        lost: EleaError | None = None
        for outbox in self._outboxes:
            try:
                if self._express:
                    outbox.put_now(self._conduit, (found[0], payload), found[1], self._droppable)
                else:
                    outbox.put(self._conduit, (found[0], payload), found[1], self._droppable)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost

    def _remember(self, size: int) -> tuple[bytes, int]:
        header = self._outgoing.header(self._meta, size, self._qos)
        found = header, len(header) + size
        if len(self._headers) < MAX_HEADERS:
            self._headers[size] = found
        return found
