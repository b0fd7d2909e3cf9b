"""Asking: a query from its call to its last reply, with consolidation, timeout and cancellation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.api.cancellation import Cancellable, CancellationToken
from elea.api.channels import Handler
from elea.api.identity import SourceInfo
from elea.api.instrumentation import TimestampInstrumentation, TimestampStack
from elea.api.namespace import Namespace
from elea.api.putroute import into_encoding
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.reply import Reply, ReplyError
from elea.api.sample import Sample, into_source
from elea.api.sinks import Sink
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.io.dispatch import Mailbox
from elea.model import keyexpr
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.limits import CACHED_KEY_CHARS, MAX_PLANS, NODE_ID_BYTES
from elea.model.qos import ConsolidationMode, Locality, Qos, QueryTarget
from elea.model.selector import Selector
from elea.node.localface import EXPIRED
from elea.space.face import Request, Response
from elea.space.questions import ErrorBody, QueryBody, ReplyBody
from elea.wire.details import has_timestamp, read_stamp
from elea.wire.timestampstack import RECEIVE, StackedDetails

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate
    from elea.node.instruments import Instruments

__all__ = ["OutgoingQuery", "Plan", "QueryOptions", "ask", "seconds"]

ANY_KEY: Final = "_anyke"
ADMIN: Final = "@/"
TIME: Final = "_time"
NONE: Final = ConsolidationMode.NONE
NEVER: Final = (-1, b"")
"""Before every timestamp."""


def seconds(timeout: object) -> float:
    """A time the user gave."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"a timeout is a number of seconds, not {type(timeout).__name__}")
    if not 0 <= timeout < 1 << 40:
        raise ValueError(f"a timeout is not negative and not endless, {timeout} is")
    return float(timeout)


class QueryOptions:
    """How a query is asked; what a querier, and a session for queries without options, remembers."""

    __slots__ = ("_plans", "accept", "consolidation", "destination", "qos", "target", "timeout")

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
        self._plans: dict[str, Plan] = {}

    def plan(self, selector: Selector | KeyExpr | str) -> Plan:
        """What a query for this selector says, worked out the first time."""
        text = selector if type(selector) is str else str(selector)
        found = self._plans.get(text)
        if found is None:
            chosen = selector if isinstance(selector, Selector) else Selector(text)
            found = Plan(self, chosen)
            if len(text) <= CACHED_KEY_CHARS:
                if len(self._plans) >= MAX_PLANS:
                    self._plans.clear()
                self._plans[text] = found
        return found


class Plan:
    """What all queries with one selector and the same options have in common."""

    __slots__ = ("any_key", "body", "elsewhere", "here", "key", "mode", "qos", "target", "timeout", "timeout_ms")

    def __init__(self, options: QueryOptions, selector: Selector) -> None:
        parameters = selector.parameters
        if options.accept is ReplyKeyExpr.ANY and ANY_KEY not in parameters:
            parameters.insert(ANY_KEY, "")
        mode = options.consolidation
        if mode is ConsolidationMode.AUTO:
            mode = ConsolidationMode.NONE if TIME in parameters else ConsolidationMode.LATEST
        self.key = str(selector.key_expr)
        self.mode = mode
        self.any_key = ANY_KEY in parameters
        self.body = QueryBody(str(parameters), mode)
        self.target = options.target
        self.qos = options.qos.raw
        self.timeout = options.timeout
        self.timeout_ms = int(options.timeout * 1000)
        self.here = options.destination is not Locality.REMOTE
        self.elsewhere = options.destination is not Locality.SESSION_LOCAL


class OutgoingQuery:
    """A query under way. Replies are judged and consolidated here, one at a time (a mailbox sees to that)."""

    __slots__ = (
        "_any_key",
        "_instruments",
        "_key",
        "_latest",
        "_mode",
        "_namespace",
        "_over",
        "_sink",
        "on_end",
        "refused",
    )

    def __init__(
        self,
        key: str,
        sink: Sink[Reply],
        mode: ConsolidationMode,
        any_key: bool,
        namespace: Namespace | None,
        instruments: Instruments | None = None,
    ) -> None:
        self._namespace = namespace
        self._instruments = instruments
        self._key = key
        self._sink = sink
        self._mode = mode
        self._any_key = any_key
        self._latest: dict[str, tuple[tuple[int, bytes], Reply]] = {}
        self._over = False
        self.refused = 0
        self.on_end: Callable[[], None] | None = None

    def take(self, message: object) -> None:
        """A response, the end, or that time is over."""
        if self._over:
            return
        if isinstance(message, Response):
            self._response(message)
            return
        if message is EXPIRED:
            self._sink.push(Reply(ReplyError(b"Timeout", Encoding.ZENOH_STRING)))
        self._end()

    def _response(self, response: Response) -> None:
        body = response.body
        key = response.key
        stack = response.stack
        if stack is not None and self._instruments is not None:
            stack = self._instruments.marked(stack, RECEIVE)
        if isinstance(body, ErrorBody):
            collected = None if stack is None else TimestampStack.of(stack)
            self._sink.push(Reply(ReplyError(body.payload, body.encoding, collected), response.responder))
            return
        if self._namespace is not None:
            own = self._namespace.own(key)
            if own is None:
                self.refused += 1
                return
            key = own
        if key != self._key and not self._any_key and not keyexpr.intersects(self._key, key):
            self.refused += 1  # an answer to another question (zenoh-1 §14.3)
            return
        meta, payload = (body.meta, body.payload) if isinstance(body, ReplyBody) else (None, body)
        if stack is not None:
            meta = StackedDetails(meta, stack)
        reply = Reply(Sample(key, (0, 0, b"", response.qos, meta, payload)), response.responder)
        if self._mode is NONE:
            self._sink.push(reply)
            return
        stamp = NEVER
        if meta is not None and has_timestamp(meta):
            ntp64, id, _ = read_stamp(meta)
            stamp = ntp64, id.ljust(NODE_ID_BYTES, b"\0")
        held = self._latest.get(key)
        if held is not None and stamp < held[0]:
            return
        self._latest[key] = (stamp, reply)
        if self._mode is ConsolidationMode.MONOTONIC:
            self._sink.push(reply)

    def _end(self) -> None:
        self._over = True
        if self._mode is ConsolidationMode.LATEST:
            for _, reply in self._latest.values():
                self._sink.push(reply)
        self._latest.clear()
        self._sink.close()
        if self.on_end is not None:
            self.on_end()


