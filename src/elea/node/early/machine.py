"""A link of an early dialect: the session on it, its time, and its end. Spec: zenoh-2018 §5.2 to §5.10."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from elea.io.linkerrors import LinkClosed
from elea.io.outbox import FORWARDED, REFUSED, Batch
from elea.model.errors import DecodeError, EleaError, InvalidPredicate, SessionClosed, SessionRefused
from elea.model.keytext import cover
from elea.model.limits import EARLY_LATE_PACKETS
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Durability, Role
from elea.model.resource import Resource, Selection
from elea.node.dialect import Machine, Refusal
from elea.node.early.encoder import EarlyEncoder
from elea.node.early.face import EarlyFace
from elea.node.early.framing import PacketReader, sized
from elea.node.early.keys import pattern_of
from elea.node.early.options import UDP_MTU, options_of
from elea.node.early.paths import FurtherLink, JoiningDialect, Paths, may_join
from elea.protocol.early.automata import State
from elea.protocol.early.conduit import Arrived
from elea.protocol.early.declarations import Status, durability_of
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.numbered import Entry, vle
from elea.protocol.early.session import Ended, Opened, Session
from elea.protocol.early.terms import Agreement, Offer, Reason
from elea.space.face import Entity, Subject

if TYPE_CHECKING:
    from elea.node.connection import Connection
    from elea.node.early.dialect import EarlyDialect

__all__ = ["EarlyMachine"]

_log = logger("elea.node")

TAKEN_AT_ONCE: Final = 1 << 16
"""About how many bytes of packets are made in one go: more urgent things get their turn behind them."""

ID_BITS: Final = 0x1F
KEEP_ALIVE: Final = 16
SHORTEST: Final = 0.001
"""Seconds between two looks at the time, at least."""


class NodeSession(Session):
    """A session whose numbered messages wait in an outbox, together with the data they must not overtake."""

    push: Callable[[Entry, bool, int], None] | None = None

    def send(self, entry: Entry, *, reliable: bool = True, conduit: int = 0) -> None:
        if self.push is None:
            super().send(entry, reliable=reliable, conduit=conduit)
        else:
            self.push(entry, reliable, conduit)


class EarlyMachine(Machine):
    """One end of a link. `lock` guards the session: it is read by the leader, and written to by whoever sends."""

    def __init__(self, dialect: EarlyDialect, connection: Connection, offer: Offer, limit: int, timeout: float) -> None:
        generation = dialect.generation
        reader = PacketReader(connection.link, generation, limit)
        reader.is_lenient = offer.profile.is_lenient
        super().__init__(reader)
        self.lock = threading.RLock()
        self.initiates = not connection.accepted
        self.session = NodeSession(generation, offer, initiates=self.initiates, locators=dialect.told_locators)
        self.neighbour = Neighbour(self.session, judge=self._judge, is_wanted=self._is_wanted)
        self.neighbour_face: EarlyFace | None = None
        self._dialect = dialect
        self._connection = connection
        self.packet_limit = limit
        self.paths: Paths | None = None
        """The links of the session, if there are several."""
        self._late: deque[bytes] = deque()
        self._loop = connection.loop
        self._streamed = connection.link.streamed
        self._opens_by = self._loop.now() + timeout
        self._timer_at = 0.0
        self._is_handling = False
        self._is_looking = False
        self._after: deque[Callable[[], None]] = deque()
        self._user: str | None = None
        self.packets = 0
        self.octets = 0
        self.refused_packets = 0
        """Acknowledgements and repetitions that the link had no room for; they are made again."""

    # -- bytes in -----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        if self.initiates:
            self.session.open(now)

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        packet = bytes(batch)
        self.packets += 1
        self.octets += len(packet)
        if self.face is None and packet[0] & ID_BITS == KEEP_ALIVE and self._joins(packet, now):
            return
        with self.lock:
            if self._is_handling and self.paths is not None:
                # Another link of the session is being read, by a thread that has something to do for long.
                if len(self._late) < EARLY_LATE_PACKETS:
                    self._late.append(packet)
                else:
                    self.refused_packets += 1
                return
            self._is_handling = True  # nothing is acknowledged before it is known what must be safe first
            events = self.neighbour.receive(packet, now)
        try:
            self._happened(events, now)
        finally:
            with self.lock:
                self._is_handling = False
        self.look(now)
        with self.lock:
            late = self._late.popleft() if self._late else None
        if late is not None:
            self.receive(late, now)

    def _happened(self, events: list[Any], now: float) -> None:
        face = self.neighbour_face
        if self._connection.face is not None:
            self._run_after()
        waiting: list[Any] = []
        for event in events:
            if isinstance(event, Opened):
                face = self._open(event.agreement)
            elif isinstance(event, Ended):
                if face is not None:
                    face.happened(waiting, now)
                self._ended(event)
                return
            else:
                waiting.append(event)
        if face is not None and waiting:
            if self.face is not None and self._connection.face is None:
                self._after.append(lambda: face.happened(waiting, now))  # not part of the space yet
            else:
                face.happened(waiting, now)
        if self._connection.face is not None:
            self._run_after()

    def _run_after(self) -> None:
        while self._after:
            self._after.popleft()()

    def after_packet(self, work: Callable[[], None]) -> None:
        """Do something when all that has come with a packet is known; called by whoever reads it."""
        self._after.append(work)
        if not self._is_handling:
            self._loop.soon(self._run_after)

    def _ended(self, event: Ended) -> None:
        self._say(self._loop.now())
        if event.error is not None:
            raise event.error
        if self.session.failure is not None:
            raise self.session.failure
        self.closed = True

    # -- several links ------------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """That of the session, over its first link."""
        return self._connection

    @property
    def keep_alive(self) -> bytes:
        """What names this node over a link."""
        return self.session.generation.encode(self.session.generation.messages.KeepAlive(self.session.offer.pid))

    def _joins(self, packet: bytes, now: float) -> bool:
        """A link begins with a KeepAlive: it belongs to the session of that node, if there is one (Z18-SES-11)."""
        connection = self._connection
        if self.initiates or self.session.state is not State.CLOSED:
            return False
        try:
            first = next(iter(self.session.generation.codec.messages(packet))).message
        except DecodeError:
            return False
        before = connection.links.session_with(node_id_of(first.pid))
        home = None if before is None else before.machine
        if not isinstance(home, EarlyMachine) or home._dialect is not self._dialect or not may_join(home):
            return False
        further = FurtherLink(self.reader, home, connection, is_heard=True)
        connection.machine = further
        if connection.place is not None:
            connection.place.leave()
        further.start(now)
        if not connection.ended.is_set():
            further.receive(packet, now)
        return True

    def joined_by(self, further: FurtherLink) -> None:
        """One more link of the session."""
        with self.lock:
            if self.paths is None:
                self.paths = Paths(self, self._connection)
            if not further.is_reliable:
                self.session.limit_packets(UDP_MTU)
        self.paths.add(further)

    def left_by(self, further: FurtherLink) -> None:
        """One link less."""
        if self.paths is not None:
            self.paths.remove(further)

    def _connect_further(self, locators: Sequence[str]) -> None:
        """Offer further links to the other node, in a thread: connecting may take a while."""
        links, dialect = self._dialect.links, JoiningDialect(self, self._dialect)
        for locator in locators:
            try:
                links.join(locator, dialect)
            except EleaError as error:
                _log.warning("no further link of a session: locator=%s problem=%s", locator, error)

    def on_end(self) -> None:
        if self.paths is not None:
            self.paths.end("the session has ended")

    # -- opening ------------------------------------------------------------------------------------------------------

    def authenticate(self, data: bytes | None) -> bool:
        """Whether another node may open a session: it has to know a password where nodes of 1.x have to."""
        users = self._dialect.links.settings.users
        if users is None:
            return True
        guesses, remote = self._dialect.links.guesses, self._connection.link.remote
        if guesses.is_too_soon(remote):
            return False  # an Open that gets no answer comes again
        user, _, password = (data or b"").partition(b":")
        if not compare_digest(users.get(user, b""), password) or user not in users:
            guesses.wrong(remote)
            return False
        self._user = user.decode("utf-8", "replace")
        return True

    def admit(self, pid: bytes) -> int | None:
        """Another node wants a session: the reason why not. One that comes again has started anew (Z18-SES-03)."""
        connection = self._connection
        node_id = node_id_of(pid)
        refusal = connection.admit(node_id)
        if refusal is Refusal.DUPLICATE:
            before = connection.links.session_with(node_id)
            if before is not None and isinstance(before.machine, EarlyMachine):
                before.end(SessionClosed(Reason.SUCCESS, "the other node opens a new session"))
                refusal = connection.admit(node_id)
        if refusal is None:
            return None
        return int(Reason.OUT_OF_RESOURCES if refusal is Refusal.FULL else Reason.GENERIC)

    def _open(self, agreement: Agreement) -> EarlyFace:
        connection, dialect = self._connection, self._dialect
        node = dialect.links.node
        node_id = node_id_of(agreement.peer)
        if self.initiates:
            refusal = connection.recognise(node_id)
            if refusal is not None:
                raise SessionRefused(int(Reason.GENERIC), f"no session with {NodeId(node_id)}: {refusal.value}")
        self.outbox = connection.make_outbox(self._take, room=agreement.mtu or self.session.offer.mtu, told=True)
        link = connection.link
        role = self._role(node.role, agreement.is_broker)
        subject = Subject(node_id, role, user=self._user, link=link.remote, local=link.local)
        face = EarlyFace(node, subject, self.outbox, EarlyEncoder(), self, dialect.catalogue)
        face.on_stalled = lambda: connection.end(
            SessionClosed(Reason.OUT_OF_RESOURCES, "the other node takes no more messages")
        )
        self.neighbour_face = self.face = face
        with self.lock:
            self.session.push = self._push
        also = options_of(connection.locator).also if self.initiates else ()
        if also:
            threading.Thread(target=self._connect_further, args=(also,), name="elea-join", daemon=True).start()
        return face

    def _role(self, own: Role, is_broker: bool | None) -> Role:
        """What the other node is for this one.

        Everybody that has connected to a broker is its client, and what a broker has connected to is another one. Who
        does not say what it is: one that we have connected to is a broker, one that has connected to us a peer.
        """
        if own is Role.ROUTER:
            return Role.ROUTER if self.initiates else Role.CLIENT
        said = self.initiates if is_broker is None else is_broker
        return Role.ROUTER if said else Role.PEER

    def on_joining(self) -> None:
        self._loop.soon(self._joined)

    def _joined(self) -> None:
        """The face is part of the space: what came with the opening, and a peer has nothing to wait for."""
        face = self.neighbour_face
        if face is not None and not self._connection.ended.is_set():
            face.greet()
            self._run_after()
            self.look(self._loop.now())

    def _judge(self, space: int, declaration: Any, named: Resource | Selection | None) -> int:
        """Whether a declaration can be kept: a predicate must be understood, and what is persistent needs a disk."""
        if isinstance(named, Selection) and named.predicate is not None:
            return self._judge_predicate(named.predicate, declaration)
        kind = type(declaration).__name__
        if kind == "PublisherDecl" and not self._can_publish(space, declaration):
            return Status.UNSUPPORTED
        if kind == "SubscriberDecl" and not self._may_subscribe(space, declaration.id):
            return Status.OTHER
        return Status.SUCCESS

    def _may_subscribe(self, space: int, id: int) -> bool:
        """Whether access rules let the other node subscribe; what they deny is told, since a result can."""
        guard, face = self._dialect.links.node.space.guard, self.neighbour_face
        subject = self.neighbour.names.subject(space, id)
        if guard is None or face is None or subject is None:
            return True
        return guard.may_declare(face, Entity.SUBSCRIBER, pattern_of(space, subject))

    def _judge_predicate(self, predicate: str, declaration: Any) -> int:
        try:
            from elea.node.early.filters import Filter  # not with the module: few selections have one

            Filter(predicate, declaration.properties, self._dialect.catalogue)
        except InvalidPredicate:
            return Status.UNSUPPORTED
        except (ValueError, DecodeError):  # of its named properties
            return Status.INVALID
        return Status.SUCCESS

    def _can_publish(self, space: int, declaration: Any) -> bool:
        """Whether what is published can be acknowledged: a broker says so of persistent data when it is on disk."""
        node = self._dialect.links.node
        subject = self.neighbour.names.subject(space, declaration.id)
        if node.role is not Role.ROUTER or subject is None or isinstance(subject, int):
            return True
        resource = subject.resource if isinstance(subject, Selection) else subject
        declared = self.neighbour.theirs.space(space).resources.get(declaration.id)
        properties = declaration.properties or (None if declared is None else declared.properties)
        if durability_of(resource, properties) is not Durability.PERSISTENT:
            return True
        key = cover(pattern_of(space, resource))
        return node.durable is not None and node.durable.keeper_of(key, "persistent") is not None

    def _is_wanted(self, space: int, subject: Any) -> bool:
        face = self.neighbour_face
        return face is not None and not face.is_north and face.wanted(space, subject)

    def announce(self) -> None:
        """Who takes what the other node publishes may have changed."""
        with self.lock:
            self.neighbour.announce()

    def hold(self, event: Arrived) -> Callable[[Exception | None], None]:
        """Do not acknowledge a message before what it brought is safe; whoever knows says so."""
        with self.lock:
            receiver = self.session.conduit(event.conduit).receiver
            receiver.hold(event.sn)

        def done(error: Exception | None) -> None:
            if error is None:
                with self.lock:
                    receiver.release(event.sn)
                self.later_look()
            else:
                # It will never be: an acknowledgement would be a lie, and silence would hold up all that follows.
                self._loop.soon(lambda: self._give_up(error))

        return done

    def _give_up(self, error: Exception) -> None:
        with self.lock:
            if self.session.is_open:
                self.session.refuse(Reason.OUT_OF_RESOURCES)
        self._say(self._loop.now())
        self._connection.end(SessionClosed(Reason.OUT_OF_RESOURCES, f"a persistent sample cannot be kept: {error}"))

    # -- bytes out ----------------------------------------------------------------------------------------------------

    def to_send(self, now: float) -> list[bytes]:
        if self.outbox is not None:
            return []
        with self.lock:
            return sized(self.session.control(now), self._streamed)

    def _push(self, entry: Entry, reliable: bool, conduit: int) -> None:
        outbox = self.outbox
        assert outbox is not None
        size = len(entry[0]) + len(entry[1])
        if outbox.push(conduit << 1 | reliable, entry, size, FORWARDED) == REFUSED and self.neighbour_face is not None:
            self._loop.soon(self.neighbour_face.on_stalled)

    def _take(self, key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[Batch], int, int]:
        """Packets of what waits, as far as the window allows; none at all when it is full."""
        now = self._loop.now()
        further = None if self.paths is None else self.paths.of(bool(key & 1))
        if further is not None and not further.has_room:
            return [], 0, 0
        with self.lock:
            packets, used, octets = self.session.take(key, queue, most, now, TAKEN_AT_ONCE)
            if used and not self._timer_at <= now + self.session.round_trip.timeout:
                self._rearm()
        if further is not None:
            further.say(packets)
            return [], used, octets
        if not self._streamed:
            return [(packet,) for packet in packets], used, octets
        return [(vle(len(packet)), packet) for packet in packets], used, octets

    def _rearm(self) -> None:
        """A deadline has come that is before the one that is waited for."""
        self._timer_at = 0.0
        self._loop.soon(self._connection.set_timer)

    def look(self, now: float) -> None:
        """Say what is to be said: acknowledgements, repetitions, what is due; and go on where a window was full."""
        face, outbox = self.neighbour_face, self.outbox
        if face is None or outbox is None or self._connection.face is None:
            return
        face.pulling.serve(now)
        self._say(now)
        outbox.reopen()
        self._connection.set_timer()

    def later_look(self) -> None:
        """The same, soon, by the leader; once however often it is asked for."""
        if not self._is_looking:
            self._is_looking = True
            self._loop.soon(self._looked)

    def _looked(self) -> None:
        self._is_looking = False
        if not self._connection.ended.is_set():
            self.look(self._loop.now())

    def _say(self, now: float) -> None:
        outbox = self.outbox
        with self.lock:
            if outbox is None or (self._is_handling and self.session.is_open):
                return
            packets = self.session.control(now)
        further = None if self.paths is None else self.paths.of(True)
        if further is not None:
            further.say(packets)
            return
        for packet in sized(packets, self._streamed):
            try:
                self.refused_packets += not outbox.control(packet)
            except LinkClosed:
                return

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        now = self._loop.now()
        with self.lock:
            dues = [self.session.next_deadline()]
            face = self.neighbour_face
            if face is not None:
                dues.append(face.pulling.next_deadline(now))
            else:
                dues.append(self._opens_by)
        due = min((one for one in dues if one is not None), default=None)
        if due is None:
            self._timer_at = float("inf")
            return None
        self._timer_at = max(due, now + SHORTEST)
        return self._timer_at

    def on_deadline(self, now: float) -> None:
        face = self.neighbour_face
        if face is None and now >= self._opens_by:
            raise SessionClosed(Reason.GENERIC, "no session was opened in time")
        with self.lock:
            if self._connection.is_paused or (self.paths is not None and self.paths.is_paused):
                self.session.last_heard = now  # it may say what it likes, nobody reads it
            is_late = self.session.is_silent(now)
        if is_late and face is not None:
            self._connection.read_late()  # perhaps it is this node that is late
        with self.lock:
            events = self.session.on_deadline(now)
        for event in events:
            if isinstance(event, Ended):
                self._ended(event)
        self.look(now)

    # -- the end ------------------------------------------------------------------------------------------------------

    def refuse(self, error: EleaError) -> None:
        with self.lock:
            if self.session.is_open and not isinstance(error, SessionClosed):
                self.session.fail(error)
        self._say(self._loop.now())

    @property
    def is_settled(self) -> bool:
        with self.lock:
            return not self.session.is_open or self.session.is_settled

    def say_goodbye(self) -> None:
        with self.lock:
            self.session.close(self._loop.now())
        self._say(self._loop.now())

    def counters(self) -> Mapping[str, int]:
        """What was counted on the link."""
        session = self.session
        conduits = list(session.conduits.values())
        return {
            "received_batches": self.packets,
            "received_bytes": self.octets,
            "ignored_messages": session.dropped,
            "resent_messages": sum(one.reliable.resent for one in conduits),
            "duplicates": sum(one.receiver.duplicates + one.best_effort_receiver.late for one in conduits),
            "missing_numbers": sum(one.receiver.lost for one in conduits),
            "oversized_messages": sum(one.reliable.oversized + one.best_effort.oversized for one in conduits),
            "lost_acknowledgements": self.refused_packets,
            "round_trip_us": int(session.round_trip.estimate * 1e6),
        }

    def declared_keys(self) -> list[str]:
        """Keys that somebody has declared, without wildcards."""
        return self._dialect.declared_keys()


def node_id_of(pid: bytes) -> bytes:
    """The node id of a pid: itself, but for those that are all zeros, which no node id is."""
    return pid if pid.strip(b"\0") else b"zero pid" + bytes([len(pid)])
