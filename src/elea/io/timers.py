"""Time: the clocks everybody uses, and one thread per node that runs what is due."""

from __future__ import annotations

import heapq
import os
import resource
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from elea.model.logger import logger

__all__ = ["Keeper", "Timer", "give_way", "handed_over", "monotonic", "sleep", "thread_time", "wall_ns"]

monotonic: Final = time.monotonic
sleep: Final = time.sleep
"""Seconds that only grow: for deadlines."""

thread_time: Final = time.thread_time
"""Seconds of CPU that the calling thread has used."""

give_way: Final = getattr(os, "sched_yield", lambda: None)
"""Let whoever else wants this core have it."""

_THREAD: Final = getattr(resource, "RUSAGE_THREAD", None)

wall_ns: Final = time.time_ns
"""Nanoseconds since 1970: for timestamps."""

_log = logger("elea.io")
_JOIN_SECONDS: Final = 1.0
_MIN_PERIOD: Final = 0.0001
_SWEEP: Final = 1_024


def _nothing() -> None: ...


def handed_over() -> int:
    """How often others got the core of the calling thread although it had more to do; 0 where nobody tells."""
    return 0 if _THREAD is None else resource.getrusage(_THREAD).ru_nivcsw


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


class Keeper:
    """One daemon thread that sleeps until something is due. Callbacks must be quick and may use the keeper.

    >>> from threading import Event
    >>> keeper, done = Keeper("doctest"), Event()
    >>> _ = keeper.after(0.001, done.set)
    >>> done.wait(5)
    True
    >>> keeper.close()
    """

    def __init__(self, name: str = "node") -> None:
        # Not methods: they are called several times for every query.
        self.now: Callable[[], float] = monotonic
        """Seconds that only grow, by which this keeper goes; those of `elea.testing` have a time of their own."""
        self.wall_ns: Callable[[], int] = wall_ns
        """Nanoseconds since 1970."""
        self.runs = 0
        self.failures = 0
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._changed = threading.Condition()
        self._closed = False
        self._sweep_at = _SWEEP
        self._thread: threading.Thread | None = None
        self._name = f"elea-keeper-{name}"

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, when `now()` has reached `when`."""
        return self._add(Timer(when, callback, None))

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, `delay` seconds from now."""
        return self._add(Timer(monotonic() + delay, callback, None))

    def every(self, period: float, callback: Callable[[], None], *, first: float | None = None) -> Timer:
        """Run `callback` each `period` seconds, the first time at `first` or after one period.

        Runs that could not happen in time are left out, not caught up with.
        """
        if period < _MIN_PERIOD:
            raise ValueError(f"period {period} is below {_MIN_PERIOD} s")
        return self._add(Timer(monotonic() + period if first is None else first, callback, period))

    def close(self) -> None:
        """Forget everything and end the thread; may be called from a callback."""
        with self._changed:
            self._closed = True
            self._heap.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def __len__(self) -> int:
        with self._changed:
            return sum(not timer.cancelled for _, _, timer in self._heap)

    def _add(self, timer: Timer) -> Timer:
        with self._changed:
            if self._closed:
                timer.cancelled = True
                return timer
            if len(self._heap) >= self._sweep_at:
                self._sweep()
            heapq.heappush(self._heap, (timer.when, next(self._order), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            elif self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _sweep(self) -> None:
        """Timeouts are mostly cancelled long before they are due: do not let them pile up."""
        self._heap = [entry for entry in self._heap if not entry[2].cancelled]
        heapq.heapify(self._heap)
        self._sweep_at = max(_SWEEP, 2 * len(self._heap))

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            try:
                timer.callback()
            except Exception:  # noqa: BLE001 - a failing timer must not stop the others
                self.failures += 1
                _log.exception("timer failed failures=%d", self.failures)
            self.runs += 1
            if timer.period is not None and not timer.cancelled:
                timer.when = max(timer.when + timer.period, monotonic())
                self._add(timer)

    def _next(self) -> Timer | None:
        """Wait for the next timer that is due; None when the keeper is closed."""
        with self._changed:
            while not self._closed:
                while self._heap and self._heap[0][2].cancelled:
                    heapq.heappop(self._heap)
                if not self._heap:
                    self._changed.wait()
                    continue
                wait = self._heap[0][0] - monotonic()
                if wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(min(wait, threading.TIMEOUT_MAX))
        return None
