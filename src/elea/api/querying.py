"""Asking: a query from its call to its last reply, with consolidation, timeout and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from elea.api.cancellation import CancellationToken
from elea.api.handle import Handle
from elea.api.identity import EntityGlobalId, SourceInfo, ZenohId
from elea.api.info import MatchingStatus
from elea.api.instrumentation import TimestampInstrumentation
from elea.api.matching import MatchingListener, matching_status
from elea.api.publishing import body_of, into_encoding
from elea.api.reply import Reply, ReplyError, ReplyKeyExpr
from elea.api.sample import Sample, encoding_of
from elea.api.sinks import Sink, into_handler
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.broker.delivery import Mailbox
from elea.model import keyexpr
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import ConsolidationMode, Locality, Qos, QueryTarget
from elea.model.selector import Parameters, Selector
from elea.space.face import Entity, InterestMode, Kinds, Request, Response, ResponseFinal
from elea.wire.zenoh1 import messages as m

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Asking", "Querier", "QueryOptions", "ask", "seconds"]

H = TypeVar("H")
ANY_KEY = "_anyke"
TIME = "_time"


def seconds(timeout: object) -> float:
    """A time the user gave."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"a timeout is a number of seconds, not {type(timeout).__name__}")
    if not 0 <= timeout < 1 << 40:
        raise ValueError(f"a timeout is not negative and not endless, {timeout} is")
    return float(timeout)


class QueryOptions:
    """How a query is asked; what a querier remembers."""

    __slots__ = ("accept", "consolidation", "destination", "qos", "target", "timeout")

    def __init__(
        self,
        target: QueryTarget,
        consolidation: ConsolidationMode,
        accept: ReplyKeyExpr,
        timeout: float,
        qos: Qos,
        destination: Locality,
    ) -> None:
        self.target = target
        self.consolidation = consolidation
        self.accept = accept
        self.timeout = timeout
        self.qos = qos
        self.destination = destination


class Asking:
    """A query under way. Replies are judged and consolidated here, one at a time (a mailbox sees to that)."""

    def __init__(self, key: str, sink: Sink[Reply], mode: ConsolidationMode, any_key: bool) -> None:
        self._key = key
        self._sink = sink
        self._mode = mode
        self._any_key = any_key
        self._latest: dict[str, tuple[int, Reply]] = {}
        self._over = False
        self.refused = 0
        self.on_end: list[Callable[[], None]] = []

    def take(self, message: object) -> None:
        """A response, the end, or an error of our own."""
        if self._over:
            return
        if isinstance(message, Response):
            self._response(message)
        elif isinstance(message, ReplyError):
            self._sink.push(Reply(message))
            self._end()
        elif isinstance(message, ResponseFinal):
            self._end()

    def _response(self, response: Response) -> None:
        who = response.responder
        replier = None if who is None else EntityGlobalId(ZenohId(who[0]), who[1])
        body = response.body
        if isinstance(body, m.Err):
            self._sink.push(Reply(ReplyError(body.payload, encoding_of(body.encoding)), replier))
            return
        if not isinstance(body, m.Reply):
            self.refused += 1
            return
        if not self._any_key and not keyexpr.intersects(self._key, response.key):
            self.refused += 1  # an answer to another question (zenoh-1 §14.3)
            return
        reply = Reply(Sample.decoded(response.key, body.body, qos=response.qos), replier)
        stamp = -1 if body.body.timestamp is None else body.body.timestamp.ntp64
        self._consolidate(response.key, stamp, reply)

    def _consolidate(self, key: str, stamp: int, reply: Reply) -> None:
        if self._mode is ConsolidationMode.NONE:
            self._sink.push(reply)
            return
        held = self._latest.get(key)
        if held is not None and stamp < held[0]:
            return
        self._latest[key] = (stamp, reply)
        if self._mode is ConsolidationMode.MONOTONIC:
            self._sink.push(reply)

    def _end(self) -> None:
        self._over = True
        if self._mode is ConsolidationMode.LATEST:
            self._sink.push_many([reply for _, reply in self._latest.values()])
        self._latest.clear()
        self._sink.close()
        for action in self.on_end:
            action()


