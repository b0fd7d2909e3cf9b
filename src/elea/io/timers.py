"""Time: the clocks everybody uses, and timers in the order they are due."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

__all__ = ["Timer", "Timers", "checked_period", "give_way", "monotonic", "thread_time", "wall_ns"]

monotonic: Final = time.monotonic
"""Seconds that only grow: for deadlines."""

thread_time: Final = time.thread_time
"""Seconds of CPU that the calling thread has used."""

wall_ns: Final = time.time_ns
"""Nanoseconds since 1970: for timestamps."""

give_way: Final = getattr(os, "sched_yield", lambda: None)
"""Let whoever else wants this core have it."""

_MIN_PERIOD: Final = 0.0001
_SWEEP: Final = 1_024


def _nothing() -> None: ...


class Timer:
    """Something to be done at a time; `cancel` it when it is no longer wanted."""

    __slots__ = ("callback", "cancelled", "period", "when")

    def __init__(self, when: float, callback: Callable[[], None], period: float | None) -> None:
        self.when = when
        self.callback = callback
        self.period = period
        self.cancelled = False

    def cancel(self) -> None:
        """Do not run any more; a run that has begun is not waited for."""
        self.cancelled = True
        self.callback = _nothing  # what it holds is free at once, not when its time has come


class Timers:
    """A heap of timers; any thread may add one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._lock = threading.Lock()
        self._sweep_at = _SWEEP

    def add(self, timer: Timer) -> bool:
        """Whether it is the first that is due."""
        with self._lock:
            if len(self._heap) >= self._sweep_at:
                self._sweep()
            heapq.heappush(self._heap, (timer.when, next(self._order), timer))
            return self._heap[0][2] is timer

    def next(self, now: float) -> float:
        """Seconds until the first is due, 0 if one is; -1 if there is none."""
        heap = self._heap
        if not heap:
            return -1.0
        with self._lock:
            while heap and heap[0][2].cancelled:
                heapq.heappop(heap)
            return max(heap[0][0] - now, 0.0) if heap else -1.0

    def pop(self, now: float) -> Timer | None:
        """The next that is due, if there is one; one with a period is in the heap again."""
        heap = self._heap
        if not heap or heap[0][0] > now:
            return None
        with self._lock:
            while heap and heap[0][0] <= now:
                timer = heapq.heappop(heap)[2]
                if not timer.cancelled:
                    if timer.period is not None:
                        # Runs that could not happen in time are left out, not caught up with.
                        timer.when = max(timer.when + timer.period, now)
                        heapq.heappush(heap, (timer.when, next(self._order), timer))
                    return timer
        return None

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._heap.clear()

    def __len__(self) -> int:
        with self._lock:
            return sum(not timer.cancelled for _, _, timer in self._heap)

    def _sweep(self) -> None:
        """Timeouts are mostly cancelled long before they are due: do not let them pile up."""
        self._heap[:] = [entry for entry in self._heap if not entry[2].cancelled]
        heapq.heapify(self._heap)
        self._sweep_at = max(_SWEEP, 2 * len(self._heap))


def checked_period(period: float) -> float:
    """A period that a timer can have."""
    if period < _MIN_PERIOD:
        raise ValueError(f"period {period} is below {_MIN_PERIOD} s")
    return period
