"""Publishers: declared putting, with options that are settled once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.api.handle import Handle
from elea.api.identity import SourceInfo
from elea.api.info import MatchingStatus
from elea.api.instrumentation import TimestampInstrumentation
from elea.api.matching import MatchingListener, matching_status
from elea.api.outlet import FixedOutlet
from elea.api.timestamp import Timestamp
from elea.api.zbytes import IntoZBytes
from elea.broker.delivery import Mailbox
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Locality, Priority, Qos, Reliability
from elea.space.face import Entity, InterestMode, Kinds

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Publisher"]


class Publisher(Handle):
    """Puts samples on one key expression.

    ::

        with session.declare_publisher("home/1/temp") as publisher:
            publisher.put("21.5")
    """

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
        super().__init__(session)
        self._key_expr = key_expr
        self._encoding = encoding
        self._qos = qos
        self._reliability = reliability
        self._destination = destination
        self._outlet = FixedOutlet(
            session,
            str(key_expr),
            destination,
            raw_qos=qos.raw,
            reliable=reliability is Reliability.RELIABLE,
            encoding=encoding,
        )
        self.put = self._outlet.put  # type: ignore[method-assign] # one call less for every sample
        self._interest = session._node.own.watch(
            str(key_expr), Kinds.KEYEXPRS | Kinds.SUBSCRIBERS, InterestMode.CURRENT_FUTURE, Mailbox(self._told)
        )
        self._listeners: list[MatchingListener[Any]] = []

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it puts to."""
        self._outlet.check()
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
        self._outlet.put(
            payload, encoding=encoding, attachment=attachment, timestamp=timestamp, source_info=source_info
        )

    def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Delete the key."""
        self._outlet.delete(attachment, timestamp, source_info)

    def _told(self, message: object) -> None:
        """Declarations arrive through the space; the outlet looks there."""

    def _end(self) -> None:
        self._outlet.end()
        for listener in self._listeners:
            listener._finish()
        self._session._node.own.stop_watching(self._interest)
