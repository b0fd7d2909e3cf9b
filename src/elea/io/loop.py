"""One loop for all links, listeners and timers of a node: Leader/Followers over the system's poller.

At any time one thread, the *leader*, waits in the poller, reads what is ready, runs what is due, and brings what came
to its handlers. One such round is a *turn*. What is sent during a turn leaves at its end, one write for each link.

A node has a *worker* thread that leads. A thread of the user's that waits for something to come may lead in its place:
what it reads is for itself, so nobody need wake it. It runs no handler but its own; if there is something for others it
gives the lead back at once. A leader that is held up by a handler loses the lead to a *follower*, a second worker that
looks after it while handlers run; so handlers may block, ask and put, and no link waits for them for long.

Nothing waits inside a turn. Backpressure closes a *gate*: the link that a sample came from is not read until the gate
is open again. What must wait all the same steps aside, and another thread leads.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from elea.io.backpressure import Gate
from elea.io.dispatch import DispatchQueue
from elea.io.interrupts import Shield, may_be_interrupted
from elea.io.poller import IN, OUT, Found, Poller
from elea.io.spin import Spin
from elea.io.timers import Timer, Timers, checked_period, give_way, monotonic, thread_time, wall_ns
from elea.model.logger import logger
from elea.model.values import mypyc_attr

__all__ = ["IN", "OUT", "SERVED", "Flushable", "Loop", "Pollable"]

RECEIVE_BUFFER: Final = 1 << 20
"""Octets asked of the kernel at once. Only what really arrives is ever touched."""

HELD_UP: Final = 0.01
"""Seconds a handler may take before another thread leads."""

IDLE: Final = 0.02
"""Seconds without a handler running after which the follower sleeps."""

MOMENT: Final = 0.001
"""Seconds without a leader after which the worker leads again: the longest that anything waits unread."""

SHARED: Final = 1.0
"""Seconds in which only workers lead, after a thread of the user's has read something for others."""

LOOK: Final = 0.0005
"""Seconds between two looks at an outbox that its callers fill and write: the longest their last messages may wait."""

GATE: Final = 0.001
"""Seconds between two looks at a closed gate."""

SERVED: Final = 0.003
"""Seconds for which one link is served in a turn, if what it brings costs so much; then it is the others' turn.

Longer, if writing took longer at the end of the last turn: what goes to ten thousand links is to be joined, not written
one by one.
"""

ASIDE: Final = 8
"""Threads that deal with such a link aside, each with one; further ones hold up the loop for a batch."""

_JOIN_SECONDS: Final = 1.0
_log = logger("elea.io")
_spinning: Final = threading.Lock()


