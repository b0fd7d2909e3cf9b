"""Queries and their answers on one 1.x session: between bytes and the messages of the space, by the short way.

Queries come in series that differ in nothing but their number, so what they say is decoded once and remembered, and
what is said to others comes from templates. Whatever has no template goes the long way, through `controlcodec`.

Answers given while the thread that read the questions brings them round are held until it is through, so that a reply
and its end, and the answers to all questions of a batch, leave in one write. Spec: zenoh-1 §8.4, §14.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from elea.io.dispatch import Mailbox
from elea.io.outbox import FULL, REFUSED
from elea.model import keyexpr
from elea.model.errors import DecodeError, InvalidKeyExpr
from elea.model.limits import HELD_OCTETS, MAX_OCTETS, MAX_REMEMBERED
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.node.zenoh1.controlcodec import ResourceTable, UnknownResource, query_message, query_of
from elea.space.face import Request, Response, ResponseFinal
from elea.space.questions import AnswerBody, QueryBody, ReplyBody
from elea.wire.zenoh1 import queries as wire
from elea.wire.zenoh1.codec import read_entity_id, read_request_body

if TYPE_CHECKING:
    from elea.node.zenoh1.face import Zenoh1Face

__all__ = ["SessionQueries"]

K = TypeVar("K")
V = TypeVar("V")

AUTO: Final = ConsolidationMode.AUTO
TARGETS: Final = tuple(QueryTarget(number) for number in range(3))


class SessionQueries:
    """The queries of one session, in both directions."""

    __slots__ = (
        "_bodies",
        "_box",
        "_due",
        "_held",
        "_held_octets",
        "_keys",
        "_names",
        "_requests",
        "_responders",
        "_responses",
        "_session",
        "_stalled",
        "_writing",
    )

    def __init__(self, session: Zenoh1Face, keys: ResourceTable) -> None:
        self._session = session
        self._keys = keys
        self._names: dict[tuple[int, int, bytes], str] = {}
        self._bodies: dict[bytes, QueryBody] = {}
        self._responders: dict[bytes, tuple[bytes, int]] = {}
        self._requests: dict[str, tuple[Request, bytes]] = {}
        self._responses: dict[str, tuple[int, tuple[bytes, int] | None, bytes]] = {}
        self._held: deque[tuple[int, bytes, bytes]] = deque()
        self._held_octets = 0
        self._due = False
        self._stalled = False
        self._writing = threading.Lock()
        self._box = Mailbox(self._bring)

    def forget(self) -> None:
        """A resource changed its meaning."""
        self._names.clear()

    # -- in -----------------------------------------------------------------------------------------------------------

    def take(self, buf: bytes, at: int) -> int:
        """Take a message about a query; returns where it ends, or `at` if it must go the long way."""
        kind = buf[at] & 0x1F
        if kind == wire.RESPONSE:
            return self._response(buf, at)
        if kind == wire.RESPONSE_FINAL:
            final = wire.read_final(buf, at)
            if final is None:
                return at
            self._session.node.answer(self._session, ResponseFinal(final[1], final[2]))
            return final[0]
        return self._request(buf, at) if kind == wire.REQUEST else at

    def _request(self, buf: bytes, at: int) -> int:
        found = wire.read_request(buf, at)
        if found is None:
            return at
        end, header, number, scope, suffix, qos, target, budget, timeout, octets = found
        key = self._names.get((header & 0x60, scope, suffix)) or self._name(header, scope, suffix)
        body = self._bodies.get(octets) or self._body(octets)
        if key is None or body is None:
            return at
        request = Request(
            number,
            key,
            TARGETS[target],
            body,
            None if timeout < 0 else timeout,
            qos,
            None if budget < 0 else budget,
        )
        self._session.node.ask(self._session, request)
        return end

    def _response(self, buf: bytes, at: int) -> int:
        found = wire.read_response(buf, at)
        if found is None:
            return at
        end, header, number, scope, suffix, qos, octets, meta, payload = found
        key = self._names.get((header & 0x60, scope, suffix)) or self._name(header, scope, suffix)
        if key is None:
            return at
        responder = None
        if octets:
            responder = self._responders.get(octets) or self._responder(octets)
            if responder is None:
                return at
        body: AnswerBody = payload if meta is None else ReplyBody(meta, payload)
        self._session.node.answer(self._session, Response(number, key, body, qos, responder))
        return end

    def _name(self, header: int, scope: int, suffix: bytes) -> str | None:
        """The key a name stands for; None if it stands for none, which the long way says better."""
        try:
            key = self._keys.resolve(scope, suffix.decode(), bool(header & 0x40))
            keyexpr.check(key)
        except (UnknownResource, InvalidKeyExpr, UnicodeDecodeError):
            return None
        if len(suffix) <= MAX_OCTETS:
            _room(self._names)[header & 0x60, scope, suffix] = key
        return key

    def _body(self, octets: bytes) -> QueryBody | None:
        try:
            body = query_of(read_request_body(octets, 0)[0])
        except (DecodeError, IndexError):
            return None
        if len(octets) <= MAX_OCTETS:
            _room(self._bodies)[octets] = body
        return body

    def _responder(self, octets: bytes) -> tuple[bytes, int] | None:
        try:
            who, end = read_entity_id(octets, 0)
        except (DecodeError, IndexError):
            return None
        if end != len(octets):
            return None
        found = _room(self._responders)[octets] = (who.zid, who.eid)
        return found

    # -- out ----------------------------------------------------------------------------------------------------------

    def send(self, message: Request | Response | ResponseFinal) -> bool:
        """Queue a message about a query; False if it must go the long way."""
        conduit = (message.qos & 7) << 1 | 1
        if type(message) is Response:
            return message.stack is None and self._send_response(message, conduit)
        if type(message) is ResponseFinal:
            self.answer(conduit, wire.final_octets(message.id, message.qos), b"")
            return True
        if type(message) is Request:
            if message.stack is not None:
                return False
            octets = wire.request_octets(self._template(message), message.id)
            self._put(conduit, (octets, b""), len(octets))
        return True

    def _template(self, message: Request) -> bytes:
        known = self._requests.get(message.key)
        if known is not None:
            like, octets = known
            # The body is one object for all queries of a series: made once here, remembered where it was read.
            if (
                like.body is message.body
                and like.timeout_ms == message.timeout_ms
                and like.qos == message.qos
                and like.target is message.target
                and like.budget == message.budget
            ):
                return octets
        target = int(message.target)
        body = query_message(message.body)
        octets = wire.request_tail(message.key, message.qos, target, message.budget, message.timeout_ms, body)
        if len(octets) <= 2 * MAX_OCTETS:
            _room(self._requests)[message.key] = message, octets
        return octets

    def _send_response(self, message: Response, conduit: int) -> bool:
        body = message.body
        if isinstance(body, bytes):
            meta, payload = None, body
        elif isinstance(body, ReplyBody) and body.consolidation is AUTO and not body.extensions:
            meta, payload = body.meta, body.payload
        else:
            return False
        known = self._responses.get(message.key)
        if known is None or known[0] != message.qos or known[1] != message.responder:
            middle = wire.response_middle(message.key, message.qos, message.responder)
            known = message.qos, message.responder, middle
            if len(middle) <= 2 * MAX_OCTETS:
                _room(self._responses)[message.key] = known
        if meta is None:
            head = wire.response_head(known[2], message.id, len(payload))
        else:
            head = wire.reply_head(known[2], message.id, meta, len(payload))
        self.answer(conduit, head, payload)
        return True

    def answer(self, conduit: int, head: bytes, payload: bytes) -> None:
        """Queue a response or the end of them, behind those that are held back."""
        node = self._session.node
        held = self._held
        if node.delivers():
            held.append((conduit, head, payload))
            self._held_octets += len(head) + len(payload)
            if not self._due:
                # Behind all that is to be brought now. Who is held up by a handler lets another thread go on.
                self._due = True
                node.dispatch.add(self._box, None)
            if self._held_octets > HELD_OCTETS:
                self.write_held()
        elif held or self._writing.locked():
            held.append((conduit, head, payload))
            self.write_held()
        else:
            self._put(conduit, (head, payload), len(head) + len(payload))

    def _bring(self, _: None) -> None:
        self._due = False  # first this, then look: what comes in between is seen, or sees to it itself
        self.write_held()
        if self._stalled:
            self._session.node.settle()

    def write_held(self) -> None:
        """Write what was held back, unless another thread is doing so: then it will write this too."""
        held = self._held
        while held and self._writing.acquire(False):
            try:
                self._write_all(held)
            finally:
                self._writing.release()

    def _write_all(self, held: deque[tuple[int, bytes, bytes]]) -> None:
        self._held_octets = 0
        parts: list[bytes] = []
        size, last = 0, -1
        while held:
            conduit, head, payload = held.popleft()
            more = len(head) + len(payload)
            if parts and (conduit != last or size + more > self._session.outbox.room):
                self._put(last, tuple(parts), size)
                parts, size = [], 0
            last = conduit
            parts += (head, payload)
            size += more
        if parts:
            self._put(last, tuple(parts), size)

    def _put(self, conduit: int, parts: tuple[bytes, ...], size: int) -> None:
        session = self._session
        pushed = session.outbox.push(conduit, parts, size)
        if pushed == REFUSED:
            self._stalled = True
            session.node.later(session.on_stalled)
        elif pushed == FULL:
            session.node.crowded(lambda: session.wait_for_room(conduit))


def _room(known: dict[K, V]) -> dict[K, V]:
    """The same dictionary, with room for one more."""
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    return known
