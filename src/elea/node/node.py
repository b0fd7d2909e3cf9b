"""A node: its space, its own session, its sessions with others, and the threads that serve them.

Locks: `lock` guards the space. Whoever holds it only queues (bytes in outboxes, items in mailboxes); handlers run after
it has been released. Samples take no lock: their routes are found once and remembered until the space changes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from elea.io.interrupts import Shield, is_main_thread
from elea.io.loop import Loop
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.timestamp import Hlc
from elea.node.localface import LocalFace
from elea.node.openmetrics import OpenMetrics
from elea.node.routecache import Forwarder, Route, Scanning
from elea.node.zenoh1.pushes import Numbers, OutgoingKey, Stamper
from elea.space.face import Control, Face, Request, Response, ResponseFinal
from elea.space.queries import QUERY_TIMEOUT
from elea.space.space import Space
from elea.wire.zenoh1.messages import Encoding, Err, Oam

if TYPE_CHECKING:
    from elea.node.zenoh1.face import Zenoh1Face

__all__ = ["Node"]

_log = logger("elea.node")

TIMEOUT_REPLY = Err(b"Timeout", encoding=Encoding(1))
"""What a node says for a neighbour that did not answer in time (zenoh-1 §14.1)."""


def _refusal(problem: str) -> Err:
    return Err(problem.encode(), encoding=Encoding(1))


class Node:
    """The parts every role has; links are `Links`' business."""

    def __init__(self, node_id: bytes, role: Role, loop: Loop, *, timestamping: bool) -> None:
        self.node_id = node_id
        self.role = role
        self.loop = loop
        self.generation = 0
        """Changes whenever a route may be another than before; read without a lock by everyone who remembers one."""
        self.lock = threading.RLock()
        self.space = Space(role, node_id, timeout_body=lambda: TIMEOUT_REPLY, refusal_body=_refusal)
        self.dispatch = loop.dispatch
        self.collecting: set[int] = set()
        """Threads that deliver what they have left in the dispatch queue when they are done."""
        self.numbers = Numbers()
        self.scanner: Callable[[], Scanning] | None = None
        """Makes what reads samples to blocks, while there are subscribers of this process that take them."""
        self.block_takers = 0
        self.clock = Hlc(NodeId(node_id))
        self.stamper = Stamper(self.clock) if timestamping else None
        self.on_oam: Callable[[Zenoh1Face, Oam], None] | None = None
        """Told what neighbours say besides data, queries and declarations."""
        self.meters: list[Callable[[OpenMetrics], None]] = []
        """Who has something to add to the metrics page."""
        self.own = LocalFace(self)
        self._later: deque[Callable[[], None]] = deque()
        self._crowded: deque[Callable[[], object]] = deque()
        self._due = float("inf")
        self._groups: dict[tuple[Forwarder, ...], tuple[Forwarder, ...]] = {}
        self._groups_of = -1
        with self.lock:
            self.space.add_face(self.own)

    # -- control ------------------------------------------------------------------------------------------------------

    def control(self, face: Face, message: Control) -> None:
        """A neighbour, or this process, says something to the space."""
        with self.lock:
            self.space.receive(face, message, self.loop.now())
        self.settle()

    def ask(self, face: Face, request: Request) -> None:
        """The same for a query, which changes no route: a third of the cost."""
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
        due = self.space.next_deadline()
        if due is not None and due < self._due:
            self._due = due
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

    def refresh(self) -> None:
        """Something that routes depend on may have changed."""
        self.generation = self.space.generation + self.own.changes

    def _on_deadline(self) -> None:
        with self.lock:
            self._due = float("inf")
            self.space.on_deadline(self.loop.now())
        self.settle()

    # -- samples ------------------------------------------------------------------------------------------------------

    def number(self, key: str, faces: Sequence[Forwarder]) -> int:
        """The number of a key towards some neighbours, 0 for none.

        A link that loses messages may lose the one that says what a number means, so the key itself goes there.
        """
        return self.numbers.number(key) if faces and all(face.takes_number(key) for face in faces) else 0

    def route(self, source: Face, key: str) -> Route:
        """Where samples on `key` from `source` go."""
        # First the generation, then the look: what changes in between makes the route be found again.
        generation = self.generation
        seen = self.space.look(source, key)
        with self.lock:
            # A session may end while its last batch is being read.
            faces = tuple(self.space.targets(source, key, seen)) if self.space.knows(source) else ()
            others: tuple[Forwarder, ...] = tuple(face for face in faces if face is not self.own)  # type: ignore[misc]
            if generation != self._groups_of:
                self._groups_of, self._groups = generation, {}
            others = self._groups.setdefault(others, others)  # one tuple for all keys that go there: compared by `is`
        number = self.number(key, others)
        for face in others:
            face.tell(number, key)
        boxes = self.own.boxes(key, here=source is self.own)
        return Route(key, generation, boxes, others, OutgoingKey(key, number), self.own.keepers(key))
