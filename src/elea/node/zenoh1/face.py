"""One running session with a Zenoh 1.x node: what it says to the space, and what the space says to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from elea.io.dispatch import Mailbox
from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr, Truncated
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import BLOCK
from elea.node.outboxface import OutboxFace
from elea.node.route import Route
from elea.node.zenoh1.controlcodec import ResourceTable, UnknownResource, from_wire, to_wire
from elea.node.zenoh1.fanout import Fanout
from elea.node.zenoh1.namedroutes import FrameScanner, NamedRoutes, RememberedNames
from elea.node.zenoh1.pushes import stack_of
from elea.node.zenoh1.sessionqueries import SessionQueries
from elea.protocol.zenoh1.terms import Agreement
from elea.space.face import Control, Request, Response, ResponseFinal, Subject
from elea.space.face import Final as FinalMessage
from elea.space.way import Encoder
from elea.wire.timestampstack import ROUTE
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import DIALECT, read_network_message, write_network_message
from elea.wire.zenoh1.frames import Frames
from elea.wire.zenoh1.samples import DEFAULT_QOS, Pushed, read_pushes, split_body

if TYPE_CHECKING:
    from elea.io.outbox import Outbox
    from elea.node.node import Node

__all__ = ["Zenoh1Face"]

_log = logger("elea.node")

NETWORK: Final = 0x19
LOGGED_EVERY: Final = 1_000
"""One line for so many samples or messages without a key: a neighbour that sends no others must not fill the disk."""

RESPONSE_FINAL: Final = 0x1A
REQUEST: Final = 0x1C  # and RESPONSE between them
CONTROL_CONDUIT: Final = 0 << 1 | 1
SCANNED: Final = 1_024
"""Bytes from which on messages are read to blocks, for those who take them: a block costs 20 µs, however small."""


class Zenoh1Face(OutboxFace):
    """The space's view of a neighbour (`Face`), and the receiver's view of the space (`Sink`)."""

    def __init__(
        self,
        node: Node,
        agreement: Agreement,
        subject: Subject,
        outbox: Outbox,
        encoder: Encoder,
        names: RememberedNames | None = None,
    ) -> None:
        super().__init__(node, subject, outbox, encoder)
        self.agreement = agreement
        self.resources = ResourceTable()
        self.routes = NamedRoutes(self._find, names)
        self._numbered = outbox.link.reliable
        self.unroutable = 0  # samples whose key makes no sense
        self.ignored = 0  # control messages whose key makes no sense
        self._told: set[int] = set()
        fanout = self.outflow.collector(encoder)
        assert isinstance(fanout, Fanout)
        self._fanout = fanout  # of samples that come from a 1.x node and go to others
        self._queries = SessionQueries(self, self.resources)
        self._scanner: FrameScanner | None = None
        self.on_oam: Callable[[Zenoh1Face, m.Oam], None] | None = None
        """Told what it says besides data, queries and declarations."""
        self.received: Callable[[], Mapping[str, int]] = dict
        """What has been counted of what came."""

    @property
    def has_priorities(self) -> bool:
        return self.agreement.qos

    def counters(self) -> Mapping[str, int]:
        return {
            **super().counters(),
            **self.received(),
            "unroutable_samples": self.unroutable,
            "ignored_messages": self.ignored,
        }

    # -- out ----------------------------------------------------------------------------------------------------------

    def send(self, message: Control) -> None:
        """Queue a control message."""
        # A tuple: mypyc looks at each of them, and makes a union of `|` every time.
        if not isinstance(message, (Request, Response, ResponseFinal)):
            self.say(to_wire(message))
        elif not self._queries.send(message):
            out = bytearray()
            write_network_message(out, to_wire(message))
            self._queries.answer((message.qos & 7) << 1 | 1, bytes(out), b"")

    def say(self, message: m.NetworkMessage, conduit: int = CONTROL_CONDUIT) -> None:
        """Queue a message that must not be lost."""
        out = bytearray()
        write_network_message(out, message)
        self.push(conduit, bytes(out))

    def takes_number(self, key: str) -> bool:
        """Whether a number may stand for this key here."""
        return self._numbered and self.resources.takes_number(key)

    def tell(self, number: int, key: str) -> None:
        """Declare a number of ours before it is first used on this link."""
        if number and number not in self._told:
            self.resources.ours[number] = key
            self.say(m.Declare(m.DeclareKeyExpr(number, 0, key), qos=8))
            self._told.add(number)  # only now: who finds it there may use it at once

    # -- in -----------------------------------------------------------------------------------------------------------

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        """Take the network messages from `at` on."""
        size = len(buf)
        now_ns = self.node.loop.wall_ns()
        try:
            while at < size:
                if RESPONSE_FINAL <= buf[at] & 0x1F <= REQUEST:
                    self.outflow.flush(now_ns)
                    self.node.loop.share()
                    end = self._queries.take(buf, at)
                    if end > at:
                        at = end
                        continue
                scanner = self.node.scanner
                if scanner is not None and size - at >= SCANNED:
                    if self._scanner is None:
                        self._scanner = scanner()
                    at = self._blocks(self._scanner, buf, at, reliable, now_ns)
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
        finally:
            self.outflow.flush(now_ns)
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        """Take a sample that came in fragments."""
        now_ns = self.node.loop.wall_ns()
        self._samples([sample], reliable, now_ns)
        self.outflow.flush(now_ns)

    def closed(self, reason: int, whole_session: bool) -> None:
        """The other node has ended the session."""
        _log.info("session closed by the other node: node=%s reason=%d", NodeId(self._subject.node_id), reason)

    def frames(self, buf: bytes, at: int, frames: Frames) -> tuple[int, Frames]:
        """Take samples of many frames for those who want blocks of them."""
        make = self.node.scanner
        if make is None:
            return at, frames
        scanner = self._scanner = self._scanner or make()
        reliable, now_ns, more = frames.header & 0x20 != 0, self.node.loop.wall_ns(), 0
        while at < len(buf):
            at, block, boxes, qos = scanner.scan(buf, at, self.node.generation, self._takers, frames)
            frames = scanner.stopped
            more += frames.more
            if block is None:
                break
            self._hand(block, boxes, reliable and qos & BLOCK != 0, now_ns)
        return at, Frames(frames.stop, frames.header, frames.sn, frames.mask, more)

    def _blocks(self, scanner: FrameScanner, buf: bytes, at: int, reliable: bool, now_ns: int) -> int:
        """Take the samples from `at` on for those who want blocks of them, up to the first one that others want too."""
        while at < len(buf):
            at, block, boxes, qos = scanner.scan(buf, at, self.node.generation, self._takers)
            if block is None:
                break
            self._hand(block, boxes, reliable and qos & BLOCK != 0, now_ns)
        return at

    def _hand(self, block: Any, boxes: Sequence[Mailbox], waits: bool, now_ns: int) -> None:
        """Leave a block in the mailboxes of those who take it."""
        block.arrival_ns = now_ns
        for box in boxes:
            self.outflow.leave(box, block, block.size, len(block), waits)

    def _takers(self, header: int, scope: int, suffix: bytes) -> tuple[str, tuple[Mailbox, ...]] | None:
        """The key of a name and who takes blocks of it; None if others are to get its samples too, or nobody."""
        route = self.routes.of(header, scope, suffix, self.node.generation)
        return (route.key, route.takers) if route is not None and route.takers else None

    def _samples(self, run: list[Pushed], reliable: bool, now_ns: int) -> None:
        """Cut a run where the key or the quality of service changes and send each piece its way."""
        start, count = 0, len(run)
        while start < count:
            header, scope, suffix, qos, _, _ = run[start]
            end = start + 1
            while end < count:
                other = run[end]
                if other[1] != scope or other[0] != header or other[3] != qos or other[2] != suffix:
                    break
                end += 1
            if end == start + 1 < count:
                end = self._fanout.add_mixed(run, start, self.routes, self.node.generation, reliable, now_ns)
                if end > start:
                    start = end
                    continue
                end = start + 1
            route = self.routes.of(header, scope, suffix, self.node.generation)
            if route is None:
                self.unroutable += end - start
            else:
                self.outflow.add(route, run if end - start == count else run[start:end], reliable, now_ns)
            start = end

    def _find(self, header: int, scope: int, suffix: bytes, deletions: bool = False) -> Route | None:
        self.node.loop.share()  # a key of many chunks among many wildcards takes its time
        try:
            text = str(suffix, "utf-8") if suffix else None
            key = self.resources.resolve(scope, text, bool(header & 0x40))
            keyexpr.check(key)
        except (UnknownResource, InvalidKeyExpr, UnicodeDecodeError) as error:
            if not self.unroutable % LOGGED_EVERY:
                _log.warning(
                    "sample dropped: node=%s problem=%s dropped=%d",
                    NodeId(self._subject.node_id),
                    error,
                    self.unroutable + 1,
                )
            return None
        return self.node.route(self, key, deletions=deletions)

    def _message(self, message: m.NetworkMessage, reliable: bool, now_ns: int) -> None:
        self.node.loop.share()
        if isinstance(message, m.Push):
            self._push(message, reliable, now_ns)
            return
        self.outflow.flush(now_ns)
        if isinstance(message, m.Oam):
            if self.on_oam is not None:
                self.on_oam(self, message)
            return
        try:
            control = from_wire(message, self.resources)
        except (UnknownResource, InvalidKeyExpr) as error:
            self._senseless(message, error)
            return
        if isinstance(message, m.Declare) and isinstance(message.body, m.DeclareKeyExpr | m.UndeclareKeyExpr):
            self.routes.forget()
            self._queries.forget()
            if self._scanner is not None:
                self._scanner.forget()
        if isinstance(control, (Request, Response)) and control.stack is not None:
            control.stack = self.node.instruments.marked(control.stack, ROUTE)
        if isinstance(control, Request):
            self.node.ask(self, control)
        elif control is not None:
            self.node.control(self, control)

    def _push(self, message: m.Push, reliable: bool, now_ns: int) -> None:
        """A PUSH that the fast path left: a deletion, or one with rare extensions."""
        expr = message.wire_expr
        header = (0x40 if expr.sender else 0) | (0x20 if expr.suffix is not None else 0)
        suffix = (expr.suffix or "").encode()
        if self.node.space.guard is not None and isinstance(message.body, m.Del):
            route = self._find(header, expr.scope, suffix, deletions=True)  # rules tell them from puts, and few come
        else:
            route = self.routes.of(header, expr.scope, suffix, self.node.generation)
        if route is None:
            self.unroutable += 1
            return
        qos = DEFAULT_QOS if message.qos is None else message.qos
        meta, payload = split_body(message.body)
        sample: Pushed = (header, expr.scope, suffix, qos, meta, payload)
        if message.ts_stack is None:
            self.outflow.add(route, [sample], reliable, now_ns)
        else:
            stack = stack_of(message.ts_stack)
            self.node.instruments.add(self.outflow, route, sample, stack, reliable, now_ns)

    def _senseless(self, message: m.NetworkMessage, error: Exception) -> None:
        """A message about a key that is none: the link stays up, and nobody is left waiting (zenoh-1 §9.3, §14.1)."""
        if not self.ignored % LOGGED_EVERY:
            _log.warning(
                "message ignored: node=%s problem=%s ignored=%d", NodeId(self._subject.node_id), error, self.ignored + 1
            )
        self.ignored += 1
        if isinstance(message, m.Request):
            self.send(ResponseFinal(message.id, DEFAULT_QOS if message.qos is None else message.qos))
        elif isinstance(message, m.Interest):
            self.send(FinalMessage(message.id))
