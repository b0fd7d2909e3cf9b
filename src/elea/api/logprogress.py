"""How far a consumer is in a log: the positions behind samples it was handed, counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

__all__ = ["Progress"]


class Progress:
    """Where a reader would go on after the first `n` samples it was handed.

    >>> progress = Progress(5)
    >>> progress.add([6, 8], 12)  # positions of other keys lie between and behind them
    >>> progress.behind(0), progress.behind(1), progress.behind(2)
    (5, 7, 12)
    """

    def __init__(self, position: int) -> None:
        self._position = position
        self._forgotten = 0
        self._behind: deque[int] = deque()

    def add(self, positions: Iterable[int], after: int) -> None:
        """The samples at these positions are next, and then nothing up to `after`."""
        self._behind.extend([position + 1 for position in positions])
        if self._behind:
            self._behind[-1] = after
        else:
            self._position = after

    def behind(self, count: int) -> int:
        """The position behind so many samples; behind all those forgotten at least."""
        ahead = min(count - self._forgotten, len(self._behind))
        return self._behind[ahead - 1] if ahead > 0 else self._position

    def forget(self, count: int) -> None:
        """Nobody will ask for less than so many samples any more."""
        while self._forgotten < count and self._behind:
            self._position = self._behind.popleft()
            self._forgotten += 1

    def restart(self, position: int) -> None:
        """Positions mean something else from now on; samples are counted on."""
        self._forgotten += len(self._behind)
        self._behind.clear()
        self._position = position
