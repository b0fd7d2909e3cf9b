"""Finding other nodes and connecting to them: by multicast scouting, and by what neighbours tell of each other.

What is said and who is worth connecting to is decided by `gossip` and by the scouting machines; here are their sockets,
timers and threads. Nothing that fails here ends a node: who cannot be reached is tried again when he is next heard of.
Spec: zenoh-1 §7, §13.3, §17.3.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final

from elea.io.loop import Loop
from elea.io.scoutsockets import SCOUTING_GROUP, ScoutListener, ScoutSender
from elea.io.systemrandom import SystemRandom
from elea.io.timers import monotonic
from elea.model.errors import ConfigError, EleaError, OperationTimeout
from elea.model.found import Found
from elea.model.limits import MAX_MEETINGS
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.node.connection import Connection
from elea.node.discovery import DiscoverySettings
from elea.node.zenoh1.dialect import Zenoh1Dialect
from elea.node.zenoh1.face import Zenoh1Face
from elea.node.zenoh1.gossip import LINK_STATE, Candidate, Gossip, Said, may_connect, read_oam, write_oam
from elea.protocol.zenoh1.scouting import ScoutAnswerer, Scouter
from elea.wire.zenoh1.messages import Oam

__all__ = ["MAX_MEETINGS", "Seeker", "Zenoh1Discovery"]

_log = logging.getLogger("elea.node")

ATTEMPTS: Final = 3
"""Times a node found is tried before it is left until it is heard of again."""

HESITATION: Final = 0.1
"""Seconds, at most, before connecting to a node heard of: all who hear of it at once would connect at once."""

BREATHER: Final = 0.1
"""Seconds between two searches of a client, whose `scouting/timeout` may be 0."""

POLL: Final = 0.002


class Seeker:
    """Asks a group for nodes until closed; `on_found` gets every answer, in a turn of the loop.

    Args:
        what: the roles asked for, a sum.
        own_id: whose answers to pass over.
    """

    def __init__(
        self,
        loop: Loop,
        what: int,
        on_found: Callable[[Found], None],
        *,
        group: str = SCOUTING_GROUP,
        interface: str = "auto",
        ttl: int = 1,
        own_id: bytes | None = None,
    ) -> None:
        self._loop = loop
        self._on_found = on_found
        self._scouter = Scouter(what, monotonic(), own_id=own_id)
        self._sender = ScoutSender(self._answer, loop, group=group, names=interface, ttl=ttl)
        self._closed = False
        self._ask()

    def _ask(self) -> None:
        if self._closed:
            return
        for datagram in self._scouter.to_send(monotonic()):
            self._sender.ask(datagram)
        self._loop.at(self._scouter.next_deadline(), self._ask)

    def _answer(self, datagram: bytes, source: tuple[str, int]) -> None:
        found = self._scouter.receive(datagram)
        if found is not None:
            self._on_found(found)

    def close(self) -> None:
        """Ask no more."""
        self._closed = True
        self._sender.close()


class Zenoh1Discovery:
    """How one node finds others, and is found (`Discovery`)."""

    def __init__(self, dialect: Zenoh1Dialect, settings: DiscoverySettings) -> None:
        self._dialect = dialect
        self.links = links = dialect.links
        self.node = node = links.node
        self.settings = settings
        self.malformed = 0  # OAM messages that could not be read
        self.failed = 0  # attempts to connect to a node found
        self.skipped = 0  # nodes found while too many were being connected to
        self.gossip: Gossip | None = None
        if settings.gossip is not None:
            self.gossip = Gossip(
                node.node_id, node.role, settings.gossip, locators=lambda: links.locators(dialect.name)
            )
        self._faces: dict[bytes, Zenoh1Face] = {}  # under the node's lock, as the gossip
        self._meeting: set[bytes] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._chance = SystemRandom()
        self._answerer: ScoutAnswerer | None = None
        self._listener: ScoutListener | None = None
        self._seeker: Seeker | None = None
        self._answers: queue.SimpleQueue[Found | None] = queue.SimpleQueue()
        self._scouted: Connection | None = None  # the one session of a client that has no configured locator
        dialect.on_joining = self._joining
        dialect.on_oam = self._oam

    # -- being found, finding -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Answer those who scout, and scout; called once the node listens, since its locators are told."""
        settings = self.settings
        if settings.group is None:
            return
        if settings.answers:
            self._answerer = ScoutAnswerer(self.node.node_id, self.node.role, self.links.locators("zenoh1"))
            self._listener = ScoutListener(self._scout, self.node.loop, group=settings.group, names=settings.interface)
        if settings.autoconnect and self.node.role is not Role.CLIENT:
            self._seeker = self._seek(self._found)

    def _scout(self, datagram: bytes, source: tuple[str, int]) -> None:
        answerer, listener = self._answerer, self._listener
        answer = None if answerer is None else answerer.receive(datagram)
        if answer is not None and listener is not None:
            listener.send_to(answer, source)

    def _seek(self, on_found: Callable[[Found], None]) -> Seeker:
        settings = self.settings
        return Seeker(
            self.node.loop,
            sum(settings.autoconnect),
            on_found,
            group=settings.group or SCOUTING_GROUP,
            interface=settings.interface,
            ttl=settings.ttl,
            own_id=self.node.node_id,
        )

    def _found(self, found: Found) -> None:
        """A node has answered."""
        settings = self.settings
        if may_connect(self.node.node_id, found.node_id, found.role, settings.autoconnect, settings.greater):
            self._meet(Candidate(found.node_id, found.role, found.locators), 0.0)

    def find_one(self) -> None:
        """Scout and connect to the first node that answers and can be reached, as a client does.

        Raises:
            OperationTimeout: nobody was there in time.
            ConfigError: there is no way to find anybody.
        """
        settings = self.settings
        if settings.group is None or not settings.autoconnect:
            problem = "a client that may not scout has nobody to connect to"
            raise ConfigError("connect/endpoints", problem, "give a locator such as tcp/127.0.0.1:7447")
        seeker = self._seek(self._answers.put)
        deadline = monotonic() + settings.timeout
        problem = ""
        try:
            while (left := deadline - monotonic()) > 0 and not self._closed.is_set():
                try:
                    found = self._answers.get(timeout=left)
                except queue.Empty:
                    break
                connection, problem = (None, problem) if found is None else self._try(found.locators, left)
                if connection is not None:
                    self._scouted = connection
                    if connection.ended.is_set():  # so soon that nobody looked for it
                        self._lost(connection)
                    return
        finally:
            seeker.close()
        raise OperationTimeout(
            f"no node {'could be reached' if problem else 'answered'} on {settings.group} within {settings.timeout:g} s"
            f"{f' ({problem})' if problem else ''}: start a router or a peer, or configure connect/endpoints"
        )

    # -- connecting ---------------------------------------------------------------------------------------------------

    def _meet(self, found: Candidate, delay: float) -> None:
        """Connect to a node in the background, unless that is done or under way."""
        if not found.locators or self.links.session_with(found.node_id) is not None:
            return
        with self._lock:
            if found.node_id in self._meeting or self._closed.is_set():
                return
            if len(self._meeting) >= MAX_MEETINGS:
                self.skipped += 1
                return
            self._meeting.add(found.node_id)
        thread = threading.Thread(target=self._approach, args=(found, delay), name="elea-meet", daemon=True)
        thread.start()

    def _approach(self, found: Candidate, delay: float) -> None:
        backoff = self.links.settings.backoff()
        backoff.delay()  # the first attempt is ours to time
        try:
            for _ in range(ATTEMPTS):
                if self._closed.wait(delay) or self.links.session_with(found.node_id) is not None:
                    return
                connection, problem = self._try(found.locators, self.links.settings.open_timeout)
                if connection is not None:
                    return
                self.failed += 1
                delay = backoff.delay()
                _log.info("node found but not reached: node=%s problem=%s", NodeId(found.node_id), problem)
        finally:
            with self._lock:
                self._meeting.discard(found.node_id)

    def _try(self, locators: Sequence[str], timeout: float) -> tuple[Connection | None, str]:
        """A session with a node over the first of its locators that works, or why none did."""
        problem = "it tells no locators"
        for locator in locators:
            try:
                return self.links.connect(locator, timeout=timeout), ""
            except EleaError as error:
                problem = f"{locator}: {error}"
        return None, problem

    # -- neighbours ---------------------------------------------------------------------------------------------------

    def _joining(self, session: Zenoh1Face) -> None:
        """A session begins; the node is locked, and nothing has been said on it yet."""
        if self.gossip is None:
            return
        node_id = session.subject.node_id
        if node_id in self._faces:  # its former session has not been cleared away yet
            self.gossip.left(node_id)
        self._faces[node_id] = session
        self._say(self.gossip.joined(node_id, session.subject.role))

    def left(self, connection: Connection) -> None:
        """A session has ended."""
        node_id, face = connection.peer_id, connection.face
        with self.node.lock:
            if face is not None and self.gossip is not None and self._faces.get(node_id) is face:
                del self._faces[node_id]
                self.gossip.left(node_id)
        self._lost(connection)

    def _lost(self, connection: Connection) -> None:
        """A client that had found somebody looks for somebody again."""
        with self._lock:
            if connection is not self._scouted or self._closed.is_set():
                return
            self._scouted = None
        threading.Thread(target=self._find_again, name="elea-reconnect", daemon=True).start()

    def _find_again(self) -> None:
        while not self._closed.is_set():
            try:
                self.find_one()
                return
            except EleaError as error:
                _log.info("scouting goes on: problem=%s", error)
                self._closed.wait(BREATHER)

    def _oam(self, session: Zenoh1Face, message: Oam) -> None:
        """A neighbour tells of others."""
        if self.gossip is None or message.id != LINK_STATE or not self.gossip.takes_part(session.subject.role):
            return
        states = read_oam(message)
        if states is None:
            self.malformed += 1
            _log.warning("gossip ignored: node=%s malformed=%d", NodeId(session.subject.node_id), self.malformed)
            return
        with self.node.lock:
            said, candidates = self.gossip.heard(session.subject.node_id, states)
            self._say(said)
            # Still locked: who waits must not see that we have heard, and nobody we are about to connect to.
            for candidate in candidates:
                self._meet(candidate, self._chance.randrange(0, 1000) / 1000 * HESITATION)

    def _say(self, said: list[Said]) -> None:
        for one in said:
            self._faces[one.to].say(write_oam(one.states))

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, *, expected: bool) -> None:
        """Wait until the nodes found have told what they have, `delay` seconds at most.

        Args:
            expected: whether there is a configured locator to wait for; otherwise only who is scouted for.
        """
        deadline = monotonic() + self.settings.delay
        if not expected and self._seeker is None:
            return
        while not self._is_settled() and monotonic() < deadline and not self._closed.is_set():
            self._closed.wait(POLL)

    def _is_settled(self) -> bool:
        settings, gossip, space = self.settings, self.gossip, self.node.space
        with self.node.lock:
            if settings.wait_connected and self._meeting:
                return False
            every = [c.face for c in list(self.links.connections) if c.face is not None and c.dialect is self._dialect]
            sessions = [session for session in every if session.subject.role is not Role.CLIENT]
            if settings.wait_connected and self._seeker is not None and not sessions:
                return False
            if not settings.wait_declared:
                return True
            # The last a peer tells at the start is that this was all; of a router its gossip is the only sign.
            return all(
                space.knows(session)
                and space.greeted(session)
                and (
                    gossip is None
                    or session.subject.role is not Role.ROUTER
                    or gossip.has_heard(session.subject.node_id)
                )
                for session in sessions
            )

    def close(self) -> None:
        """Find nobody any more, and be found by nobody."""
        self._closed.set()
        self._answers.put(None)  # wakes who waits for one
        for part in (self._seeker, self._listener):
            if part is not None:
                part.close()
