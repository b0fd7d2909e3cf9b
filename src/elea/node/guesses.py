"""Passwords that were wrong, by the address they came from: who has guessed some times waits for the next answer.

Nobody is locked out, since many may share an address: whoever comes from there waits, seconds at most, until it has
been quiet for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from elea.io.addresses import source_of
from elea.io.timers import monotonic
from elea.model.limits import GUESS_SOURCES, GUESSES_FREE

__all__ = ["Guesses"]

SLOWEST: Final = 4.0
"""Seconds that an answer is kept back at most: less than a client waits for a session."""

FORGOTTEN: Final = 60.0
"""Seconds without a wrong password after which an address begins anew."""


class Guesses:
    """What is known of the addresses of one node.

    >>> guesses = Guesses(lambda: 0.0)
    >>> for _ in range(7):
    ...     guesses.wrong("tcp/10.0.0.1:5001")
    >>> guesses.delay("tcp/10.0.0.1:6001"), guesses.delay("tcp/10.0.0.2:5001")
    (0.5, 0.0)
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.count = 0
        """Wrong passwords so far."""
        self._now = now
        self._wrong: dict[str, tuple[int, float]] = {}

    def wrong(self, remote: str) -> None:
        """A password from the locator of another end was wrong."""
        self.count += 1
        source, now = source_of(remote), self._now()
        count, since = self._wrong.pop(source, (0, now))
        if len(self._wrong) >= GUESS_SOURCES:
            del self._wrong[next(iter(self._wrong))]  # the one that has been quiet longest
        self._wrong[source] = (1 if now - since > FORGOTTEN else count + 1), now

    def is_too_soon(self, remote: str) -> bool:
        """Whether a password from there is not looked at yet, where no answer can be kept back."""
        _, since = self._wrong.get(source_of(remote), (0, 0.0))
        return self._now() - since < self.delay(remote)

    def delay(self, remote: str) -> float:
        """Seconds to wait before a password from there is looked at."""
        count, since = self._wrong.get(source_of(remote), (0, 0.0))
        if count < GUESSES_FREE or self._now() - since > FORGOTTEN:
            return 0.0
        return min(0.125 * 2.0 ** min(count - GUESSES_FREE, 10), SLOWEST)
