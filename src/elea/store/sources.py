"""Which numbered samples a log has already: a retry is stored once.

Per source (node, entity) the log remembers runs of numbers that lie one behind the other in the log too. A writer
alone makes one run, sixty-four writers in turn make one run a sample, so the number of runs is bounded and the oldest
give way to a floor: numbers at or below it count as stored. A writer must therefore not fall behind itself by more
than STORE_SOURCE_RUNS samples, and must not start its numbers again under the same source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from elea.model.limits import STORE_SOURCE_RUNS, STORE_SOURCES

__all__ = ["Run", "Sources", "runs_of"]

Source = tuple[bytes, int]
Run = tuple[bytes, int, int, int, int]
"""Numbers of a source, one behind the other: id, entity, first, last, and the index of the first in its batch."""

_NEW: Final = -1


class _Numbers:
    """The numbers of one source: those up to `floor`, and runs (first number, last number, position of the first)."""

    __slots__ = ("firsts", "floor", "lasts", "positions")

    def __init__(self, floor: int = -1) -> None:
        self.floor = floor
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.positions: list[int] = []

    def position(self, number: int) -> int | None:
        """Where the number is stored; None if it is but nobody knows where, -1 if it is not."""
        at = bisect_right(self.firsts, number) - 1
        if at >= 0 and number <= self.lasts[at]:
            return self.positions[at] + number - self.firsts[at]
        return None if number <= self.floor else _NEW

    def has_none(self, first: int, last: int) -> bool:
        """Whether all these numbers are new."""
        at = bisect_right(self.firsts, last) - 1
        return first > self.floor and (at < 0 or self.lasts[at] < first)

    def add(self, number: int, position: int, last: int | None = None) -> None:
        """Take in a number that is not there yet, or all up to `last`, one behind the other from `position` on."""
        last = number if last is None else last
        at = bisect_right(self.firsts, number) - 1
        if at >= 0 and self.lasts[at] == number - 1 and self.positions[at] + number - self.firsts[at] == position:
            self.lasts[at] = last
            return
        self.firsts.insert(at + 1, number)
        self.lasts.insert(at + 1, last)
        self.positions.insert(at + 1, position)
        if len(self.firsts) > STORE_SOURCE_RUNS:
            half = STORE_SOURCE_RUNS // 2
            self.floor = max(self.floor, self.lasts[half - 1])
            del self.firsts[:half], self.lasts[:half], self.positions[:half]


class Sources:
    """The numbers of every source, the longest silent one first."""

    def __init__(self) -> None:
        self._known: dict[Source, _Numbers] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, id: bytes, entity: int, number: int) -> int | None:
        """Where a number is stored; None if it is but nobody knows where, -1 if it is not."""
        numbers = self._known.get((id, entity))
        return _NEW if numbers is None else numbers.position(number)

    def has_none(self, id: bytes, entity: int, first: int, last: int) -> bool:
        """Whether all numbers from `first` to `last` are new."""
        numbers = self._known.get((id, entity))
        return numbers is None or numbers.has_none(first, last)

    def has_no_run(self, runs: Sequence[Run]) -> bool:
        """Whether all numbers of all these runs are new."""
        return all(self.has_none(id, entity, first, last) for id, entity, first, last, _ in runs)

    def add(self, id: bytes, entity: int, number: int, position: int) -> None:
        """Take in a number; one that is known already stays where it was."""
        numbers = self._of(id, entity)
        if numbers.position(number) == _NEW:
            numbers.add(number, position)

    def add_run(self, id: bytes, entity: int, first: int, last: int, position: int) -> None:
        """Take in numbers of which `has_none` says that they are new, stored one behind the other."""
        self._of(id, entity).add(first, position, last)

    def _of(self, id: bytes, entity: int) -> _Numbers:
        """The numbers of a source, which is now the last that was heard of."""
        source = (id, entity)
        numbers = self._known.pop(source, None)
        if numbers is None:
            numbers = _Numbers()
            if len(self._known) >= STORE_SOURCES:
                self._known.pop(next(iter(self._known)))
        self._known[source] = numbers
        return numbers

    def rows(self) -> list[tuple[bytes, int, int, int, int]]:
        """Everything as rows (id, entity, first, last, position); a floor is a row with position -1."""
        found = []
        for (id, entity), numbers in list(self._known.items()):
            if numbers.floor >= 0:
                found.append((id, entity, 0, numbers.floor, -1))
            found.extend(
                (id, entity, *run) for run in zip(numbers.firsts, numbers.lasts, numbers.positions, strict=True)
            )
        return found

    def restore(self, rows: list[tuple[bytes, int, int, int, int]]) -> None:
        """Take in what `rows` gave, in its order."""
        for id, entity, first, last, position in rows:
            numbers = self._known.setdefault((id, entity), _Numbers())
            if position < 0:
                numbers.floor = last
            else:
                numbers.firsts.append(first)
                numbers.lasts.append(last)
                numbers.positions.append(position)


def runs_of(
    ids: Sequence[bytes | None], entities: Sequence[int | None], numbers: Sequence[int | None], once: Sequence[bool]
) -> list[Run] | None:
    """The runs of a batch in which every sample is to be stored once and no number comes twice; else None."""
    count, low = len(numbers), numbers[0]
    if low is not None and numbers == tuple(range(low, low + count)) and False not in once:  # one writer, mostly
        its_id, its_entity = ids[0], entities[0]
        if its_id is not None and its_entity is not None and ids.count(its_id) == entities.count(its_entity) == count:
            return [(its_id, its_entity, low, low + count - 1, 0)]
    found: list[Run] = []
    newest: dict[Source, int] = {}
    id: bytes | None = None
    entity, first, last, start = 0, 0, -2, 0
    for at, (its_id, its_entity, number, only_once) in enumerate(zip(ids, entities, numbers, once, strict=True)):
        if its_id is None or its_entity is None or number is None or not only_once:
            return None
        if number == last + 1 and its_entity == entity and its_id == id:
            last = number
            continue
        if id is not None:
            found.append((id, entity, first, last, start))
            newest[id, entity] = last
        # Numbers that go back may be the same ones again; whoever asks then looks at each.
        if number <= newest.get((its_id, its_entity), -1):
            return None
        id, entity, first, last, start = its_id, its_entity, number, number, at
    if id is not None:
        found.append((id, entity, first, last, start))
    return found
