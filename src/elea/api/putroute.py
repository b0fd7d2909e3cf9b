"""From a user's put to the outboxes of the sessions that want it: the one module of the API on the way of every sample.

It is compiled where that is possible, so it has no class that a user could want to hold weakly or to inherit from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.api.apitimestamp import Timestamp
from elea.api.identity import SourceInfo
from elea.api.sample import into_source
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.io.dispatch import Mailbox
from elea.io.linkerrors import LinkStalled, worse
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.errors import NotExpressible
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality, SampleKind
from elea.node.route import SampleRun
from elea.node.stamper import stamped
from elea.space.way import Publication, Way
from elea.wire.details import is_deletion, pack
from elea.wire.timestampstack import RECEIVE, ROUTE, StackedDetails

if TYPE_CHECKING:
    from elea.api.instrumentation import TimestampInstrumentation
    from elea.api.session import Session
    from elea.model.errors import EleaError

__all__ = ["PLAIN", "PublisherRoute", "PutRoute", "into_encoding", "meta_of"]

PLAIN: Final = Encoding.ZENOH_BYTES
PUT: Final = SampleKind.PUT
DELETE: Final = SampleKind.DELETE


def into_encoding(encoding: Encoding | str | None, default: Encoding = PLAIN) -> Encoding:
    """The encoding a user gave."""
    if encoding is None:
        return default
    if isinstance(encoding, Encoding):
        return encoding
    if not isinstance(encoding, str):
        raise TypeError(f"an encoding is an Encoding or text, not {type(encoding).__name__}")
    return Encoding(encoding)


def meta_of(
    kind: SampleKind,
    encoding: Encoding,
    timestamp: Timestamp | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
) -> bytes | None:
    """The details of a sample, packed."""
    stamp = None if timestamp is None else timestamp.value
    extra = None if attachment is None else into_bytes(attachment)
    return pack(Details(kind, encoding, stamp, extra, into_source(source_info)))


class PutRoute:
    """Where samples of one key go from this process; found again when the space has changed."""

    __slots__ = ("_guarded", "_here", "_key", "_numbered", "_remote", "_session", "boxes", "generation", "ways")

    def __init__(self, session: Session, key: str, destination: Locality, *, numbered: bool) -> None:
        self._session = session
        self._key = session._whole(key)
        self._here = destination is not Locality.REMOTE
        self._remote = destination is not Locality.SESSION_LOCAL
        self._numbered = numbered
        self._guarded = False  # whether there are rules, which tell deletions from puts
        self.generation = -1
        self.ways: tuple[Way, ...] = ()
        self.boxes: list[Mailbox] = []

    def refresh(self) -> None:
        """Find the way again."""
        node = self._session._node
        route = node.route(node.local, self._key, declared=self._numbered)
        self.generation = route.generation
        self.ways = route.ways if self._remote else ()
        self.boxes = list(route.boxes) if self._here else []
        self._guarded = node.space.guard is not None

    def is_full(self, qos: int, reliable: bool = True) -> bool:
        """Whether a put would have to wait for room on some link."""
        if self.generation != self._session._node.generation:
            self.refresh()
        return any(way.is_full(qos, reliable) for way in self.ways)

    def send(
        self,
        meta: bytes | None,
        payload: bytes,
        qos: int,
        reliable: bool,
        instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Send one sample to everyone who wants it."""
        node = self._session._node
        if self.generation != node.generation:
            self.refresh()
        if node.future is not None and not node.future.passes(self._key, meta):
            return
        if node.stamper is not None:
            # Here, so that subscribers of this process, storages and neighbours see the same timestamp.
            meta = stamped([(0, 0, b"", qos, meta, payload)], node.stamper, node.loop.wall_ns())[0][4]
        ways = self.ways
        if self._guarded and self._remote and is_deletion(meta):
            ways = node.route(node.local, self._key, declared=self._numbered, deletions=True).ways
        here = meta
        if instrumentation is not None:
            meta, here = self._stacked(meta, instrumentation, bool(ways))
        lost: EleaError | None = None
        for way in ways:
            lost = worse(lost, way.put(meta, payload, qos, reliable))
        if self.boxes:
            self.deliver_here(here, payload, qos, reliable)
        if lost is not None:
            self.missed(lost, not reliable or not qos & 8)

    def _stacked(
        self, meta: bytes | None, instrumentation: TimestampInstrumentation, leaves: bool
    ) -> tuple[bytes | None, bytes | None]:
        """The details of a sample that collects timestamps: as neighbours get them, and as this process does."""
        instruments = self._session._node.instruments
        sent = instruments.begun(instrumentation.flags)
        there = StackedDetails(meta, instruments.marked(sent, ROUTE)) if leaves else meta
        here = StackedDetails(meta, instruments.marked(sent, RECEIVE)) if self.boxes else meta
        return there, here

    def missed(self, error: EleaError, droppable: bool) -> None:
        """A link has ended and the space does not know yet: the outbox has counted the sample, the others get it.

        That must not surprise who puts, as it would not a moment later, when nobody is there. Who must not lose a
        sample is told of a neighbour that was given up for taking nothing.

        Raises:
            SessionClosed: it ended because this session was closed.
            LinkStalled: a sample that may not be dropped is lost.
            NotExpressible: the only neighbour speaks a dialect that has no words for it.
        """
        self._session._check()
        if isinstance(error, NotExpressible) and len(self.ways) == 1:
            raise error
        if isinstance(error, LinkStalled) and not droppable:
            raise error

    def deliver_here(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Bring a sample to the subscribers of this process."""
        node = self._session._node
        arrived = SampleRun(KeyExpr(self._key), [(0, 0, b"", qos, meta, payload)], reliable)
        for box in self.boxes:
            node.dispatch.add(box, arrived, arrived.octets)
        node.deliver_soon()


class PublisherRoute(PutRoute):
    """The route of a publisher, whose encoding and quality of service are settled."""

    __slots__ = (
        "_droppable",
        "_encoding",
        "_meta",
        "_node",
        "_plain_at",
        "_publications",
        "_raw",
        "_reliable",
        "gone",
    )

    def __init__(
        self, session: Session, key: str, destination: Locality, *, raw_qos: int, reliable: bool, encoding: Encoding
    ) -> None:
        super().__init__(session, key, destination, numbered=True)
        self.gone = False
        self._node = session._node
        self._raw = raw_qos
        self._reliable = reliable
        self._droppable = not reliable or not raw_qos & 8
        self._encoding = encoding
        # Without a timestamp or an attachment every sample has the same bytes between header and payload.
        self._meta = pack(Details(encoding=encoding))
        self._plain_at = -1  # generation of the space in which `_publications` are all there is to a plain put
        self._publications: list[Publication] = []

    def put(
        self,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Put a sample."""
        data = payload if type(payload) is bytes else into_bytes(payload)
        if (
            encoding is not None
            or attachment is not None
            or timestamp is not None
            or source_info is not None
            or timestamp_instrumentation is not None
        ):
            self.check()
            chosen = into_encoding(encoding, self._encoding)
            meta = meta_of(PUT, chosen, timestamp, attachment, source_info)
            self.send(meta, data, self._raw, self._reliable, timestamp_instrumentation)
        elif self._plain_at == self._node.generation:
            # The way of nearly every sample.
            lost: EleaError | None = None
            for publication in self._publications:
                lost = worse(lost, publication.put(data))
            if lost is not None:
                self.missed(lost, self._droppable)
        else:
            self.check()
            if self.generation != self._node.generation:
                self.refresh()
            self.send(self._meta, data, self._raw, self._reliable)

    def delete(
        self,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        source: SourceInfo | None,
        instrumentation: TimestampInstrumentation | None = None,
    ) -> None:
        """Delete the key."""
        self.check()
        meta = meta_of(DELETE, PLAIN, timestamp, attachment, source)
        self.send(meta, b"", self._raw, self._reliable, instrumentation)

    def refresh(self) -> None:
        """Find the way again. Where it leads to neighbours only and puts need no timestamp, the next is a plain one."""
        super().refresh()
        self._publications = [way.publication(self._meta, self._raw, self._reliable) for way in self.ways]
        plain = self._node.stamper is None and not self.boxes and not self.gone
        self._plain_at = self.generation if plain else -1

    def end(self) -> None:
        """No more puts."""
        self.gone = True
        self._plain_at = -1

    def check(self) -> None:
        """Raise if it has ended."""
        if self.gone:
            self._session._refuse(f"publisher on {self._key} is undeclared")

    def would_wait(self) -> bool:
        """Whether a put would have to wait for room on some link."""
        return self.is_full(self._raw, self._reliable)
