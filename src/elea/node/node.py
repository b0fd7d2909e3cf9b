"""A node: its space, its own session, its sessions with others, and the threads that serve them.

Locks: `lock` guards the space. Whoever holds it only queues (bytes in outboxes, items in mailboxes); handlers run after
it has been released. Samples take no lock: their routes are found once and remembered until the space changes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elea.io.interrupts import Shield, is_main_thread
from elea.io.loop import Loop
from elea.io.memorybudget import MemoryBudget, default_budget
from elea.model.errors import NotExpressible, SessionClosed
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.timestamp import Hlc
from elea.node.instruments import Instruments
from elea.node.localface import LocalFace
from elea.node.openmetrics import OpenMetrics
from elea.node.route import Durable, Route
from elea.node.stamper import Stamper
from elea.space.face import Control, Face, Request, Response, ResponseFinal, Subject
from elea.space.queries import QUERY_TIMEOUT
from elea.space.space import Space
from elea.space.way import Encoder, Way

if TYPE_CHECKING:
    from elea.node.filteredway import Filters
    from elea.node.futurestamps import FutureStamps
    from elea.node.schemas import SpaceSchemas
    from elea.space.guard import GuardRules

__all__ = ["Node"]

_log = logger("elea.node")


class Node:
    """The parts every role has; links are `Links`' business."""

    def __init__(self, node_id: bytes, role: Role, loop: Loop, *, timestamping: bool) -> None:
        self.node_id = node_id
        self.role = role
        self.loop = loop
        self.generation = 0
        """Changes whenever a route may be another than before; read without a lock by everyone who remembers one."""
        self.is_forked = False
        self.lock = threading.RLock()
        self.space = Space(role, node_id)
        self.dispatch = loop.dispatch
        self.collecting: set[int] = set()
        """Threads that deliver what they have left in the dispatch queue when they are done."""
        self.scanner: Callable[[], Any] | None = None
        """Makes what reads samples to blocks, while there are subscribers of this process that take them."""
        self.block_takers = 0
        self.memory = MemoryBudget(default_budget())
        """What messages of others may take, until they are whole or done with."""
        self.clock = Hlc(NodeId(node_id))
        self.stamper = Stamper(self.clock) if timestamping else None
        self.meters: list[Callable[[OpenMetrics], None]] = []
        """Who has something to add to the metrics page."""
        self.durable: Durable | None = None
        """Stores samples that say how durable they are, if there is anything to store them in."""
        self.future: FutureStamps | None = None
        """What drops puts with timestamps too far ahead, where they are not to be replaced."""
        self.instruments = Instruments(self)
        """What gives timestamps to messages that collect them."""
        self.local = LocalFace(self)
        self._later: deque[Callable[[], None]] = deque()
        self._crowded: deque[Callable[[], object]] = deque()
        self._due = float("inf")
        self._groups: dict[tuple[Face, ...], tuple[Face, ...]] = {}
        self._groups_of = -1
        self.filters: Filters | None = None
        """What keeps samples back that no neighbour wants; there once a neighbour has said so."""
        self._schemas: SpaceSchemas | None = None
        with self.lock:
            self.space.add_face(self.local)

    @property
    def schemas(self) -> SpaceSchemas:
        """What the data space says of the types of payloads; nothing is asked before somebody needs one."""
        found = self._schemas
        if found is None:
            from elea.node.schemas import SpaceSchemas  # few programs look into payloads

            with self.lock:
                found = self._schemas
                if found is None:
                    found = self._schemas = SpaceSchemas(self)
        return found

    # -- control ------------------------------------------------------------------------------------------------------

    def control(self, face: Face, message: Control) -> None:
        """A neighbour, or this process, says something to the space."""
        self.check_process()
        with self.lock:
            self.space.receive(face, message, self.loop.now())
        self.settle()

    def ask(self, face: Face, request: Request) -> None:
        """The same for a query, which changes no route: a third of the cost."""
        if self.is_forked:
            self.check_process()
        if is_main_thread():
            with Shield():  # Ctrl-C would leave the query half asked
                self._ask(face, request)
        else:
            self._ask(face, request)

    def _ask(self, face: Face, request: Request) -> None:
        now = self.loop.now()
        seen = self.space.look_for_query(face, request)
        with self.lock:
            self.space.ask(face, request, now, seen)
        timeout = QUERY_TIMEOUT if request.timeout_ms is None else request.timeout_ms / 1000
        if self._later or now + timeout < self._due:  # mostly a timer is set already, for an older query
            self.settle()
        elif self.dispatch:
            self.deliver_soon()

    def answer(self, face: Face, message: Response | ResponseFinal) -> None:
        """The same for an answer, which needs no timer either."""
        with self.lock:
            self.space.answer(face, message)
        if self._later:
            self.settle()
        elif self.dispatch:
            self.deliver_soon()
        if self._crowded:
            self._wait_for_room()

    def crowded(self, wait: Callable[[], object]) -> None:
        """Answers are queued beyond a bound: whoever has answered, and is out of the lock, calls `wait`.

        That holds up the link they came from, or a thread of the user's.
        """
        self._crowded.append(wait)

    def _wait_for_room(self) -> None:
        while self._crowded:
            try:
                wait = self._crowded.popleft()
            except IndexError:
                return
            wait()

    def later(self, work: Callable[[], None]) -> None:
        """Do something that must not be done inside the space."""
        self._later.append(work)

    def settle(self) -> None:
        """After the space has been left: what it wanted done, and what lies in mailboxes."""
        self.refresh()
        with self.lock:
            due = self.space.next_deadline()
            if due is None or due >= self._due:
                due = None
            else:
                self._due = due
        if due is not None:
            self.loop.at(due, self._on_deadline)
        while self._later:
            try:
                work = self._later.popleft()
            except IndexError:
                break
            work()
        self.deliver_soon()

    def deliver_soon(self) -> None:
        """See to it that what lies in mailboxes is brought: by this thread if it `delivers`, else by a worker."""
        if self.dispatch and not self.delivers():
            self.dispatch.make_soon()

    def delivers(self) -> bool:
        """Whether this thread brings what lies in mailboxes when it is done with what it is at."""
        return self.loop.is_led_here() or threading.get_ident() in self.collecting

    def watch(self, rules: GuardRules) -> None:
        """From now on these access rules and filters hold, also for the sessions that are open."""
        from elea.space.guard import Guard  # not with the module: few nodes have rules

        guard = Guard(rules, now=self.loop.now, interfaces_of=_interfaces) if rules else None
        with self.lock:
            if guard is None and self.space.guard is None:
                return
            self.space.watch(guard)
        self.settle()

    def forked(self) -> None:
        """This process is a child of the one that the node belongs to: nothing can be said or heard here."""
        self.is_forked = True
        self.generation = -2  # of no route that anybody remembers
        self.lock = threading.RLock()  # a thread that is not here may have it

    def check_process(self) -> None:
        """Raise in a child process.

        Raises:
            SessionClosed: it has to open a session of its own.
        """
        if self.is_forked:
            raise SessionClosed(text="this session belongs to the parent process; open one in this process")

    def refresh(self) -> None:
        """Something that routes depend on may have changed."""
        self.generation = self.space.generation + self.local.changes

    def _on_deadline(self) -> None:
        with self.lock:
            self._due = float("inf")
            self.space.on_deadline(self.loop.now())
        self.settle()

    def check_words(self, what: str) -> None:
        """Raise if this node depends on others, and all of those it has speak dialects that have no word for this.

        Raises:
            NotExpressible: so it is.
        """
        if self.role is Role.CLIENT:
            with self.lock:
                dialects = {face.lacks.get(what, "") for face in self.space.faces() if face is not self.local}
            if dialects and "" not in dialects:
                raise NotExpressible(min(dialects), what)

    # -- samples ------------------------------------------------------------------------------------------------------

    def route(self, source: Face, key: str, *, declared: bool = True, deletions: bool = False) -> Route:
        """Where samples on `key` from `source` go; `declared` says that the key is worth a number of its own.

        Rules may tell `deletions` from puts; who has both asks for both, if there are rules.
        """
        self.check_process()
        # First the generation, then the look: what changes in between makes the route be found again.
        generation = self.generation
        seen = self.space.look(source, key)
        with self.lock:
            # A session may end while its last batch is being read.
            faces = self.space.targets(source, key, seen) if self.space.knows(source) else ()
            guard = self.space.guard
            groups: dict[Encoder, list[Face]] = {}
            filters = self.space.filters(key) if faces and guard is None else {}
            filtered = [face for face in faces if face in filters and face is not self.local]
            for face in faces if guard is None else ():
                if face is not self.local and face not in filters:
                    groups.setdefault(face.encoder, []).append(face)
            alike = [self.same(tuple(group), generation) for group in groups.values()]
        if guard is not None:
            from elea.node.guardedroute import GuardedRoute, guarded_route  # few nodes have rules

            return guarded_route(self, guard, GuardedRoute(source, key, faces, deletions, declared, generation))
        ways = tuple([group[0].encoder.way(key, group, declared) for group in alike])
        if filtered:
            ways += self._filtered_ways(key, filtered, filters, declared)
        boxes = self.local.boxes(key, here=source is self.local)
        sieve = None if self.future is None else self.future.sieve(key, None)
        return Route(key, generation, boxes, ways, self.local.keepers(key), sieve)

    def same(self, faces: tuple[Face, ...], generation: int) -> tuple[Face, ...]:
        """One tuple for all keys that go to the same faces: who collects samples compares them by `is`."""
        if generation != self._groups_of:
            self._groups_of, self._groups = generation, {}
        return self._groups.setdefault(faces, faces)

    def _filtered_ways(
        self, key: str, faces: list[Face], filters: dict[Face, tuple[str, ...]], declared: bool
    ) -> tuple[Way, ...]:
        """Ways to neighbours that do not want every sample; those that want the same share one."""
        from elea.node.filteredway import Filters  # few nodes have a neighbour with predicates

        if self.filters is None:
            self.filters = Filters(self.schemas)
            self.meters.append(self.filters.meter)
        groups: dict[tuple[Encoder, tuple[str, ...]], list[Face]] = {}
        for face in faces:
            groups.setdefault((face.encoder, filters[face]), []).append(face)
        return tuple(
            [
                self.filters.way(encoder.way(key, tuple(group), declared), predicates)
                for (encoder, predicates), group in groups.items()
            ]
        )


def _interfaces(subject: Subject) -> tuple[str, ...]:
    from elea.io.addresses import interfaces_of_address

    return interfaces_of_address(subject.local)
