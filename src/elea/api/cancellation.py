"""`CancellationToken`: a switch that ends the queries it was given to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

__all__ = ["CancellationToken"]


class CancellationToken:
    """Ends all queries made with it, and any made with it later. Unstable in Zenoh 1.10.

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
