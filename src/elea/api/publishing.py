"""Putting and deleting: from a user's call to the outboxes of the sessions that want it."""

from __future__ import annotations

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


def into_encoding(encoding: Encoding | str | None, default: Encoding = PLAIN) -> Encoding:
    """The encoding a user gave."""
    if encoding is None:
        return default
    return encoding if isinstance(encoding, Encoding) else Encoding(encoding)


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

    __slots__ = ("_boxes", "_faces", "_generation", "_here", "_key", "_numbered", "_outgoing", "_remote", "_session")

    def __init__(self, session: Session, key: str, destination: Locality, *, numbered: bool) -> None:
        self._session = session
        self._key = key
        self._here = destination is not Locality.REMOTE
        self._remote = destination is not Locality.SESSION_LOCAL
        self._numbered = numbered
        self._generation = -1
        self._faces: tuple[Zenoh1Session, ...] = ()
        self._boxes: list[Mailbox] = []
        self._outgoing = OutgoingKey(key, 0)

    def refresh(self) -> None:
        """Find the way again."""
        node = self._session._node
        route = node.route(node.own, self._key)
        self._generation = route.generation
        self._faces = tuple(route.faces) if self._remote else ()  # type: ignore[arg-type]
        self._boxes = list(route.boxes) if self._here else []
        number = node.numbers.number(self._key) if self._numbered and self._faces else 0
        if number != self._outgoing.number:
            self._outgoing = OutgoingKey(self._key, number)
        for face in self._faces:
            face.tell(number, self._key)

    def send(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> None:
        """Send one sample to everyone who wants it."""
        node = self._session._node
        if self._generation != node.generation:
            self.refresh()
        entry = (0, 0, b"", qos, meta, payload)
        if self._faces:
            stamper = node.stamper
            if stamper is None:
                header, _ = self._outgoing.rewrite([entry])
            else:
                header, _ = self._outgoing.stamp([entry], stamper, self._session._wall_ns())
            size = len(header) + len(payload)
            key = (qos & 7) << 1 | reliable
            droppable = not reliable or not qos & 8
            for face in self._faces:
                put = face.outbox.put_now if qos & 16 else face.outbox.put
                put(key, (header, payload), size, droppable)
        if self._boxes:
            arrived = Arrived(self._key, [entry], reliable)
            for box in self._boxes:
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
        self._outlet = Outlet(session, str(key_expr), destination, numbered=True)
        # Without a timestamp or an attachment every sample has the same octets between header and payload.
        plain = body_of(b"", encoding, None, None, None)
        self._meta = None if encoding == PLAIN else split_body(plain)[0]
        self._interest = session._node.own.watch(
            str(key_expr), Kinds.KEYEXPRS | Kinds.SUBSCRIBERS, InterestMode.CURRENT_FUTURE, Mailbox(self._told)
        )
        self._listeners: list[MatchingListener[Any]] = []

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it puts to."""
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
        return matching_status(self._session, Entity.SUBSCRIBER, str(self._key_expr))

    def declare_matching_listener(self, handler: Any = None) -> MatchingListener[Any]:
        """Be told when the first subscriber comes and when the last one goes."""
        listener: MatchingListener[Any] = MatchingListener(
            self._session, Entity.SUBSCRIBER, str(self._key_expr), handler
        )
        self._listeners.append(listener)
        return listener

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
        meta = self._meta
        if encoding is not None or attachment is not None or timestamp is not None or source_info is not None:
            chosen = into_encoding(encoding, self._encoding)
            meta = split_body(body_of(b"", chosen, timestamp, attachment, source_info))[0]
        self._check()
        self._outlet.send(meta, data, self._raw, self._reliable)

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
            listener.undeclare()
        self._session._node.own.stop_watching(self._interest)
