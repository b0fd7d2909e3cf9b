"""Subscribers of the asyncio twin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from elea.aio.calling import in_thread
from elea.aio.handle import Receiving
from elea.api import subscribing as threaded
from elea.api.sample import Sample
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.aio.inbox import Overflow
    from elea.aio.session import Session
    from elea.api.pacing import Periodic, Pull
    from elea.model.qos import Locality

__all__ = ["Subscriber", "paced"]


class Subscriber(Receiving[Sample]):
    """Receives the samples put to a key expression.

    ::

        async with session.declare_subscriber("home/**", overflow="drop_oldest") as subscriber:
            async for sample in subscriber:
                print(sample.key_expr, sample.payload.to_string())
    """

    _inner: threaded.Subscriber[None]

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it receives."""
        return self._inner.key_expr

    @property
    def dropped(self) -> int:
        """Samples lost because the loop was too slow, by the overflow rule, or since too many waited for a pull."""
        return self._inbox.dropped + self._inner.dropped

    async def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """Ask for samples that wait; see `elea.api.pacing`. Who is cancelled while waiting for a window loses them."""
        return await in_thread(partial(self._inner.pull, max_samples, timeout=timeout))

    async def commit(self, position: int | None = None) -> None:
        """Move its cursor; only if declared with one, see `elea.api.following`."""
        await in_thread(partial(self._inner.commit, position))


def paced(
    session: Session,
    key_expr: KeyExpr | str,
    handler: object,
    origin: Locality | None,
    mode: Pull | Periodic,
    *,
    capacity: int,
    overflow: Overflow,
) -> Subscriber:
    """A subscriber with a mode."""
    from elea.api.pacing import Pull

    declare = partial(session._inner.declare_subscriber, key_expr, allowed_origin=origin, mode=mode)
    if handler is None and (isinstance(mode, Pull) or mode.pull):
        # Samples are what `pull` returns, and nothing ever comes through the inbox.
        return Subscriber(session, lambda _: declare(None), None, "Sample", capacity=capacity, overflow=overflow)
    return Subscriber(session, declare, handler, "Sample", capacity=capacity, overflow=overflow)
