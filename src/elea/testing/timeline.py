"""Virtual time: what is to be done, in order; nobody sleeps, the time jumps from one thing to the next."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count
from typing import Final

from elea.io.dispatch import DispatchQueue
from elea.io.interrupts import Shield
from elea.io.loop import Flushable, Loop
from elea.io.timers import Timer

__all__ = ["Timeline", "VirtualLoop"]

MAX_AT_ONCE: Final = 1_000_000
"""Things done at one instant; more means that somebody answers himself for ever and time will never go on."""

SECOND_NS: Final = 1_000_000_000


class Timeline:
    """The one clock of a simulated network. What is due at the same instant is done in the order it was asked for.

    >>> timeline, done = Timeline(), []
    >>> _ = timeline.after(2.0, lambda: done.append("late")), timeline.after(1.0, lambda: done.append("early"))
    >>> while timeline.step(10.0):
    ...     pass
    >>> done, timeline.now
    (['early', 'late'], 2.0)
    """

    def __init__(self, start_ns: int = 0) -> None:
        self.now = 0.0
        self._start_ns = start_ns
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._at_once = 0

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._start_ns + int(self.now * SECOND_NS)

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Do something at a time, or now if that has passed."""
        timer = Timer(max(when, self.now), callback, None)
        heapq.heappush(self._heap, (timer.when, next(self._order), timer))
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Do something some seconds from now."""
        return self.at(self.now + delay, callback)

    def soon(self, callback: Callable[[], None]) -> Timer:
        """Do something at this instant, after all that is being done."""
        return self.at(self.now, callback)

    def step(self, limit: float) -> bool:
        """Do the next thing if it is due by `limit`; whether there was one.

        Raises:
            RuntimeError: there is no end to what happens at one instant.
        """
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
        if not self._heap or self._heap[0][0] > limit:
            return False
        when, _, timer = heapq.heappop(self._heap)
        self._at_once = self._at_once + 1 if when == self.now else 0
        if self._at_once > MAX_AT_ONCE:
            raise RuntimeError(
                f"more than {MAX_AT_ONCE} things happen at {when:.6f} s: two handlers answer each other?"
            )
        self.now = when
        timer.callback()
        return True

    def is_busy(self) -> bool:
        """Whether something is still to be done at this very instant."""
        return any(when <= self.now and not timer.cancelled for when, _, timer in self._heap)


class VirtualLoop(Loop):
    """The loop of one node, on the timeline of its network. An error of a timer is the error of who lets time run."""

    def __init__(self, timeline: Timeline, name: str) -> None:
        super().__init__(name)
        self._timeline = timeline
        self.now = lambda: timeline.now
        self.wall_ns = timeline.wall_ns
        self.has_threads = False
        self.dispatch = DispatchQueue(timeline.soon)
        self.leave_buffer()

    def lead(self, work: Callable[[], None]) -> None:
        """Do what the leader does, and bring what came of it."""
        before, self.leader = self.leader, threading.get_ident()
        try:
            work()
            self.dispatch.make()
        finally:
            self.leader = before

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        def run() -> None:
            if not self._closed:
                callback()

        return self._timeline.at(when, run)

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.at(self.now() + delay, callback)

    def every(self, period: float, callback: Callable[[], None], *, first: float | None = None) -> Timer:
        def run() -> None:
            if not repeating.cancelled:
                callback()
                self.at(self.now() + period, run)

        repeating = Timer(0.0, callback, period)
        self.at(self.now() + period if first is None else first, run)
        return repeating

    def soon(self, work: Callable[[], None]) -> None:
        self.at(self.now(), work)

    def flush_soon(self, flushable: Flushable) -> None:
        if not flushable.is_dirty:
            flushable.is_dirty = True
            self._timeline.soon(lambda: self.flush_one(flushable))

    def flush_one(self, flushable: Flushable) -> None:
        if flushable.on_flush():
            self.flush_soon(flushable)

    def deliver(self, has_more: bool = False) -> bool:
        self.dispatch.make()
        return True

    def take(self, channel: object, shield: Shield) -> bool:
        return False
