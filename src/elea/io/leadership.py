"""Who leads: one thread at a time, any of several kinds (the Leader/Followers pattern).

A node has a *worker* thread that leads. A thread of the user's that waits for something to come may lead in its place:
what it reads is for itself, so nobody need wake it. It runs no handler but its own; if there is something for others it
gives the lead back at once. A leader that is held up by a handler loses the lead to a *follower*, a second worker that
looks after it while handlers run; so handlers may block, ask and put, and no link waits for them for long.

What the leader does in a turn, `elea.io.loop` knows; nothing here does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Final

from elea.io.dispatch import DispatchQueue
from elea.io.interrupts import Shield, may_be_interrupted
from elea.io.poller import Found, Pollable
from elea.io.timers import monotonic
from elea.model.logger import logger
from elea.model.values import mypyc_attr

__all__ = ["HELD_UP", "Leadership"]

HELD_UP: Final = 0.01
"""Seconds a handler may take before another thread leads."""

MOMENT: Final = 0.001
"""Seconds without a leader after which the worker leads again: the longest that anything waits unread."""

SHARED: Final = 1.0
"""Seconds in which only workers lead, after a thread of the user's has read something for others."""

_JOIN_SECONDS: Final = 1.0
_log = logger("elea.io")


class _Bell:
    """Wakes one thread; ringing twice is ringing once."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float = -1.0) -> bool:
        return self._lock.acquire(timeout=seconds)

    def ring(self) -> None:
        if self._lock.locked():
            with contextlib.suppress(RuntimeError):  # somebody else was faster
                self._lock.release()


@mypyc_attr(allow_interpreted_subclasses=True)
class Leadership:
    """Has `wait` and `handle` called by one thread at a time, and what is in `dispatch` brought.

    The lead changes hands in four ways. A worker *steps back* for a thread of the user's that waits (`take`, `read`,
    `give_back`); a leader that must wait *steps aside*; a leader held up by a handler is *taken over* from; and who
    comes with work while nobody leads *calls a worker*.
    """

    def __init__(self, name: str) -> None:
        self.dispatch = DispatchQueue()
        """What handlers are to get."""
        self.leader = 0
        """The thread that leads; 0 while none does."""
        self.in_turn = False
        """Whether what is put now leaves at the end of the turn."""
        self.current: Pollable | None = None
        """What the leader serves."""
        self.turns = 0
        """How often a thread of the user's has led."""
        self.takeovers = 0
        self.aside = 0
        """Links with which threads deal that do not lead."""
        self.failures = 0
        self._name = name
        self._mutex = threading.Lock()
        self._has_begun = False  # there is something to wait for
        self._closed = False
        self._workers: list[threading.Thread] = []
        # The worker that has stepped back for threads of the user's.
        self._bell = _Bell()
        self._stands_by = False  # whether there is one
        self._asleep = False
        self._at_once = False  # a worker is to lead without delay
        self._channel: object = None  # whose thread leads
        self._wanted: object = None  # whose thread would lead
        self._steps_back = False
        self._shared_until = 0.0
        # The follower.
        self._busy_since = 0.0
        self._has_follower = False
        self._follower_asleep = False
        self._deliveries = 0  # by leaders that a follower looks after: while there are new ones it stays awake
        self._promoted = False
        self._watch = _Bell()

    # -- what a turn is -----------------------------------------------------------------------------------------------

    def wait(self, most: float, shield: Shield | None = None) -> Found:
        """What is ready, waiting up to `most` seconds, or for ever if they are negative; Ctrl-C ends a sleep."""
        return []

    def handle(self, found: Found) -> None:
        """Serve what is ready, run what is due, write; on return another thread may lead."""

    def flush(self) -> None:
        """Write what was put."""

    def ring(self) -> None:
        """End the wait."""

    def leave_buffer(self) -> None:
        """The thread that has led has views of the buffer, and another one leads: it needs one of its own."""

    def finish(self) -> None:
        """The loop is closed: give back what the system gave, when nobody leads any more."""

    # -- leading ------------------------------------------------------------------------------------------------------

    def is_led_here(self) -> bool:
        """Whether the calling thread leads, and so brings what is in the dispatch queue when it is done."""
        return self.leader == threading.get_ident()

    @property
    def threads(self) -> list[threading.Thread]:
        """The workers."""
        return list(self._workers)

    def deliver(self, has_more: bool = False) -> bool:
        """Bring what is in the dispatch queue; False if this thread is to read no more.

        `has_more` says that more has been received than was taken: a thread of the user's need not be waited for.
        """
        dispatch = self.dispatch
        if self._channel is not None:
            if dispatch.bring_only(self._channel):
                return True
            self._shared_until = monotonic() + SHARED
            self._at_once = True
            return False
        wanted = self._wanted
        if wanted is not None and not has_more:
            self._wanted = None
            if dispatch.is_only_for(wanted):
                self._steps_back = True
            else:
                self._shared_until = monotonic() + SHARED
        me = threading.get_ident()
        was_in_turn, self.in_turn = self.in_turn, False
        self.flush()
        self._busy_since = monotonic()
        self._deliveries += 1
        if self._follower_asleep:
            self._watch.ring()
        elif not self._has_follower:
            self.start_worker()
        dispatch.make()
        with self._mutex:
            if self.leader != me:
                return False
            self._busy_since = 0.0
        self.in_turn = was_in_turn
        return True

    def failed(self, what: str) -> None:
        """Something went wrong that must not stop the others."""
        self.failures += 1
        _log.exception("%s failures=%d", what, self.failures)

    def end(self) -> None:
        """Nobody is to lead any more; waits for the workers, unless one of them calls."""
        with self._mutex:
            self._closed = True
            workers = list(self._workers)
        self.ring()
        self._bell.ring()
        self._watch.ring()
        self.dispatch.close()
        for worker in workers:
            if worker is not threading.current_thread():
                with contextlib.suppress(RuntimeError):  # another thread is about to start it; it will end at once
                    worker.join(_JOIN_SECONDS)
        self.finish()

    # -- workers ------------------------------------------------------------------------------------------------------

    def start_worker(self) -> None:
        with self._mutex:
            if self._closed:
                return
            worker = threading.Thread(target=self._work, name=f"elea-loop-{self._name}", daemon=True)
            self._workers.append(worker)
        worker.start()

    def _work(self) -> None:
        me = threading.get_ident()
        try:
            while not self._closed:
                if self._take(me):
                    self._lead(me)
                if self._closed or not self._follow(me):
                    return
        finally:
            with self._mutex:
                self._workers.remove(threading.current_thread())
            if self._closed:
                self.finish()

    def _take(self, me: int) -> bool:
        with self._mutex:
            if self.leader not in (0, me):
                return False
            self.leader = me
            return True

    def _release(self, me: int) -> None:
        with self._mutex:
            if self.leader == me:
                self.leader = 0

    def _lead(self, me: int) -> None:
        self._at_once = False
        try:
            while self.leader == me and not self._closed:
                try:
                    if self.dispatch and not self.deliver():
                        return
                    self.handle(self.wait(-1.0))
                except Exception:  # noqa: BLE001 - a loop that ends serves nobody
                    self.failed("turn failed")
                if self._steps_back:
                    self._steps_back = False
                    if self.leader == me and not self._step_back(me):
                        return
        finally:
            self._release(me)

    def _step_back(self, me: int) -> bool:
        """Let threads of the user's lead; returns when this one leads again, or False when the loop is closed."""
        turns = self.turns
        self._stands_by = True
        self._release(me)
        while not self._closed:
            self._bell.wait(MOMENT)
            if self.turns != turns and not self._at_once:
                turns = self.turns
                continue
            if self._take(me):
                self._at_once = self._stands_by = False
                return True
            # Somebody has led, or waited for something to read, for a while: he will say when he is done.
            self._asleep = True
            if self.leader and not self._closed:
                self._bell.wait()
            self._asleep = False
        return False

    def _follow(self, me: int) -> bool:
        """Look after the leader; True when this thread leads, False if it is not needed."""
        with self._mutex:
            if self._has_follower:
                return False
            self._has_follower = True
        try:
            while not self._closed:
                self._follower_asleep = True
                if not self._busy_since and not self._promoted:
                    self._watch.wait()
                self._follower_asleep = False
                seen = -1
                while not self._closed and (self._busy_since or seen != self._deliveries):
                    seen = self._deliveries
                    if not self._promoted:
                        self._watch.wait(HELD_UP)
                    if self._promoted:
                        self._promoted = False
                        if self._take(me):
                            return True
                    if self._take_over(me):
                        return True
            return False
        finally:
            self._has_follower = False

    def _take_over(self, me: int) -> bool:
        """Lead in place of a thread that is held up."""
        with self._mutex:
            since = self._busy_since
            if not since or monotonic() - since <= HELD_UP or self._closed:
                return False
            self._busy_since = 0.0
            self.leader = me
            self.takeovers += 1
            current, self.current = self.current, None
            self._steps_back = False
        if current is not None:
            current.on_takeover()
        self.leave_buffer()  # the other thread has views of the old one
        return True

    def step_aside(self) -> None:
        """The calling thread is about to wait: if it leads, another one does from now on.

        Is it reading a link, that is read again when it is done (`Pollable.on_takeover`, `resume`).
        """
        me = threading.get_ident()
        with self._mutex:
            if self.leader != me:
                return
            current, self.current = self.current, None
            was_in_turn, self.in_turn = self.in_turn, False
            self._busy_since = 0.0
            self._channel = None
        if current is not None:
            if was_in_turn:
                with self._mutex:
                    self.aside += 1
                current.pause()
            else:
                current.on_takeover()
        self.flush()
        self.leave_buffer()
        self._at_once = True  # no thread of the user's takes the lead in between
        self._release(me)
        self.call_worker()

    def rejoin(self) -> None:
        """The end of dealing with a link aside."""
        with self._mutex:
            self.aside -= 1

    def call_worker(self) -> None:
        """Somebody is to lead."""
        if not self.rouse_worker():
            self.start_worker()

    def rouse_worker(self) -> bool:
        """The same if there is a worker that does not lead; else one is on its way to."""
        if self._stands_by:
            self._bell.ring()
        elif self._has_follower:
            self._promoted = True
            self._watch.ring()
        else:
            return False
        return True

    # -- threads of the user's that wait ------------------------------------------------------------------------------

    def take(self, channel: object, shield: Shield) -> bool:
        """Take the lead to read what comes for a channel, if that is possible now; `give_back` must follow.

        In the main thread the shield is up from then on.
        """
        me = threading.get_ident()
        if self.leader == me:
            self.step_aside()  # a handler that waits for something else
            return False
        if self._shared_until and monotonic() < self._shared_until:
            return False
        is_main = me == threading.main_thread().ident
        if is_main and may_be_interrupted():
            return False
        if self._at_once or not self._has_begun or self.leader:
            self._wanted = channel
            return False
        if is_main:
            shield.up()
        if not self._take(me):
            self._wanted = channel
            return False
        if self._closed or self._at_once:
            self._release(me)
            self.call_worker()
            return False
        self._channel = channel
        return True

    def forget(self, channel: object) -> None:
        """Nobody waits at a channel any more."""
        if self._wanted is channel:
            self._wanted = None

    def read(self, done: Callable[[], bool], until: float | None, shield: Shield) -> None:
        """Lead until something has come for the channel, something for others, a `release`, its time, or Ctrl-C."""
        while not done() and not self._closed:
            most = -1.0
            if until is not None:
                most = until - monotonic()
                if most <= 0.0:
                    return
            self.handle(self.wait(most, shield))
            if self._at_once or self._channel is None or shield.came:
                return

    def give_back(self) -> None:
        """The end of `take`, also if that was in vain or interrupted."""
        me = threading.get_ident()
        if self.leader != me or self._channel is None:
            return
        self._channel = None
        self.turns += 1
        self._release(me)
        if self._closed:
            self.finish()
        elif self._asleep or self._at_once or not self._stands_by:
            self.call_worker()

    def release(self) -> None:
        """Let the thread of the user's that leads look whether it is done: as one rings for those who wait."""
        if self._channel is not None and self.leader != threading.get_ident():
            self.ring()
