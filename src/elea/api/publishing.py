"""Putting and deleting: from a user's call to the outboxes of the sessions that want it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from elea.api.handle import Handle
from elea.api.identity import SourceInfo
from elea.api.info import MatchingStatus
from elea.api.instrumentation import TimestampInstrumentation
from elea.api.matching import MatchingListener, matching_status
from elea.api.timestamp import Timestamp
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.broker.delivery import Mailbox
from elea.broker.relay import OutgoingKey
from elea.broker.routes import Arrived
from elea.io.timers import wall_ns
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Locality, Priority, Qos, Reliability
from elea.space.face import Entity, InterestMode, Kinds
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.samples import split_body

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.broker.zenoh1 import Zenoh1Session

__all__ = ["Outlet", "Publisher", "body_of", "into_encoding"]

PLAIN: Final = Encoding.ZENOH_BYTES
MAX_HEADERS: Final = 1024


def into_encoding(encoding: Encoding | str | None, default: Encoding = PLAIN) -> Encoding:
    """The encoding a user gave."""
    if encoding is None:
        return default
    if isinstance(encoding, Encoding):
        return encoding
    if not isinstance(encoding, str):
        raise TypeError(f"an encoding is an Encoding or text, not {type(encoding).__name__}")
    return Encoding(encoding)


def body_of(
    payload: bytes | None,
    encoding: Encoding,
    timestamp: Timestamp | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
) -> m.Put | m.Del:
    """The message body of a put, or of a deletion if there is no payload."""
    stamp = None if timestamp is None else m.Timestamp(timestamp.value.ntp64, timestamp.value.id.data)
    extra = None if attachment is None else into_bytes(attachment)
    source = None
    if source_info is not None:
        who = source_info.source_id
        source = m.SourceInfo(bytes(who.zid), who.eid, source_info.source_sn)
    if payload is None:
        return m.Del(stamp, source, extra)
    wire = None if encoding == PLAIN else m.Encoding(encoding.id, encoding.schema)
    return m.Put(payload, stamp, wire, source, attachment=extra)


class Outlet:
    """Where samples of one key go from this process; found again when the space has changed."""

    __slots__ = ("_here", "_key", "_numbered", "_outgoing", "_remote", "_session", "boxes", "faces", "generation")

    def __init__(self, session: Session, key: str, destination: Locality, *, numbered: bool) -> None:
        self._session = session
        self._key = key
        self._here = destination is not Locality.REMOTE
        self._remote = destination is not Locality.SESSION_LOCAL
        self._numbered = numbered
        self._outgoing = OutgoingKey(key, 0)
        self.generation = -1
        self.faces: tuple[Zenoh1Session, ...] = ()
        self.boxes: list[Mailbox] = []

    def refresh(self) -> None:
        """Find the way again."""
        node = self._session._node
        route = node.route(node.own, self._key)
        self.generation = route.generation
        self.faces = tuple(route.faces) if self._remote else ()  # type: ignore[arg-type]
        self.boxes = list(route.boxes) if self._here else []
        number = node.numbers.number(self._key) if self._numbered and self.faces else 0
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
        if self.faces:
            if node.stamper is None:
                header = self._outgoing.header(meta, len(payload), qos)
            else:
                header, _ = self._outgoing.stamp([(0, 0, b"", qos, meta, payload)], node.stamper, wall_ns())
            size = len(header) + len(payload)
            droppable = not reliable or not qos & 8
            for face in self.faces:
                put = face.outbox.put_now if qos & 16 else face.outbox.put
                put((qos & 7) << 1 | reliable, (header, payload), size, droppable)
        if self.boxes:
            self.deliver_here(meta, payload, qos, reliable)

    def deliver_here(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Bring a sample to the subscribers of this process."""
        node = self._session._node
        arrived = Arrived(KeyExpr(self._key), [(0, 0, b"", qos, meta, payload)], reliable)
        for box in self.boxes:
            node.round.add(box, arrived)
        node.deliver_soon()


