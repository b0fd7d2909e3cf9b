"""What all declared things have in common: they end once, by `undeclare`, a `with` block, or with their session.

One that a program drops ends as well, as with eclipse-zenoh, unless a function is its handler.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from elea.api.channels import Handler
from elea.api.identity import EntityGlobalId
from elea.api.sinks import Sink

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Handle", "Items", "ReceivingHandle", "weakly"]

H = TypeVar("H")
T = TypeVar("T")


def weakly(method: Callable[..., None]) -> Callable[..., None]:
    """What a node calls instead of a method of a handle: the node's threads must not keep handles, and with them a
    session that nobody else has any more. The session itself keeps those whose handler is a function.
    """
    held = weakref.WeakMethod(method)

    def call(*arguments: object) -> None:
        found = held()
        if found is not None:
            found(*arguments)

    return call


class Items(Generic[T]):
    """What comes through a channel, and its owner held: `for sample in session.declare_subscriber(…)` goes on.

    No generator: one that a loop leaves would close the channel, and one that Ctrl-C interrupts would be at its end.
    """

    __slots__ = ("_at_end", "_channel", "_owner")

    def __init__(self, owner: object, channel: Handler[T], at_end: Callable[[], None] | None = None) -> None:
        self._owner = owner
        self._channel = channel
        self._at_end = at_end

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return next(self._channel)
        except StopIteration:
            if self._at_end is not None:
                self._at_end()
            raise


class Handle:
    """Something declared through a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._eid = session._next_eid()
        self._gone = False
        self._ending = threading.Lock()

    def __del__(self) -> None:
        if not getattr(self, "_gone", True):  # it may never have been declared
            self._session._end_dropped(self)

    @property
    def _is_background(self) -> bool:
        """Whether it goes on when nobody has it any more."""
        return False

    @property
    def id(self) -> EntityGlobalId:
        """The identifier of this entity."""
        return EntityGlobalId(self._session.zid(), self._eid)

    def undeclare(self) -> None:
        """End it.

        Raises:
            SessionClosed: it has ended already.
        """
        if not self._finish():
            self._session._refuse(f"this {type(self).__name__.lower()} is undeclared already")

    def _finish(self) -> bool:
        """End it unless that was done; whether it was this call that did."""
        with self._ending:
            if self._gone:
                return False
            self._gone = True
        self._session._forget(self)
        self._end()
        return True

    def _end(self) -> None:
        """What ending means."""

    def _leave(self) -> None:
        """The session is about to be closed: the last chance to use it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finish()


class ReceivingHandle(Handle, Generic[H]):
    """A handle through which something is received."""

    def __init__(self, session: Session, sink: Sink[Any], handler: H) -> None:
        super().__init__(session)
        self._sink = sink
        self._handler = handler

    @property
    def _is_background(self) -> bool:
        return self._handler is None

    @property
    def handler(self) -> H:
        """What was asked for as handler: a channel, the second of a pair, or None for a function."""
        return self._handler

    @property
    def dropped(self) -> int:
        """Items lost because the handler was full."""
        return self._sink.dropped

    def recv(self) -> Any:
        """The next item, waiting for it."""
        return self._channel().recv()

    def try_recv(self) -> Any:
        """The next item, or None if there is none now."""
        return self._channel().try_recv()

    def __iter__(self) -> Iterator[Any]:
        return Items(self, self._channel())

    def _channel(self) -> Handler[Any]:
        if not isinstance(self._handler, Handler):
            raise TypeError(f"this {type(self).__name__.lower()} has no channel: its handler is {self._handler!r}")
        return self._handler
