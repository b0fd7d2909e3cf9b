"""Samples that wait for one neighbour: for its pulls, for its windows, or for both.

A subscriber that pulls, or has windows, has a queue; a pull without one is served from what the owner finds stored when
it begins. Who sends, and what a sample is, is the owner's business. Spec: zenoh-2018 §5.12, Z18-DAT-09, Z18-DCL-17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from elea.model.errors import RuleBroken
from elea.model.limits import EARLY_PULLS
from elea.protocol.early.generation import Generation
from elea.protocol.pacing import PULL, PUSH, Mode, Pacer, Windows

__all__ = ["Due", "Pulls", "mode_of"]

T = TypeVar("T")
Name = tuple[int, int, int]
"""Space, id, and the number of a pull without a subscriber: 0 for that of a subscriber."""

_PULLS: Final = (2, 4)


class Due(NamedTuple, Generic[T]):
    """What goes out now: `ends` says that the pull is over, and the other node is to hear it."""

    conduit: int
    space: int
    id: int
    samples: list[T]
    ends: bool


def mode_of(declaration: Any) -> Mode:
    """How a SubscriberDecl wants its samples."""
    pulls, params = int(declaration.mode) in _PULLS, declaration.params
    if params is None:
        return PULL if pulls else PUSH
    return Mode(pull=pulls, windows=Windows(params.temporalOrigin, params.period, params.duration))


class _Queue(Generic[T]):
    def __init__(self, mode: Mode, since: float, size: Callable[[T], int] | None, *, stored: bool) -> None:
        self.pacer: Pacer[T] = Pacer(mode, size=size)
        self.since = since
        self.is_stored = stored
        self.is_filled = not stored
        self.is_open = False  # a pull session is under way
        self.is_final = False
        self.conduit = 0

    def clock(self, now: float) -> int:
        """Milliseconds since the declaration took effect (DEC-15)."""
        return int((now - self.since) * 1000 + 1e-6)


class Pulls(Generic[T]):
    """All queues of one neighbour; `size` tells the octets of a sample, for a bound of them."""

    def __init__(self, generation: Generation, size: Callable[[T], int] | None = None) -> None:
        self._generation = generation
        self._size = size
        self._queues: dict[Name, _Queue[T]] = {}

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def dropped(self) -> int:
        """Samples that gave way to newer ones."""
        return sum(queue.pacer.dropped for queue in self._queues.values())

    # -- subscribers --------------------------------------------------------------------------------------------------

    def subscribe(self, space: int, id: int, mode: Mode, now: float) -> None:
        """A subscriber wants its samples in some other way than at once."""
        self._queues[space, id, 0] = _Queue(mode, now, self._size, stored=False)

    def forget(self, space: int, id: int) -> None:
        """A subscriber or a selection is gone, and with it its pulls."""
        for name in [name for name in self._queues if name[:2] == (space, id)]:
            del self._queues[name]

    def add(self, space: int, id: int, samples: Iterable[T], now: float) -> None:
        """Samples for a subscriber."""
        queue = self._queues.get((space, id, 0))
        if queue is not None:
            queue.pacer.add_many(samples, queue.clock(now))

    # -- pulls --------------------------------------------------------------------------------------------------------

    def pull(self, conduit: int, space: int, message: Any, now: float) -> Name | None:
        """A Pull has come. Returns the name of the pull if the owner is to `fill` it with what is stored.

        Raises:
            RuleBroken: there are too many.
        """
        name: Name = (space, message.id, 0)
        queue = self._queues.get(name)
        fetch = None
        if queue is None or not queue.pacer.mode.pull:
            name = (space, message.id, getattr(message, "pullId", 0) + 1)
            queue = self._queues.get(name)
        final, most = getattr(message, "final", False), message.maxSamples
        if queue is None:
            if sum(one.is_stored for one in self._queues.values()) >= EARLY_PULLS:
                raise RuleBroken("PULLS", "close-3", f"more than {EARLY_PULLS} pulls at a time (EARLY_PULLS)")
            queue = self._queues[name] = _Queue(PULL, now, self._size, stored=True)
            if final and most is None:
                queue.is_filled = True
            else:
                fetch = name
        queue.is_open, queue.conduit = True, conduit
        queue.is_final |= final
        if final and most is None:
            queue.pacer.cancel()
        else:
            queue.pacer.pull(most)
        return fetch

    def fill(self, name: Name, samples: Iterable[T], now: float) -> None:
        """What is stored for a pull."""
        queue = self._queues.get(name)
        if queue is not None and queue.is_stored:
            queue.is_filled = True
            queue.pacer.add_many(samples, queue.clock(now))

    # -- what is due --------------------------------------------------------------------------------------------------

    def due(self, now: float, most: int | None = None) -> list[Due[T]]:
        """What goes out now, `most` samples of each queue: they take turns (Z18-PUL-10)."""
        found: list[Due[T]] = []
        for name, queue in list(self._queues.items()):
            if not queue.is_filled:
                continue
            given = queue.pacer.due(queue.clock(now), most)
            ends = queue.is_open and self._is_over(queue, now)
            if ends:
                queue.is_open = queue.is_final = False
                if queue.is_stored:
                    del self._queues[name]
            if given or ends:
                space, id, _ = name
                found.append(Due(queue.conduit, space, id, given, ends and self._generation.ends_pulls))
        return found

    def _is_over(self, queue: _Queue[T], now: float) -> bool:
        if queue.pacer.is_asking:
            return False
        # Nothing is left, as far as is known while a window is open; or this request was to be the last.
        windows = queue.pacer.mode.windows
        is_open = windows is None or windows.open_at(queue.clock(now))
        return queue.is_final or (not queue.pacer and is_open)

    def next_deadline(self, now: float) -> float | None:
        """When `due` has something to give if nothing comes till then."""
        dues = [
            queue.since + when / 1000
            for queue in self._queues.values()
            if queue.is_filled and (when := queue.pacer.next_deadline(queue.clock(now))) is not None
        ]
        return min(dues, default=None)
