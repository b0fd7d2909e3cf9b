"""Control messages of the space to messages of Zenoh 1.x and back.

Keys travel literally, except where the other side declared a resource: both id spaces are resolved on receipt, and
nothing but data uses ids of ours (`encoder`). Spec: zenoh-1 §8, §9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from elea.model import keyexpr
from elea.model.details import Source
from elea.model.encoding import Encoding
from elea.model.errors import InvalidKeyExpr, LimitReached
from elea.model.keytext import cover
from elea.model.limits import MAX_RESOURCE_OCTETS
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.node.zenoh1.pushes import stack_message, stack_of
from elea.space.face import (
    Control,
    Declare,
    Entity,
    Interest,
    InterestDone,
    InterestMode,
    Kinds,
    Request,
    Response,
    ResponseFinal,
    Undeclare,
)
from elea.space.face import (
    Final as FinalMessage,
)
from elea.space.questions import AnswerBody, ErrorBody, QueryBody, ReplyBody
from elea.wire.primitives import Unknown
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.samples import details, split_body

__all__ = ["CONTROL_QOS", "ResourceTable", "UnknownResource", "from_wire", "query_message", "query_of", "to_wire"]

CONTROL_QOS: Final = 0x08
"""Priority control, block: what declarations and interests travel with."""

DECLARES: Final[dict[Entity, Callable[..., Any]]] = {
    Entity.SUBSCRIBER: m.DeclareSubscriber,
    Entity.QUERYABLE: m.DeclareQueryable,
    Entity.TOKEN: m.DeclareToken,
}
UNDECLARES: Final[dict[Entity, Callable[..., Any]]] = {
    Entity.SUBSCRIBER: m.UndeclareSubscriber,
    Entity.QUERYABLE: m.UndeclareQueryable,
    Entity.TOKEN: m.UndeclareToken,
}
PREDICATES_HEADER: Final = 0x4A
"""Extension 10 of a declared subscriber, with a body, not mandatory: Elea's own, which eclipse-zenoh passes over."""
_SEPARATOR: Final = "\0"
NO_KEY: Final = m.LooseWireExpr(0)
PLAIN_PUT: Final = b"\x01"
BYTES: Final = Encoding.ZENOH_BYTES
MODES: Final = tuple(ConsolidationMode(number) for number in range(4))
CONSOLIDATIONS: Final = (None, *(m.Consolidation(number) for number in range(1, 4)))
"""By the same numbers; what leaves the choice to others is not written."""


class UnknownResource(Exception):
    """A message names an id nobody declared."""

    def __init__(self, scope: int) -> None:
        super().__init__(f"resource {scope} was not declared")
        self.scope = scope


class ResourceTable:
    """The resources declared on one link, in both directions."""

    def __init__(self) -> None:
        self.theirs: dict[int, str] = {}
        self.ours: dict[int, str] = {}
        self._octets = 0  # of `theirs`
        self._above: set[str] = set()  # what is in `theirs`

    def resolve(self, scope: int, suffix: str | None, sender: bool) -> str:
        """The whole text of a key expression received; not checked."""
        if scope == 0:
            return suffix or ""
        prefix = (self.theirs if sender else self.ours).get(scope)
        if prefix is None:
            raise UnknownResource(scope)
        return prefix + suffix if suffix else prefix

    def takes_number(self, key: str) -> bool:
        """Whether a number of ours may stand for a key.

        Not for `a/b/c` once the other side has declared `a` or `a/b`: when an entity there is undeclared, eclipse-zenoh
        1.10.2 may forget the numbers it was told for keys below, and lose the samples under them. Its own nodes build
        on the number of the prefix instead, which is another one on every link.
        """
        if not self._above:
            return True
        chunks = key.split("/")
        return not any("/".join(chunks[:count]) in self._above for count in range(1, len(chunks)))

    def declared(self, message: m.DeclareKeyExpr) -> None:
        """The other side gives a key expression a number; a live number keeps its first meaning.

        Raises:
            LimitReached: it has given away as much as any may. Data under this number would make no sense to us, so
                the session cannot go on.
        """
        # Spec 9.1: the inner scope has no mapping flag and is resolved among the receiver's own ids.
        text = self.resolve(message.scope, message.suffix, sender=False)
        keyexpr.check(text)
        if message.id not in self.theirs:
            if self._octets + len(text) > MAX_RESOURCE_OCTETS:
                raise LimitReached("MAX_RESOURCE_OCTETS", MAX_RESOURCE_OCTETS)
            self._octets += len(text)
            self.theirs[message.id] = text
            self._above.add(text)

    def undeclared(self, number: int) -> None:
        """The other side takes a number back."""
        text = self.theirs.pop(number, "")
        self._octets -= len(text)
        self._above.discard(text)


