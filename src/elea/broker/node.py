"""A node: its space, its own session, its sessions with others, and the threads that serve them.

Locks: `lock` guards the space. Whoever holds it only queues (bytes in outboxes, items in mailboxes); handlers run after
it has been released. Samples take no lock: their routes are found once and remembered until the space changes.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.broker.delivery import Round, Watch
from elea.broker.own import OwnSession
from elea.broker.relay import Numbers, OutgoingKey, Stamper
from elea.broker.routes import Arrived, Forwarder, Route
from elea.io.timers import Keeper, monotonic
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.timestamp import Hlc
from elea.space.face import Control, Face
from elea.space.space import Space
from elea.wire.zenoh1.messages import Encoding, Err, Oam
from elea.wire.zenoh1.samples import Pushed

if TYPE_CHECKING:
    from elea.broker.zenoh1 import Zenoh1Session

__all__ = ["Node"]

_log = logging.getLogger("elea.broker")

TIMEOUT_REPLY = Err(b"Timeout", encoding=Encoding(1))
"""What a node says for a neighbour that did not answer in time (zenoh-1 §14.1)."""


class Node:
    """The parts every role has; links are `Links`' business."""

    def __init__(self, node_id: bytes, role: Role, keeper: Keeper, *, timestamping: bool) -> None:
        self.node_id = node_id
        self.role = role
        self.keeper = keeper
        self.generation = 0
        """Changes whenever a route may be another than before; read without a lock by everyone who remembers one."""
        self.lock = threading.RLock()
        self.space = Space(role, node_id, timeout_body=lambda: TIMEOUT_REPLY)
        self.round = Round()
        self.watch = Watch()
        self.readers: set[int] = set()  # threads that read links, and so deliver
        self.numbers = Numbers()
        self.clock = Hlc(NodeId(node_id))
        self.stamper = Stamper(self.clock) if timestamping else None
        self.on_oam: Callable[[Zenoh1Session, Oam], None] | None = None
        """Told what neighbours say besides data, queries and declarations."""
        self.own = OwnSession(self)
        self._later: deque[Callable[[], None]] = deque()
        self._due = float("inf")
        with self.lock:
            self.space.add_face(self.own)

    # -- control ------------------------------------------------------------------------------------------------------

    def control(self, face: Face, message: Control) -> None:
        """A neighbour, or this process, says something to the space."""
        with self.lock:
            self.space.receive(face, message, monotonic())
        self.settle()

    def later(self, work: Callable[[], None]) -> None:
        """Do something that must not be done inside the space."""
        self._later.append(work)

    def settle(self) -> None:
        """After the space has been left: what it wanted done, and what lies in mailboxes."""
        self.refresh()
        due = self.space.next_deadline()
        if due is not None and due < self._due:
            self._due = due
            self.keeper.at(due, self._on_deadline)
        while self._later:
            try:
                work = self._later.popleft()
            except IndexError:
                break
            work()
        self.deliver_soon()

    def deliver_soon(self) -> None:
        """See to it that what lies in mailboxes is brought: by this thread if it reads, which it will when it is done
        with its batch, else by a courier.
        """
        if self.round and threading.get_ident() not in self.readers:
            self.round.make_soon()

    def refresh(self) -> None:
        """Something that routes depend on may have changed."""
        self.generation = self.space.generation + self.own.changes

    def _on_deadline(self) -> None:
        with self.lock:
            self._due = float("inf")
            self.space.on_deadline(monotonic())
        self.settle()

    # -- samples ------------------------------------------------------------------------------------------------------

    def route(self, source: Face, key: str) -> Route:
        """Where samples on `key` from `source` go."""
        with self.lock:
            generation = self.generation
            # A session may end while its last batch is being read.
            faces = tuple(self.space.targets(source, key)) if self.space.knows(source) else ()
        others: list[Forwarder] = [face for face in faces if face is not self.own]  # type: ignore[misc]
        boxes = self.own.boxes(key, here=source is self.own)
        return Route(key, generation, boxes, others, OutgoingKey(key, self.numbers.number(key) if others else 0))

    def deliver(self, route: Route, run: list[Pushed], reliable: bool, now_ns: int) -> None:
        """Send a run of samples of one key its way; `now_ns` is when its batch was read."""
        if route.faces:
            if self.stamper is not None:
                parts = route.outgoing.stamp(run, self.stamper, now_ns)
            else:
                parts = route.outgoing.rewrite(run)
            for qos, start, end in _same_qos(run):
                piece = tuple(parts if end - start == len(run) else parts[2 * start : 2 * end])
                size = sum(map(len, piece))
                for face in route.faces:
                    face.forward(route, piece, size, qos, reliable)
        for box in route.boxes:
            self.round.add(box, Arrived(route.expr, run, reliable))


def _same_qos(run: list[Pushed]) -> list[tuple[int, int, int]]:
    """Pieces of a run with one quality of service; nearly always there is one."""
    first = run[0][3]
    if len(run) == 1 or all(entry[3] == first for entry in run):
        return [(first, 0, len(run))]
    pieces: list[tuple[int, int, int]] = []
    start = 0
    for at in range(1, len(run) + 1):
        if at == len(run) or run[at][3] != run[start][3]:
            pieces.append((run[start][3], start, at))
            start = at
    return pieces
