"""Liveliness of the asyncio twin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from elea.aio.handle import Handle, Pending, ReceivingHandle
from elea.aio.inbox import DEFAULT_CAPACITY, Overflow
from elea.aio.querier import ask
from elea.api import liveliness as threaded
from elea.api.callbacks import Callback
from elea.api.cancellation import CancellationToken
from elea.api.sample import Sample
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.aio.session import Session

__all__ = ["Liveliness", "LivelinessSubscriber", "LivelinessToken"]


class LivelinessToken(Handle):
    """Says that this session is alive, for as long as it is."""

    def __init__(self, inner: threaded.LivelinessToken) -> None:
        self._inner = inner


class LivelinessSubscriber(ReceivingHandle[Sample]):
    """Receives a put for every token that appears and a deletion for every one that goes."""

    _inner: threaded.LivelinessSubscriber[None]

    @property
    def key_expr(self) -> KeyExpr:
        """The keys of the tokens it watches."""
        return self._inner.key_expr


class Liveliness:
    """What a session can do with liveliness tokens."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inner = session._inner.liveliness()

    def declare_token(self, key_expr: KeyExpr | str) -> Pending[LivelinessToken]:
        """Declare a token."""

        async def begin() -> LivelinessToken:
            return LivelinessToken(self._inner.declare_token(key_expr))

        return Pending(begin())

    def declare_subscriber(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        history: bool | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Pending[LivelinessSubscriber]:
        """Be told of tokens that come and go; with `history`, also of those that are there."""

        async def begin() -> LivelinessSubscriber:
            declare = partial(self._inner.declare_subscriber, key_expr, history=history)
            return LivelinessSubscriber(self._session, declare, handler, "Sample", capacity=capacity, overflow=overflow)

        return Pending(begin())

    async def get(
        self,
        key_expr: KeyExpr | str,
        handler: Any = None,
        *,
        timeout: float | int | None = None,
        cancellation_token: CancellationToken | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
    ) -> Any:
        """Ask which tokens there are. Returns `Replies`, unless a function takes them."""

        def send(callback: Callback[Any], token: CancellationToken) -> object:
            return self._inner.get(key_expr, callback, timeout=timeout, cancellation_token=token)

        return ask(self._session, send, handler, cancellation_token, capacity=capacity, overflow=overflow)
