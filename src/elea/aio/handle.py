"""What all declared things have in common: awaited or entered to begin, undeclared or left to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from elea.aio.inbox import Overflow, into_inbox
from elea.api import handle as threaded
from elea.api.apierrors import ChannelClosed
from elea.api.callbacks import Callback
from elea.api.identity import EntityGlobalId

if TYPE_CHECKING:
    from elea.aio.session import Session

__all__ = ["Handle", "Pending", "ReceivingHandle"]

T = TypeVar("T")


class _Entered(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


E = TypeVar("E", bound=_Entered)


class Pending(Generic[E]):
    """Something about to be declared: `await` it, or enter it with `async with`, which also ends it."""

    __slots__ = ("_begin", "_entered")

    def __init__(self, begin: Coroutine[Any, Any, E]) -> None:
        self._begin = begin

    def __await__(self) -> Generator[Any, Any, E]:
        return self._begin.__await__()

    async def __aenter__(self) -> E:
        self._entered = await self._begin
        await self._entered.__aenter__()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._entered.__aexit__(kind, error, traceback)


class Handle:
    """Something declared through a session."""

    _inner: threaded.Handle

    @property
    def id(self) -> EntityGlobalId:
        """The identifier of this entity."""
        return self._inner.id

    async def undeclare(self) -> None:
        """End it; returns when a function of it has been called with everything that came.

        Raises:
            SessionClosed: it has ended already.
        """
        self._inner.undeclare()
        await self._settle()

    async def _settle(self) -> None:
        """It has ended: wait for what that means in the loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, traceback)
        await self._settle()


class ReceivingHandle(Handle, Generic[T]):
    """A handle through which something is received: iterate over it, or `recv`, or give it a function."""

    def __init__(
        self,
        session: Session,
        declare: Callable[[Callback[Any]], threaded.Handle],
        handler: object,
        of: str,
        *,
        capacity: int,
        overflow: Overflow,
    ) -> None:
        """Declare.

        Args:
            declare: declares the threaded twin with a handler.
        """
        found = into_inbox(handler, of, capacity=capacity, overflow=overflow, wrap=self._wrap, after=self._after)
        self._inbox, self._caller, self._handler = found
        if self._caller is not None:
            session._callers.add(self._caller)
        self._inner = declare(Callback(self._inbox.push, self._inbox.close, indirect=False))

    @property
    def handler(self) -> object:
        """The second of the pair given as handler, else None: the handle itself is what one takes from."""
        return self._handler

    @property
    def dropped(self) -> int:
        """Items lost because the loop was too slow, by the overflow rule."""
        return self._inbox.dropped

    async def recv(self, *, timeout: float | None = None) -> T:
        """The next item, waiting for it.

        Raises:
            ChannelClosed: there is none and none will come.
            OperationTimeout: `timeout` seconds have passed.
        """
        self._check()
        return self._wrap(await self._inbox.recv(timeout=timeout))

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now."""
        self._check()
        item = self._inbox.take()
        return None if item is None else self._wrap(item)

    def __aiter__(self) -> Self:
        self._check()
        return self

    async def __anext__(self) -> T:
        try:
            return self._wrap(await self._inbox._recv())
        except ChannelClosed:
            raise StopAsyncIteration from None

    async def _settle(self) -> None:
        if self._caller is not None:
            await self._caller.settle()
        else:
            await asyncio.sleep(0)

    def _wrap(self, item: Any) -> T:
        found: T = item
        return found

    @staticmethod
    def _after(item: Any) -> None:
        """The user's function is done with an item."""

    def _check(self) -> None:
        if self._caller is not None:
            raise TypeError(f"this {type(self).__name__.lower()} has a function: there is nothing to take")
