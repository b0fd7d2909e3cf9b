"""Channels: bounded queues between the thread that receives and the threads that take.

Two rules for a full channel. A *ring* forgets the oldest item. A *fifo* makes the producer wait for room, as in
eclipse-zenoh, but not for ever: a consumer that takes nothing for `patience` seconds is stalled, and until it takes
again, what comes for it is dropped at once. So a slow consumer loses nothing, and a stopped one costs the producer
one `patience`. Every item dropped is counted in `dropped`.

A producer that must not wait at all uses `offer`, which takes what fits, and `on_room` to learn when to go on.

A consumer that waits may be the producer itself: it leads the loop of its node (`elea.io.loop`), reads the link by
which the next item will come, and so need not be woken.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from elea.api.apierrors import ChannelClosed
from elea.io.interrupts import Shield
from elea.model.errors import OperationTimeout
from elea.model.limits import DEFAULT_CAPACITY, PATIENCE
from elea.model.values import mypyc_attr

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = ["DEFAULT_CAPACITY", "PATIENCE", "Handler", "Source"]

T = TypeVar("T")


class Source(Protocol):
    """The node by whose links items come."""

    @property
    def loop(self) -> Loop: ...


class _Waker(Protocol):
    """How a consumer that waits is told: a lock it tries to take twice, or the loop that it leads."""

    def release(self) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Handler(Generic[T]):
    """Where received items wait to be taken. Made by sessions; `recv`, `try_recv` or iterate.

    Iteration ends, and `recv` raises, when the channel is closed and everything in it has been taken.

    >>> channel: Handler[int] = Handler(2, ring=True)
    >>> channel.push_many([1, 2, 3])
    >>> channel.close()
    >>> list(channel), channel.dropped
    ([2, 3], 1)
    """

    __slots__ = (
        "_capacity",
        "_closed",
        "_items",
        "_lock",
        "_of",
        "_reads",
        "_ring",
        "_room",
        "_short",
        "_stalled",
        "_takers",
        "_takes",
        "_waiting",
        "dropped",
        "on_room",
        "patience",
        "source",
    )

    def __init__(
        self, capacity: int = DEFAULT_CAPACITY, *, ring: bool = False, of: str = "", patience: float = PATIENCE
    ) -> None:
        # A capacity of 0 still passes items on, one at a time, as in eclipse-zenoh.
        self._capacity = capacity if capacity > 0 else 1
        self._ring = ring
        self._of = of
        self._items: deque[T] = deque()
        self._lock = threading.Lock()
        self._takers: list[_Waker] = []  # consumers that wait for an item
        self._room: threading.Condition | None = None  # producers wait for room; made when the first one does
        self._waiting = 0  # producers waiting
        self._takes = 0  # items taken so far, by which a producer sees that the consumer lives
        self._stalled = False
        self._short = False  # an offer was cut: tell the producer when there is room
        self._closed = False
        self._reads = False  # the consumer waits and fills it itself, so it must not wait for room
        self.source: Source | None = None
        self.patience = patience
        self.dropped = 0
        self.on_room: Callable[[], None] | None = None

    # -- the consumer

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now.

        Raises:
            ChannelClosed: there is none and none will come.
        """
        with self._lock:
            if not self._items:
                if self._closed:
                    raise ChannelClosed
                return None
            item, wake = self._take()
        if wake is not None:
            wake()
        return item

    def recv(self, *, timeout: float | None = None) -> T:
        """The next item, waiting for it; Ctrl-C interrupts.

        Raises:
            ChannelClosed: there is none and none will come.
            OperationTimeout: `timeout` seconds have passed.
        """
        until = None if timeout is None else time.monotonic() + timeout
        found = False
        while not found:
            with self._lock:
                found = bool(self._items)
                if found:
                    item, wake = self._take()
                elif self._closed:
                    raise ChannelClosed
            if not found:
                self._wait_for_item(timeout, until)
        if wake is not None:
            wake()
        return item

    def drain(self, limit: int) -> list[T]:
        """Up to `limit` items that are there now, under one lock."""
        with self._lock:
            count = min(limit, len(self._items))
            if not count:
                return []
            taken = [self._items.popleft() for _ in range(count - 1)]
            last, wake = self._take()
            self._takes += count - 1
            if self._waiting and self._room is not None:
                self._room.notify_all()
        taken.append(last)
        if wake is not None:
            wake()
        return taken

    def __iter__(self) -> Handler[T]:
        return self

    def __next__(self) -> T:
        found = False
        while not found:
            with self._lock:
                found = bool(self._items)
                if found:
                    item, wake = self._take()
                elif self._closed:
                    raise StopIteration
            if not found:
                self._wait_for_item(None, None)
        if wake is not None:
            wake()
        return item

    def __repr__(self) -> str:
        return f"Handler[{self._of}]" if self._of else "Handler"

    def _take(self) -> tuple[T, Callable[[], None] | None]:
        """The next item, and whom to tell about the room it leaves, once the lock is released."""
        item = self._items.popleft()
        self._takes += 1
        self._stalled = False
        if self._waiting and self._room is not None:
            self._room.notify()
        if not self._short:
            return item, None
        self._short = False
        return item, self.on_room

    def _wait_for_item(self, timeout: float | None, until: float | None) -> None:
        """Wait until there may be an item, or the channel is closed. The lock is not held: an interrupt may come at
        any time, and the exception it raises must find nothing to release.

        A bare lock does it at a third of the cost of a Condition.
        """
        left = -1.0 if until is None else until - time.monotonic()
        if until is not None and left <= 0:
            raise OperationTimeout(f"nothing came within {timeout} s")
        loop = None if self.source is None else self.source.loop
        bell = threading.Lock()
        try:
            if loop is not None and self._lead(loop, until):
                return
            bell.acquire()
            with self._lock:
                if self._items or self._closed:
                    return
                self._takers.append(bell)
            bell.acquire(timeout=min(left, threading.TIMEOUT_MAX))
            self._stop_waiting(bell)
        except BaseException:
            self._stop_waiting(bell)  # once more: it may have come in there
            self._call_another()
            raise
        finally:
            if loop is not None:
                loop.forget(self)

    def _stop_waiting(self, bell: _Waker) -> None:
        with self._lock:
            if bell in self._takers:
                self._takers.remove(bell)  # nobody rang: time is over, or Ctrl-C

    def _call_another(self) -> None:
        """Whoever waited takes no item, though it may have been called for one."""
        with self._lock:
            if self._items and self._takers:
                self._takers.pop(0).release()

    def _lead(self, loop: Loop, until: float | None) -> bool:
        """Read what comes, until there is an item or another reason to look; False if that cannot be done now."""
        shield = Shield()
        try:
            if not loop.take(self, shield):
                return False
            try:
                with self._lock:
                    self._takers.append(loop)
                    self._reads = True
                loop.read(self._is_done, until, shield)
            finally:
                with self._lock:
                    self._reads = False
                    if loop in self._takers:
                        self._takers.remove(loop)
        finally:
            loop.give_back()
            shield.down()
        return True

    def _is_done(self) -> bool:
        return bool(self._items) or self._closed

    # -- the producer

    def push(self, item: T) -> None:
        """Add an item, by the rule of the channel; after `close` it is lost, without being counted as dropped."""
        # 0.25 µs when nobody waits.
        with self._lock:
            items = self._items
            if self._closed:
                return
            if len(items) >= self._capacity:
                if self._ring:
                    items.popleft()
                    self.dropped += 1
                elif not self._reads and not self._wait_for_room():
                    if not self._closed:
                        self.dropped += 1
                    return
            items.append(item)
            if self._takers:
                self._takers.pop(0).release()

    def push_many(self, items: Sequence[T]) -> None:
        """Add several items under one lock."""
        with self._lock:
            at = 0
            while at < len(items):
                at = self._push_some(items, at)

    def offer(self, items: Sequence[T], start: int = 0) -> int:
        """Add what fits of the items from `start`, without waiting; returns where it stopped.

        If that is before their end, `on_room` is called once there is room again. A closed channel takes everything
        and keeps nothing.
        """
        with self._lock:
            if self._closed:
                return len(items)
            at = self._put(items, start)
            self._short = at < len(items)
            return at

    def close(self) -> None:
        """Nothing more will come: wakes everybody who waits."""
        with self._lock:
            self._closed = True
            if self._takers:
                self._ring_for(len(self._takers))
            if self._room is not None:
                self._room.notify_all()
            wake = self.on_room if self._short else None
            self._short = False
        if wake is not None:
            wake()

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will come; what is in the channel can still be taken."""
        return self._closed

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        # A channel is not false when it is empty: programs test whether they have one.
        return True

    def _put(self, items: Sequence[T], at: int) -> int:
        """Add what fits; the lock is held."""
        if self._closed:
            return len(items)
        if self._ring:
            end = len(items)
            lost = len(self._items) + end - at - self._capacity
            if lost > 0:
                self.dropped += lost
                kept = min(lost, len(self._items))
                for _ in range(kept):
                    self._items.popleft()
                at += lost - kept
        else:
            room = len(items) if self._reads else self._capacity - len(self._items)
            end = min(len(items), at + max(0, room))
        self._items.extend(items[at:end] if at or end < len(items) else items)
        if self._takers and end > at:
            self._ring_for(end - at)
        return end

    def _ring_for(self, count: int) -> None:
        """Wake so many consumers."""
        for bell in self._takers[:count]:
            bell.release()
        del self._takers[:count]

    def _push_some(self, items: Sequence[T], start: int) -> int:
        at = self._put(items, start)
        if at > start:
            return at
        if self._wait_for_room():
            return self._put(items, start)
        if not self._closed:
            self.dropped += len(items) - start
        return len(items)

    def _wait_for_room(self) -> bool:
        """Wait until there is room, as long as the consumer keeps taking; the lock is held."""
        if self._stalled:
            return False
        takes, until = self._takes, time.monotonic() + self.patience
        if self._room is None:
            self._room = threading.Condition(self._lock)
        self._waiting += 1
        try:
            while len(self._items) >= self._capacity and not self._closed:
                if self._takes != takes:  # others were quicker, but the consumer is alive
                    takes, until = self._takes, time.monotonic() + self.patience
                left = until - time.monotonic()
                if left <= 0:
                    self._stalled = True
                    self._room.notify_all()
                    return False
                self._room.wait(left)
                if self._stalled:
                    return False
        finally:
            self._waiting -= 1
        return not self._closed
