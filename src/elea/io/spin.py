"""Spinning: whether the leader polls again and again for a moment before it sleeps.

Waking a thread takes 15 to 60 µs on an idle machine, which is most of a round trip. Where answers come that quickly,
polling for them is cheaper than sleeping; everywhere else it is waste. So the loop spins only after it has sent
something, and only where the last waits were short. A spin that found nothing, or took longer than a wake-up costs,
doubles the number of short waits that must come before the next one: trying costs less and less where it does not pay.
One thread of a process spins at a time, since two would keep the interpreter from each other.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LIMIT", "NEAR", "WORTH", "Spin"]

LIMIT: Final = 250e-6
"""Seconds a spin takes at most."""

NEAR: Final = 400e-6
"""A wait asleep below this is short: with all participants asleep a round trip through a broker takes 300 µs."""

WORTH: Final = 120e-6
"""A spin that takes longer costs more CPU than the wake-ups that it saves at both ends."""

MOST: Final = 1_024
"""Short waits, one behind the other, before the next try, where tries have failed."""


class Spin:
    """When to spin, from how the last waits went."""

    __slots__ = ("_needed", "_short", "hits", "limit", "misses")

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        """Seconds; 0 turns it off."""
        self.hits = 0
        self.misses = 0
        """Spins in vain, or too long to be worth it."""
        self._short = 0
        self._needed = 2

    def is_due(self) -> bool:
        """Whether the next wait begins with a spin."""
        return self._short >= self._needed and self.limit > 0.0

    def slept(self, seconds: float) -> None:
        """A wait without a spin, or after one in vain, has ended."""
        self._short = self._short + 1 if seconds < NEAR else 0

    def hit(self, seconds: float) -> None:
        """Something came during a spin."""
        if seconds > WORTH:
            self.miss()
            return
        self.hits += 1
        if self._needed > 2:
            self._needed >>= 1

    def miss(self) -> None:
        """Nothing came during a spin, or too late."""
        self.misses += 1
        self._short = 0
        if self._needed < MOST:
            self._needed <<= 1
