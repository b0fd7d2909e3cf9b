"""Work that begins in any order and ends in the order of its arrival: batches that a client sends one behind the other.

They are decoded by whichever thread is free, at the same time; the log gets them in turn.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from elea.model.errors import Congested

__all__ = ["Sequencer", "Ticket"]


class Sequencer:
    """Who is next."""

    def __init__(self) -> None:
        self._taken = 0
        self._next = 0
        self._over: set[int] = set()
        self._change = threading.Condition()

    def take(self) -> Ticket:
        """A place behind all that have one; whoever takes it must come to its end."""
        with self._change:
            self._taken += 1
            return Ticket(self, self._taken - 1)

    def _wait(self, number: int, seconds: float) -> bool:
        with self._change:
            return self._change.wait_for(lambda: self._next == number, seconds)

    def _end(self, number: int) -> None:
        with self._change:
            self._over.add(number)
            while self._next in self._over:
                self._over.discard(self._next)
                self._next += 1
            self._change.notify_all()


class Ticket:
    """A place among others; left with the end of its context, whether its turn came or not."""

    def __init__(self, turns: Sequencer, number: int) -> None:
        self._turns = turns
        self._number = number

    def wait(self, seconds: float) -> None:
        """Return when all before it have ended.

        Raises:
            Congested: they have not.
        """
        if not self._turns._wait(self._number, seconds):
            raise Congested(f"other batches have kept the log busy for {seconds:g} s; try again later")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._turns._end(self._number)
