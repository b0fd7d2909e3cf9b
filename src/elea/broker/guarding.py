"""One thread that waits awake for several links of a node.

What passes through a broker comes over one link and leaves by another, where its answer comes back. With a thread for
each link, the one awake would wait for a link that has nothing to say, while each answer wakes the other one. So the
thread that waits awake (`io/vigil.py`) for its own link looks at those of others, too: it is the node's *guard*. Who
would wait awake and finds the guard at it leaves his link to it, as its *ward*, and steps back (`leading.py`).

A ward is read, and what comes over it is taken and passed on, by the guard. Its own thread has the right to read it
again at once, if there is something only that thread can deal with, if its talk is over, or if the guard goes to sleep;
and after a `MOMENT` without anything read, whatever the guard is doing. The guard in turn loses its own link, as any
reading thread does, when serving a ward holds it up.

The ends of the talk may wait awake, too. With two cores and both ends on this machine that is one too many: the third
keeps one of the others from its core, and the slowest round trips take a fifth longer than with a broker that sleeps.
So the guard rests where another waits awake on its core (`HANDED_OVER`), and goes on where the others sleep, or have
cores of their own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.io.reading import awake
from elea.io.timers import give_way, handed_over, monotonic, thread_time
from elea.io.vigil import EARNED_BETWEEN, Vigil

if TYPE_CHECKING:
    from elea.broker.links import Connection
    from elea.broker.node import Node

__all__ = ["MOST_WARDS", "Guard"]

MOST_WARDS: Final = 3
"""Links beside its own that a guard looks at; each look in vain takes a microsecond from the others. Further ones that
talk at the same time wake their own threads."""

HANDED_OVER: Final = 1
"""How often the core is handed over in a wait, at least, if another waits awake on it, who gives way after each look:
1.4 times on average, and 0.2 times if both ends of the talk sleep until they are called."""

NOTHING: Final = -1
LOST: Final = -2


class Guard:
    """The waits of all links of a node that has several."""

    def __init__(self, node: Node) -> None:
        self.offered = False
        """Whether there are several links, so that `next` is to be asked."""
        self.served = 0
        """How often a ward was read."""
        self.wards: tuple[Connection, ...] = ()
        self.vigil = Vigil(earned=EARNED_BETWEEN)
        """Whether waiting for all of them pays."""
        self._node = node
        self._lock = threading.Lock()
        self._on_guard: Connection | None = None  # whose thread is, or comes back to it when it has passed things on

    def offer(self, offered: bool) -> None:
        """There are several links, or no longer."""
        self.offered = offered
        if not offered and self._on_guard is not None:
            self._dismiss(self._on_guard)

    def next(self, connection: Connection) -> bytes | memoryview | None:
        """The next batch of a link, as from its reader, for its own thread; None as well if that reads no more."""
        reader = connection.reader
        while True:
            batch = reader.cut()
            if batch is not None:
                return batch
            try:
                filled = self._fill(connection)
            except BaseException:
                self._dismiss(connection)
                raise
            if not filled:
                self._dismiss(connection)
                return None

    def _fill(self, connection: Connection) -> bool:
        reader = connection.reader
        now = monotonic()
        if reader.talks(now):
            if self.vigil.again(now) and awake.acquire(False):
                came = self._keep(connection, now)
                if came != NOTHING:
                    return came > 0
            elif self._join(connection):
                if not connection.lead.step_back():
                    self._leave(connection)
                    return False
                self._leave(connection)
                connection.go_on()
                if connection.ended.is_set():
                    return False
                if reader.has_more:
                    return True
        self._dismiss(connection)
        return reader.fill_ready()

    # -- the guard ----------------------------------------------------------------------------------------------------

    def _keep(self, connection: Connection, now: float) -> int:
        """Wait awake, with `awake` held until it ends: 1 or 0 when something or the end came over the own link."""
        reader, vigil, wards = connection.reader, self.vigil, self.wards
        held = True
        self._on_guard = connection
        try:
            before, until, handed = thread_time(), now + vigil.limit, handed_over()
            while True:
                came = reader.look()
                if came >= 0:
                    now = monotonic()
                    vigil.came(now, thread_time() - before, handed_over() - handed >= HANDED_OVER)
                    connection.vigil.ended(now)
                    connection.vigil.hits += 1
                    return came
                if wards is not self.wards:
                    # Who joins has just passed something on, which is as good as if this thread had.
                    wards, now = self.wards, monotonic()
                    vigil.again(now)
                    until = now + vigil.limit
                for ward in wards:
                    if not ward.lead.enter():
                        continue
                    if ward.lead.look():
                        vigil.came(monotonic(), thread_time() - before, handed_over() - handed >= HANDED_OVER)
                        awake.release()
                        held = False
                        if not self._serve(connection, ward):
                            return LOST
                        now = monotonic()
                        if not vigil.again(now) or not awake.acquire(False):
                            return NOTHING
                        held = True
                        before, until, handed = thread_time(), now + vigil.limit, handed_over()
                        break
                    ward.lead.leave()
                else:
                    now = monotonic()
                    if now >= until:
                        vigil.missed(now, thread_time() - before)
                        connection.vigil.misses += 1
                        return NOTHING
                    give_way()
        finally:
            if held:
                awake.release()

    def _serve(self, connection: Connection, ward: Connection) -> bool:
        """Take what has come over a ward, and pass it on; whether this thread still reads its own link."""
        self.served += 1
        connection.begin_busy()
        ward.lead.take_all()
        ward.lead.leave()
        if self._node.round:
            self._node.round.make()
        return connection.end_busy()

    def _dismiss(self, connection: Connection) -> None:
        """The thread of a link goes to sleep: if it was on guard, all are to look after themselves."""
        if self._on_guard is not connection:
            return
        with self._lock:
            wards, self.wards, self._on_guard = self.wards, (), None
        for ward in wards:
            ward.lead.dismiss()

    # -- wards --------------------------------------------------------------------------------------------------------

    def _join(self, connection: Connection) -> bool:
        with self._lock:
            if self._on_guard is None or self._on_guard is connection or len(self.wards) >= MOST_WARDS:
                return False
            self.wards = (*self.wards, connection)
            return True

    def _leave(self, connection: Connection) -> None:
        with self._lock:
            self.wards = tuple([ward for ward in self.wards if ward is not connection])