class Publisher(Handle):
    """Puts samples on one key expression.

    ::

        with session.declare_publisher("home/1/temp") as publisher:
            publisher.put("21.5")
    """

    _key_expr: KeyExpr

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        *,
        encoding: Encoding,
        qos: Qos,
        reliability: Reliability,
        destination: Locality,
    ) -> None:
        super().__init__(session, key_expr)
        self._encoding = encoding
        self._qos = qos
        self._reliability = reliability
        self._raw = qos.raw
        self._reliable = reliability is Reliability.RELIABLE
        self._destination = destination
        self._outlet = Outlet(session, str(key_expr), destination, numbered=True)
        # Without a timestamp or an attachment every sample has the same octets between header and payload.
        plain = body_of(b"", encoding, None, None, None)
        self._meta = None if encoding == PLAIN else split_body(plain)[0]
        self._interest = session._node.own.watch(
            str(key_expr), Kinds.KEYEXPRS | Kinds.SUBSCRIBERS, InterestMode.CURRENT_FUTURE, Mailbox(self._told)
        )
        self._listeners: list[MatchingListener[Any]] = []
        self._conduit = (self._raw & 7) << 1 | self._reliable
        self._droppable = not self._reliable or not self._raw & 8
        self._node = session._node
        self._puts: list[Callable[[int, tuple[bytes, ...], int, bool], bool]] = []
        self._headers: dict[int, tuple[bytes, int]] = {}

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it puts to."""
        self._check()
        return self._key_expr

    @property
    def encoding(self) -> Encoding:
        """What payloads are, if a put does not say."""
        return self._encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when a queue is full."""
        return self._qos.congestion_control

    @property
    def priority(self) -> Priority:
        """The lane samples take."""
        return self._qos.priority

    @property
    def reliability(self) -> Reliability:
        """Whether samples may be lost on the way."""
        return self._reliability

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether anybody subscribes to what it puts."""
        return matching_status(self._session, Entity.SUBSCRIBER, str(self._key_expr), self._destination)

    def declare_matching_listener(self, handler: Any = None) -> MatchingListener[Any]:
        """Be told when the first subscriber comes and when the last one goes."""
        listener: MatchingListener[Any] = MatchingListener(
            self._session, Entity.SUBSCRIBER, str(self._key_expr), handler, self._destination
        )
        self._listeners.append(listener)
        return self._session._keep(listener)

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
            self._check()
            chosen = into_encoding(encoding, self._encoding)
            meta = split_body(body_of(b"", chosen, timestamp, attachment, source_info))[0]
            self._outlet.send(meta, data, self._raw, self._reliable)
            return
        outlet = self._outlet
        if outlet.generation != self._node.generation:
            self._refresh()
        if self._node.stamper is not None or self._gone:
            self._check()
            outlet.send(self._meta, data, self._raw, self._reliable)
            return
        # The way of nearly every sample: one look-up for the octets before the payload, one append per neighbour.
        size = len(data)
        found = self._headers.get(size)
        if found is None:
            found = self._header(size)
        for put in self._puts:
            put(self._conduit, (found[0], data), found[1], self._droppable)
        if outlet.boxes:
            outlet.deliver_here(self._meta, data, self._raw, self._reliable)

    def _refresh(self) -> None:
        """Find the way again."""
        self._outlet.refresh()
        express = bool(self._raw & 16)
        self._puts = [face.outbox.put_now if express else face.outbox.put for face in self._outlet.faces]
        self._headers = {}

    def _header(self, size: int) -> tuple[bytes, int]:
        header = self._outlet.header(self._meta, size, self._raw)
        found = header, len(header) + size
        if len(self._headers) < MAX_HEADERS:
            self._headers[size] = found
        return found

    def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Delete the key."""
        self._check()
        meta, payload = split_body(body_of(None, PLAIN, timestamp, attachment, source_info))
        self._outlet.send(meta, payload, self._raw, self._reliable)

    def _check(self) -> None:
        if self._gone:
            self._session._refuse(f"publisher on {self._key_expr} is undeclared")

    def _told(self, message: object) -> None:
        """Declarations arrive through the space; the outlet looks there."""

    def _end(self) -> None:
        for listener in self._listeners:
            listener._finish()
        self._session._node.own.stop_watching(self._interest)
