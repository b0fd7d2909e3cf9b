"""Whether all brokers that a query is configured with are there: only then is no answer an answer.

A question goes to the brokers that are linked now. One that is away, or goes while it answers, is simply not among
those who answer, and what it keeps would be missing without a word. So every question whose answer may be "nothing"
counts only if the same links stood before it and behind it; else it is asked again, up to the request timeout.
Brokers behind other brokers are not known here: name them in the option `connect`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from elea.model.errors import BrokerAway, NotStored, StoreClosing

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.spark.options import Access

__all__ = ["Brokers"]

T = TypeVar("T")

LOOK_SECONDS: Final = 0.05
"""How often those who wait for a broker look whether it is back."""


class Brokers:
    """The brokers of a session, or the one at a locator; the request timeout is how long one may be away."""

    def __init__(self, access: Access, session: Session, locator: str | None = None) -> None:
        self._runtime = session._runtime
        self._locator = locator
        self._limit_ms = access.request_timeout_ms

    def links(self) -> Any:
        """What stands for the links to all brokers, when they are there: `stand` knows whether they have stayed.

        Raises:
            BrokerAway: one of them has not come in time.
        """
        until = self.deadline()
        while (found := self.now(self._locator)) is None:
            if time.monotonic() > until:
                self.give_up()
            time.sleep(LOOK_SECONDS)
        return found

    def now(self, locator: str | None) -> Any:
        """The same, of one broker or of all, without waiting: None if one is away."""
        return self._runtime.standing(locator)

    def stand(self, links: Any) -> bool:
        """Whether they have been there all the time."""
        return bool(self.now(self._locator) == links)

    def ask(self, question: Callable[[], T]) -> T:
        """The answer to a question that all brokers have heard to its end; asked again until that is so.

        Raises:
            BrokerAway: one of them was not there, or did not stay, until the time was over.
            NotStored: all are there, and none keeps it.
        """
        until = self.deadline()
        while True:
            links = self.links()
            try:
                found = question()
                if self.stand(links):
                    return found
            except NotStored:
                if self.stand(links):
                    raise
            except StoreClosing:
                time.sleep(LOOK_SECONDS)
            if time.monotonic() > until:
                self.give_up()

    def deadline(self) -> float:
        """Until when one may be away that is away now."""
        return time.monotonic() + self._limit_ms / 1000

    def away(self, locator: str | None) -> float:
        """For how many seconds one broker, or any, has been away.

        Raises:
            BrokerAway: that is too long.
        """
        away = self._runtime.away()
        found = max((seconds for at, seconds in away.items() if locator in (None, at)), default=0.0)
        if found * 1000 > self._limit_ms:
            self.give_up()
        return found

    def give_up(self) -> None:
        """Say who is missing.

        Raises:
            BrokerAway: always.
        """
        away = self._runtime.away() or dict.fromkeys(self._runtime.wanted, 0.0)  # back just now, and gone before
        if self._locator is not None:
            away = {self._locator: away.get(self._locator, 0.0)}
        raise BrokerAway(list(away), max(away.values()), f"requestTimeoutMs={self._limit_ms}")
