"""`CancellationToken`: a switch that ends the queries it was given to.

When `cancel` has returned nothing more is delivered: a callback under way has ended, and replies held back for
consolidation are forgotten. A callback that cancels its own query does not wait for itself.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from elea.api.apierrors import QueryCancelled

__all__ = ["Cancellable", "CancellationToken"]


class CancellationToken:
    """Ends all queries made with it; later ones are refused with `QueryCancelled`. Unstable in Zenoh 1.10.

    >>> token = CancellationToken()
    >>> token.cancel()
    >>> token.is_cancelled
    True
    """

    __slots__ = ("_actions", "_cancelled", "_done", "_lock", "_numbers", "_thread")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count(1)
        self._cancelled = False
        self._done = threading.Event()
        self._thread = 0

    def cancel(self) -> None:
        """End the queries; returns when all have ended, also if another thread is ending them."""
        with self._lock:
            first = not self._cancelled
            self._cancelled = True
            actions = list(self._actions.values())
            self._actions.clear()
            if first:
                self._thread = threading.get_ident()
        if first:
            try:
                # Outside of the lock: what ends a query may run user code, which may look at the token.
                for action in actions:
                    action()
            finally:
                self._done.set()
        elif self._thread != threading.get_ident():
            self._done.wait()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` has been called."""
        return self._cancelled

    def _check(self) -> None:
        """For sessions: raise if it has been cancelled."""
        if self._cancelled:
            raise QueryCancelled

    def _add(self, action: Callable[[], None]) -> int:
        """For sessions: what to do on `cancel`, done at once if that was already; returns a number for `_remove`."""
        with self._lock:
            if not self._cancelled:
                number = next(self._numbers)
                self._actions[number] = action
                return number
        action()
        return 0

    def _remove(self, number: int) -> None:
        """For sessions: forget an action whose query has ended."""
        with self._lock:
            self._actions.pop(number, None)

    def __repr__(self) -> str:
        return f"CancellationToken(is_cancelled={self._cancelled})"


class Cancellable:
    """The deliveries of one query with a token, one at a time; none after the token has been cancelled.

    Args:
        take: delivers a message.
        close: tells the handler that nothing more comes.
        is_channel: whether the handler is a channel: its reader may be the one who cancels, so nobody waits for it.
    """

    __slots__ = ("_close", "_ended", "_is_over", "_lock", "_mark", "_stop", "_take", "_token", "_waits")

    def __init__(
        self,
        token: CancellationToken,
        take: Callable[[Any], None],
        close: Callable[[], None],
        is_channel: bool,
    ) -> None:
        self._token = token
        self._take = take
        self._close = close
        self._waits = not is_channel
        self._stop: Callable[[], None] = _nothing
        self._lock = threading.RLock()
        self._is_over = False
        self._ended = False
        # Before the query is asked: its first reply may come, and its callback cancel it, before the asker goes on.
        self._mark = token._add(self._cancel)

    def take(self, message: object) -> None:
        """Deliver a message, unless the query is over."""
        with self._lock:
            if not self._is_over:
                self._take(message)

    def begin(self, stop: Callable[[], None]) -> None:
        """The query has been asked; `stop`, which may be called twice, withdraws it."""
        self._stop = stop
        if self._is_over:  # before anybody could withdraw it
            stop()

    def end(self) -> None:
        """The query has ended by itself: the token need not know it any more."""
        self._ended = True
        self._token._remove(self._mark)

    def _cancel(self) -> None:
        self._is_over = True
        self._stop()
        if self._waits:
            with self._lock:  # until a delivery under way has ended
                self._finish()
        else:
            self._finish()

    def _finish(self) -> None:
        if not self._ended:
            self._ended = True
            self._close()


def _nothing() -> None:
    """What stops a query that has not been asked."""
