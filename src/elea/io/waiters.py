"""Threads that wait for room: each at a lock of its own, woken all at once."""

from __future__ import annotations

import contextlib
import threading

__all__ = ["Waiters"]


class Waiters:
    """Who waits. A thread registers, looks once more whether it must wait, and then waits at its lock."""

    __slots__ = ("some",)

    def __init__(self) -> None:
        self.some: list[threading.Lock] = []
        """Their locks, empty mostly."""

    def __len__(self) -> int:
        return len(self.some)

    def register(self) -> threading.Lock:
        """A lock to wait at."""
        waiter = threading.Lock()
        waiter.acquire()
        self.some.append(waiter)
        return waiter

    def unregister(self, waiter: threading.Lock) -> None:
        """The thread waits no more."""
        with contextlib.suppress(ValueError):  # woken in between
            self.some.remove(waiter)

    def wake(self) -> None:
        """Let all of them look again."""
        with contextlib.suppress(IndexError):
            while True:
                self.some.pop().release()
