"""When a subscription is given its samples: at once, when it asks, in windows of time, or when it asks in windows.

One mechanism for all dialects and for `elea.Pull` and `elea.Periodic`. Time is an argument, in any unit, as whole
numbers: a window of floats would open a little before or after the timer that was set for it. Nothing here knows what
a sample is.

Spec: zenoh-2018 Z18-DCL-17 (windows), Z18-DAT-09 (periodic push, the bound), Z18-PUL-02, 03, 07, 09 (pulls).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from elea.model.limits import PACED_OCTETS, PACED_SAMPLES

__all__ = ["PULL", "PUSH", "Mode", "Pacer", "Windows"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Windows:
    """The times [origin + n·period, origin + n·period + duration), n = 0, 1, 2, …

    >>> windows = Windows(500, 1000, 100)
    >>> windows.open_at(1599), windows.open_at(1600), windows.opening(1600)
    (True, False, 2500)
    """

    origin: int
    period: int
    duration: int

    def __post_init__(self) -> None:
        if not 0 < self.duration < self.period:
            problem = f"a window lasts more than nothing and less than its period of {self.period}, not {self.duration}"
            raise ValueError(problem)

    def open_at(self, now: int) -> bool:
        """Whether a window is open."""
        return now >= self.origin and (now - self.origin) % self.period < self.duration

    def opening(self, now: int) -> int:
        """The first time from `now` on that is in a window: `now` itself while one is open."""
        if now < self.origin:
            return self.origin
        within = (now - self.origin) % self.period
        return now if within < self.duration else now + self.period - within


@dataclass(frozen=True, slots=True)
class Mode:
    """How a subscription wants its samples; with both fields set it is a periodic pull."""

    pull: bool = False
    windows: Windows | None = None


PUSH: Final = Mode()
PULL: Final = Mode(pull=True)


class Pacer(Generic[T]):
    """The samples of one subscription that are not given to it yet.

    Whoever has one adds what comes, tells it of pulls, and takes what is due, now and again at `next_deadline`.

    >>> pacer = Pacer(Mode(windows=Windows(0, 1000, 100)))
    >>> pacer.add_many(["a", "b"], 0), pacer.due(500), pacer.next_deadline(500), pacer.due(1000)
    (None, [], 1000, ['a', 'b'])
    """

    def __init__(
        self,
        mode: Mode,
        limit: int = PACED_SAMPLES,
        *,
        size: Callable[[T], int] | None = None,
        limit_octets: int = PACED_OCTETS,
    ) -> None:
        """Begin with nothing.

        Args:
            size: the octets of a sample, if they are bounded too, by `limit_octets`.
        """
        self.mode = mode
        self.dropped = 0
        """Samples that gave way to newer ones, since more than the limit waited."""
        self._limit = limit
        self._items: deque[T] = deque()
        self._asked = 0
        self._asked_all = False
        self._size = size
        self._limit_octets = limit_octets
        self._octets = 0

    def __len__(self) -> int:
        """How many samples wait."""
        return len(self._items)

    @property
    def is_asking(self) -> bool:
        """Whether a pull is not answered completely yet; only outside of a window, or after a `due` with a bound."""
        return self._asked_all or self._asked > 0

    def add_many(self, items: Iterable[T], now: int) -> None:
        """Samples have come."""
        # Those that are due at once need no room: a run longer than the limit passes through an open push whole.
        if self._size is not None:
            items = list(items)
            self._octets += sum(map(self._size, items))
        self._items.extend(items)
        if not self._is_flowing(now):
            self._shorten()

    def put_back(self, items: Sequence[T]) -> None:
        """Samples that were given and did not arrive: they are the oldest that wait again."""
        self._items.extendleft(reversed(items))
        if self._size is not None:
            self._octets += sum(map(self._size, items))

    def pull(self, most: int | None = None) -> None:
        """The subscription asks for samples: `most` of them, or all there are. Before an answer, pulls add up.

        Raises:
            ValueError: it asks for less than one, or is not one that asks.
        """
        if not self.mode.pull:
            raise ValueError("samples are pushed to this subscription, it cannot pull")
        if most is None:
            self._asked_all = True
        elif most < 1:
            raise ValueError(f"a pull asks for one sample at least, not {most}")
        else:
            self._asked += most

    def cancel(self) -> None:
        """The subscription does not want the rest of what it asked for; what waits stays."""
        self._asked, self._asked_all = 0, False

    def due(self, now: int, most: int | None = None) -> list[T]:
        """The samples to give to the subscription now, the oldest first, and no longer kept here.

        A pull is over when it has got what it asked for or nothing is left: it does not wait for what comes later.

        Args:
            most: how many the caller can take now; the rest stays due.
        """
        if not self._is_open(now):
            return []
        if not self.mode.pull:
            return self._take(len(self._items) if most is None else most)
        if not self.is_asking:
            return []
        wanted = len(self._items) if self._asked_all else self._asked
        given = self._take(wanted if most is None else min(most, wanted))
        self._asked = max(0, self._asked - len(given))
        if not self._items or (not self._asked_all and not self._asked):
            self.cancel()
        return given

    def next_deadline(self, now: int) -> int | None:
        """When `due` has something to give, or a pull to end, if nothing comes till then; None for never."""
        if not (self.is_asking if self.mode.pull else self._items):
            return None
        return now if self.mode.windows is None else self.mode.windows.opening(now)

    def _is_open(self, now: int) -> bool:
        return self.mode.windows is None or self.mode.windows.open_at(now)

    def _is_flowing(self, now: int) -> bool:
        return not self.mode.pull and self._is_open(now)

    def _take(self, count: int) -> list[T]:
        items = self._items
        if count >= len(items):
            taken = list(items)
            items.clear()
            self._octets = 0
            return taken
        taken = [items.popleft() for _ in range(count)]
        if self._size is not None:
            self._octets -= sum(map(self._size, taken))
        return taken

    def _shorten(self) -> None:
        items = self._items
        while len(items) > self._limit or (self._octets > self._limit_octets and items):
            gone = items.popleft()
            self.dropped += 1
            if self._size is not None:
                self._octets -= self._size(gone)
