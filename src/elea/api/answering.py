"""Queryables: queries from the node to a user's handler, and the answers back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from elea.api.callbacks import Callback
from elea.api.handle import Receiving
from elea.api.publishing import body_of
from elea.api.query import Query
from elea.api.sample import Sample, encoding_of, source_info_of
from elea.api.sinks import Sink, into_handler
from elea.broker.delivery import Mailbox
from elea.broker.own import Asked
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality, SampleKind
from elea.space.face import Response
from elea.wire.zenoh1 import messages as m

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Queryable"]

H = TypeVar("H")


class Answerer:
    """Sends the answers to one query."""

    __slots__ = ("_asked", "_eid", "_session", "calm")

    def __init__(self, session: Session, asked: Asked, eid: int) -> None:
        self._session = session
        self._asked = asked
        self._eid = eid
        self.calm = False
        """Whether `finish` is called at a place of our own choosing, and not by the garbage collector anywhere."""

    def reply(self, sample: Sample) -> None:
        payload = None if sample.kind is SampleKind.DELETE else sample._raw[5]
        attachment = None if sample.attachment is None else sample.attachment.to_bytes()
        body = body_of(payload, sample.encoding, sample.timestamp, attachment, sample.source_info)
        self._respond(str(sample.key_expr), m.Reply(body))

    def error(self, payload: bytes, encoding: Encoding) -> None:
        wire = None if encoding == Encoding.ZENOH_BYTES else m.Encoding(encoding.id, encoding.schema)
        self._respond(self._asked.request.key, m.Err(payload, wire))

    def _respond(self, key: str, body: object) -> None:
        request = self._asked.request
        responder = (self._session._node.node_id, self._eid)
        self._asked.respond(Response(request.id, key, body, request.qos, responder))

    def finish(self) -> None:
        if self.calm:
            self._asked.done()
            return
        # Whoever lost the last reference may hold any lock: another thread does the rest.
        self._session._node.later(self._asked.done)
        self._session._wake()


class Queryable(Receiving[H]):
    """Answers queries on a key expression.

    ::

        with session.declare_queryable("home/1/temp") as queryable:
            for query in queryable:
                with query:
                    query.reply(query.key_expr, "21.5")
    """

    _key_expr: KeyExpr

    def __init__(
        self, session: Session, key_expr: KeyExpr, handler: object, *, complete: bool, origin: Locality
    ) -> None:
        sink: Sink[Query]
        sink, user = into_handler(_releasing(handler), "Query")
        super().__init__(session, key_expr, sink, user)  # type: ignore[arg-type]
        self._answering = session._node.own.answer(
            str(key_expr),
            Mailbox(self._asked),
            complete=complete,
            here=origin is not Locality.REMOTE,
            elsewhere=origin is not Locality.SESSION_LOCAL,
        )

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it answers for."""
        return self._key_expr

    def _asked(self, asked: Asked) -> None:
        body = asked.request.body
        if not isinstance(body, m.Query):
            asked.done()
            return
        value = body.value
        self._sink.push(
            Query(
                KeyExpr(asked.request.key),
                body.parameters or "",
                Answerer(self._session, asked, self._eid),
                payload=None if value is None else value.payload,
                encoding=None if value is None else encoding_of(value.encoding),
                attachment=body.attachment,
                source_info=source_info_of(body.source_info),
            )
        )

    def _end(self) -> None:
        self._session._node.own.stop_answering(self._answering)
        self._sink.close()


def _releasing(handler: object) -> object:
    """A function that finishes each query nobody kept, as soon as the user's function returns."""
    if isinstance(handler, Callback):
        return Callback(_release_after(handler.callback), handler.drop, indirect=handler.indirect)
    if callable(handler):
        return _release_after(handler)
    if isinstance(handler, tuple) and len(handler) == 2 and callable(handler[0]):
        return _release_after(handler[0]), handler[1]
    return handler


def _release_after(function: Callable[[Query], object]) -> Callable[[Query], None]:
    def call(query: Query) -> None:
        try:
            function(query)
        finally:
            # Three references: the caller's, ours, and the one the count itself takes.
            if query._open and sys.getrefcount(query) <= 3:
                responder = query._open[0]
                if isinstance(responder, Answerer):
                    responder.calm = True
                query.drop()

    return call
