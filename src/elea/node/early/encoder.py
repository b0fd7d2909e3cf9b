"""Samples on their way to one early node: addressed by its own ids, or by name.

Ids are a session's own, so every face has an encoder of its own. What an early message cannot say (kind, encoding,
timestamp, attachment, source) is left out; a deletion has no message at all, and is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from elea.io.linkerrors import LinkClosed, worse
from elea.model.errors import NotExpressible
from elea.node.plainencoder import PlainWay
from elea.space.way import Collector, Encoder, Way
from elea.wire.details import RawSample, is_deletion

if TYPE_CHECKING:
    from elea.model.errors import EleaError
    from elea.node.early.catalogue import Known
    from elea.node.early.face import EarlyFace
    from elea.node.early.subscriptions import Address
    from elea.space.face import Face

__all__ = ["EarlyEncoder", "EarlyWay"]


class EarlyEncoder(Encoder):
    """The encoder of one face."""

    def __init__(self) -> None:
        self.face: EarlyFace | None = None

    def way(self, key: str, faces: tuple[Face, ...], declared: bool) -> Way:
        return EarlyWay(key, faces, self)

    def collector(self, *, waits: bool = True) -> Collector:
        return _EarlyCollector(waits)


class EarlyWay(PlainWay):
    """Samples of one key to one face."""

    def __init__(self, key: str, faces: tuple[Face, ...], encoder: Encoder) -> None:
        super().__init__(key, faces, encoder)
        self.face = cast("EarlyFace", faces[0])
        self._version = -1
        self._known: Known | None = None
        self._addresses: list[Address] = []

    def addresses(self) -> list[Address]:
        """How samples are written now."""
        face = self.face
        known = face.catalogue.get(self.key)
        version = face.subscriptions.version
        if version != self._version or known is not self._known:
            self._addresses = face.addresses(self.key, known)
            self._version, self._known = version, known
        return self._addresses

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        if is_deletion(meta):
            self.face.deletions += 1
            return NotExpressible(self.face.dialect, f"a deletion, here of {self.key}")
        lost: EleaError | None = None
        for address in self.addresses():
            try:
                self.face.put(address, self.key, meta, payload, qos, reliable)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost


class _EarlyCollector(Collector):
    """Sends at once: the outbox collects."""

    def __init__(self, waits: bool) -> None:
        self._waits = waits

    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        face = cast(EarlyWay, way).face
        if any(is_deletion(raw[4]) for raw in run):
            kept = [raw for raw in run if not is_deletion(raw[4])]
            face.deletions += len(run) - len(kept)
            run = kept
        if run:
            led = not self._waits or face.node.loop.is_led_here()
            for address in cast(EarlyWay, way).addresses():
                face.forward_run(address, way.key, run, reliable, led)
