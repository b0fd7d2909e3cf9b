"""Samples on their way to one early node: addressed by its own ids, or by name.

Ids are a session's own, so every face has an encoder of its own. What an early message cannot say (kind, encoding,
timestamp, attachment, source) is left out; a deletion has no message at all, and is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from elea.io.linkerrors import LinkClosed, worse
from elea.model.errors import NotExpressible
from elea.space.way import Collector, Encoder, Publication, Way
from elea.wire.details import RawSample, is_deletion

if TYPE_CHECKING:
    from elea.io.outbox import Outbox
    from elea.model.errors import EleaError
    from elea.node.early.catalogue import Catalogue, Known
    from elea.node.early.face import EarlyFace
    from elea.node.early.subscriptions import Address, Subscriptions
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


class EarlyWay(Way):
    """Samples of one key to one face."""

    def __init__(self, key: str, faces: tuple[Face, ...], encoder: Encoder) -> None:
        super().__init__(key, faces, encoder)
        self.face = cast("EarlyFace", faces[0])
        self._subscriptions: Subscriptions = self.face.subscriptions
        self._catalogue: Catalogue = self.face.catalogue
        self._version = -1
        self._catalogued = -1
        self._known: Known | None = None
        self._addresses: list[Address] = []

    def is_current(self) -> bool:
        """Whether samples are still written as `addresses` said last."""
        return self._subscriptions.version == self._version and self._catalogue.version == self._catalogued

    def addresses(self) -> list[Address]:
        """How samples are written now."""
        if self.is_current():
            return self._addresses
        version, self._catalogued = self._subscriptions.version, self._catalogue.version
        known = self._catalogue.get(self.key)
        if version != self._version or known is not self._known:
            self._addresses = self.face.addresses(self.key, known)
            self._version, self._known = version, known
        return self._addresses

    def is_full(self, qos: int, reliable: bool) -> bool:
        outbox = self.face.outbox
        return outbox.error is None and outbox.is_full(int(reliable))

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return EarlyPublication(self, meta, qos, reliable)

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


class EarlyPublication(Publication):
    """A look whether samples are still written as before, and one append for each address."""

    def __init__(self, way: EarlyWay, meta: bytes | None, qos: int, reliable: bool) -> None:
        self._way = way
        self._outbox: Outbox = way.face.outbox
        self._meta = meta
        self._qos = qos
        self._reliable = reliable
        self._fronts: list[tuple[bytes, bool]] = []
        """What stands before a payload, and whether it goes by the reliable channel; if nobody has to be asked."""

    def put(self, payload: bytes) -> EleaError | None:
        if not self._fronts or not self._way.is_current():
            self._fronts = self._straight()
            if not self._fronts:
                return self._way.put(self._meta, payload, self._qos, self._reliable)
        lost: EleaError | None = None
        for front, reliable in self._fronts:
            try:
                droppable = not reliable or not self._qos & 8
                self._outbox.put(int(reliable), (front, payload), len(front) + len(payload), droppable)
            except LinkClosed as error:
                lost = worse(lost, error)
        return lost

    def _straight(self) -> list[tuple[bytes, bool]]:
        """The fronts, if no subscriber has a predicate, pulls, or gets what is stored first."""
        found: list[tuple[bytes, bool]] = []
        for address in self._way.addresses():
            if address.wheres or is_deletion(self._meta) or (address.to is not None and address.to.has_to_wait):
                return []
            reliable = self._reliable and (address.to is None or address.to.reliable)
            found.append((address.reliable if reliable else address.best_effort, reliable))
        return found


class _EarlyCollector(Collector):
    """Sends at once: the outbox collects."""

    def __init__(self, waits: bool) -> None:
        self._waits = waits

    def add(self, way: Way, run: list[RawSample], reliable: bool, now_ns: int, is_stamped: bool) -> None:
        early = cast(EarlyWay, way)
        face = early.face
        kept = [raw for raw in run if not is_deletion(raw[4])]
        face.deletions += len(run) - len(kept)
        if kept:
            led = not self._waits or face.node.loop.is_led_here()
            for address in early.addresses():
                face.forward_run(address, way.key, kept, reliable, led)