def ask(
    session: Session,
    selector: Selector | KeyExpr | str,
    handler: object,
    options: QueryOptions,
    *,
    payload: IntoZBytes | None = None,
    encoding: Encoding | str | None = None,
    attachment: IntoZBytes | None = None,
    source_info: SourceInfo | None = None,
    cancellation_token: CancellationToken | None = None,
    where: SamplePredicate | None = None,
    timestamp_instrumentation: TimestampInstrumentation | None = None,
) -> object:
    """Send a query; returns what the user gets as handler."""
    sink: Sink[Reply]
    user: object
    if cancellation_token is not None:
        cancellation_token._check()
    if handler is None and session._has_plain_channels:
        channel: Handler[Reply] = Handler(of="Reply")
        sink = user = channel
    else:
        sink, user = session._handler(handler, "Reply")
    taker = sink
    # A thread that waits at a channel reads the link itself, and must not stop there to ask for the type of a payload.
    channel_of = None if where is not None and where.uses_content else sink
    if where is not None:
        from elea.api.filteredreplies import FilteredReplies, with_predicate

        selector, taker = with_predicate(selector, where), FilteredReplies(sink, where)
    plan = options.plan(selector)
    body = plan.body
    if payload is not None or encoding is not None or attachment is not None or source_info is not None:
        body = _with_value(body, payload, encoding, attachment, source_info)
    namespace = session._namespace
    # A namespace does not hide the node from its own session: what it tells of itself has no other key.
    about_us = namespace is not None and plan.key.startswith(ADMIN)
    instruments = session._node.instruments
    asking = OutgoingQuery(plan.key, taker, plan.mode, plan.any_key, None if about_us else namespace, instruments)
    own = session._node.local
    key = plan.key if namespace is None or about_us else namespace.whole(plan.key)
    request = Request(0, key, plan.target, body, plan.timeout_ms, plan.qos)
    if timestamp_instrumentation is not None:
        request.stack = instruments.begun(timestamp_instrumentation.flags)
    is_channel = isinstance(sink, Handler)
    if isinstance(sink, Handler):
        sink.source = session._node
    if cancellation_token is None:
        box = Mailbox(asking.take, channel=channel_of)
        own.ask(request, box, plan.timeout, here=plan.here, elsewhere=plan.elsewhere and not about_us)
        return user
    cancellable = Cancellable(cancellation_token, asking.take, sink.close, is_channel)
    asking.on_end = cancellable.end
    box = Mailbox(cancellable.take, channel=channel_of)
    number = own.ask(request, box, plan.timeout, here=plan.here, elsewhere=plan.elsewhere and not about_us)
    _let_cancel(cancellable, session, number)
    return user


def _let_cancel(cancellable: Cancellable, session: Session, number: int) -> None:
    # Apart from `ask`, whose variables would all live in an object for this function.
    cancellable.begin(lambda: _cancel(session, number))


def _with_value(
    body: QueryBody,
    payload: IntoZBytes | None,
    encoding: Encoding | str | None,
    attachment: IntoZBytes | None,
    source_info: SourceInfo | None,
) -> QueryBody:
    data = None if payload is None else into_bytes(payload)
    if encoding is not None and data is None:
        data = b""
    extra = None if attachment is None else into_bytes(attachment)
    source = into_source(source_info)
    return QueryBody(body.parameters, body.consolidation, data, into_encoding(encoding), extra, source)


def _cancel(session: Session, number: int) -> None:
    node = session._node
    if node.local.forget(number):
        with node.lock:
            node.space.cancel(node.local, number)
        node.settle()