def ask(
    session: Session,
    selector: Selector,
    handler: object,
    options: QueryOptions,
    *,
    payload: IntoZBytes | None,
    encoding: Encoding | str | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
    cancellation_token: CancellationToken | None,
) -> object:
    """Send a query; returns what the user gets as handler."""
    sink: Sink[Reply]
    sink, user = into_handler(handler, "Reply")
    key, parameters = str(selector.key_expr), Parameters(str(selector.parameters))
    if options.accept is ReplyKeyExpr.ANY and ANY_KEY not in parameters:
        parameters.insert(ANY_KEY, "")
    mode = options.consolidation
    if mode is ConsolidationMode.AUTO:
        mode = ConsolidationMode.NONE if TIME in parameters else ConsolidationMode.LATEST
    value = None
    if payload is not None or encoding is not None:
        chosen = into_encoding(encoding)
        value = m.Value(m.Encoding(chosen.id, chosen.schema), b"" if payload is None else into_bytes(payload))
    sample = body_of(b"", into_encoding(None), None, attachment, source_info)
    body = m.Query(m.Consolidation(int(mode)), str(parameters) or None, sample.source_info, value, sample.attachment)
    asking = Asking(key, sink, mode, ANY_KEY in parameters)
    box = Mailbox(asking.take)
    node = session._node

    def end(message: object) -> None:
        node.round.add(box, message)
        node.deliver_soon()

    def request(number: int) -> Request:
        return Request(number, key, options.target, body, int(options.timeout * 1000), options.qos.raw)

    here = options.destination is not Locality.REMOTE
    elsewhere = options.destination is not Locality.SESSION_LOCAL
    started = threading.Event()
    number = node.own.ask(request, box, here=here, elsewhere=elsewhere)
    timer = node.keeper.after(options.timeout, lambda: _give_up(session, number, end))
    asking.on_end.append(timer.cancel)
    if asking._over:
        timer.cancel()
    started.set()
    if cancellation_token is not None:
        mark = cancellation_token._add(lambda: _cancel(session, number, end))
        asking.on_end.append(lambda: cancellation_token._remove(mark))
    return user


def _give_up(session: Session, number: int, end: Callable[[object], None]) -> None:
    if session._node.own.forget(number):
        end(ReplyError(b"Timeout", Encoding.ZENOH_STRING))


def _cancel(session: Session, number: int, end: Callable[[object], None]) -> None:
    node = session._node
    if node.own.forget(number):
        with node.lock:
            node.space.cancel(node.own, number)
        end(ResponseFinal(number))


class Querier(Handle):
    """Asks about one key expression again and again."""

    _key_expr: KeyExpr

    def __init__(self, session: Session, key_expr: KeyExpr, options: QueryOptions) -> None:
        super().__init__(session, key_expr)
        self._options = options
        self._listeners: list[MatchingListener[Any]] = []
        self._interest = session._node.own.watch(
            str(key_expr), Kinds.KEYEXPRS | Kinds.QUERYABLES, InterestMode.CURRENT_FUTURE, Mailbox(lambda _: None)
        )

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it asks about."""
        return self._key_expr

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Which keys replies may have."""
        return self._options.accept

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether anybody can answer."""
        return matching_status(
            self._session,
            Entity.QUERYABLE,
            str(self._key_expr),
            self._options.destination,
            complete=self._options.target is QueryTarget.ALL_COMPLETE,
        )

    def declare_matching_listener(self, handler: Any = None) -> MatchingListener[Any]:
        """Be told when the first queryable comes and when the last one goes."""
        complete = self._options.target is QueryTarget.ALL_COMPLETE
        listener: MatchingListener[Any] = MatchingListener(
            self._session, Entity.QUERYABLE, str(self._key_expr), handler, self._options.destination, complete=complete
        )
        self._listeners.append(listener)
        return self._session._keep(listener)

    def get(
        self,
        handler: Any = None,
        *,
        parameters: Parameters | dict[str, str] | str | None = None,
        payload: IntoZBytes | None = None,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Any:
        """Ask."""
        if self._gone:
            self._session._refuse(f"querier on {self._key_expr} is undeclared")
        return ask(
            self._session,
            Selector(self._key_expr, Parameters(parameters)),
            handler,
            self._options,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            source_info=source_info,
            cancellation_token=cancellation_token,
        )

    def _end(self) -> None:
        for listener in self._listeners:
            listener._finish()
        self._session._node.own.stop_watching(self._interest)
