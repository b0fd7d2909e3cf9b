"""Publishers: declared putting, with options that are settled once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.api.apierrors import refuse_stack
from elea.api.apitimestamp import Timestamp
from elea.api.handle import Handle
from elea.api.identity import SourceInfo
from elea.api.putroute import PublisherRoute
from elea.api.zbytes import IntoZBytes
from elea.io.dispatch import Mailbox
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Locality, Priority, Qos, Reliability
from elea.node.localface import aggregate_of
from elea.space.face import Entity, InterestMode, Kinds

if TYPE_CHECKING:
    from elea.api.info import MatchingStatus
    from elea.api.instrumentation import TimestampInstrumentation
    from elea.api.matching import MatchingListener
    from elea.api.receipt import Receipt
    from elea.api.samplenumbers import Numbers
    from elea.api.session import Session
    from elea.api.storeclient import Durability

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
        self._put_route = PublisherRoute(
            session,
            str(key_expr),
            destination,
            raw_qos=qos.raw,
            reliable=reliability is Reliability.RELIABLE,
            encoding=encoding,
        )
        self.put = self._put_route.put  # type: ignore[assignment, method-assign] # one call less for every sample
        own, whole = session._node.local, session._whole(str(key_expr))
        self._interest = own.watch(
            aggregate_of(own.aggregated_publishers, whole) or whole,
            Kinds.KEYEXPRS | Kinds.SUBSCRIBERS,
            InterestMode.CURRENT_FUTURE,
            Mailbox(_told),
        )
        self._listeners: list[MatchingListener[Any]] = []
        self._durability: Durability | None = None
        self._numbers: Numbers | None = None

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it puts to."""
        self._put_route.check()
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
        from elea.api.matching import matching_status

        return matching_status(self._session, Entity.SUBSCRIBER, str(self._key_expr), self._destination)

    def declare_matching_listener(self, handler: Any = None) -> MatchingListener[Any]:
        """Be told when the first subscriber comes and when the last one goes."""
        from elea.api.matching import MatchingListener

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
        ack: bool = False,
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Put a sample. A publisher with a durability also takes `ack` and `timeout`, as `Session.put` does."""
        # Only publishers with a durability come here, see `_store`; the others have a shorter way.
        refuse_stack(timestamp_instrumentation)
        return self._stored(
            ack,
            payload=payload,
            encoding=self._encoding if encoding is None else encoding,
            attachment=attachment,
            timestamp=timestamp,
            source_info=source_info,
            timeout=timeout,
        )

    def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
        ack: bool = False,
        timeout: float | int | None = None,
    ) -> Receipt | None:
        """Delete the key; `ack` and `timeout` as in `put`."""
        if self._durability is not None:
            refuse_stack(timestamp_instrumentation)
            return self._stored(
                ack,
                payload=None,
                encoding=None,
                attachment=attachment,
                timestamp=timestamp,
                source_info=source_info,
                timeout=timeout,
            )
        if ack:
            raise ValueError(f"publisher on {self._key_expr} has no durability, so nobody acknowledges what it does")
        self._put_route.delete(attachment, timestamp, source_info, timestamp_instrumentation)
        return None

    def _store(self, durability: Durability) -> None:
        """Have a store keep everything it puts."""
        self._durability = durability
        self._numbers = self._session._storing.source(self._eid)
        del self.put  # the short way

    def _stored(self, ack: bool, **options: Any) -> Receipt | None:
        self._put_route.check()
        return self._session._storing.put(ack=ack, numbers=self._numbers, **self._for_store(options))

    def _for_store(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a put, with what is settled."""
        return {
            **options,
            "key": str(self._key_expr),
            "durability": self._durability,
            "qos": self._qos.raw,
            "destination": self._destination,
        }

    def _end(self) -> None:
        self._put_route.end()
        for listener in self._listeners:
            listener._finish()
        self._session._node.local.stop_watching(self._interest)


def _told(message: object) -> None:
    """Declarations arrive through the space; the route looks there."""
