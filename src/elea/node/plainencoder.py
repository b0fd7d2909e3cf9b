"""An encoder for dialects whose messages depend on the sample only: written once, the same for every neighbour."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from elea.io.linkerrors import LinkClosed, worse
from elea.space.way import Collector, Encoder, Publication, Way

if TYPE_CHECKING:
    from elea.model.errors import EleaError
    from elea.node.outboxface import OutboxFace
    from elea.space.face import Face
    from elea.wire.details import RawSample

__all__ = ["PlainEncoder", "PlainWay"]


class PlainEncoder(Encoder):
    """The encoder of faces that are `OutboxFace`s.

    Args:
        encode: the message of a sample: its key, packed details (`elea.wire.details`), payload and quality of service.
    """

    def __init__(self, encode: Callable[[str, bytes | None, bytes, int], bytes]) -> None:
        self.encode = encode

    def way(self, key: str, faces: tuple[Face, ...], declared: bool) -> Way:
        return PlainWay(key, faces, self)

    def collector(self, *, waits: bool = True) -> Collector:
        return _PlainCollector(waits)


class PlainWay(Way):
    """Samples of one key to some faces, encoded one by one."""

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        message = cast(PlainEncoder, self.encoder).encode(self.key, meta, payload, qos)
        lost: EleaError | None = None
        for face in cast("tuple[OutboxFace, ...]", self.faces):
            try:
                droppable = not reliable or not qos & 8
                face.outbox.put(face.conduit(qos, reliable), (message, b""), len(message), droppable)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return _PlainPublication(self, meta, qos, reliable)

    def is_full(self, qos: int, reliable: bool) -> bool:
        faces = cast("tuple[OutboxFace, ...]", self.faces)
        return any(face.outbox.error is None and face.outbox.is_full(face.conduit(qos, reliable)) for face in faces)


class _PlainPublication(Publication):
    def __init__(self, way: Way, meta: bytes | None, qos: int, reliable: bool) -> None:
        self._way = way
        self._meta = meta
        self._qos = qos
        self._reliable = reliable

    def put(self, payload: bytes) -> EleaError | None:
        return self._way.put(self._meta, payload, self._qos, self._reliable)


class _PlainCollector(Collector):
    """Sends at once: the outbox collects."""

    def __init__(self, waits: bool) -> None:
        self._waits = waits

    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        encoder = cast(PlainEncoder, way.encoder)
        for _, _, _, qos, meta, payload in run:
            message = encoder.encode(way.key, meta, payload, qos)
            droppable = not reliable or not qos & 8
            for face in cast("tuple[OutboxFace, ...]", way.faces):
                led = not self._waits or face.node.loop.is_led_here()
                face.forward((message, b""), len(message), face.conduit(qos, reliable), droppable, 1, led)
