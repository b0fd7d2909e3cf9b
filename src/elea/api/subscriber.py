"""Subscribers: runs of samples from the node to a user's handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from elea.api.arrowhandler import Arrow, BatchSink
from elea.api.channels import Handler
from elea.api.handle import ReceivingHandle
from elea.api.sample import Sample
from elea.api.sampledelivery import SampleDelivery
from elea.api.sinks import Sink
from elea.io.dispatch import Mailbox
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate

__all__ = ["Subscriber"]

H = TypeVar("H")


class Subscriber(ReceivingHandle[H]):
    """Receives the samples put to a key expression.

    ::

        with session.declare_subscriber("home/**") as subscriber:
            for sample in subscriber:
                print(sample.key_expr, sample.payload.to_string())
    """

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        handler: object,
        origin: Locality,
        where: SamplePredicate | None = None,
    ) -> None:
        self._where = where
        predicates: tuple[str, ...] = ()
        if where is not None:
            from elea.api.filtereddelivery import declared_predicates

            predicates = declared_predicates(where.predicates[0], session._namespace)
        sink: Sink[Sample]
        user: object
        if isinstance(handler, Arrow) and type(self) is Subscriber:  # others make samples of what arrives
            sink = batches = BatchSink(handler, session._node, session._namespace, where)
            user = batches.handler
        else:
            sink, user = session._handler(handler, "Sample")
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._key_expr = key_expr
        self._elsewhere = origin is not Locality.SESSION_LOCAL
        self._box = self._mailbox(sink)
        here = origin is not Locality.REMOTE
        self._number = session._node.local.subscribe(
            session._whole(str(key_expr)), self._box, here=here, elsewhere=self._elsewhere, predicates=predicates
        )

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it receives."""
        return self._key_expr

    @property
    def where(self) -> SamplePredicate | None:
        """What samples are held against here, and what it has counted; None if all are wanted."""
        return self._where

    def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """Ask for samples that wait; only if declared with a mode that pulls, see `elea.api.pacedsubscriber`."""
        raise TypeError("samples are pushed to this subscriber; declare it with mode=elea.Pull()")

    def _put_back(self, samples: list[Sample]) -> None:
        """Samples of the last pull that nobody got: the next one brings them again."""
        raise TypeError("samples are pushed to this subscriber; declare it with mode=elea.Pull()")

    def commit(self, position: int | None = None) -> None:
        """Move its cursor; only if declared with one, see `elea.api.historysubscriber`."""
        raise TypeError('this subscriber has no cursor; declare it with cursor="name"')

    def _mailbox(self, sink: Sink[Sample]) -> Mailbox:
        """Where the node leaves what arrives, and what is done with it."""
        if isinstance(sink, BatchSink):
            return sink.box
        if isinstance(sink, Handler):
            sink.source = self._session._node
        arrived = SampleDelivery(sink, self._session._namespace).arrived
        if self._where is not None:
            from elea.api.filtereddelivery import FilteredDelivery

            arrived = FilteredDelivery(self._where, arrived, self._session._namespace).arrived
            if self._where.uses_content:
                # A thread that waits at the channel would read the link, and must not stop there to ask for a type.
                return Mailbox(arrived)
        return Mailbox(arrived, channel=sink)

    def _end(self) -> None:
        key = self._session._whole(str(self._key_expr))
        self._session._node.local.unsubscribe(self._number, key, self._box, elsewhere=self._elsewhere)
        self._sink.close()
