"""From the threads of a session to an event loop: bounded, in batches, and never holding up the loop.

Threads push; the loop takes. A push wakes the loop only if no wake-up is on its way yet, so a run of samples costs one
`call_soon_threadsafe`, however long it is. What happens when the loop is too slow is the overflow rule:

===============  ====================================================================================================
`block`          the thread that delivers waits, 5 seconds at most for a consumer that takes nothing (elea.api.channels)
`drop_oldest`    what has waited longest is forgotten
`drop_newest`    what comes is forgotten
===============  ====================================================================================================

Every item forgotten is counted in `dropped`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from elea.api.apierrors import ChannelClosed
from elea.api.callbacks import Callback
from elea.api.channels import DEFAULT_CAPACITY, Handler
from elea.api.sinks import DefaultHandler, FifoChannel, RingChannel
from elea.model.errors import OperationTimeout

__all__ = ["DEFAULT_CAPACITY", "TURN", "Caller", "Inbox", "Overflow", "into_inbox"]

T = TypeVar("T")

Overflow: TypeAlias = Literal["block", "drop_oldest", "drop_newest"]

TURN: Final = 64
"""Items taken, or put, in a row before the other tasks of the loop have their turn."""

_log = logging.getLogger("elea.aio")


class Inbox(Generic[T]):
    """What waits for the loop. `push` and `close` are for any thread, the rest for the loop's own."""

    def __init__(self, *, capacity: int = DEFAULT_CAPACITY, overflow: Overflow = "block", of: str = "") -> None:
        if overflow not in get_args(Overflow):
            raise ValueError(f"overflow {overflow!r} is none of {', '.join(get_args(Overflow))}")
        self._loop = asyncio.get_running_loop()
        self._channel: Handler[T] = Handler(capacity, ring=overflow == "drop_oldest", of=of)
        self._newest = overflow == "drop_newest"
        self._waking = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._turn = 0
        self.handovers = 0
        """How often the loop was woken."""
        self.on_ready: Callable[[], None] | None = None
        self.abandoned = False
        """Set when nobody will take any more: what comes is forgotten, and nobody waits for room."""

    @property
    def dropped(self) -> int:
        """Items lost because the inbox was full."""
        return self._channel.dropped

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will come."""
        return self._channel.is_closed

    def __len__(self) -> int:
        return len(self._channel)

    # -- threads

    def push(self, item: T) -> None:
        """Leave an item for the loop."""
        if self.abandoned:
            return
        channel = self._channel
        if not self._newest:
            channel.push(item)
        elif not channel.offer((item,)):
            channel.dropped += 1
            return
        if not self._waking:
            self._rouse()

    def close(self) -> None:
        """Nothing more will come; what is here can still be taken."""
        self._channel.close()
        self._rouse()

    def _rouse(self) -> None:
        # Order matters: the item is in, then the flag is looked at; the loop clears it, then looks for items.
        self._waking = True
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop is closed: nobody will ever take anything
            self.abandoned = True
            self._channel.close()

    # -- the loop

    def _wake(self) -> None:
        self._waking = False
        self.handovers += 1
        if self.on_ready is not None:
            self.on_ready()
        self._release()

    def _release(self) -> None:
        """Let as many waiters go as there are items, or all if there will be none."""
        count = len(self._waiters) if self._channel.is_closed else len(self._channel)
        while count > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    def take(self) -> T | None:
        """The next item, or None if there is none now.

        Raises:
            ChannelClosed: there is none and none will come.
        """
        return self._channel.try_recv()

    async def recv(self, *, timeout: float | None = None) -> T:
        """The next item, waiting for it.

        Raises:
            ChannelClosed: there is none and none will come.
            OperationTimeout: `timeout` seconds have passed.
        """
        if timeout is None:
            return await self._recv()
        try:
            async with asyncio.timeout(timeout):
                return await self._recv()
        except TimeoutError:
            raise OperationTimeout(f"nothing came within {timeout} s") from None

    async def _recv(self) -> T:
        # Taking never waits while items are there; without a pause the other tasks would never run.
        self._turn += 1
        if self._turn >= TURN:
            self._turn = 0
            await asyncio.sleep(0)
        while (item := self._channel.try_recv()) is None:
            self._turn = 0
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                self._release()  # the wake-up may have been for this one: pass it on
                raise
        return item


class Caller(Generic[T]):
    """Calls a function with each item of an inbox, in the loop, one after the other; awaits it if it is asynchronous.

    There is a task only while there are items: a loop that is closed without ceremony finds none to complain about.
    """

    def __init__(
        self,
        inbox: Inbox[T],
        function: Callable[[Any], object],
        drop: Callable[[], object] | None = None,
        *,
        wrap: Callable[[T], object] | None = None,
        after: Callable[[Any], None] | None = None,
    ) -> None:
        """Call from now on.

        Args:
            drop: called when nothing more will come.
            wrap: makes of an item what the function gets.
            after: called with that when the function is done.
        """
        self._inbox = inbox
        self._function = function
        self._drop = drop
        self._wrap = wrap
        self._after = after
        self._task: asyncio.Task[None] | None = None
        self._over = False
        inbox.on_ready = self._ready

    async def settle(self, timeout: float | None = None) -> None:
        """Wait until what is here has been called with; at once when asked from inside the function itself."""
        await asyncio.sleep(0)  # for the wake-up of a close
        task = self._task
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait({task}, timeout=timeout)

    def cancel(self) -> None:
        """Call no more."""
        self._inbox.abandoned = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _ready(self) -> None:
        if self._task is None and not self._over:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="elea-callback")

    async def _run(self) -> None:
        taken = 0
        try:
            while True:
                item = self._inbox.take()
                if item is None:
                    return
                call = self._call(item)
                del item  # a query ends with its last reference
                await call
                taken += 1
                if not taken % TURN:
                    await asyncio.sleep(0)
        except ChannelClosed:
            self._over = True
            if self._drop is not None:
                await self._guarded(self._drop)
        finally:
            self._task = None

    async def _call(self, item: T) -> None:
        function = self._function
        given = item if self._wrap is None else self._wrap(item)
        del item
        try:
            result = function(given)
            if inspect.isawaitable(result):
                await result
            del result
        except Exception:  # noqa: BLE001 - whatever a user's function raises must not stop the others
            _log.exception("callback error callback=%r", function)
        if self._after is not None:
            self._after(given)

    async def _guarded(self, function: Callable[[], object]) -> None:
        try:
            result = function()
            if inspect.isawaitable(result):
                await result
        except Exception:  # noqa: BLE001 - as above
            _log.exception("callback error drop=%r", function)


def into_inbox(
    handler: object,
    of: str,
    *,
    capacity: int,
    overflow: Overflow,
    wrap: Callable[[T], object] | None = None,
    after: Callable[[Any], None] | None = None,
) -> tuple[Inbox[T], Caller[T] | None, object]:
    """Where threads push, who calls the user's function if there is one, and what the user gets as `handler`.

    Args:
        handler: None or a channel of `elea.handlers`; a function, plain or asynchronous; a `Callback`; a pair.
        wrap: makes of an item what the function gets.
        after: called with that when the function is done.
    """
    if isinstance(handler, FifoChannel | RingChannel):
        capacity, overflow = handler.capacity, "drop_oldest" if isinstance(handler, RingChannel) else "block"
    inbox: Inbox[T] = Inbox(capacity=capacity, overflow=overflow, of=of)
    if handler is None or isinstance(handler, FifoChannel | RingChannel | DefaultHandler):
        return inbox, None, None
    function, user = handler if isinstance(handler, tuple) and len(handler) == 2 else (handler, None)
    drop = function.drop if isinstance(function, Callback) else None
    function = function.callback if isinstance(function, Callback) else function
    if not callable(function):
        raise ValueError(
            f"invalid handler type {type(handler).__name__}: pass None, a channel, a function, "
            "or a pair of a function and what `handler` shall be"
        )
    return inbox, Caller(inbox, function, drop, wrap=wrap, after=after), user
