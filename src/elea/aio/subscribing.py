"""Subscribers of the asyncio twin."""

from __future__ import annotations

from elea.aio.handle import Receiving
from elea.api import subscribing as threaded
from elea.api.sample import Sample
from elea.model.keyexpr import KeyExpr

__all__ = ["Subscriber"]


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
