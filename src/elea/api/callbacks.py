"""Callbacks: user functions called with what was received, one item after the other, never under a lock.

A *direct* callback runs in the thread that receives. An *indirect* one, the usual case, runs in a pool: each
callback has a bounded queue of its own and at most one worker at a time, and there are only as many workers as
callbacks are running. Ten thousand subscribers need no ten thousand threads, and a slow callback stops no other.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from elea.api.channels import DEFAULT_CAPACITY, Handler

__all__ = ["Callback", "Courier", "DirectSink", "IndirectSink"]

T = TypeVar("T")

_log = logging.getLogger("elea.api")

WORKERS: Final = 64
"""Callbacks that run at the same time; the next ones wait for a worker."""

IDLE: Final = 1.0
"""Seconds a worker without work stays, so that threads end soon after their sessions."""

BATCH: Final = 256
"""Items one callback gets before the next callback has its turn."""


class Callback(Generic[T]):
    """A function for received items, one for the end, and which thread they run in.

    >>> said = []
    >>> callback = Callback(said.append, lambda: said.append("end"), indirect=False)
    >>> callback("item"), callback.indirect, said
    (None, False, ['item'])
    """

    __slots__ = ("_callback", "_drop", "_indirect")

    def __init__(
        self, callback: Callable[[T], object], drop: Callable[[], object] | None = None, *, indirect: bool = True
    ) -> None:
        self._callback = callback
        self._drop = drop
        self._indirect = indirect

    def __call__(self, arg: T, /) -> object:
        """Call the function."""
        return self._callback(arg)

    @property
    def callback(self) -> Callable[[T], object]:
        """The function called with every item."""
        return self._callback

    @property
    def drop(self) -> Callable[[], object] | None:
        """The function called when no more items will come."""
        return self._drop

    @property
    def indirect(self) -> bool:
        """Whether the functions run in a thread of their own, and not in the one that receives."""
        return self._indirect

    def __repr__(self) -> str:
        return f"Callback({self._callback!r}, {self._drop!r}, indirect={self._indirect})"


class DirectSink(Generic[T]):
    """Calls at once, in the thread that pushes; the pusher holds no lock that a callback could want."""

    __slots__ = ("_call", "_closed", "_drop", "dropped")

    def __init__(self, call: Callable[[T], object], drop: Callable[[], object] | None = None) -> None:
        self._call = call
        self._drop = drop
        self._closed = False
        self.dropped = 0

    def push(self, item: T) -> None:
        """Call with one item; an exception is logged and goes no further."""
        try:
            self._call(item)
        except Exception:  # noqa: BLE001 - whatever a user's function raises must not stop the receiver
            _log.exception("callback error callback=%r", self._call)

    def push_many(self, items: Sequence[T]) -> None:
        """Call with each item in turn."""
        call = self._call
        for item in items:
            try:
                call(item)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("callback error callback=%r", call)

    def close(self) -> None:
        """Call `drop`, once."""
        if self._closed:
            return
        self._closed = True
        _run_drop(self._drop)


class IndirectSink(Generic[T]):
    """Queues items and has the courier's workers call; a full queue follows the rule of a fifo channel."""

    __slots__ = ("_active", "_call", "_channel", "_courier", "_drop", "_idle", "_lock", "_worker")

    def __init__(
        self,
        call: Callable[[T], object],
        drop: Callable[[], object] | None = None,
        *,
        courier: Courier | None = None,
        capacity: int = DEFAULT_CAPACITY,
    ) -> None:
        self._call = call
        self._drop = drop
        self._courier = courier or Courier.shared()
        self._channel: Handler[T] = Handler(capacity)
        self._lock = threading.Lock()
        self._active = False  # scheduled or running
        self._idle = threading.Event()
        self._worker = 0

    @property
    def dropped(self) -> int:
        """Items lost because the callback was stalled."""
        return self._channel.dropped

    def push(self, item: T) -> None:
        """Queue one item."""
        self._channel.push(item)
        if not self._active:
            self._schedule()

    def push_many(self, items: Sequence[T]) -> None:
        """Queue several items; workers start on them while the rest waits for room."""
        at = 0
        while at < len(items):
            at = self._channel.push_some(items, at)
            if not self._active:
                self._schedule()

    def close(self) -> None:
        """No more items: what is queued is still called, then `drop`. Does not wait; see `join`."""
        self._channel.close()
        if not self._active:
            self._schedule()

    def join(self, timeout: float | None = None) -> bool:
        """After `close`: wait until `drop` has returned. At once, when asked from inside the callback itself."""
        return self._worker == threading.get_ident() or self._idle.wait(timeout)

    def run(self) -> bool:
        """For workers: call with some items; whether there is more to do at once."""
        self._worker = threading.get_ident()
        call, channel = self._call, self._channel
        try:
            for item in channel.drain(BATCH):
                try:
                    call(item)
                except Exception:  # noqa: BLE001 - whatever a user's function raises must not stop the worker
                    _log.exception("callback error callback=%r", call)
            return self._more()
        finally:
            self._worker = 0

    def _more(self) -> bool:
        # Closed first: nothing is pushed behind that, so that an empty channel then stays empty.
        closed = self._channel.is_closed
        if len(self._channel):
            return True
        if closed:
            # `_active` stays set, so that nobody comes here a second time.
            _run_drop(self._drop)
            self._idle.set()
            return False
        # A push between the look and the change of `_active` has seen it set and scheduled nothing: look again.
        with self._lock:
            self._active = False
        return bool(len(self._channel) or self._channel.is_closed) and self._claim()

    def _claim(self) -> bool:
        with self._lock:
            if self._active:
                return False
            self._active = True
            return True

    def _schedule(self) -> None:
        if self._claim():
            self._courier.schedule(self)


class _Job(Protocol):
    def run(self) -> bool: ...


class Courier:
    """Workers for indirect callbacks, shared by all sessions of a process."""

    _shared: Courier | None = None
    _making = threading.Lock()

    def __init__(self, *, workers: int = WORKERS, idle: float = IDLE) -> None:
        self._limit = workers
        self._idle_for = idle
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._ready: deque[_Job] = deque()
        self._free = 0
        self.workers = 0

    @classmethod
    def shared(cls) -> Courier:
        """The courier of this process."""
        with cls._making:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    def schedule(self, job: _Job) -> None:
        """Have a worker run the job, which is not scheduled yet."""
        with self._lock:
            self._ready.append(job)
            if self._free >= len(self._ready):
                self._work.notify()
                return
            if self.workers >= self._limit:
                return
            self.workers += 1
        # A daemon, so that a program that forgets to close still exits.
        threading.Thread(target=self._run, name="elea-callback", daemon=True).start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            if job.run():
                # Behind the others, so that a callback that always has work keeps none from its turn.
                with self._lock:
                    self._ready.append(job)

    def _next(self) -> _Job | None:
        with self._lock:
            while not self._ready:
                self._free += 1
                woken = self._work.wait(self._idle_for)
                self._free -= 1
                if not woken and not self._ready:
                    self.workers -= 1
                    return None
            return self._ready.popleft()


def _run_drop(drop: Callable[[], object] | None) -> None:
    if drop is None:
        return
    try:
        drop()
    except Exception:  # noqa: BLE001 - as for the callback
        _log.exception("callback error drop=%r", drop)
