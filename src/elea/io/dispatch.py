"""Bringing things to handlers: in order for each handler, never under a lock, never by two threads at once.

The leader of the loop puts what it reads into *mailboxes*, finishes its batch, and then brings what is in them. A
handler that takes its time holds up its own mailbox only: another thread that adds to it leaves the delivery to the
one that is at it (the combining pattern: no thread waits for another). If the leader itself is held up, another thread
leads (`elea.io.loop`). So a handler normally runs in the thread that read its sample, with no hand-over, and may still
block, ask and put as it likes. A handler that was slow is run by a *worker* from then on, until it is quick again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from elea.io.backpressure import Gate
from elea.io.timers import monotonic
from elea.model.limits import MAILBOX, MAILBOX_BYTES, WORKERS
from elea.model.logger import logger

__all__ = ["DispatchQueue", "Mailbox"]

_log: Final = logger("elea.io")

SLOW: Final = 0.01
"""Seconds of a delivery from which on a handler is run by a worker: the leader has all other links to serve."""

QUICK: Final = 0.001
"""Seconds of a delivery below which it may be run by the leader again."""

LOOK: Final = 0.005
"""Seconds between two looks at a mailbox that is full."""

PATIENCE: Final = 5.0
"""Seconds a link is held up by a handler that takes nothing; the same as for a channel nobody reads."""

IDLE: Final = 1.0
"""Seconds such a thread stays when there is nothing to do."""

LOGGED_EVERY: Final = 100_000
"""One line for so many things that a slow handler missed."""


class Mailbox(Gate):
    """What waits for one handler; above the limits of it, what carries a payload is dropped and counted."""

    __slots__ = (
        "_brought",
        "_busy",
        "_come",
        "_items",
        "_log_at",
        "_patience",
        "_progress",
        "channel",
        "deliver",
        "dropped",
        "failed",
        "is_slow",
        "takes_blocks",
    )

    def __init__(self, deliver: Callable[[Any], None], *, takes_blocks: bool = False, channel: object = None) -> None:
        """`channel` is where all that is delivered goes, if it goes to a channel."""
        self.deliver = deliver
        self.takes_blocks = takes_blocks
        self.channel = channel
        self.dropped = 0
        self.failed = 0
        self.is_slow = False
        """Whether the leader leaves it to a worker."""
        self._items: deque[tuple[Any, int]] = deque()
        self._busy = threading.Lock()
        self._come = 0  # bytes, all that were left here
        self._brought = 0  # and those that were taken out again
        self._log_at = 1
        self._progress = -1  # bytes brought, when somebody looked who waits
        self._patience = 0.0

    def add(self, item: Any, octets: int = 0, count: int = 1, *, beyond: bool = False) -> bool:
        """Leave an item of some bytes, which stands for `count` things; `empty` brings it. False if it was dropped.

        It is taken `beyond` the limits for those who wait for room afterwards.
        """
        if not beyond and (len(self._items) >= MAILBOX or (octets and self._come - self._brought >= MAILBOX_BYTES)):
            self._drop(count)
            return False
        self._come += octets  # one line without a call, which the interpreter does not interrupt
        self._items.append((item, octets))
        return True

    def is_full(self) -> bool:
        """Whether the next item would be dropped, unless it carries no payload."""
        return len(self._items) >= MAILBOX or self._come - self._brought >= MAILBOX_BYTES

    def is_open(self) -> bool:
        """Whether there is room, or the handler has taken nothing for `PATIENCE` seconds.

        For what must not be dropped: the link it came from is not read meanwhile, and so its sender is held up. A
        handler that waits for something from that very link must not wait for ever, hence the patience.
        """
        if not self.is_full():
            self._progress = -1
            return True
        if self._brought != self._progress:
            self._progress, self._patience = self._brought, monotonic() + PATIENCE
        return monotonic() > self._patience

    def wait_for_room(self) -> bool:
        """The same for threads that may wait; whether there is room."""
        while not self.is_open():
            threading.Event().wait(LOOK)
        return not self.is_full()

    def _drop(self, count: int) -> None:
        self.dropped += count
        if self.dropped >= self._log_at:
            self._log_at = self.dropped + LOGGED_EVERY
            waiting, octets = len(self._items), self._come - self._brought
            _log.warning("handler too slow: dropped=%d waiting=%d octets=%d", self.dropped, waiting, octets)

    def empty(self) -> None:
        """Bring everything that waits, unless another thread is doing so: then it will bring this too."""
        items = self._items
        while items and self._busy.acquire(False):
            try:
                while items:
                    item, octets = items.popleft()
                    begun = monotonic()
                    self._bring(item)
                    self._brought += octets
                    took = monotonic() - begun
                    if took > SLOW:
                        self.is_slow = True
                    elif took < QUICK:
                        self.is_slow = False
            finally:
                self._busy.release()
            # Between the last look and the release something may have come: look again.

    def _bring(self, item: Any) -> None:
        try:
            self.deliver(item)
        except Exception as error:  # noqa: BLE001 - a handler's failure is the user's; the node must go on
            self.failed += 1
            _log.error("handler failed: error=%r failed=%d", error, self.failed, exc_info=error)


class DispatchQueue:
    """The mailboxes that have something in them, in the order they got it.

    `soon` has something done later by somebody else; given that, there are no workers (`elea.testing`).
    """

    def __init__(self, soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self.dropped = 0  # things for handlers that were too slow
        self._soon = soon
        self._boxes: deque[Mailbox] = deque()
        self._slow: deque[Mailbox] = deque()
        self._lock = threading.Lock()
        self._work = threading.Semaphore(0)
        self._free = 0
        self._workers = 0
        self._closed = False

    def add(self, box: Mailbox, item: Any, octets: int = 0, count: int = 1, *, beyond: bool = False) -> bool:
        """Leave an item in a mailbox, to be brought when `make` is called; False if there was no room for it."""
        if not box.add(item, octets, count, beyond=beyond):
            self.dropped += count
            return False
        boxes = self._boxes
        if boxes:
            try:
                if boxes[-1] is box:
                    return True  # whoever empties it takes it from here first, so this item is seen
            except IndexError:  # another thread took the last one
                pass
        boxes.append(box)
        return True

    def __bool__(self) -> bool:
        return bool(self._boxes)

    def is_only_for(self, channel: object) -> bool:
        """Whether there is something for this channel, and for nobody else."""
        try:
            return len(self._boxes) == 1 and self._boxes[0].channel is channel
        except IndexError:  # another thread took it
            return False

    def bring_only(self, channel: object) -> bool:
        """Bring what was left for one channel, if nothing else was; whether nothing is left now."""
        boxes = self._boxes
        if not boxes:
            return True
        try:
            box = boxes.popleft()
        except IndexError:
            return True
        if boxes or box.channel is not channel:
            boxes.appendleft(box)
            return False
        box.empty()
        return True

    def make(self, by_worker: bool = False) -> None:
        """Bring everything that was left, whoever left it; what goes to slow handlers is left to a worker."""
        boxes = self._boxes
        slow = False
        while boxes:
            try:
                box = boxes.popleft()
            except IndexError:  # another thread took the last one
                break
            if box.is_slow and not by_worker and self._soon is None:
                self._slow.append(box)
                slow = True
            else:
                box.empty()
        if slow:
            self.make_soon()

    def make_soon(self) -> None:
        """Have a worker do it: for threads of the user's, which must not run other people's handlers."""
        if self._soon is not None:
            self._soon(self.make)
            return
        with self._lock:
            if self._closed:
                return
            if self._free > 0 or self._workers >= WORKERS:
                self._work.release()
                return
            self._workers += 1
        threading.Thread(target=self._carry, name="elea-dispatch", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        for _ in range(self._workers):
            self._work.release()

    def _carry(self) -> None:
        while not self._closed:
            self._make_slow()
            self.make(by_worker=True)
            with self._lock:
                self._free += 1
            found = self._work.acquire(timeout=IDLE)
            with self._lock:
                self._free -= 1
                if not found and not self._boxes and not self._slow:
                    self._workers -= 1
                    return
        with self._lock:
            self._workers -= 1

    def _make_slow(self) -> None:
        while self._slow:
            try:
                box = self._slow.popleft()
            except IndexError:
                return
            if self._slow:
                self.make_soon()  # one worker for each: they block
            box.empty()
