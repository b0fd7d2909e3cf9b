"""Links of a node and the sessions over them: connecting, accepting, reading, keeping alive, ending, coming back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from elea.io.batchreader import LARGE, BatchReader
from elea.io.dial import connect
from elea.io.errors import LinkError
from elea.io.link import Link
from elea.io.loop import IN, OUT, SERVED, Pollable
from elea.io.losses import Losses
from elea.io.outbox import Outbox
from elea.io.sharedmemory import WORTH, Door, Pool, SharedOut, has_memory, keep_heap, shares_machine
from elea.io.spin import LIMIT as SPIN_LIMIT
from elea.io.systemrandom import SystemRandom
from elea.io.tap import tapped
from elea.io.timers import Timer, thread_time
from elea.io.tls_settings import TlsSettings
from elea.model.errors import EleaError, OperationTimeout, ProtocolError, SessionClosed, SessionError, SessionRefused
from elea.model.limits import MAX_MESSAGE
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import mypyc_attr, replaced, value_class
from elea.node.gracefulclose import leave
from elea.node.node import Node
from elea.node.registry import SessionRegistry
from elea.node.zenoh1.face import Zenoh1Face
from elea.protocol.zenoh1.backoff import Backoff
from elea.protocol.zenoh1.keepalive import lease_ends, next_keep_alive
from elea.protocol.zenoh1.opening import Acceptor, Initiator
from elea.protocol.zenoh1.sender import Sender, count_messages
from elea.protocol.zenoh1.terms import Agreement, CloseReason, Offer
from elea.protocol.zenoh1.transport import Receiver
from elea.space.face import Region

if TYPE_CHECKING:
    from random import Random

    from elea.io.listener import Listener
    from elea.protocol.zenoh1.sender import Octets

__all__ = ["Connection", "LinkSettings", "Links"]

_log = logger("elea.node")

RECEIVED_AT_ONCE: Final = 16
"""How often a link is read in one turn that must be read until nothing is left."""

BLOCKED_SECONDS: Final = 0.001
"""How long a link waits that shares a socket with others, when that takes no more."""

REGIONS = {Role.CLIENT: Region.CLIENTS, Role.PEER: Region.PEERS, Role.ROUTER: Region.ROUTERS}


@value_class
class LinkSettings:
    """What the configuration says of links and sessions."""

    offer: Offer
    tls: TlsSettings | None = None
    users: Mapping[bytes, bytes] | None = None
    open_timeout: float = 10.0
    accept_timeout: float = 10.0
    accept_pending: int = 100
    max_message: int = MAX_MESSAGE
    max_sessions: int = 1000
    keep_alives: int = 4
    wait_before_drop: float = 0.001
    wait_before_close: float = 5.0
    spin: float = SPIN_LIMIT
    shared_memory: int = 0
    shared_from: int = WORTH
    backoff: Callable[[], Backoff] = Backoff


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(Pollable):
    """One link from its opening to its end: a handshake, then a session."""

    def __init__(self, links: Links, link: Link, machine: Initiator | Acceptor) -> None:
        super().__init__()
        self.links = links
        self.link = link
        self.loop = links.loop
        self._now = links.loop.now
        self.session: Zenoh1Face | None = None
        self.peer_id = b""  # known before the session is
        self.error: EleaError | None = None
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._machine = machine
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        self._timer: Timer | None = None
        self._ending = threading.Lock()
        self.reader = BatchReader(link)
        self.memory: SharedOut | None = None
        self._drains = link.drains
        self._pauses = 0
        self._told_of_size = False

    def start(self) -> None:
        """Begin the handshake and read."""
        if isinstance(self._machine, Initiator):
            self._machine.start()
        self._timer = self.loop.at(self._machine.next_deadline() or self._now(), self._opening_late)
        self._say()
        self._begin_reading()

    # -- reading ------------------------------------------------------------------------------------------------------

    def _begin_reading(self) -> None:
        descriptor = self.link.fileno()
        if descriptor >= 0:
            self.loop.add(self, descriptor)
        else:
            self.link.on_arrival = self._serve
        if self._drains:
            self.loop.soon(self._serve)  # what came with the end of a TLS handshake, the poller does not see

    def on_ready(self, mask: int) -> None:
        if mask & OUT and self.session is not None:
            self.session.outbox.on_writable()
        if mask & ~OUT:
            self._read()

    def _read(self) -> None:
        """Take what has arrived."""
        reader, loop = self.reader, self.loop
        try:
            for _ in range(RECEIVED_AT_ONCE):
                if self._pauses or self.ended.is_set():
                    return
                came = reader.receive(loop.buffer, loop.view)
                if came < 0:
                    return
                if not came:
                    self.end(SessionClosed(text="the other node closed the link"))
                    return
                if not self._take() or not self._drains:
                    return
            loop.soon(self._serve)
        except EleaError as error:
            self._give_up(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the link must not stay half alive
            _log.exception("reading failed: link=%s", self.link.remote)
            self.end(SessionClosed(text=f"internal error: {error!r}"))

    def _take(self) -> bool:
        """Take the batches that have been received; whether this thread may read on."""
        reader, loop = self.reader, self.loop
        while (batch := reader.cut()) is not None:
            begun = thread_time() if self.is_costly else 0.0
            self._batch(batch)
            if not loop.is_led_here():
                self.is_costly = not begun or thread_time() - begun > SERVED
                loop.aside -= 1
                self.resume()  # it had to wait for something, and what is left has been kept
                return False
            if loop.dispatch and not loop.deliver(reader.has_more):
                if loop.is_led_here():
                    self.on_takeover()  # a thread of the user's, which leaves the rest to others
                return False
            if self._pauses or self.ended.is_set():
                reader.keep()
                return False
            if loop.is_served_long():
                self.on_takeover()
                return False
        reader.keep()
        return True

    def on_takeover(self) -> None:
        self.reader.keep()
        self.loop.soon(self._serve)

    def _serve(self) -> None:
        """As if the poller had found it ready: take what was kept, and what has come since."""
        loop = self.loop
        before = loop.current
        loop.begin_serving(self)
        try:
            self._go_on()
        finally:
            if loop.is_led_here():
                loop.current = before

    def _go_on(self) -> None:
        if self._pauses or self.ended.is_set():
            return
        if not self.reader.has_kept:
            self._read()
            return
        try:
            self.reader.load(self.loop.buffer, self.loop.view)
            if self._take() and self._drains:
                self._read()
        except EleaError as error:
            self._give_up(error)

    def pause(self) -> None:
        self._pauses += 1
        self.loop.change(self, self.mask & ~IN)
        if not self.loop.in_turn:
            self.reader.keep()

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self.loop.change(self, self.mask | IN)
            self.loop.soon(self._serve)

    def _give_up(self, error: EleaError) -> None:
        """What came cannot be taken: say so if that is usual, and end."""
        self._say_quietly()
        self._refuse_quietly(error)
        self.end(error)

    def _batch(self, batch: bytes | memoryview) -> None:
        receiver, session = self._receiver, self.session
        if receiver is None or session is None:
            agreement = self._machine.receive(bytes(batch), self._now())
            if agreement is not None:
                self._open(agreement)
            elif isinstance(self._machine, Initiator):
                self._recognise(self._machine)
            self._say()
            if agreement is not None:
                self._opened()
            return
        receiver.receive(batch, self._now(), session)
        if self.links.node.scanner is not None:
            self._take_frames(receiver, session)
        if receiver.oversized and not self._told_of_size:
            self._told_of_size = True
            _log.warning("message too large, dropped: node=%s limit=%d", NodeId(session.node_id), receiver.max_message)
        if receiver.closed:
            self.end(SessionClosed(text="the other node closed the session"))

    def _take_frames(self, receiver: Receiver, session: Zenoh1Face) -> None:
        """Take the frames that have arrived behind a batch, all at once: somebody makes columns of them."""
        waiting = self.reader.waiting
        size = receiver.frames_in(waiting)
        if size >= LARGE:
            octets = bytes(waiting[:size])
            self.reader.pass_over(size)
            receiver.receive_frames(octets, self._now(), session)

    def _on_blocked(self, blocked: bool) -> None:
        """The kernel takes no more, or does again."""
        if self.descriptor >= 0:
            self.loop.change(self, self.mask | OUT if blocked else self.mask & ~OUT)
        elif blocked and self.session is not None:
            self.loop.after(BLOCKED_SECONDS, self.session.outbox.on_writable)

    # -- the handshake ------------------------------------------------------------------------------------------------

    def _recognise(self, machine: Initiator) -> None:
        """INIT_ACK says whom we have connected to; this may be somebody we know, or ourselves."""
        self.peer_id = machine.peer_id
        reason = self.links.recognised(self)
        if reason is not None:
            machine.to_send(self._now())  # not our OPEN_SYN: the link ends here
            why = CloseReason.describe(reason)
            raise SessionRefused(reason, f"node {NodeId(self.peer_id)} needs no further session: {why}")

    def _say(self) -> None:
        for batch in self._machine.to_send(self._now()):
            prefix = len(batch).to_bytes(2, "little") if self.link.streamed else b""
            self.link.send(prefix + batch)

    def _say_quietly(self) -> None:
        """The CLOSE of a failed handshake; the link may be gone already."""
        try:
            self._say()
        except LinkError:
            return

    def _refuse_quietly(self, error: EleaError) -> None:
        """The CLOSE of a session whose other node broke a limit; a broken rule ends it without a word (zenoh-1 §22)."""
        if self.session is not None and not isinstance(error, LinkError | ProtocolError):
            with contextlib.suppress(LinkError):
                self.say_goodbye(CloseReason.GENERIC)

    def _opening_late(self) -> None:
        try:
            self._machine.on_deadline(self._now())
        except EleaError as error:
            self._say_quietly()
            self.end(error)

    def _open(self, agreement: Agreement) -> None:
        settings = self.links.settings
        sender = self._sender = Sender(agreement, prefix=self.link.streamed)

        def take(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[Octets]], int, int]:
            before = sender.oversized
            taken = sender.take(key, queue, queued, most)
            if sender.oversized > before:
                outbox.losses.add("oversized", sender.oversized - before)
                if sender.oversized.bit_length() > before.bit_length():  # said the 1st, 2nd, 4th … time
                    self._tell_of_oversized(sender.oversized, agreement.batch_size)
            return taken

        outbox = Outbox(
            self.link,
            take if agreement.lowlatency else sender.take,
            self.loop,
            room=sender.room,
            on_blocked=self._on_blocked,
            on_broken=self.end,
            wait_before_drop=settings.wait_before_drop,
            wait_before_close=settings.wait_before_close,
            losses=self.links.losses,
            count=count_messages,
        )
        self._receiver = receiver = Receiver(agreement, self._now(), max_message=settings.max_message)
        self.reader.settle = receiver.settle
        door = self.links.door_for(self.link)
        if door is not None:
            receiver.on_memory = door.take
            self._share(agreement.peer_id, sender, outbox)
        if agreement.lowlatency:
            self.reader.prefix = 4
        session = Zenoh1Face(self.links.node, agreement, REGIONS[agreement.peer_role], outbox)
        stalled = SessionClosed(CloseReason.UNRESPONSIVE, "the other node takes no more messages")
        session.on_stalled = lambda: self.end(stalled)
        self.session = session

    def _share(self, node_id: bytes, sender: Sender, outbox: Outbox) -> None:
        """Lay large payloads in memory, if the other node turns out to be one that can take them from there."""
        worth = self.links.settings.shared_from

        def announce(token: bytes) -> None:
            outbox.large = min(outbox.room, worth - 1)
            outbox.control(sender.announcement(token))

        self.memory = SharedOut(node_id, self.links.pool, announce)
        sender.share(self.memory, worth)

    def _tell_of_oversized(self, count: int, limit: int) -> None:
        _log.warning(
            "messages dropped: remote=%s oversized=%d limit=%d hint=a low-latency session has no fragments, make them "
            "smaller or leave transport/unicast/lowlatency out",
            self.link.remote, count, limit,
        )  # fmt: skip

    def _opened(self) -> None:
        """The last message of the handshake is out: the session begins."""
        if self._timer is not None:
            self._timer.cancel()
        self.links.joined(self)
        self._watch()
        self.ready.set()

    # -- time ---------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Keep the session alive, and notice when the other end does not."""
        session, receiver, sender = self.session, self._receiver, self._sender
        if session is None or receiver is None or sender is None or self.ended.is_set():
            return
        now = self._now()
        agreement = session.agreement
        if self._pauses:
            receiver.last_heard = now  # it may say what it likes, nobody reads it
        if now >= lease_ends(receiver.last_heard, agreement.peer_lease):
            self._serve()  # perhaps it is this node that is late: what came in time has been said
        if self.ended.is_set():
            return
        if now >= lease_ends(receiver.last_heard, agreement.peer_lease):
            self.end(SessionClosed(CloseReason.EXPIRED, "the other node was silent for its whole lease"))
            return
        due = next_keep_alive(session.outbox.last_sent, agreement.own_lease, per_lease=self.links.settings.keep_alives)
        if now >= due:
            try:
                session.outbox.control(sender.keep_alive())
            except LinkError as error:
                self.end(error)
                return
            due = now + agreement.own_lease / self.links.settings.keep_alives
        when = min(due, lease_ends(receiver.last_heard, agreement.peer_lease))
        self._timer = self.loop.at(max(when, now + 0.001), self._watch)

    # -- the end ------------------------------------------------------------------------------------------------------

    def say_goodbye(self, reason: int = CloseReason.GENERIC) -> None:
        """Send CLOSE, before everything that waits."""
        session, sender = self.session, self._sender
        if session is not None and sender is not None:
            session.outbox.control(sender.close(reason))

    def close(self) -> None:
        """End the session; what still waits is lost, so `leave` first."""
        self.end(SessionClosed(text="closed by this node"))

    def end(self, error: EleaError) -> None:
        """However it came: the link is closed, the space is told, once."""
        with self._ending:
            if self.ended.is_set():
                return
            self.error = error
            self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
        self.loop.remove(self)
        self.link.close()
        if self._receiver is not None:
            self._receiver.memory = None
        if self.session is not None:
            self.session.outbox.close()
        if self.memory is not None:
            self.memory.close()
        self.links.left(self)
        self.ready.set()


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """All links of a node; `elea.testing` makes them of something else than sockets."""

    def __init__(self, node: Node, settings: LinkSettings, *, chance: Random | None = None) -> None:
        self.node = node
        self.settings = settings
        self.loop = node.loop
        self.listeners: list[Listener] = []
        self.connections: set[Connection] = set()
        self.on_left: Callable[[Connection], None] | None = None
        self.listeners_of_events: list[Callable[[Connection, bool], None]] = []
        self.refused = 0
        self.unopened = 0
        """Links of others that ended before a session was opened over them, for whatever reason."""
        self.losses = Losses()
        self.on_joining: Callable[[Zenoh1Face], None] | None = None
        self._opening: set[Connection] = set()
        self._claims: SessionRegistry[Connection] = SessionRegistry(node.node_id)
        self._lock = threading.Lock()
        self._closed = False
        self._chance: Random | SystemRandom = chance or SystemRandom()
        self._cookie_key = self._chance.randbytes(32)
        if node.role is Role.ROUTER:  # it holds what it passes on
            keep_heap()
        self.pool = Pool(settings.shared_memory)
        self._door: Door | None = None
        self._has_door = settings.shared_memory > 0 and has_memory()

    def _made(self, link: Link, machine: Initiator | Acceptor) -> Connection:
        # No attribute of the class: compiled, it would not be looked for in a class derived from this one.
        return Connection(self, link, machine)

    def offer_for(self, link: Link) -> Offer:
        """What this node wants of a session over `link`."""
        offer = self.settings.offer
        return replaced(offer, batch_size=min(offer.batch_size, link.mtu))

    def connect(self, locator: str, *, timeout: float | None = None) -> Connection:
        """Open a session with the node at `locator`; returns when both sides agree, or with the session there is.

        Raises:
            LinkError, SessionError, ProtocolError: why it could not be opened.
        """
        wait = self.settings.open_timeout if timeout is None else timeout
        link = tapped(connect(locator, timeout=wait, tls=self.settings.tls), accepted=False)
        connection = self._made(link, Initiator(self.offer_for(link), self.loop.now(), wait))
        self._start(connection)
        if not connection.ready.wait(wait + 1.0):
            connection.end(OperationTimeout(f"no session with {locator} within {wait} s"))
        if connection.session is None or connection.ended.is_set():
            other = self.session_with(connection.peer_id)
            if other is not None:
                return other
            error = connection.error or SessionError(f"no session with {locator}")
            raise error
        return connection

    def listen(self, locator: str) -> Listener:
        """Accept sessions at `locator`."""
        from elea.io.listener import listen  # not with the module: clients do not

        listener = listen(
            locator,
            loop=self.loop,
            tls=self.settings.tls,
            on_link=lambda link: self._accept(tapped(link, accepted=True)),
        )
        self.listeners.append(listener)
        return listener

    def session_with(self, node_id: bytes) -> Connection | None:
        """The connection that holds the session with a node."""
        with self._lock:
            found = self._claims.holder(node_id)
        return None if found is None or found.session is None or found.ended.is_set() else found

    def locators(self) -> list[str]:
        """Where this node can be reached."""
        return [locator for listener in self.listeners for locator in listener.locators()]

    def dropped(self) -> dict[str, int]:
        """Messages lost in this node, by reason: on the way out, over all links there were, and to slow handlers."""
        return {**self.losses.counts, "undelivered": self.node.dispatch.dropped}

    def close(self) -> None:
        """End everything; returns soon, whatever the others do."""
        with self._lock:
            self._closed = True
            connections = [*self.connections, *self._opening]
        for listener in self.listeners:
            listener.close()
        leave(connections)
        for connection in connections:
            connection.close()
        if self._door is not None:
            self._door.close()

    def door_for(self, link: Link) -> Door | None:
        """Where other nodes of this machine bring memory, if both ends of a link may be on it; else None."""
        if not self._has_door or not shares_machine(link):
            return None
        with self._lock:
            if self._door is None and self._has_door and not self._closed:
                try:
                    self._door = Door(self.node.node_id)
                except OSError as problem:
                    self._has_door = False
                    _log.info("no shared memory: problem=%s", problem)
            return self._door

    # -- what connections say -----------------------------------------------------------------------------------------

    def _accept(self, link: Link) -> None:
        if len(self._opening) >= self.settings.accept_pending:
            self._refuse(link.remote, f"{self.settings.accept_pending} links are opening already (accept_pending)")
            link.close()
            return
        acceptor = Acceptor(
            self.offer_for(link),
            self.loop.now(),
            cookie_key=self._cookie_key,
            random=self._chance,
            users=self.settings.users,
            accept=lambda node_id, role: self._admit(connection, node_id),
            timeout=self.settings.accept_timeout,
        )
        connection = self._made(link, acceptor)
        try:
            self._start(connection)
        except (LinkError, ProtocolError) as error:
            self._refuse(link.remote, error)
            link.close()

    def _refuse(self, remote: str, problem: object) -> None:
        """Count a link that never became a session; said the 1st, 2nd, 4th … time, so that a flood fills no log."""
        self.unopened += 1
        if self.unopened & (self.unopened - 1) == 0:
            _log.warning("link refused: link=%s unopened=%d problem=%s", remote, self.unopened, problem)

    def _admit(self, connection: Connection, node_id: bytes) -> int | None:
        with self._lock:
            if len(self.connections) >= self.settings.max_sessions:
                self.refused += 1
                return CloseReason.INVALID
            if not self._claims.accept(node_id, connection):
                self.refused += 1
                return CloseReason.MAX_LINKS
            connection.peer_id = node_id
        return None

    def recognised(self, connection: Connection) -> int | None:
        """A connection of ours knows whom it reaches; the reason why it should not go on, if there is one."""
        if connection.peer_id == self.node.node_id:
            return CloseReason.CONNECTION_TO_SELF
        with self._lock:
            return None if self._claims.begin(connection.peer_id, connection) else CloseReason.MAX_LINKS

    def _start(self, connection: Connection) -> None:
        with self._lock:
            if self._closed:
                connection.link.close()
                raise SessionClosed(text="this node is closed")
            self._opening.add(connection)
        try:
            connection.start()
        except BaseException as error:  # the link broke, or the system gives no more threads
            connection.end(SessionClosed(text=f"the link could not be served: {error}"))
            raise

    def joined(self, connection: Connection) -> None:
        """A handshake has succeeded."""
        session = connection.session
        assert session is not None
        with self._lock:
            self._opening.discard(connection)
            other = self._claims.confirm(session.node_id, connection)
            self.connections.add(connection)
        if other is not None:
            other.end(SessionClosed(CloseReason.MAX_LINKS, "both nodes connected at once, another link was kept"))
        with self.node.lock:
            if connection.ended.is_set():
                return
            if self.on_joining is not None:
                self.on_joining(session)
            self.node.space.add_face(session)
        self.node.settle()
        _log.info(
            "session opened: node=%s role=%s link=%s",
            NodeId(session.node_id),
            session.role.name,
            connection.link.remote,
        )
        for listener in list(self.listeners_of_events):
            listener(connection, True)

    def left(self, connection: Connection) -> None:
        """A link has ended, before or after its session began."""
        with self._lock:
            self._opening.discard(connection)
            self._claims.release(connection.peer_id, connection)
            was_open = connection in self.connections
            self.connections.discard(connection)
        if was_open and connection.session is not None:
            with self.node.lock:
                self.node.space.remove_face(connection.session, self.loop.now())
            self.node.settle()
            _log.info("session ended: node=%s reason=%s", NodeId(connection.session.node_id), connection.error)
            for listener in list(self.listeners_of_events):
                listener(connection, False)
        elif isinstance(connection._machine, Acceptor) and not self._closed:
            self._refuse(connection.link.remote, connection.error)
        if was_open and self.on_left is not None:
            self.on_left(connection)
