"""Numbers of acknowledged samples: by (node, entity, number) a store knows a repeated sample and keeps it once.

A store remembers the numbers of a source as runs, and of those at least the newest half of `STORE_SOURCE_RUNS`: what is
further below counts as stored. So a writer never runs further ahead of its oldest unacknowledged number than that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

__all__ = ["WINDOW", "Numbers", "Taken"]

WINDOW: Final = 500
"""Runs of numbers (a sample or a batch is one) from the oldest unacknowledged to the newest; see above."""

Taken = tuple[int, int, int]
"""A place in the window, to be released; entity and number of a sample."""

_ALL: Final = 1 << 32


class Numbers:
    """The numbers of one entity. `fresh` gives another entity when they are used up."""

    def __init__(self, entity: int, fresh: Callable[[], int]) -> None:
        self._entity = entity
        self._fresh = fresh
        self._next = 0
        self._serial = 0
        self._oldest = 0
        self._open: OrderedDict[int, None] = OrderedDict()
        self._waiting: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def take(self, count: int = 1) -> Taken | None:
        """A place in the window, and entity and number of the first of `count` samples; None if there is no room."""
        with self._lock:
            if self._serial - self._oldest >= WINDOW and not self._advance():
                return None
            if self._next + count > _ALL:
                self._entity, self._next = self._fresh(), 0
            number, serial = self._next, self._serial
            self._next += count
            self._serial += 1
            self._open[serial] = None
            return serial, self._entity, number

    def release(self, serial: int) -> None:
        """A number will not be tried again."""
        with self._lock:
            self._open.pop(serial, None)
            if not self._waiting:
                return
            self._advance()
            room = WINDOW - (self._serial - self._oldest)
            woken, self._waiting = self._waiting[:room], self._waiting[room:]
        for wake in woken:
            wake()

    def when_room(self, wake: Callable[[], object]) -> None:
        """Have `wake` called, by any thread, when `take` may succeed."""
        with self._lock:
            if self._serial - self._oldest >= WINDOW and not self._advance():
                self._waiting.append(wake)
                return
        wake()

    def wait(self, count: int = 1) -> Taken:
        """`take`, waiting for room. What is in the window ends by its own timeout, so this does."""
        while (found := self.take(count)) is None:
            room = threading.Event()
            self.when_room(room.set)
            room.wait()
        return found

    def _advance(self) -> bool:
        """Find the oldest number that is open; whether there is room."""
        self._oldest = next(iter(self._open), self._serial)
        return self._serial - self._oldest < WINDOW
