"""What a handler was given, and waiting with a deadline; nothing here knows either library."""

from __future__ import annotations

import contextlib
import queue
import random
import socket
import time
from collections.abc import Callable
from typing import Any

__all__ = ["DEADLINE", "Inbox", "eventually", "free_port"]

DEADLINE = 20.0
"""Seconds after which an expected thing has not happened."""


class Inbox:
    """A callback that keeps what it is given, in order."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._taken: list[Any] = []

    def __call__(self, item: Any) -> None:
        self._items.put(item)

    def take(self, count: int, timeout: float = DEADLINE) -> list[Any]:
        """The next `count` items; fails when they do not come in time."""
        end = time.monotonic() + timeout
        items: list[Any] = []
        while len(items) < count:
            try:
                items.append(self._items.get(timeout=max(end - time.monotonic(), 0.001)))
            except queue.Empty:
                raise AssertionError(f"{len(items)} of {count} arrived within {timeout} s") from None
        return items

    def one(self, timeout: float = DEADLINE) -> Any:
        """The next item."""
        return self.take(1, timeout)[0]

    def until(self, last: Callable[[Any], bool], timeout: float = DEADLINE) -> list[Any]:
        """All up to the first that is `last`, without it: how "and nothing else came" is shown without waiting."""
        end = time.monotonic() + timeout
        items: list[Any] = []
        while True:
            try:
                item = self._items.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                raise AssertionError(f"the last one did not arrive within {timeout} s; before it: {items}") from None
            if last(item):
                return items
            items.append(item)

    def drain(self) -> list[Any]:
        """What is there now."""
        items: list[Any] = []
        while not self._items.empty():
            items.append(self._items.get())
        return items


def eventually(condition: Callable[[], Any], what: str, timeout: float = DEADLINE) -> Any:
    """Poll until `condition` is true; its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {timeout} s: {what}"
        time.sleep(0.002)


def free_port() -> int:
    """A port nobody has now, and that the system gives to no one who connects meanwhile.

    For programs that come back at the same place, and for eclipse-zenoh, which does not tell what it took for port 0.
    """
    while True:
        port = random.randrange(10_240, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
