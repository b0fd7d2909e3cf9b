"""Queryables: declared answering.

Plain Python, as all that is held weakly (`weakly`) must be: a compiled class with a plain base frees the weak
references to its objects with them, and who looks at one afterwards reads freed memory (mypyc 2.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from elea.api.answerer import hand_over
from elea.api.channels import Handler
from elea.api.handle import ReceivingHandle, weakly
from elea.api.query import Query
from elea.api.sinks import Sink
from elea.io.dispatch import Mailbox
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality
from elea.node.localface import Asked

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Queryable"]

H = TypeVar("H")


class Queryable(ReceivingHandle[H]):
    """Answers queries on a key expression.

    ::

        with session.declare_queryable("home/1/temp") as queryable:
            for query in queryable:
                with query:
                    query.reply(query.key_expr, "21.5")
    """

    def __init__(
        self, session: Session, key_expr: KeyExpr, handler: object, *, complete: bool, origin: Locality
    ) -> None:
        sink: Sink[Query]
        sink, user = session._handler(handler, "Query")
        super().__init__(session, sink, user)  # type: ignore[arg-type]
        self._key_expr = key_expr
        if isinstance(sink, Handler):
            sink.source = session._node
        self._answering = session._node.local.answer(
            session._whole(str(key_expr)),
            Mailbox(weakly(self._asked), channel=sink if isinstance(sink, Handler) else None),
            complete=complete,
            here=origin is not Locality.REMOTE,
            elsewhere=origin is not Locality.SESSION_LOCAL,
        )

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it answers for."""
        return self._key_expr

    def _asked(self, asked: Asked) -> None:
        hand_over(self._session, self._eid, self._sink, asked)

    def _end(self) -> None:
        self._session._node.local.stop_answering(self._answering)
        self._sink.close()
