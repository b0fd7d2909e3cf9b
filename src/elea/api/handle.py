"""What all declared things have in common: they end once, by `undeclare`, a `with` block, or with their session."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from elea.api.channels import Handler
from elea.api.identity import EntityGlobalId
from elea.api.sinks import Sink

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Handle", "Receiving", "weakly"]

H = TypeVar("H")


def weakly(method: Callable[..., None]) -> Callable[..., None]:
    """What a node calls instead of a method of a handle: the node's threads must not keep handles, and with them a
    session that nobody else has any more. The session itself keeps its handles.
    """
    held = weakref.WeakMethod(method)

    def call(*arguments: object) -> None:
        found = held()
        if found is not None:
            found(*arguments)

    return call


class Handle:
    """Something declared through a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._eid = session._next_eid()
        self._gone = False
        self._ending = threading.Lock()

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
        self._session._handles.discard(self)
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


class Receiving(Handle, Generic[H]):
    """A handle through which something is received."""

    def __init__(self, session: Session, sink: Sink[Any], handler: H) -> None:
        super().__init__(session)
        self._sink = sink
        self._handler = handler

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

    def __iter__(self) -> Handler[Any]:
        return iter(self._channel())

    def _channel(self) -> Handler[Any]:
        if not isinstance(self._handler, Handler):
            raise TypeError(f"this {type(self).__name__.lower()} has no channel: its handler is {self._handler!r}")
        return self._handler
