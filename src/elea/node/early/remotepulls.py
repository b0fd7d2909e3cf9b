"""Pull subscribers of programs here whose samples wait at the other node: Pull messages bring them. Spec: §5.12.

Only where the end of a pull is told, in zenoh2018. A key expression may be several selections (`keys.paths_of`); a
sample that more than one of them has is taken from the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.model.errors import DeclarationRejected
from elea.model.keytext import EARLY, intersects
from elea.protocol.early.numbered import plain_entry

if TYPE_CHECKING:
    from elea.node.early.face import EarlyFace

__all__ = ["RemotePull"]

Pulled = list[tuple[str, bytes]]


class RemotePull:
    """One subscriber: its selections, in their order, and the pull that is under way."""

    def __init__(self, face: EarlyFace, paths: dict[int, str]) -> None:
        """Args:
        paths: what each selection stands for.
        """
        self._face = face
        self._paths = paths
        self._declared: set[int] = set()
        self._is_closed = False
        self._asked: list[tuple[int | None, Callable[[Pulled], None]]] = []
        self._left: list[int] = []  # selections that the pull under way has still to ask
        self._found: Pulled = []
        self._wanted: int | None = None  # samples of the Pull under way that have not come, at most

    @property
    def is_over(self) -> bool:
        """Whether its session has ended, or it was closed: another one has to be made."""
        return self._is_closed or self._face.machine.connection.ended.is_set()

    def begin(self) -> None:
        """Declare it; the lock of the machine is held."""
        machine = self._face.machine
        m = machine.session.generation.messages
        for sid, path in self._paths.items():

            def done(error: DeclarationRejected | None, sid: int = sid) -> None:
                self._declared.add(sid)  # one that is refused brings nothing but its end
                if error is not None:
                    self._face.own.rejected += 1
                    self._paths.pop(sid, None)
                if self._left[:1] == [sid]:
                    self._go_on()

            name = f"{machine.session.prefix}{path}".encode()
            subscriber = m.SubscriberDecl(sid, m.SubscriptionModeId.PullModeId)
            machine.neighbour.declare([m.SelectionDecl(sid, name), subscriber], done)

    def pull(self, most: int | None, done: Callable[[Pulled], None]) -> None:
        """Ask for samples that wait, so many at most; `done` gets them, in a turn of the loop."""
        with self._face.machine.lock:
            self._asked.append((most, done))
            if len(self._asked) == 1:
                self._start()

    def close(self) -> None:
        """Nothing more is to wait there."""
        machine = self._face.machine
        with machine.lock:
            if self.is_over:
                return
            self._is_closed = True
            m = machine.session.generation.messages
            for sid in self._paths:
                self._face.asking.forget_pull(sid)
                machine.neighbour.declare([m.ForgetSubscriberDecl(sid), m.ForgetSelectionDecl(sid)])
            waiting, self._asked = self._asked, []
        for _, done in waiting:
            done([])

    # -- in the session, whose lock is held ----------------------------------------------------------------------------

    def _start(self) -> None:
        self._left, self._found = list(self._paths), []
        self._go_on()

    def _go_on(self) -> None:
        """Ask the next selection, or tell what was found."""
        while self._left and self._left[0] not in self._paths:
            del self._left[0]
        most, done = self._asked[0]
        if not self._left or len(self._found) == most:
            found = self._found
            del self._asked[0]
            self._face.machine.after_packet(lambda: done(found))
            if self._asked:
                self._start()
        elif self._left[0] in self._declared:
            session = self._face.machine.session
            self._wanted = None if most is None else most - len(self._found)
            session.send(plain_entry(session.generation, session.generation.pull(self._left[0], most=self._wanted)))

    def answered(self, sid: int, key: str, payload: bytes) -> None:
        """A sample has come."""
        with self._face.machine.lock:
            if not self._asked or self._left[:1] != [sid]:
                return  # of a pull that nobody waits for any more
            before = [path for other, path in self._paths.items() if other < sid]
            if not any(intersects(EARLY + path, key) for path in before):
                self._found.append((key, payload))
            if self._wanted is not None:
                self._wanted -= 1
                if not self._wanted:
                    self._go_on()  # a Pull that has brought what it asked for has no end

    def ended(self, sid: int) -> None:
        """A selection has no more."""
        with self._face.machine.lock:
            if self._asked and self._left[:1] == [sid]:
                del self._left[0]
                self._go_on()