# -- to the wire ------------------------------------------------------------------------------------------------------


def literal(key: str) -> m.WireExpr:
    return m.WireExpr(0, True, key) if key else m.WireExpr(0, True)


def to_wire(message: Control) -> m.NetworkMessage:
    """A control message as Zenoh 1.x says it."""
    match message:
        case Declare(entity=entity):
            expr = literal(cover(message.key))
            info = int(message.complete) | message.distance << 8
            more: dict[str, Any] = {"info": info} if entity is Entity.QUERYABLE and info else {}
            if message.predicates:
                more["unknown"] = (Unknown(PREDICATES_HEADER, _SEPARATOR.join(message.predicates).encode()),)
            body = DECLARES[entity](message.id, expr, **more)
            return m.Declare(body, message.interest_id, qos=CONTROL_QOS)
        case Undeclare(entity=entity, key=key):
            named = None if entity is Entity.SUBSCRIBER and key is None else _loose(key)
            return m.Declare(UNDECLARES[entity](message.id, named), qos=CONTROL_QOS)
        case FinalMessage():
            return m.Declare(m.DeclareFinal(), message.interest_id, qos=CONTROL_QOS)
        case Interest():
            where = None if message.key is None else literal(cover(message.key))
            options = m.InterestOptions(int(message.kinds), message.aggregate, where)
            return m.Interest(m.InterestMode(message.mode), message.id, options, qos=CONTROL_QOS)
        case InterestDone():
            return m.Interest(m.InterestMode.final, message.id, qos=CONTROL_QOS)
        case Request():
            target = None if message.target is QueryTarget.BEST_MATCHING else m.Target(int(message.target))
            return m.Request(
                message.id,
                literal(message.key),
                query_message(message.body),
                qos=_qos(message.qos),
                target=target,
                budget=message.budget,
                timeout=message.timeout_ms,
                ts_stack=None if message.stack is None else stack_message(message.stack),
            )
        case Response():
            responder = None if message.responder is None else m.EntityId(*message.responder)
            expr = literal(message.key)
            answer = _answer_message(message.body)
            stack = None if message.stack is None else stack_message(message.stack)
            return m.Response(message.id, expr, answer, qos=_qos(message.qos), responder=responder, ts_stack=stack)
        case ResponseFinal():
            return m.ResponseFinal(message.id, qos=_qos(message.qos))


def _loose(key: str | None) -> m.LooseWireExpr:
    return NO_KEY if key is None else m.LooseWireExpr(0, True, cover(key))


def _qos(raw: int) -> int | None:
    return None if raw == 5 else raw


# -- from the wire ----------------------------------------------------------------------------------------------------


def from_wire(message: m.NetworkMessage, keys: ResourceTable) -> Control | None:
    """What a message of Zenoh 1.x says to the space; None if it is none of its business.

    Raises:
        UnknownResource: a number nobody declared.
        InvalidKeyExpr: a key that is none.
    """
    match message:
        case m.Declare(body=body):
            return _declaration(body, message.interest_id, keys)
        case m.Interest(mode=m.InterestMode.final):
            return InterestDone(message.id)
        case m.Interest(options=options) if options is not None:
            key = None if options.wire_expr is None else _key(options.wire_expr, keys)
            mode, kinds = InterestMode(int(message.mode)), Kinds(options.kinds)
            return Interest(message.id, mode, kinds, key, options.aggregate)
        case m.Request():
            target = QueryTarget(int(message.target or 0))
            qos = 5 if message.qos is None else message.qos
            key = _key(message.wire_expr, keys)
            stack = None if message.ts_stack is None else stack_of(message.ts_stack)
            query = query_of(message.body)
            return Request(message.id, key, target, query, message.timeout, qos, message.budget, stack)
        case m.Response():
            expr = message.wire_expr
            # An error may be about no key in particular; a sample may not.
            is_error = isinstance(message.body, m.Err)
            key = keys.resolve(expr.scope, expr.suffix, expr.sender) if is_error else _key(expr, keys)
            responder = None if message.responder is None else (message.responder.zid, message.responder.eid)
            qos = 5 if message.qos is None else message.qos
            stack = None if message.ts_stack is None else stack_of(message.ts_stack)
            return Response(message.id, key, _answer_of(message.body), qos, responder, stack)
        case m.ResponseFinal():
            return ResponseFinal(message.id, 5 if message.qos is None else message.qos)
        case _:
            return None


