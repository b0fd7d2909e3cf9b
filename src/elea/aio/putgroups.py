"""Acknowledged samples that tasks of one loop put in the same turn: they travel together, each wakes its own task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from elea.api.putgroups import Alone, Group, Kept, Lane, Outcome
from elea.model.errors import EncodeError
from elea.wire.puts import Given

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.api.storecall import Call

__all__ = ["Together"]


class Together(Group):
    """A group whose samples are waited for by tasks."""

    __slots__ = ("_futures",)

    def __init__(self, session: Session, kept: Kept, lane: Lane) -> None:
        super().__init__(session, kept, lane)
        self._futures: list[asyncio.Future[Outcome]] = []

    async def join(self, given: Given, future: asyncio.Future[Outcome]) -> Outcome:
        """Go with the others, and wait for what comes of it."""
        self.add(given)
        self._futures.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if self.call is not None and all(one.done() for one in self._futures):
                self.call.cancel()  # nobody waits any more
            raise

    def ready(self) -> Call | None:
        """The request for those who still wait; None if there is none to be sent."""
        left = [at for at, future in enumerate(self._futures) if not future.done()]
        if not left:
            return None
        self._futures = [self._futures[at] for at in left]
        try:
            return self.prepare([self._given[at] for at in left])
        except EncodeError:  # one by one it is found out whose it is
            self.settle([Alone(None)] * len(left))
            return None

    def settle(self, outcomes: list[Outcome]) -> None:
        """Let the tasks go on."""
        for future, outcome in zip(self._futures, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
