"""One loop for all links, listeners and timers of a node: Leader/Followers over the system's poller.

At any time one thread, the *leader*, waits in the poller, reads what is ready, runs what is due, and brings what came
to its handlers. One such round is a *turn*. What is sent during a turn leaves at its end, one write for each link.
Which thread leads is the business of `elea.io.leadership`.

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
from elea.io.interrupts import Shield
from elea.io.leadership import Leadership
from elea.io.poller import IN, OUT, Found, Pollable, Poller
from elea.io.spin import Spin
from elea.io.timers import Timer, Timers, checked_period, give_way, monotonic, thread_time, wall_ns
from elea.model.values import mypyc_attr

__all__ = ["IN", "OUT", "SERVED", "Flushable", "Loop", "Pollable"]

RECEIVE_BUFFER: Final = 1 << 20
"""Bytes asked of the kernel at once. Only what really arrives is ever touched."""

LOOK: Final = 0.0005
"""Seconds between two looks at an outbox that its callers fill and write: the longest their last messages may wait."""

GATE: Final = 0.001
"""Seconds between two looks at a closed gate."""

SERVED: Final = 0.003
"""Seconds for which one link is served in a turn, if what it brings costs so much; then it is the others' turn.

Longer, if writing took longer at the end of the last turn: what goes to ten thousand links is to be joined, not written
one by one.
"""

TIMERS_AT_ONCE: Final = 64
"""Timers run in one turn: what has arrived meanwhile does not wait for ten thousand of them."""

ASIDE: Final = 8
"""Threads that deal with such a link aside, each with one; further ones hold up the loop for a batch."""

_spinning: Final = threading.Lock()


@mypyc_attr(allow_interpreted_subclasses=True)
class Flushable:
    """Something with messages to be written."""

    def __init__(self) -> None:
        self.is_dirty = False

    def on_flush(self) -> bool:
        """Write what waits; whether to look again in a moment."""
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class Loop(Leadership):
    """The loop of one node; it runs from the first thing it is given until `close`.

    >>> from threading import Event
    >>> loop, done = Loop("doctest"), Event()
    >>> _ = loop.after(0.001, done.set)
    >>> done.wait(5)
    True
    >>> loop.close()
    """

    def __init__(self, name: str = "node", spin: float | None = None) -> None:
        super().__init__(name)
        # Not methods: they are called several times for every query.
        self.now: Callable[[], float] = monotonic
        """Seconds that only grow; those of `elea.testing` have a time of their own."""
        self.wall_ns: Callable[[], int] = wall_ns
        """Nanoseconds since 1970."""
        self.has_threads = True
        """Whether somebody else leads while a handler waits; not in `elea.testing`."""
        self.dirty: deque[Flushable] = deque()
        self.writes = 0
        """Counted by who writes; a loop that writes nothing never spins."""
        self.spin = Spin() if spin is None else Spin(spin)
        self._served_since = 0.0
        self._written_in = 0.0  # seconds, at the end of the last turn
        self._costs_since = -1.0
        self.buffer = bytearray()
        self.view = memoryview(self.buffer)
        self._poller: Poller | None = None
        self._pollables: dict[int, Pollable] = {}
        self._timers = Timers()
        self._soon: deque[Callable[[], None]] = deque()
        self._gates: dict[Gate, list[Pollable]] = {}
        self._looking: list[Flushable] = []
        self._polling = False
        self._rung = False
        self._written = 0

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
            self.rouse_worker()

    def close(self) -> None:
        """Forget everything and end the workers; may be called by one of them."""
        with self._mutex:
            self._closed = True
            self._timers.clear()
            self._soon.clear()
            self._gates.clear()
        self.end()

    def finish(self) -> None:
        with self._mutex:
            if self._closed and not self.leader and self._poller is not None:
                self._poller.close()
                self._poller = None
                self._pollables.clear()

    def ring(self) -> None:
        poller = self._poller  # looked at once: another thread may take it away
        if poller is not None:
            poller.ring()

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

    def wait(self, most: float, shield: Shield | None = None) -> Found:
        poller = self._poller
        if poller is None:
            return []
        now = monotonic()
        talks = self.writes != self._written
        self._written = self.writes
        self._rung = False  # else one who was interrupted before it rang would have the last word
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
                return _sleep(poller, seconds, shield)
            spin = self.spin
            if spin.is_due() and _spinning.acquire(False):
                try:
                    found = self._spin(poller, now, seconds)
                finally:
                    _spinning.release()
                if found:
                    return found
            found = _sleep(poller, seconds, shield)
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

    def handle(self, found: Found) -> None:
        me = threading.get_ident()
        poller = self._poller
        if poller is None:
            return
        if not self.buffer:
            self.leave_buffer()
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
                self.failed("serving failed")
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
        for _ in range(TIMERS_AT_ONCE):
            timer = self._timers.pop(now)
            if timer is None:
                break
            self._run(timer.callback)
            if self.leader != me:
                return
        if self.dispatch:
            self.deliver()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - one that fails must not stop the others
            self.failed("timer failed")

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
            self.failed("flushing failed")

    def _look_at_gates(self) -> None:
        for gate in [gate for gate in self._gates if gate.is_open()]:
            for pollable in self._gates.pop(gate, ()):
                pollable.resume()

    def leave_buffer(self) -> None:
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
        self.start_worker()

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


def _sleep(poller: Poller, seconds: float, shield: Shield | None) -> Found:
    if shield is None or not shield.is_up:
        return poller.wait(seconds)
    try:
        shield.down()
        return poller.wait(seconds)
    finally:
        shield.up()
