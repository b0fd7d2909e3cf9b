"""Bringing things to handlers: in order for each handler, never under a lock, never by two threads at once.

Whoever reads a link puts what it finds into *mailboxes*, finishes its batch, and then brings round what is in them.
A handler that takes its time holds up its own mailbox only: another thread that adds to it leaves the delivery to
the one that is at it (the combining pattern: no thread ever waits for another).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Mailbox", "Round"]

_log: Final = logging.getLogger("elea.broker")


class Mailbox:
    """What waits for one handler."""

    __slots__ = ("_busy", "_items", "deliver", "delivered", "failed")

    def __init__(self, deliver: Callable[[Any], None]) -> None:
        self.deliver = deliver
        self.delivered = 0
        self.failed = 0
        self._items: deque[Any] = deque()
        self._busy = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        """Leave an item; `empty` brings it."""
        self._items.append(item)

    def empty(self) -> None:
        """Bring everything that waits, unless another thread is doing so: then it will bring this too."""
        items = self._items
        while items and self._busy.acquire(blocking=False):
            try:
                while items:
                    self._bring(items.popleft())
            finally:
                self._busy.release()
            # Between the last look and the release something may have come: look again.

    def _bring(self, item: Any) -> None:
        try:
            self.deliver(item)
            self.delivered += 1
        except Exception as error:  # noqa: BLE001 - a handler's failure is the user's; the node must go on
            self.failed += 1
            _log.error("handler failed: error=%r failed=%d", error, self.failed, exc_info=error)


class Round:
    """The mailboxes that have something in them, in the order they got it."""

    __slots__ = ("_boxes",)

    def __init__(self) -> None:
        self._boxes: deque[Mailbox] = deque()

    def add(self, box: Mailbox, item: Any) -> None:
        """Leave an item in a mailbox, to be brought when `make` is called."""
        box.add(item)
        self._boxes.append(box)

    def make(self) -> None:
        """Bring everything that was left, whoever left it."""
        boxes = self._boxes
        while boxes:
            try:
                box = boxes.popleft()
            except IndexError:  # another thread took the last one
                return
            box.empty()