def _predicates(extensions: tuple[Unknown, ...]) -> tuple[str, ...]:
    """The predicates of a subscriber; none if they make no sense, for they are an offer only."""
    for extension in extensions:
        if extension.header == PREDICATES_HEADER and isinstance(extension.body, bytes):
            try:
                return tuple(extension.body.decode().split(_SEPARATOR))
            except UnicodeDecodeError:
                return ()
    return ()


def _declaration(body: m.Declaration, interest_id: int | None, keys: ResourceTable) -> Control | None:
    match body:
        case m.DeclareKeyExpr():
            keys.declared(body)
            return None
        case m.UndeclareKeyExpr():
            keys.undeclared(body.id)
            return None
        case m.DeclareFinal():
            return None if interest_id is None else FinalMessage(interest_id)
        case m.DeclareSubscriber():
            key = _key(body.wire_expr, keys)
            predicates = _predicates(body.unknown) if body.unknown else ()
            return Declare(Entity.SUBSCRIBER, body.id, key, interest_id=interest_id, predicates=predicates)
        case m.DeclareQueryable():
            info = body.info or 0
            key = _key(body.wire_expr, keys)
            return Declare(Entity.QUERYABLE, body.id, key, bool(info & 1), info >> 8 & 0xFFFF, interest_id)
        case m.DeclareToken():
            return Declare(Entity.TOKEN, body.id, _key(body.wire_expr, keys), interest_id=interest_id)
        case m.UndeclareSubscriber():
            return Undeclare(Entity.SUBSCRIBER, body.id, _loose_key(body.wire_expr, keys))
        case m.UndeclareQueryable():
            return Undeclare(Entity.QUERYABLE, body.id, _loose_key(body.wire_expr, keys))
        case m.UndeclareToken():
            return Undeclare(Entity.TOKEN, body.id, _loose_key(body.wire_expr, keys))


def _key(expr: m.WireExpr, keys: ResourceTable) -> str:
    text = keys.resolve(expr.scope, expr.suffix, expr.sender)
    keyexpr.check(text)
    return text


def _loose_key(expr: m.LooseWireExpr | None, keys: ResourceTable) -> str | None:
    if expr is None or (expr.scope == 0 and not expr.suffix):
        return None
    try:
        text = keys.resolve(expr.scope, expr.suffix, expr.sender)
        keyexpr.check(text)
    except (UnknownResource, InvalidKeyExpr):
        return None  # the id says enough
    return text


# -- queries and answers ----------------------------------------------------------------------------------------------


def query_of(message: m.Query) -> QueryBody:
    """What a query of Zenoh 1.x says."""
    value = message.value
    return QueryBody(
        message.parameters or "",
        MODES[message.consolidation or 0],
        None if value is None else value.payload,
        BYTES if value is None else _encoding_of(value.encoding),
        message.attachment,
        _source_of(message.source_info),
        message.unknown,
    )


def query_message(body: QueryBody) -> m.Query:
    """A query as Zenoh 1.x says it."""
    value = None
    if body.payload is not None:
        value = m.Value(m.Encoding(body.encoding.id, body.encoding.schema), body.payload)
    source = None if body.source is None else m.SourceInfo(*body.source)
    mode = CONSOLIDATIONS[body.consolidation]
    return m.Query(mode, body.parameters or None, source, value, body.attachment, body.extensions)


def _answer_of(message: m.Reply | m.Err) -> AnswerBody:
    if isinstance(message, m.Err):
        source = _source_of(message.source_info)
        return ErrorBody(message.payload, _encoding_of(message.encoding), source, message.unknown)
    meta, payload = split_body(message.body)
    if meta == PLAIN_PUT and message.consolidation is None and not message.unknown:
        return payload
    return ReplyBody(meta, payload, MODES[message.consolidation or 0], message.unknown)


def _answer_message(body: AnswerBody) -> m.Reply | m.Err:
    if isinstance(body, bytes):
        return m.Reply(m.Put(body))
    if isinstance(body, ReplyBody):
        return m.Reply(details(body.meta, body.payload), CONSOLIDATIONS[body.consolidation], body.extensions)
    encoding = None if body.encoding == BYTES else m.Encoding(body.encoding.id, body.encoding.schema)
    source = None if body.source is None else m.SourceInfo(*body.source)
    return m.Err(body.payload, encoding, source, unknown=body.extensions)


def _encoding_of(encoding: m.Encoding | None) -> Encoding:
    return BYTES if encoding is None else Encoding.of(encoding.id, encoding.schema)


def _source_of(source: m.SourceInfo | None) -> Source | None:
    return None if source is None else (source.zid, source.eid, source.sn)
