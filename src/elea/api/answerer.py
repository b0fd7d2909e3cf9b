"""Answering: a query from the node to a user's handler, and the answers back; compiled where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.api.instrumentation import TimestampStack
from elea.api.query import Query
from elea.api.sample import Sample, source_info_of
from elea.api.sinks import Sink
from elea.model.encoding import Encoding
from elea.node.localface import Asked
from elea.space.face import Response
from elea.space.questions import AnswerBody, ErrorBody, ReplyBody

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Answerer", "hand_over"]


class Answerer:
    """Sends the answers to one query.

    A query that nobody kept ends when the user's function returns: its last reference goes in the frame of the thread
    that delivers it, which then says the end itself (`settle`). A query that was kept ends later, wherever its last
    reference goes; then another thread says the end.
    """

    __slots__ = ("_asked", "_eid", "_end", "_given_up", "_session", "_settled")

    def __init__(self, session: Session, asked: Asked, eid: int) -> None:
        self._session = session
        self._asked = asked
        self._eid = eid
        self._given_up = False
        self._settled = False
        self._end = [asked.done]  # a list of one: taking the last item out is what only one thread can do

    def reply(self, sample: Sample) -> None:
        _, _, _, _, meta, payload = sample._raw
        key = sample._key
        text = self._asked.request.key if key is self._asked.expr else self._session._whole(str(key))
        self._respond(text, payload if meta is None else ReplyBody(meta, payload))

    def error(self, payload: bytes, encoding: Encoding) -> None:
        self._respond(self._asked.request.key, ErrorBody(payload, encoding))

    def _respond(self, key: str, body: AnswerBody) -> None:
        request = self._asked.request
        responder = (self._session._node.node_id, self._eid)
        self._asked.respond(Response(request.id, key, body, request.qos, responder))

    def finish(self) -> None:
        self._end.pop()()

    def abandoned(self) -> None:
        # First say so, then look whether anybody will still see it; `settle` does it the other way round, so that at
        # least one of them does.
        self._given_up = True
        if self._settled:
            self._say_later()

    def settle(self) -> None:
        """The query has been handed over: end it if it is gone already."""
        self._settled = True
        if self._given_up and self._end:
            try:
                end = self._end.pop()
            except IndexError:
                return
            end()

    def _say_later(self) -> None:
        # Whoever lost the last reference may hold any lock: another thread does the rest.
        try:
            end = self._end.pop()
        except IndexError:
            return
        self._session._node.later(end)
        self._session._wake()


def hand_over(session: Session, eid: int, sink: Sink[Query], asked: Asked) -> None:
    """Give a query to a queryable's handler."""
    body = asked.request.body
    namespace = session._namespace
    expr = asked.expr if namespace is None else namespace.own_expr(asked.expr)
    if expr is None:
        asked.done()
        return
    answerer = Answerer(session, asked, eid)
    # The query is nobody's but the handler's: what it does not keep is gone when `push` returns.
    received = asked.received()
    if body.payload is None and body.attachment is None and body.source is None and received is None:
        sink.push(Query(expr, body.parameters, answerer))
    else:
        sink.push(
            Query(
                expr,
                body.parameters,
                answerer,
                payload=body.payload,
                encoding=None if body.payload is None else body.encoding,
                attachment=body.attachment,
                source_info=source_info_of(body.source),
                timestamp_stack=None if received is None else TimestampStack.of(received),
            )
        )
    answerer.settle()
