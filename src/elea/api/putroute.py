"""From a user's put to the outboxes of the sessions that want it: the one module of the API on the way of every sample.

It is compiled where that is possible, so it has no class that a user could want to hold weakly or to inherit from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.api.identity import SourceInfo
from elea.api.sample import into_source
from elea.api.timestamp import Timestamp
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.io.dispatch import Mailbox
from elea.io.errors import LinkClosed, LinkStalled
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.limits import MAX_HEADERS
from elea.model.qos import Locality, SampleKind
from elea.node.routecache import Arrived
from elea.node.stamper import stamped
from elea.node.zenoh1.pushes import OutgoingKey
from elea.wire.details import pack

if TYPE_CHECKING:
    from elea.api.instrumentation import TimestampInstrumentation
    from elea.api.session import Session
    from elea.io.outbox import Outbox
    from elea.node.zenoh1.face import Zenoh1Face

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

    __slots__ = ("_here", "_key", "_numbered", "_outgoing", "_remote", "_session", "boxes", "faces", "generation")

    def __init__(self, session: Session, key: str, destination: Locality, *, numbered: bool) -> None:
        self._session = session
        self._key = key = session._whole(key)
        self._here = destination is not Locality.REMOTE
        self._remote = destination is not Locality.SESSION_LOCAL
        self._numbered = numbered
        self._outgoing = OutgoingKey(key, 0)
        self.generation = -1
        self.faces: tuple[Zenoh1Face, ...] = ()
        self.boxes: list[Mailbox] = []

    def refresh(self) -> None:
        """Find the way again."""
        node = self._session._node
        route = node.route(node.own, self._key)
        self.generation = route.generation
        self.faces = tuple(route.faces) if self._remote else ()  # type: ignore[arg-type]
        self.boxes = list(route.boxes) if self._here else []
        number = node.number(self._key, self.faces) if self._numbered else 0
        if number != self._outgoing.number:
            self._outgoing = OutgoingKey(self._key, number)
        for face in self.faces:
            face.tell(number, self._key)

    def header(self, meta: bytes | None, size: int, qos: int) -> bytes:
        """Everything before a payload of `size` octets."""
        return self._outgoing.header(meta, size, qos)

    def send(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Send one sample to everyone who wants it."""
        node = self._session._node
        if self.generation != node.generation:
            self.refresh()
        if node.stamper is not None:
            # Here, so that subscribers of this process, storages and neighbours see the same timestamp.
            meta = stamped([(0, 0, b"", qos, meta, payload)], node.stamper, node.loop.wall_ns())[0][4]
        if self.faces:
            parts = (self._outgoing.header(meta, len(payload), qos), payload)
            size = len(parts[0]) + len(payload)
            droppable = not reliable or not qos & 8
            stalled: LinkStalled | None = None
            for face in self.faces:
                put = face.outbox.put_now if qos & 16 else face.outbox.put
                try:
                    put((qos & 7) << 1 | reliable, parts, size, droppable)
                except LinkClosed as error:
                    stalled = self.missed(error, droppable) or stalled
            if stalled is not None:
                raise stalled
        if self.boxes:
            self.deliver_here(meta, payload, qos, reliable)

    def missed(self, error: LinkClosed, droppable: bool) -> LinkStalled | None:
        """A link has ended and the space does not know yet: the outbox has counted the sample, the others get it.

        That must not surprise who puts, as it would not a moment later, when nobody is there. Who must not lose a
        sample is told of a neighbour that was given up for taking nothing: that error is returned.

        Raises:
            SessionClosed: it ended because this session was closed.
        """
        self._session._check()
        return error if isinstance(error, LinkStalled) and not droppable else None

    def deliver_here(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Bring a sample to the subscribers of this process."""
        node = self._session._node
        arrived = Arrived(KeyExpr(self._key), [(0, 0, b"", qos, meta, payload)], reliable)
        for box in self.boxes:
            node.dispatch.add(box, arrived, arrived.octets)
        node.deliver_soon()


class PublisherRoute(PutRoute):
    """The outlet of a publisher, whose encoding and quality of service are settled."""

    __slots__ = (
        "_droppable",
        "_encoding",
        "_express",
        "_headers",
        "_meta",
        "_node",
        "_outboxes",
        "_plain_at",
        "_raw",
        "_reliable",
        "conduit",
        "gone",
    )

    def __init__(
        self, session: Session, key: str, destination: Locality, *, raw_qos: int, reliable: bool, encoding: Encoding
    ) -> None:
        super().__init__(session, key, destination, numbered=True)
        self.gone = False
        self.conduit = (raw_qos & 7) << 1 | reliable
        self._node = session._node
        self._raw = raw_qos
        self._reliable = reliable
        self._droppable = not reliable or not raw_qos & 8
        self._express = bool(raw_qos & 16)
        self._encoding = encoding
        # Without a timestamp or an attachment every sample has the same octets between header and payload.
        self._meta = pack(Details(encoding=encoding))
        self._plain_at = -1  # generation of the space in which `_outboxes` is all there is to a plain put
        self._outboxes: list[Outbox] = []
        self._headers: dict[int, tuple[bytes, int]] = {}

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
        if encoding is not None or attachment is not None or timestamp is not None or source_info is not None:
            self.check()
            chosen = into_encoding(encoding, self._encoding)
            meta = meta_of(PUT, chosen, timestamp, attachment, source_info)
            self.send(meta, data, self._raw, self._reliable)
        elif self._plain_at == self._node.generation:
            # The way of nearly every sample: one look-up for the octets before the payload, one append per neighbour.
            size = len(data)
            found = self._headers.get(size)
            if found is None:
                found = self._remember(size)
            stalled: LinkStalled | None = None
            for outbox in self._outboxes:
                try:
                    if self._express:
                        outbox.put_now(self.conduit, (found[0], data), found[1], self._droppable)
                    else:
                        outbox.put(self.conduit, (found[0], data), found[1], self._droppable)
                except LinkClosed as error:
                    stalled = self.missed(error, self._droppable) or stalled
            if stalled is not None:
                raise stalled
        else:
            self.check()
            if self.generation != self._node.generation:
                self.refresh()
            self.send(self._meta, data, self._raw, self._reliable)

    def delete(self, attachment: IntoZBytes | None, timestamp: Timestamp | None, source: SourceInfo | None) -> None:
        """Delete the key."""
        self.check()
        self.send(meta_of(DELETE, PLAIN, timestamp, attachment, source), b"", self._raw, self._reliable)

    def refresh(self) -> None:
        """Find the way again. Where it leads to neighbours only and puts need no timestamp, the next is a plain one."""
        super().refresh()
        self._outboxes = [face.outbox for face in self.faces]
        self._headers = {}
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

    def _remember(self, size: int) -> tuple[bytes, int]:
        header = self.header(self._meta, size, self._raw)
        found = header, len(header) + size
        if len(self._headers) < MAX_HEADERS:
            self._headers[size] = found
        return found
