"""Asking from a loop: replies as an asynchronous iterator that ends the query when its task is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from elea.aio.handle import Handle, Pending
from elea.aio.inbox import DEFAULT_CAPACITY, Inbox, Overflow, into_inbox
from elea.aio.matching import MatchingListener
from elea.api import querier as threaded
from elea.api.apierrors import ChannelClosed
from elea.api.callbacks import Callback
from elea.api.cancellation import CancellationToken
from elea.api.info import MatchingStatus
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.reply import Reply
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    from elea.aio.session import Session

__all__ = ["Querier", "Replies", "ask"]

Ask = Callable[[Callback[Any], CancellationToken], object]
"""Asks through the threaded twin, with a handler and a token of ours."""


class Replies:
    """The replies to one query, as they come; iteration ends with the last one.

    The query is cancelled when the task that iterates is, at the end of an `async with` block, and when the last
    reference to this goes.
    """

    def __init__(self, inbox: Inbox[Reply], token: CancellationToken) -> None:
        self._inbox = inbox
        self._token = token
        self._loop = asyncio.get_running_loop()

    @property
    def dropped(self) -> int:
        """Replies lost because the loop was too slow, by the overflow rule."""
        return self._inbox.dropped

    async def recv(self, *, timeout: float | None = None) -> Reply:
        """The next reply, waiting for it; a `timeout` here ends the waiting, not the query.

        Raises:
            ChannelClosed: there is none and none will come.
            OperationTimeout: `timeout` seconds have passed.
        """
        return await self._inbox.recv(timeout=timeout)

    def try_recv(self) -> Reply | None:
        """The next reply, or None if there is none now."""
        return self._inbox.take()

    def cancel(self) -> None:
        """End the query; what has come can still be taken."""
        _end(self._inbox, self._token)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Reply:
        try:
            return await self._inbox._recv()
        except ChannelClosed:
            raise StopAsyncIteration from None
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()

    def __del__(self) -> None:
        # The garbage collector may come while this thread holds any lock, so the query is cancelled a little later.
        inbox = getattr(self, "_inbox", None)
        if inbox is not None and not inbox.is_closed:
            inbox.abandoned = True
            with contextlib.suppress(RuntimeError):  # the loop is closed; the query ends by its timeout
                self._loop.call_soon_threadsafe(_end, inbox, self._token)


def _end(inbox: Inbox[Reply], token: CancellationToken) -> None:
    inbox.close()  # first: a thread may be waiting for room, and cancelling waits for that thread
    token.cancel()


def ask(
    session: Session,
    send: Ask,
    handler: object,
    token: CancellationToken | None,
    *,
    capacity: int,
    overflow: Overflow,
) -> Any:
    """Send a query; `Replies`, or with a function as handler what threaded programs get."""
    inbox: Inbox[Reply]
    inbox, caller, user = into_inbox(handler, "Reply", capacity=capacity, overflow=overflow)
    if caller is not None:
        session._callers.add(caller)
    own = CancellationToken()
    close = inbox.close
    if token is not None:
        token._check()
        mark = token._add(lambda: _end(inbox, own))

        def close() -> None:
            token._remove(mark)
            inbox.close()

    send(Callback(inbox.push, close, indirect=False), own)
    return Replies(inbox, own) if caller is None else user


class Querier(Handle):
    """Asks about one key expression again and again."""

    _inner: threaded.Querier

    def __init__(self, session: Session, inner: threaded.Querier) -> None:
        self._session = session
        self._inner = inner

    @property
    def key_expr(self) -> KeyExpr:
        """The keys it asks about."""
        return self._inner.key_expr

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Which keys replies may have."""
        return self._inner.accept_replies

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether anybody can answer."""
        return self._inner.matching_status

    def declare_matching_listener(
        self, handler: Any = None, *, capacity: int = DEFAULT_CAPACITY, overflow: Overflow = "block"
    ) -> Pending[MatchingListener]:
        """Be told when the first queryable comes and when the last one goes."""

        async def begin() -> MatchingListener:
            declare = self._inner.declare_matching_listener
            return MatchingListener(
                self._session, declare, handler, "MatchingStatus", capacity=capacity, overflow=overflow
            )

        return Pending(begin())

    async def get(
        self,
        handler: Any = None,
        *,
        cancellation_token: CancellationToken | None = None,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "block",
        **options: Any,
    ) -> Any:
        """Ask; options as in `elea.Querier.get`. Returns `Replies`, unless a function takes them."""

        def send(callback: Callback[Any], token: CancellationToken) -> object:
            return self._inner.get(callback, cancellation_token=token, **options)

        return ask(self._session, send, handler, cancellation_token, capacity=capacity, overflow=overflow)
