"""Answering: a query from the node to a user's handler, and the answers back; compiled where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.api.putroute import body_of
from elea.api.query import Query
from elea.api.sample import Sample, encoding_of, source_info_of
from elea.api.sinks import Sink
from elea.model.encoding import Encoding
from elea.model.qos import SampleKind
from elea.node.localface import Asked
from elea.space.face import Response
from elea.wire.zenoh1 import messages as m

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
        if sample._more is None:
            key = sample._key
            text = self._asked.request.key if key is self._asked.expr else self._session._whole(str(key))
            self._respond(text, sample._raw[5])
            return
        payload = None if sample.kind is SampleKind.DELETE else sample._raw[5]
        attachment = None if sample.attachment is None else sample.attachment.to_bytes()
        body = body_of(payload, sample.encoding, sample.timestamp, attachment, sample.source_info)
        self._respond(self._session._whole(str(sample._key)), m.Reply(body))

    def error(self, payload: bytes, encoding: Encoding) -> None:
        wire = None if encoding == Encoding.ZENOH_BYTES else m.Encoding(encoding.id, encoding.schema)
        self._respond(self._asked.request.key, m.Err(payload, wire))

    def _respond(self, key: str, body: m.ResponseBody | bytes) -> None:
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
    if expr is None or not isinstance(body, m.Query):
        asked.done()
        return
    answerer = Answerer(session, asked, eid)
    value = body.value
    # The query is nobody's but the handler's: what it does not keep is gone when `push` returns.
    if value is None and body.attachment is None and body.source_info is None:
        sink.push(Query(expr, body.parameters or "", answerer))
    else:
        sink.push(
            Query(
                expr,
                body.parameters or "",
                answerer,
                payload=None if value is None else value.payload,
                encoding=None if value is None else encoding_of(value.encoding),
                attachment=body.attachment,
                source_info=source_info_of(body.source_info),
            )
        )
    answerer.settle()
