"""Subscribers that begin in the past, and replays, for asyncio: the twins of those in `elea.api`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.inbox import Overflow
from elea.aio.subscriber import Subscriber
from elea.aio.workers import in_thread
from elea.api import historysubscriber as threaded
from elea.api.apierrors import ChannelClosed
from elea.api.callbacks import Callback
from elea.api.consumer import ChannelConsumer, Consumer
from elea.api.logreader import Start
from elea.api.pacedsubscriber import Periodic, Pull
from elea.api.pullsubscriber import PullingSubscriber
from elea.api.replay import Replay as ThreadedReplay
from elea.api.sample import Sample
from elea.api.stored import StoredSample
from elea.model.errors import EleaError
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.aio.session import Session
    from elea.content import SamplePredicate

__all__ = ["FollowingSubscriber", "Replay", "SleepingSubscriber", "follow", "sleeping"]


class FollowingSubscriber(Subscriber):
    """A subscriber declared with `history`, `since` or `cursor`.

    It makes the log wait for the loop, so that nothing is lost; only `overflow="drop_oldest"` drops. A function of it,
    plain or asynchronous, is done with a sample when it has returned.
    """

    _inner: threaded.FollowingSubscriber[None]

    @property
    def position(self) -> int:
        """The position behind the last sample that was taken, or given to the function."""
        return self._inner.position

    @property
    def epoch(self) -> str:
        """The identity of the log that positions belong to."""
        return self._inner.epoch

    @property
    def error(self) -> EleaError | None:
        """Why it has ended by itself."""
        return self._inner.error

    @property
    def interruptions(self) -> int:
        """Reads that failed and were tried again."""
        return self._inner.interruptions

    async def recv(self, *, timeout: float | None = None) -> Sample:
        """The next sample, waiting for it; raises the `error` when it has ended by itself."""
        try:
            return await super().recv(timeout=timeout)
        except ChannelClosed:
            self._raise()
            raise

    async def __anext__(self) -> Sample:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            self._raise()
            raise

    async def undeclare(self) -> None:
        await in_thread(self._inner.undeclare)
        await self._settle()

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        await in_thread(partial(self._inner.__exit__, kind, error, traceback))
        await self._settle()

    def _raise(self) -> None:
        if self._inner.error is not None:
            raise self._inner.error

    def _consumer(self, on_room: Callable[[], None]) -> Consumer:
        inbox, caller = self._inbox, self._caller

        def added() -> None:
            if not inbox._waking:
                inbox._rouse()

        def is_idle() -> bool:
            return bool(inbox._waiters) if caller is None else caller._task is None

        return ChannelConsumer(inbox._channel, on_room, is_idle=is_idle, added=added)


async def follow(
    session: Session,
    key_expr: KeyExpr,
    handler: object,
    start: Start,
    *,
    mode: Periodic | None,
    auto_commit: bool,
    on_loss: Callable[[threaded.Loss], object] | None,
    where: SamplePredicate | None,
    capacity: int,
    overflow: Overflow,
) -> FollowingSubscriber:
    """Declare one; the store is asked where it begins, which takes a while."""
    inner, told = session._inner, _in_loop(on_loss)
    given: list[Callback[Any]] = []

    # The inbox belongs to the loop, what is declared takes time: the one is made here, the other in a thread.
    made = FollowingSubscriber(
        session,
        given.append,  # type: ignore[arg-type]
        handler,
        "Sample",
        capacity=capacity,
        overflow=overflow,
    )

    def declare() -> threaded.FollowingSubscriber[None]:
        found: threaded.FollowingSubscriber[None] = threaded.FollowingSubscriber(
            inner,
            key_expr,
            given[0],
            start,
            auto_commit=auto_commit,
            on_loss=told,
            windows=None if mode is None else mode.windows(inner._node.loop),
            consumer=made._consumer,
            where=where,
        )
        return inner._keep(found)

    made._inner = await in_thread(declare, unwanted=threaded.FollowingSubscriber._finish)
    return made


class SleepingSubscriber(FollowingSubscriber):
    """A subscriber declared with a mode that pulls, and with `history`, `since` or `cursor`: as in `elea.api`."""

    async def undeclare(self) -> None:
        await self._take_back()  # else the cursor would move behind samples that nobody got
        await super().undeclare()

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        await self._take_back()
        await super().__aexit__(kind, error, traceback)


async def sleeping(
    session: Session,
    key_expr: KeyExpr,
    start: Start,
    *,
    mode: Pull | Periodic,
    auto_commit: bool,
    on_loss: Callable[[threaded.Loss], object] | None,
    where: SamplePredicate | None,
) -> SleepingSubscriber:
    """Declare one."""
    inner, told = session._inner, _in_loop(on_loss)

    def declare() -> threaded.FollowingSubscriber[None]:
        made: PullingSubscriber[None] = PullingSubscriber(
            inner, key_expr, start, mode, auto_commit=auto_commit, on_loss=told, where=where
        )
        return inner._keep(made)

    found = await in_thread(declare, unwanted=threaded.FollowingSubscriber._finish)
    # Samples are what `pull` returns, and nothing ever comes through the inbox.
    return SleepingSubscriber(session, lambda _: found, None, "Sample", capacity=1, overflow="block")


def _in_loop(on_loss: Callable[[threaded.Loss], object] | None) -> Callable[[threaded.Loss], object] | None:
    loop = asyncio.get_running_loop()
    return None if on_loss is None else lambda loss: loop.call_soon_threadsafe(on_loss, loss)


class Replay:
    """The samples of a range, to iterate over with `async for`; made by `Session.replay`."""

    def __init__(self, inner: ThreadedReplay) -> None:
        self._inner = inner

    def __aiter__(self) -> AsyncIterator[StoredSample]:
        return self._samples()

    async def _samples(self) -> AsyncIterator[StoredSample]:
        inner, given = self._inner, 0
        while inner.is_ready or await in_thread(inner.fetch):
            delay = inner.delay()
            given += 1
            if delay > 0 or not given % 64:
                await asyncio.sleep(max(delay, 0.0))  # also without a pace the other tasks have their turn
            yield inner.take()
