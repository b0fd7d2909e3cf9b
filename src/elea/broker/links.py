"""Links of a node and the sessions over them: connecting, accepting, reading, keeping alive, ending, coming back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from elea.broker.claims import Claims
from elea.broker.guarding import Guard
from elea.broker.intake import Intake
from elea.broker.leading import Lead
from elea.broker.leaving import leave
from elea.broker.node import Node
from elea.broker.zenoh1 import Zenoh1Session
from elea.io.chance import SystemChance
from elea.io.dial import AnyLink, connect
from elea.io.errors import LinkError
from elea.io.lookout import has_lookout
from elea.io.losses import Losses
from elea.io.memory import WORTH, Door, Pool, SharedOut, has_memory, keep_heap, shares_machine
from elea.io.reading import BatchReader
from elea.io.sending import Outbox
from elea.io.tap import tapped
from elea.io.timers import Timer, monotonic
from elea.io.tls_settings import TlsSettings
from elea.io.vigil import Vigil
from elea.model.errors import EleaError, OperationTimeout, ProtocolError, SessionClosed, SessionError, SessionRefused
from elea.model.limits import MAX_MESSAGE
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import mypyc_attr, replaced, value_class
from elea.protocol.zenoh1.backoff import Backoff
from elea.protocol.zenoh1.keeping import lease_ends, next_keep_alive
from elea.protocol.zenoh1.opening import Acceptor, Initiator
from elea.protocol.zenoh1.sending import Sender, count_messages
from elea.protocol.zenoh1.terms import Agreement, CloseReason, Offer
from elea.protocol.zenoh1.transport import Receiver
from elea.space.face import Region

if TYPE_CHECKING:
    from random import Random

    from elea.io.listening import Listener
    from elea.protocol.zenoh1.sending import Octets

__all__ = ["Connection", "LinkSettings", "Links"]

_log = logger("elea.broker")

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
    wait_awake: bool = True
    shared_memory: int = 0
    shared_from: int = WORTH
    backoff: Callable[[], Backoff] = Backoff


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection:
    """One link from its opening to its end: a handshake, then a session."""

    def __init__(self, links: Links, link: AnyLink, machine: Initiator | Acceptor) -> None:
        self.links = links
        self.link = link
        self._now = links.keeper.now
        self.session: Zenoh1Session | None = None
        self.peer_id = b""  # known before the session is
        self.error: EleaError | None = None
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._machine = machine
        self.intake: Intake | None = None
        """What takes the batches of the session, once it is open."""
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        self._timer: Timer | None = None
        self._ending = threading.Lock()
        self.reader = BatchReader(link)
        self.memory: SharedOut | None = None
        self.vigil: Vigil = Vigil()
        self.lead = Lead(self)
        self._deliverer: threading.Thread | None = None
        self._handing_over = threading.Lock()
        self.busy_since = 0.0
        self._reading = threading.Thread(target=self._run, name=f"elea-read-{link.remote}", daemon=True)

    def start(self) -> None:
        """Begin the handshake and read."""
        if isinstance(self._machine, Initiator):
            self._machine.start()
        self._timer = self.links.keeper.at(self._machine.next_deadline() or self._now(), self._opening_late)
        self._say()
        self._begin_reading()

    # -- reading ------------------------------------------------------------------------------------------------------

    def _begin_reading(self) -> None:
        self._reading.start()

    def _run(self) -> None:
        """Read and deliver, for as long as this thread is the one that reads."""
        node, lead, guard = self.links.node, self.lead, self.links.guard
        me = threading.current_thread()
        node.readers.add(threading.get_ident())
        try:
            while self._reading is me:
                guarded = guard.offered and self.reader.vigil is not None
                batch = guard.next(self) if guarded else self.reader.next()
                if batch is None:
                    if self._reading is not me:
                        return
                    self.end(SessionClosed(text="the other node closed the link"))
                    return
                self._batch(batch)
                if node.round:
                    wanted = lead.is_wanted()
                    self.begin_busy()
                    node.round.make()
                    if self.end_busy() and wanted:
                        if not lead.step_back():
                            return
                        self.go_on()
        except EleaError as error:
            self._give_up(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the link must not stay half alive
            _log.exception("reading failed: link=%s", self.link.remote)
            self.end(SessionClosed(text=f"internal error: {error!r}"))
        finally:
            if self.ended.is_set():
                # A buffer of a MiB would else wait for the garbage collector, as this object is part of cycles.
                self.reader = BatchReader(self.link, limit=0, buffer_size=0)
                if self.intake is not None:
                    self.intake.reader = self.reader
                if self._receiver is not None:
                    self._receiver.memory = None
                if not lead.stepped_back and self._reading is me:
                    lead.close()
            node.readers.discard(threading.get_ident())
            node.deliver_soon()  # what the end of this link meant to others

    def begin_busy(self) -> None:
        """The thread that reads may be held up from here on; `take_over` is called if it is."""
        self._deliverer, self.busy_since = threading.current_thread(), monotonic()
        self.links.node.watch.look()

    def end_busy(self) -> bool:
        """Whether no other thread has gone on with the reading meanwhile, nor will.

        Under the lock: one that is just taking over has looked at `busy_since` already, and two must never read.
        """
        with self._handing_over:
            if self._reading is not threading.current_thread():
                return False
            self.busy_since = 0.0
            return True

    def go_on(self) -> None:
        """Other threads have read: what they found is dealt with here."""
        if self.lead.fault is not None:
            raise self.lead.fault
        if self._receiver is not None and self._receiver.closed:
            self.end(SessionClosed(text="the other node closed the session"))

    def _give_up(self, error: EleaError) -> None:
        """What came cannot be taken: say so if that is usual, and end."""
        self._say_quietly()
        self._refuse_quietly(error)
        self.end(error)

    def take_over(self) -> None:
        """The reading thread is held up by a handler: another one reads on."""
        node = self.links.node
        with self._handing_over:
            if self.ended.is_set() or not self.busy_since:
                return
            self.busy_since = 0.0
            # A courier brings what waits behind that handler; what the handler does from now on waits for nobody.
            if self._deliverer is not None and self._deliverer.ident is not None:
                node.readers.discard(self._deliverer.ident)  # before the next thread starts, which soon delivers itself
            self._reading = threading.Thread(target=self._run, name=f"elea-read-{self.link.remote}", daemon=True)
        self._reading.start()
        node.round.make_soon()

    def _batch(self, batch: bytes | memoryview) -> None:
        if self.intake is None:
            agreement = self._machine.receive(bytes(batch), self._now())
            if agreement is not None:
                self._open(agreement)
            elif isinstance(self._machine, Initiator):
                self._recognise(self._machine)
            self._say()
            if agreement is not None:
                self._opened()
            return
        if self.intake.take(batch):
            self.end(SessionClosed(text="the other node closed the session"))

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
            room=sender.room,
            on_broken=self.end,
            wait_before_drop=settings.wait_before_drop,
            wait_before_close=settings.wait_before_close,
            losses=self.links.losses,
            count=count_messages,
            now=self.links.now,
            soon=self.links.soon,
        )
        self._receiver = receiver = Receiver(agreement, self._now(), max_message=settings.max_message)
        self.reader.settle = receiver.settle
        if settings.wait_awake and has_lookout(self.link):
            self.reader.keep_vigil(self.vigil, outbox)
        door = self.links.door_for(self.link)
        if door is not None:
            receiver.on_memory = door.take
            self._share(agreement.peer_id, sender, outbox)
        if agreement.lowlatency:
            self.reader.prefix = 4
        session = Zenoh1Session(self.links.node, agreement, REGIONS[agreement.peer_role], outbox)
        stalled = SessionClosed(CloseReason.UNRESPONSIVE, "the other node takes no more messages")
        session.on_stalled = lambda: self.end(stalled)
        self.session = session
        self.intake = Intake(self.links.node, session, receiver, self.reader)

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
        self._timer = self.links.keeper.at(max(when, now + 0.001), self._watch)

    # -- the end ------------------------------------------------------------------------------------------------------

    def say_goodbye(self, reason: int = CloseReason.GENERIC) -> None:
        """Send CLOSE, before everything that waits."""
        session, sender = self.session, self._sender
        if session is not None and sender is not None:
            session.outbox.control(sender.close(reason))

    def is_read_by(self, thread: threading.Thread) -> bool:
        """Whether it is this thread that would notice if the other node left."""
        return self._reading is thread

    def close(self) -> None:
        """End the session; what still waits is lost, so `leave` first."""
        self.end(SessionClosed(text="closed by this node"))
        if self._reading is not threading.current_thread() and self._reading.is_alive():
            self._reading.join(1.0)

    def end(self, error: EleaError) -> None:
        """However it came: the link is closed, the space is told, once."""
        with self._ending:
            if self.ended.is_set():
                return
            self.error = error
            self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
        self.link.close()
        self.lead.end()
        if self.session is not None:
            self.session.outbox.close()
        if self.memory is not None:
            self.memory.close()
        self.links.left(self)
        self.ready.set()


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """All links of a node; `elea.testing` serves them otherwise, without threads and chance."""

    def __init__(self, node: Node, settings: LinkSettings, *, chance: Random | None = None) -> None:
        self.node = node
        self.settings = settings
        self.keeper = node.keeper
        self.now: Callable[[], float] = monotonic
        self.soon: Callable[[Callable[[], None]], object] | None = None
        self.listeners: list[Listener] = []
        self.connections: set[Connection] = set()
        self.on_left: Callable[[Connection], None] | None = None
        self.listeners_of_events: list[Callable[[Connection, bool], None]] = []
        self.refused = 0
        self.unopened = 0
        """Links of others that ended before a session was opened over them, for whatever reason."""
        self.losses = Losses()
        self.on_joining: Callable[[Zenoh1Session], None] | None = None
        self._opening: set[Connection] = set()
        self.guard = Guard(node)
        self._claims: Claims[Connection] = Claims(node.node_id)
        self._lock = threading.Lock()
        self._closed = False
        self._chance: Random | SystemChance = chance or SystemChance()
        self._cookie_key = self._chance.randbytes(32)
        if node.role is Role.ROUTER:  # it holds what it passes on
            keep_heap()
        self.pool = Pool(settings.shared_memory)
        self._door: Door | None = None
        self._has_door = settings.shared_memory > 0 and has_memory()

    def _made(self, link: AnyLink, machine: Initiator | Acceptor) -> Connection:
        # No attribute of the class: compiled, it would not be looked for in a class derived from this one.
        return Connection(self, link, machine)

    def offer_for(self, link: AnyLink) -> Offer:
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
        connection = self._made(link, Initiator(self.offer_for(link), self.keeper.now(), wait))
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
        from elea.io.listening import listen  # not with the module: clients do not

        listener = listen(
            locator, tls=self.settings.tls, on_link=lambda link: self._accept(tapped(link, accepted=True))
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
        return {**self.losses.counts, "undelivered": self.node.round.dropped}

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

    def door_for(self, link: AnyLink) -> Door | None:
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

    def _accept(self, link: AnyLink) -> None:
        if len(self._opening) >= self.settings.accept_pending:
            self._refuse(link.remote, f"{self.settings.accept_pending} links are opening already (accept_pending)")
            link.close()
            return
        acceptor = Acceptor(
            self.offer_for(link),
            self.keeper.now(),
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
        self.node.watch.add(connection)
        try:
            connection.start()
        except BaseException as error:  # the link broke, or the system gives no more threads
            connection.end(SessionClosed(text=f"the link could not be served: {error}"))
            raise

    def _offer_lead(self) -> None:
        """Threads that wait may read a link that is the only one; a router's threads have others to serve."""
        only = next(iter(self.connections)) if len(self.connections) == 1 else None
        offered = only is not None and self.node.role is not Role.ROUTER and has_lookout(only.link)
        self.node.lead = only.lead if only is not None and offered else None
        self.guard.offer(len(self.connections) > 1)

    def joined(self, connection: Connection) -> None:
        """A handshake has succeeded."""
        session = connection.session
        assert session is not None
        with self._lock:
            self._opening.discard(connection)
            other = self._claims.confirm(session.node_id, connection)
            self.connections.add(connection)
            self._offer_lead()
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
            self.node.watch.discard(connection)
            self.connections.discard(connection)
            self._offer_lead()
        if was_open and connection.session is not None:
            with self.node.lock:
                self.node.space.remove_face(connection.session, self.keeper.now())
            self.node.settle()
            _log.info("session ended: node=%s reason=%s", NodeId(connection.session.node_id), connection.error)
            for listener in list(self.listeners_of_events):
                listener(connection, False)
        elif isinstance(connection._machine, Acceptor) and not self._closed:
            self._refuse(connection.link.remote, connection.error)
        if was_open and self.on_left is not None:
            self.on_left(connection)
