"""One running session with a Zenoh 1.x node: what it says to the space, and what the space says to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.broker.routes import Route, Routes
from elea.broker.translate import DATA_QOS, Keys, UnknownResource, from_wire, to_wire
from elea.io.errors import LinkClosed
from elea.io.timers import wall_ns
from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr, Truncated
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.protocol.zenoh1.terms import Agreement
from elea.space.face import Control, Final, Region, Request, Response, ResponseFinal
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import DIALECT, read_network_message, write_network_message
from elea.wire.zenoh1.samples import DEFAULT_QOS, Pushed, read_pushes, split_body

if TYPE_CHECKING:
    from elea.broker.node import Node
    from elea.io.sending import Outbox

__all__ = ["Zenoh1Session"]

_log = logging.getLogger("elea.broker")

NETWORK = 0x19
CONTROL_CONDUIT = 0 << 1 | 1


class Zenoh1Session:
    """The space's view of a neighbour (`Face`), and the receiver's view of the space (`Sink`)."""

    def __init__(self, node: Node, agreement: Agreement, region: Region, outbox: Outbox) -> None:
        self.node = node
        self.agreement = agreement
        self.outbox = outbox
        self.keys = Keys()
        self.routes = Routes(self._find, lambda: node.generation)
        self.lost = 0  # samples on their way to this neighbour that found no room, or no neighbour
        self.unroutable = 0  # samples whose key makes no sense
        self.ignored = 0  # control messages whose key makes no sense
        self._region = region
        self._told: set[int] = set()
        self.on_stalled: Callable[[], None] = lambda: None
        """What to do when the other node takes nothing more."""

    @property
    def node_id(self) -> bytes:
        return self.agreement.peer_id

    @property
    def role(self) -> Role:
        return self.agreement.peer_role

    @property
    def region(self) -> Region:
        return self._region

    # -- out ----------------------------------------------------------------------------------------------------------

    def send(self, message: Control) -> None:
        """Queue a control message."""
        conduit = CONTROL_CONDUIT
        if isinstance(message, Request | Response | ResponseFinal):
            conduit = (message.qos & 7) << 1 | 1
        self.say(to_wire(message), conduit)

    def say(self, message: m.NetworkMessage, conduit: int = CONTROL_CONDUIT) -> None:
        """Queue a message that must not be lost: a neighbour that has no room for it is given up (zenoh-1 §6.5)."""
        out = bytearray()
        write_network_message(out, message)
        if not self.outbox.offer(conduit, (bytes(out), b""), len(out), False):
            self.node.later(self.on_stalled)

    def forward(self, route: Route, parts: tuple[bytes, ...], size: int, qos: int, reliable: bool) -> None:
        """Queue rewritten samples. Those that may be dropped are, when there is no room; the others wait for it.

        Waiting holds up the link the samples came from, which is what their publisher asked for with BLOCK; a neighbour
        that takes nothing for `wait_before_close` is given up (zenoh-1 §6.5).
        """
        self.tell(route.outgoing.number, route.key)
        droppable = not reliable or not qos & 8
        send = self.outbox.offer if droppable else self.outbox.put
        try:
            taken = send((qos & 7) << 1 | reliable, parts, size, droppable)
        except LinkClosed:
            taken = False  # this neighbour's end is not the fault of the one we read from
        if not taken:
            self.lost += len(parts) // 2

    def tell(self, number: int, key: str) -> None:
        """Declare a number of ours before it is first used on this link."""
        if number and number not in self._told:
            self._told.add(number)
            self.keys.ours[number] = key
            self.say(m.Declare(m.DeclareKeyExpr(number, 0, key), qos=8))

    # -- in -----------------------------------------------------------------------------------------------------------

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        """Take the network messages from `at` on."""
        size = len(buf)
        now_ns = wall_ns()
        while at < size:
            run: list[Pushed] = []
            at = read_pushes(buf, at, run)
            if run:
                self._samples(run, reliable, now_ns)
            if at >= size or buf[at] & 0x1F < NETWORK:
                break
            try:
                message, at = read_network_message(buf, at)
            except IndexError:
                raise Truncated(DIALECT, size) from None
            self._message(message, reliable, now_ns)
        return at

    def closed(self, reason: int, whole_session: bool) -> None:
        """The other node has ended the session."""
        _log.info("session closed by the other node: node=%s reason=%d", NodeId(self.node_id), reason)

    def _samples(self, run: list[Pushed], reliable: bool, now_ns: int) -> None:
        """Cut a run where the key changes and send each piece its way."""
        start, count = 0, len(run)
        while start < count:
            header, scope, suffix = run[start][:3]
            end = start + 1
            while end < count:
                other = run[end]
                if other[1] != scope or other[2] != suffix or other[0] != header:
                    break
                end += 1
            piece = run if end - start == count else run[start:end]
            route = self.routes.of(header, scope, suffix)
            if route is None:
                self.unroutable += len(piece)
            else:
                self.node.deliver(route, piece, reliable, now_ns)
            start = end

    def _find(self, header: int, scope: int, suffix: bytes) -> Route | None:
        try:
            text = str(suffix, "utf-8") if suffix else None
            key = self.keys.resolve(scope, text, bool(header & 0x40))
            keyexpr.check(key)
        except (UnknownResource, InvalidKeyExpr, UnicodeDecodeError) as error:
            _log.warning("sample dropped: node=%s problem=%s", NodeId(self.node_id), error)
            return None
        return self.node.route(self, key)

    def _message(self, message: m.NetworkMessage, reliable: bool, now_ns: int) -> None:
        if isinstance(message, m.Push):
            self._push(message, reliable, now_ns)
            return
        if isinstance(message, m.Oam):
            if self.node.on_oam is not None:
                self.node.on_oam(self, message)
            return
        try:
            control = from_wire(message, self.keys)
        except (UnknownResource, InvalidKeyExpr) as error:
            self._senseless(message, error)
            return
        if isinstance(message, m.Declare) and isinstance(message.body, m.DeclareKeyExpr | m.UndeclareKeyExpr):
            self.routes.forget()
        if control is not None:
            self.node.control(self, control)

    def _push(self, message: m.Push, reliable: bool, now_ns: int) -> None:
        """A PUSH that the fast path left: a deletion, or one with rare extensions."""
        expr = message.wire_expr
        header = (0x40 if expr.sender else 0) | (0x20 if expr.suffix is not None else 0)
        suffix = (expr.suffix or "").encode()
        route = self.routes.of(header, expr.scope, suffix)
        if route is None:
            self.unroutable += 1
            return
        qos = DEFAULT_QOS if message.qos is None else message.qos
        self.node.deliver(route, [(header, expr.scope, suffix, qos, *split_body(message.body))], reliable, now_ns)

    def _senseless(self, message: m.NetworkMessage, error: Exception) -> None:
        """A message about a key that is none: the link stays up, and nobody is left waiting (zenoh-1 §9.3, §14.1)."""
        self.ignored += 1
        _log.warning("message ignored: node=%s problem=%s", NodeId(self.node_id), error)
        if isinstance(message, m.Request):
            self.send(ResponseFinal(message.id, DATA_QOS if message.qos is None else message.qos))
        elif isinstance(message, m.Interest):
            self.send(Final(message.id))
