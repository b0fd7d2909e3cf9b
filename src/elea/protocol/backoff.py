"""How long to wait before a lost or refused link is tried again. Spec: zenoh-1 §13.1, §22 (connect retry)."""

from __future__ import annotations

__all__ = ["Backoff"]


class Backoff:
    """The waits between attempts: none before the first, then `first` seconds, growing by `factor` to `longest`.

    >>> backoff = Backoff()
    >>> [backoff.delay() for _ in range(5)]
    [0.0, 1.0, 2.0, 4.0, 4.0]
    """

    def __init__(self, *, first: float = 1.0, factor: float = 2.0, longest: float = 4.0) -> None:
        if first <= 0 or factor < 1 or longest < first:
            raise ValueError(f"no waits grow from {first} s by {factor} to {longest} s")
        self.first = first
        self.factor = factor
        self.longest = longest
        self.attempts = 0
        self._next = 0.0

    def delay(self) -> float:
        """Seconds to wait before the attempt that comes now."""
        delay = self._next
        self._next = min(delay * self.factor, self.longest) if delay else self.first
        self.attempts += 1
        return delay

    def reset(self) -> None:
        """A link is up again: the next loss starts over."""
        self.attempts = 0
        self._next = 0.0
