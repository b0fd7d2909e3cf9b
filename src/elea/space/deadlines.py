"""Things that happen at a time unless they are called off before."""

from __future__ import annotations

import heapq
from typing import Final, Generic, TypeVar

__all__ = ["Deadlines"]

T = TypeVar("T")

_WORTH_SWEEPING: Final = 64


class Deadlines(Generic[T]):
    """A queue by time. Calling off is cheap, since nearly all deadlines are called off: queries are answered.

    >>> deadlines = Deadlines[str]()
    >>> ticket = deadlines.add(2.0, "late")
    >>> _ = deadlines.add(1.0, "early")
    >>> deadlines.call_off(ticket)
    >>> deadlines.next(), deadlines.due(5.0)
    (1.0, ['early'])
    """

    def __init__(self) -> None:
        self._queue: list[tuple[float, int]] = []
        self._items: dict[int, T] = {}
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, when: float, item: T) -> int:
        """Set a deadline; returns the ticket to call it off."""
        self._tickets += 1
        self._items[self._tickets] = item
        heapq.heappush(self._queue, (when, self._tickets))
        return self._tickets

    def call_off(self, ticket: int) -> None:
        """Forget a deadline, if it is still ahead."""
        self._items.pop(ticket, None)
        # What was called off stays queued until its time; swept when that would be most of the queue.
        if len(self._queue) > _WORTH_SWEEPING and len(self._queue) > 2 * len(self._items):
            self._queue = [entry for entry in self._queue if entry[1] in self._items]
            heapq.heapify(self._queue)

    def next(self) -> float | None:
        """The earliest time something is due."""
        while self._queue and self._queue[0][1] not in self._items:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def due(self, now: float) -> list[T]:
        """Take out what is due, in order."""
        found: list[T] = []
        while self._queue and self._queue[0][0] <= now:
            _, ticket = heapq.heappop(self._queue)
            if ticket in self._items:
                found.append(self._items.pop(ticket))
        return found
