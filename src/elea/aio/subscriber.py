"""Subscribers of the asyncio twin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.handle import ReceivingHandle
from elea.aio.workers import in_thread
from elea.api import subscriber as threaded
from elea.api.arrowhandler import Arrow, BatchChannel
from elea.api.callbacks import Callback
from elea.api.sample import Sample
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.aio.inbox import Overflow
    from elea.aio.session import Session
    from elea.api.pacedsubscriber import Periodic, Pull
    from elea.content import SamplePredicate
    from elea.model.predicate import Predicate
    from elea.model.qos import Locality

__all__ = ["BatchSubscriber", "Subscriber", "is_pull", "paced"]


class Subscriber(ReceivingHandle[Sample]):
    """Receives the samples put to a key expression.

    ::

        async with session.declare_subscriber("home/**", overflow="drop_oldest") as subscriber:
            async for sample in subscriber:
                print(sample.key_expr, sample.payload.to_string())
    """

    _inner: threaded.Subscriber[None]
    _turn: asyncio.Lock | None = None
    _abandoned: asyncio.Future[list[Sample]] | None = None

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it receives."""
        return self._inner.key_expr

    @property
    def where(self) -> SamplePredicate | None:
        """What samples are held against here, and what it has counted; None if all are wanted."""
        return self._inner.where

    @property
    def dropped(self) -> int:
        """Samples lost because the loop was too slow, by the overflow rule, or since too many waited for a pull."""
        return self._inbox.dropped + self._inner.dropped

    async def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """Ask for samples that wait; see `elea.api.pacedsubscriber`.

        Who is cancelled loses nothing: the next pull, which waits until this one has ended, brings the samples.
        """
        turn = self._turn = self._turn or asyncio.Lock()
        async with turn:
            await self._take_back()
            pulling = asyncio.ensure_future(in_thread(partial(self._inner.pull, max_samples, timeout=timeout)))
            try:
                return await asyncio.shield(pulling)
            except asyncio.CancelledError:
                self._abandoned = pulling
                raise

    async def _take_back(self) -> None:
        """What a cancelled pull has brought all the same."""
        pulling = self._abandoned
        if pulling is not None:
            await asyncio.wait([pulling])
            self._abandoned = None
            if not pulling.cancelled() and pulling.exception() is None:
                self._inner._put_back(pulling.result())

    async def commit(self, position: int | None = None) -> None:
        """Move its cursor; only if declared with one, see `elea.api.historysubscriber`."""
        await in_thread(partial(self._inner.commit, position))


class BatchSubscriber(Subscriber):
    """Gives record batches in place of samples, see `elea.handlers.Arrow`; `dropped` counts samples."""

    def __init__(
        self, session: Session, declare: Callable[[object], threaded.Subscriber[None]], handler: Arrow
    ) -> None:
        def begin(callback: Callback[Any]) -> threaded.Subscriber[None]:
            # It counts samples, where others count items.
            self._inbox._channel = channel = BatchChannel(handler)
            return declare(handler.calling(callback, channel.finish))

        super().__init__(
            session, begin, handler.callback, "RecordBatch", capacity=handler.capacity, overflow=handler.overflow
        )


def is_pull(mode: Pull | Periodic) -> bool:
    """Whether samples come when they are asked for."""
    from elea.api.pacedsubscriber import Pull

    return isinstance(mode, Pull) or mode.pull


def paced(
    session: Session,
    key_expr: KeyExpr | str,
    handler: object,
    origin: Locality | None,
    mode: Pull | Periodic,
    where: Predicate | str | None = None,
    *,
    capacity: int,
    overflow: Overflow,
) -> Subscriber:
    """A subscriber with a mode."""
    declare = partial(session._inner.declare_subscriber, key_expr, allowed_origin=origin, mode=mode, where=where)
    if handler is None and is_pull(mode):
        # Samples are what `pull` returns, and nothing ever comes through the inbox.
        return Subscriber(session, lambda _: declare(None), None, "Sample", capacity=capacity, overflow=overflow)
    return Subscriber(session, declare, handler, "Sample", capacity=capacity, overflow=overflow)
