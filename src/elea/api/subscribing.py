"""Subscribers: runs of samples from the node to a user's handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from elea.api.feed import Feed
from elea.api.handle import Receiving
from elea.api.sample import Sample
from elea.api.sinks import Sink
from elea.broker.delivery import Mailbox
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Subscriber"]

H = TypeVar("H")


class Subscriber(Receiving[H]):
    """Receives the samples put to a key expression.

    ::

        with session.declare_subscriber("home/**") as subscriber:
            for sample in subscriber:
                print(sample.key_expr, sample.payload.to_string())
    """

    def __init__(self, session: Session, key_expr: KeyExpr, handler: object, origin: Locality) -> None:
        sink: Sink[Sample]
        sink, user = session._handler(handler, "Sample")
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._key_expr = key_expr
        self._elsewhere = origin is not Locality.SESSION_LOCAL
        self._box = Mailbox(Feed(sink).arrived)
        here = origin is not Locality.REMOTE
        self._number = session._node.own.subscribe(str(key_expr), self._box, here=here, elsewhere=self._elsewhere)

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it receives."""
        return self._key_expr

    def _end(self) -> None:
        self._session._node.own.unsubscribe(self._number, str(self._key_expr), self._box, elsewhere=self._elsewhere)
        self._sink.close()
