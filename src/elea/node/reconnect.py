"""When a lost or refused link is tried again: the rule, without the thread or the timer that follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from elea.protocol.backoff import Backoff

__all__ = ["LASTING", "Reconnect"]

LASTING: Final = 2.0
"""Seconds after which a session counts as having worked, and its loss is answered by reconnecting at once."""


class Reconnect:
    """The pauses before the attempts to get one link back.

    >>> reconnect = Reconnect(Backoff)
    >>> reconnect.opened(100.0)
    >>> reconnect.lost(160.0), reconnect.failed(), reconnect.failed()  # it had lasted: at once, and once more at once
    (0.0, 0.0, 1.0)
    >>> reconnect.opened(170.0)
    >>> reconnect.lost(170.5)  # it ended as soon as it began: that counts as an attempt, and there is no storm
    2.0
    """

    def __init__(self, backoff: Callable[[], Backoff]) -> None:
        self._new = backoff
        self._backoff = backoff()
        self._opened = float("-inf")

    def opened(self, now: float) -> None:
        """A session is open."""
        self._opened = now

    def lost(self, now: float) -> float:
        """The session has ended: seconds before the next attempt."""
        if now - self._opened >= LASTING:
            self._backoff = self._new()
            return 0.0
        return self._backoff.delay()

    def failed(self) -> float:
        """An attempt has failed: seconds before the next one."""
        return self._backoff.delay()
