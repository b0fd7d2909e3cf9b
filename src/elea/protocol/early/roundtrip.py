"""How long a message and its answer take: measured by ping and pong, driving when things are said again.

Spec: zenoh-2018 §5.15.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PING_SECONDS", "RoundTrip"]

PING_SECONDS: Final = 5.0
LEAST: Final = 0.010
MOST: Final = 1.0
INITIAL: Final = 0.100
ASKED: Final = 512
"""Pings whose pong may still come; older ones are lost. While messages are lost a ping leaves every 2 ms at most."""


class RoundTrip:
    """The estimate of one session.

    >>> trip = RoundTrip()
    >>> hash = trip.asked(10.0)
    >>> trip.answered(hash, 10.040)
    10.0
    >>> round(trip.estimate, 3), round(trip.timeout, 3)
    (0.04, 0.12)
    """

    def __init__(self) -> None:
        self.estimate = INITIAL
        self.timeout = INITIAL
        self.measured = 0
        self._variation = 0.0
        self._asked: dict[int, float] = {}
        self._next = 0

    def asked(self, now: float) -> int:
        """A ping leaves: its hash."""
        hash = self._next = (self._next + 1) & 0xFFFF
        self._asked[hash] = now
        while len(self._asked) > ASKED:
            del self._asked[next(iter(self._asked))]
        return hash

    @property
    def patience(self) -> float:
        """Seconds in which a message may still arrive, or the word that it did: somewhat more than a round trip.

        Less than `timeout`: who is told that something is missing need not wait as long as who is told nothing.
        """
        return max(self.estimate + max(2 * self._variation, self.estimate / 8), LEAST) if self.measured else INITIAL

    def answered(self, hash: int, now: float) -> float | None:
        """A pong has come: when its ping left, None if nobody asked for it."""
        since = self._asked.pop(hash, None)
        if since is None:
            return None
        took = max(0.0, now - since)
        if self.measured:
            self._variation += (abs(took - self.estimate) - self._variation) / 4
            self.estimate += (took - self.estimate) / 8
        else:
            self.estimate, self._variation = took, took / 2
        self.measured += 1
        self.timeout = min(max(self.estimate + 4 * self._variation, LEAST), MOST)
        return since
