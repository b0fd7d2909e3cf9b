"""Bringing things to handlers: in order for each handler, never under a lock, never by two threads at once.

Whoever reads a link puts what it finds into *mailboxes*, finishes its batch, and then brings round what is in them. A
handler that takes its time holds up its own mailbox only: another thread that adds to it leaves the delivery to the
one that is at it (the combining pattern: no thread waits for another). If the reading thread itself is held up, another
one takes over the reading (`Watch`). So a handler normally runs in the thread that read its sample, with no hand-over,
and may still block, ask and put as it likes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from elea.io.timers import monotonic
from elea.model.limits import COURIERS, MAILBOX, MAILBOX_BYTES
from elea.model.logger import logger

__all__ = ["Mailbox", "Round", "Runner", "Watch"]

_log: Final = logger("elea.broker")

HELD_UP: Final = 0.01
"""Seconds a handler may take before another thread goes on with the reading."""

PATIENCE: Final = 5.0
"""Seconds a link is held up by a handler that takes nothing; the same as for a channel nobody reads."""

IDLE: Final = 1.0
"""Seconds such a thread stays when there is nothing to do."""

LOGGED_EVERY: Final = 100_000
"""One line for so many things that a slow handler missed."""


class Mailbox:
    """What waits for one handler; above the limits of it, what carries a payload is dropped and counted."""

    __slots__ = (
        "_brought",
        "_busy",
        "_come",
        "_items",
        "_log_at",
        "channel",
        "deliver",
        "dropped",
        "failed",
        "takes_blocks",
    )

    def __init__(self, deliver: Callable[[Any], None], *, takes_blocks: bool = False, channel: object = None) -> None:
        """`channel` is where all that is delivered goes, if it goes to a channel."""
        self.deliver = deliver
        self.takes_blocks = takes_blocks
        self.channel = channel
        self.dropped = 0
        self.failed = 0
        self._items: deque[tuple[Any, int]] = deque()
        self._busy = threading.Lock()
        self._come = 0  # octets, all that were left here
        self._brought = 0  # and those that were taken out again
        self._log_at = 1

    def add(self, item: Any, octets: int = 0, count: int = 1, *, beyond: bool = False) -> bool:
        """Leave an item of some octets, which stands for `count` things; `empty` brings it. False if it was dropped.

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

    def wait_for_room(self, patience: float = PATIENCE) -> bool:
        """Wait until there is room, as long as the handler takes something every `patience` seconds; whether there is.

        For what must not be dropped: the link it came from is held up, and so its sender. A handler that waits for
        something from that very link must not wait for ever, hence the patience.
        """
        last, until = -1, 0.0
        while self.is_full():
            if self._brought != last:
                last, until = self._brought, monotonic() + patience
            elif monotonic() > until:
                return False
            threading.Event().wait(HELD_UP / 2)
        return True

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
                    self._bring(item)
                    self._brought += octets
            finally:
                self._busy.release()
            # Between the last look and the release something may have come: look again.

    def _bring(self, item: Any) -> None:
        try:
            self.deliver(item)
        except Exception as error:  # noqa: BLE001 - a handler's failure is the user's; the node must go on
            self.failed += 1
            _log.error("handler failed: error=%r failed=%d", error, self.failed, exc_info=error)


class Runner(Protocol):
    """A thread that reads and delivers."""

    busy_since: float
    """When it began to deliver; 0 while it does not."""

    def take_over(self) -> None:
        """Let another thread read on."""
        ...


class Watch:
    """Looks after runners while they deliver, and sleeps while none does."""

    def __init__(self) -> None:
        self.takeovers = 0
        self._runners: set[Runner] = set()
        self._wake = threading.Event()
        self._asleep = True
        self._closed = False
        self._looker: threading.Thread | None = None

    def add(self, runner: Runner) -> None:
        self._runners.add(runner)

    def discard(self, runner: Runner) -> None:
        self._runners.discard(runner)

    def look(self) -> None:
        """A runner begins to deliver. Cheap: mostly somebody is looking already."""
        if self._asleep and not self._closed:
            self._asleep = False
            if self._looker is None:
                self._looker = threading.Thread(target=self._run, name="elea-watch", daemon=True)
                self._looker.start()
            self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        quiet = 0.0
        pause = threading.Lock()  # never released: taking it is a sleep, and cheap, as this happens all the time
        pause.acquire()
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            quiet = 0.0
            while quiet < IDLE and not self._closed:
                pause.acquire(timeout=HELD_UP / 2)
                quiet = 0.0 if self._check() else quiet + HELD_UP / 2
            self._asleep = True

    def _check(self) -> bool:
        """Take over from runners that are held up; whether any delivers."""
        now = monotonic()
        active = False
        for runner in list(self._runners):
            since = runner.busy_since
            if since:
                active = True
                if now - since > HELD_UP:
                    self.takeovers += 1
                    runner.take_over()
        return active


class Round:
    """The mailboxes that have something in them, in the order they got it.

    `soon` has something done later by somebody else; given that, there are no couriers (`elea.testing`).
    """

    def __init__(self, soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self.dropped = 0  # things for handlers that were too slow
        self._soon = soon
        self._boxes: deque[Mailbox] = deque()
        self._lock = threading.Lock()
        self._work = threading.Semaphore(0)
        self._free = 0
        self._couriers = 0
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

    def make(self) -> None:
        """Bring everything that was left, whoever left it."""
        boxes = self._boxes
        while boxes:
            try:
                box = boxes.popleft()
            except IndexError:  # another thread took the last one
                return
            box.empty()

    def make_soon(self) -> None:
        """Have a courier make the round: for threads of the user's, which must not run other people's handlers."""
        if self._soon is not None:
            self._soon(self.make)
            return
        with self._lock:
            if self._closed:
                return
            if self._free > 0 or self._couriers >= COURIERS:
                self._work.release()
                return
            self._couriers += 1
        threading.Thread(target=self._carry, name="elea-deliver", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        for _ in range(self._couriers):
            self._work.release()

    def _carry(self) -> None:
        while not self._closed:
            self.make()
            with self._lock:
                self._free += 1
            found = self._work.acquire(timeout=IDLE)
            with self._lock:
                self._free -= 1
                if not found and not self._boxes:
                    self._couriers -= 1
                    return
        with self._lock:
            self._couriers -= 1
