"""How long queries of this process may take.

Nearly all take the same time at most and end long before it, so a deadline costs an append here and nothing when it
is not needed: a queue for each length of time, in which the first one is due first, and one timer for each queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Container
from typing import Final

from elea.io.loop import Loop

__all__ = ["Timeouts"]

SWEEP: Final = 1024
"""Entries of a queue from which on it is looked whether most of them are over."""


class Timeouts:
    """Calls `expired` with the numbers that are still in `waiting` when their time is over."""

    def __init__(self, loop: Loop, waiting: Container[int], expired: Callable[[int], None]) -> None:
        self._loop = loop
        self._waiting = waiting
        self._expired = expired
        self._queues: dict[float, deque[tuple[float, int]]] = {}
        self._sweep_at = SWEEP
        self._lock = threading.Lock()

    def add(self, seconds: float, number: int) -> None:
        """A wait begins."""
        when = self._loop.now() + seconds
        with self._lock:
            queue = self._queues.get(seconds)
            if queue is not None:
                queue.append((when, number))
                if len(queue) >= self._sweep_at:
                    self._sweep()
                return
            self._queues[seconds] = deque([(when, number)])
        self._loop.at(when, lambda: self._look(seconds))

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._queues.values()))

    def _look(self, seconds: float) -> None:
        """The first of a queue may be due."""
        now = self._loop.now()
        due: list[int] = []
        with self._lock:
            queue = self._queues[seconds]
            while queue and (queue[0][0] <= now or queue[0][1] not in self._waiting):
                due.append(queue.popleft()[1])
            following = queue[0][0] if queue else None
            if following is None:
                del self._queues[seconds]
        if following is not None:
            self._loop.at(following, lambda: self._look(seconds))
        for number in due:
            self._expired(number)

    def _sweep(self) -> None:
        """Forget what is over; the queues stay, since each has a timer."""
        for seconds, queue in self._queues.items():
            self._queues[seconds] = deque(entry for entry in queue if entry[1] in self._waiting)
        self._sweep_at = max(SWEEP, 2 * max(map(len, self._queues.values())))