@mypyc_attr(allow_interpreted_subclasses=True)
class Pollable:
    """Something with a descriptor, for the leader to serve."""

    def __init__(self) -> None:
        self.descriptor = -1
        self.mask = 0
        self.is_costly = False
        """Whether what it brings is dealt with aside, since that takes long (`Loop.share`)."""

    def on_ready(self, mask: int) -> None:
        """Some of the events are there; nothing may wait here."""

    def on_takeover(self) -> None:
        """A handler holds up the thread that serves it: put aside what that has not taken, and go on with it soon."""

    def pause(self) -> None:
        """Read no more for a while."""

    def resume(self) -> None:
        """The end of a pause."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flushable:
    """Something with messages to be written."""

    def __init__(self) -> None:
        self.is_dirty = False

    def on_flush(self) -> bool:
        """Write what waits; whether to look again in a moment."""
        return False


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
class Loop:
    """The loop of one node; it runs from the first thing it is given until `close`.

    >>> from threading import Event
    >>> loop, done = Loop("doctest"), Event()
    >>> _ = loop.after(0.001, done.set)
    >>> done.wait(5)
    True
    >>> loop.close()
    """

    def __init__(self, name: str = "node", spin: float | None = None) -> None:
        # Not methods: they are called several times for every query.
        self.now: Callable[[], float] = monotonic
        """Seconds that only grow; those of `elea.testing` have a time of their own."""
        self.wall_ns: Callable[[], int] = wall_ns
        """Nanoseconds since 1970."""
        self.dispatch = DispatchQueue()
        """What handlers are to get."""
        self.leader = 0
        """The thread that leads; 0 while none does."""
        self.in_turn = False
        """Whether what is put now leaves at the end of the turn."""
        self.dirty: deque[Flushable] = deque()
        self.writes = 0
        """Counted by who writes; a loop that writes nothing never spins."""
        self.spin = Spin() if spin is None else Spin(spin)
        self.turns = 0
        """How often a thread of the user's has led."""
        self.takeovers = 0
        self.aside = 0
        """Links with which threads deal that do not lead."""
        self._served_since = 0.0
        self._written_in = 0.0  # seconds, at the end of the last turn
        self._costs_since = -1.0
        self.timers_run = 0
        self.failures = 0
        self.buffer = bytearray()
        self.view = memoryview(self.buffer)
        self._name = name
        self._poller: Poller | None = None
        self._has_begun = False
        self._pollables: dict[int, Pollable] = {}
        self.current: Pollable | None = None
        """What the leader serves."""
        self._timers = Timers()
        self._soon: deque[Callable[[], None]] = deque()
        self._gates: dict[Gate, list[Pollable]] = {}
        self._looking: list[Flushable] = []
        self._polling = False
        self._rung = False
        self._written = 0
        self._mutex = threading.Lock()
        self._closed = False
        self._workers: list[threading.Thread] = []
        # The worker that has stepped back for threads of the user's.
        self._bell = _Bell()
        self._stands_by = False  # whether there is one
        self._asleep = False
        self._at_once = False  # a worker is to lead without delay
        self._channel: object = None  # whose thread leads
        self._is_main = False  # and it is the main thread
        self._wanted: object = None  # whose thread would lead
        self._steps_back = False
        self._shared_until = 0.0
        # The follower.
        self._busy_since = 0.0
        self._followers = 0
        self._follower_asleep = False
        self._promoted = False
        self._watch = _Bell()

    # -- what there is to do ------------------------------------------------------------------------------------------

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, when `now()` has reached `when`; it must be quick."""
        return self._add(Timer(when, callback, None))

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, `delay` seconds from now."""
        return self._add(Timer(monotonic() + delay, callback, None))

    def every(self, period: float, callback: Callable[[], None], *, first: float | None = None) -> Timer:
        """Run `callback` each `period` seconds, the first time at `first` or after one period.

        Runs that could not happen in time are left out, not caught up with.
        """
        period = checked_period(period)
        return self._add(Timer(monotonic() + period if first is None else first, callback, period))

    def soon(self, work: Callable[[], None]) -> None:
        """Have something done by the leader, in the next turn."""
        if not self._closed:
            self._soon.append(work)
            self._start()
            self.wake()

    def add(self, pollable: Pollable, descriptor: int, mask: int = IN) -> None:
        """Serve a descriptor from now on."""
        self._start()
        with self._mutex:
            poller = self._poller
            if self._closed or poller is None:
                return
            pollable.descriptor, pollable.mask = descriptor, mask
            self._pollables[descriptor] = pollable
            poller.add(descriptor, mask)

    def change(self, pollable: Pollable, mask: int) -> None:
        """Serve other events of it."""
        with self._mutex:
            poller = self._poller
            if poller is not None and self._pollables.get(pollable.descriptor) is pollable and pollable.mask != mask:
                pollable.mask = mask
                with contextlib.suppress(OSError, KeyError, ValueError):  # closed, and about to be removed
                    poller.change(pollable.descriptor, mask)

    def remove(self, pollable: Pollable) -> None:
        """Serve it no more; before its descriptor is closed."""
        with self._mutex:
            descriptor = pollable.descriptor
            if self._pollables.get(descriptor) is pollable:
                del self._pollables[descriptor]
                if self._poller is not None:
                    with contextlib.suppress(OSError, KeyError, ValueError):
                        self._poller.remove(descriptor)

    def flush_soon(self, flushable: Flushable) -> None:
        """Have something flushed by the leader."""
        if not flushable.is_dirty:
            flushable.is_dirty = True
            self.dirty.append(flushable)
            self._start()
        self.wake()

    def hold(self, gate: Gate) -> bool:
        """Do not read the link that is read now until a gate is open; False if this thread reads none."""
        if self.leader != threading.get_ident() or not self.in_turn:
            return False
        current = self.current
        if current is None:
            return False
        waiting = self._gates.setdefault(gate, [])
        if current not in waiting:
            waiting.append(current)
            current.pause()
        return True

    def wake(self) -> None:
        """There is something to do for the leader."""
        # Who comes has left the work first; the leader says first that it polls, and then looks for work.
        if self._polling:
            poller = self._poller
            if not self._rung and poller is not None:
                self._rung = True
                poller.ring()
        elif not self.leader:
            self._at_once = True
            if self._stands_by:
                self._bell.ring()
            elif self._followers:
                self._promote()

    def is_led_here(self) -> bool:
        """Whether the calling thread leads, and so brings what is in the dispatch queue when it is done."""
        return self.leader == threading.get_ident()

    @property
    def threads(self) -> list[threading.Thread]:
        """The workers."""
        return list(self._workers)

    def close(self) -> None:
        """Forget everything and end the workers; may be called by one of them."""
        with self._mutex:
            self._closed = True
            self._timers.clear()
            self._soon.clear()
            self._gates.clear()
            workers = list(self._workers)
        poller = self._poller
        if poller is not None:
            poller.ring()
        self._bell.ring()
        self._watch.ring()
        self.dispatch.close()
        for worker in workers:
            if worker is not threading.current_thread():
                worker.join(_JOIN_SECONDS)
        self._finish()

    def _finish(self) -> None:
        """Give back what the system gave, when nobody leads any more."""
        with self._mutex:
            if self._closed and not self.leader and self._poller is not None:
                self._poller.close()
                self._poller = None
                self._pollables.clear()

    def __len__(self) -> int:
        return len(self._timers)

    def _add(self, timer: Timer) -> Timer:
        if self._closed:
            timer.cancelled = True
            return timer
        is_first = self._timers.add(timer)
        self._start()
        if is_first:
            self.wake()
        return timer

    # -- a turn -------------------------------------------------------------------------------------------------------

    def _wait(self, most: float) -> Found:
        """What is ready, waiting up to `most` seconds, or for ever if they are negative."""
        poller = self._poller
        if poller is None:
            return []
        now = monotonic()
        talks = self.writes != self._written
        self._written = self.writes
        self._polling = True
        try:
            if self._soon or self.dirty or self._closed:
                return poller.wait(0.0)
            seconds = self._timers.next(now)
            if self._looking and (seconds < 0.0 or seconds > LOOK):
                seconds = LOOK
            if self._gates and (seconds < 0.0 or seconds > GATE):
                seconds = GATE
            if most >= 0.0 and (seconds < 0.0 or seconds > most):
                seconds = most
            if seconds == 0.0:
                return poller.wait(0.0)
            if not talks:
                return poller.wait(seconds)
            spin = self.spin
            if spin.is_due() and _spinning.acquire(False):
                try:
                    found = self._spin(poller, now, seconds)
                finally:
                    _spinning.release()
                if found:
                    return found
            found = poller.wait(seconds)
            spin.slept(monotonic() - now)
            return found
        finally:
            self._polling = False

    def _spin(self, poller: Poller, now: float, seconds: float) -> Found:
        limit = self.spin.limit
        until = now + (limit if seconds < 0.0 or seconds > limit else seconds)
        while True:
            give_way()  # whoever else wants this core: often the one who is to send what is waited for
            found = poller.wait(0.0)
            at = monotonic()
            if found:
                self.spin.hit(at - now)
                return found
            if at >= until:
                self.spin.miss()
                return found

    def _handle(self, found: Found) -> None:
        """Serve what is ready and run what is due; on return another thread may lead."""
        me = threading.get_ident()
        poller = self._poller
        if poller is None:
            return
        if not self.buffer:
            self._new_buffer()
        self.in_turn = True
        for descriptor, mask in found:
            if descriptor == poller.bell:
                self._rung = False
                poller.silence()
                continue
            pollable = self._pollables.get(descriptor)
            if pollable is None:
                continue
            self.begin_serving(pollable)
            try:
                pollable.on_ready(mask)
            except Exception:  # noqa: BLE001 - whatever it is, the others must be served
                self._failed("serving failed")
                self.remove(pollable)
            if self.leader != me:
                return
            self.current = None
            if self._at_once and self._channel is not None:
                break
        self._run_due(me)
        if self.leader == me:
            self._end_turn()

    def _run_due(self, me: int) -> None:
        for _ in range(len(self._soon)):
            try:
                work = self._soon.popleft()
            except IndexError:
                break
            self._run(work)
            if self.leader != me:
                return
        now = monotonic()
        while (timer := self._timers.pop(now)) is not None:
            self.timers_run += 1
            self._run(timer.callback)
            if self.leader != me:
                return
        if self.dispatch:
            self.deliver()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - one that fails must not stop the others
            self._failed("timer failed")

    def _failed(self, what: str) -> None:
        self.failures += 1
        _log.exception("%s failures=%d", what, self.failures)

    def _end_turn(self) -> None:
        # First this, then the writing: who puts something after it writes himself.
        self.in_turn = False
        if self._looking:
            looking, self._looking = self._looking, []
            for each in looking:
                if not each.is_dirty:
                    each.is_dirty = True
                    self.dirty.append(each)
        if self.dirty:
            begun = monotonic()
            self.flush()
            self._written_in = monotonic() - begun
        if self._gates:
            self._look_at_gates()

    def flush(self) -> None:
        """Write what was put."""
        dirty = self.dirty
        for _ in range(len(dirty)):
            try:
                flushable = dirty.popleft()
            except IndexError:
                return
            self.flush_one(flushable)

    def flush_one(self, flushable: Flushable) -> None:
        """Write what one has."""
        try:
            if flushable.on_flush():
                self._looking.append(flushable)
        except Exception:  # noqa: BLE001 - it has ended its link, the others must be served
            self._failed("flushing failed")

    def _look_at_gates(self) -> None:
        for gate in [gate for gate in self._gates if gate.is_open()]:
            for pollable in self._gates.pop(gate, ()):
                pollable.resume()

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
        if self.dirty:
            self.flush()
        self._busy_since = monotonic()
        if self._follower_asleep:
            self._watch.ring()
        elif not self._followers:
            self._start_worker()
        dispatch.make()
        with self._mutex:
            if self.leader != me:
                return False
            self._busy_since = 0.0
        self.in_turn = was_in_turn
        return True

    def _new_buffer(self) -> None:
        self.buffer = bytearray(RECEIVE_BUFFER)
        self.view = memoryview(self.buffer)

    # -- workers ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._has_begun:
            return
        with self._mutex:
            if self._has_begun or self._closed:
                return
            self._poller = Poller()
            self._has_begun = True
        self._start_worker()

    def _start_worker(self) -> None:
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
                self._finish()

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
                    self._handle(self._wait(-1.0))
                except Exception:  # noqa: BLE001 - a loop that ends serves nobody
                    self._failed("turn failed")
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
            if self._followers:
                return False
            self._followers = 1
        try:
            while not self._closed:
                self._follower_asleep = True
                if not self._busy_since and not self._promoted:
                    self._watch.wait()
                self._follower_asleep = False
                quiet = 0.0
                while quiet < IDLE and not self._closed:
                    if self._promoted:
                        self._promoted = False
                        if self._take(me):
                            return True
                    self._watch.wait(HELD_UP / 2)
                    if self._take_over(me):
                        return True
                    quiet = 0.0 if self._busy_since else quiet + HELD_UP / 2
            return False
        finally:
            self._followers = 0

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
        self._new_buffer()  # the other thread has views of the old one
        return True

    def begin_serving(self, pollable: Pollable) -> None:
        """The leader turns to something."""
        self.current = pollable
        self._served_since = monotonic()
        self._costs_since = -1.0

    def is_served_long(self) -> bool:
        """Whether it is the turn of others."""
        return monotonic() - self._served_since > max(SERVED, self._written_in)

    def share(self) -> None:
        """For work that may take long, before each piece of it: who has served one link for long goes on aside.

        What counts is CPU: a thread that only waits for the interpreter has done nothing yet. It is looked at when
        time has passed, since asking for it costs more than the clock. A link that is known to be costly is dealt with
        aside from the beginning.
        """
        current = self.current
        if not self.in_turn or current is None or self.aside >= ASIDE or not self.is_led_here():
            return
        if current.is_costly:
            self.step_aside()
        elif self.is_served_long():
            if self._costs_since < 0.0:
                self._costs_since = thread_time()
            elif thread_time() - self._costs_since > SERVED:
                self.step_aside()

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
                self.aside += 1
                current.pause()
            else:
                current.on_takeover()
        self.flush()
        self._new_buffer()
        self._at_once = True  # no thread of the user's takes the lead in between
        self._release(me)
        self._call_worker()

    def _call_worker(self) -> None:
        """Somebody is to lead."""
        if self._stands_by:
            self._bell.ring()
        elif self._followers:
            self._promote()
        else:
            self._start_worker()

    def _promote(self) -> None:
        self._promoted = True
        self._watch.ring()

    # -- threads of the user's that wait ------------------------------------------------------------------------------

    def take(self, channel: object) -> bool:
        """Take the lead to read what comes for a channel, if that is possible now; `give_back` must follow."""
        me = threading.get_ident()
        if self.leader == me:
            self.step_aside()  # a handler that waits for something else
            return False
        if self._shared_until and monotonic() < self._shared_until:
            return False
        is_main = me == threading.main_thread().ident
        if is_main and may_be_interrupted():
            return False
        if self._poller is None or self._at_once or not self._take(me):
            self._wanted = channel
            return False
        if self._closed or self._at_once:
            self._release(me)
            self._call_worker()
            return False
        self._channel, self._is_main = channel, is_main
        return True

    def forget(self, channel: object) -> None:
        """Nobody waits at a channel any more."""
        if self._wanted is channel:
            self._wanted = None

    def read(self, done: Callable[[], bool], until: float | None) -> None:
        """Lead until something has come for the channel, something for others, a `release`, or its time."""
        shield = Shield() if self._is_main else None
        while not done() and not self._closed:
            most = -1.0
            if until is not None:
                most = until - monotonic()
                if most <= 0.0:
                    return
            found = self._wait(most)
            if shield is None:
                self._handle(found)
            else:
                with shield:
                    self._handle(found)
            if self._at_once or self._channel is None:
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
            self._finish()
        elif self._asleep or self._at_once or not self._stands_by:
            self._call_worker()

    def release(self) -> None:
        """Let the thread of the user's that leads look whether it is done: as one rings for those who wait."""
        poller = self._poller  # looked at once: another thread may take it away
        if self._channel is not None and self.leader != threading.get_ident() and poller is not None:
            poller.ring()
