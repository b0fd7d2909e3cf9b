"""What a batch reads: how far it goes, what it has to pass over, and how it is cut into ranges for tasks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from elea.model.errors import DataLost
from elea.spark.offsets import Head, Offset, Place

__all__ = ["LEAST_ROWS", "Piece", "Reached", "admit", "pieces_of", "reach", "split"]

LEAST_ROWS: Final = 20_000
"""A range is not cut smaller: a task costs some ten milliseconds, and as many rows are read in that time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Positions of one log, the end not included."""

    log: str
    epoch: str
    start: int
    end: int

    @property
    def rows(self) -> int:
        """Positions in it: as many rows, or fewer if the key expression leaves some out."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a batch begins in one log, and what was passed over to get there."""

    place: Place
    lost: DataLost | None = None


def reach(log: str, place: Place, head: Head | None, *, strict: bool) -> Reached:
    """Where reading can go on from `place`, as the log is now.

    Raises:
        DataLost: not there, and `strict`.
    """
    if head is None and "gone" in place.lost:  # told before
        return Reached(Place(place.epoch, place.next, None, place.lost))
    if head is None:
        lost = DataLost(
            log, "gone", f"no broker offers it any more; it was read up to position {place.next} of epoch {place.epoch}"
        )
        return _passed(lost, place.passing("gone", 1), strict)
    if head.epoch != place.epoch:
        what = (
            f"it was replaced: the epoch is {head.epoch} and was {place.epoch}, so that position {place.next} means "
            f"another sample; reading would begin at {head.first}"
        )
        lost = DataLost(log, "replaced", what)
        return _passed(lost, Place(head.epoch, head.first, None, place.passing("replaced", 1).lost), strict)
    if place.next < head.first:
        count = head.first - place.next
        what = f"retention has removed {count} positions from {place.next} to {head.first - 1}"
        lost = DataLost(log, "trimmed", what, first=place.next, last=head.first - 1)
        return _passed(lost, Place(place.epoch, head.first, None, place.passing("trimmed", count).lost), strict)
    if place.next > head.end:
        what = f"it ends at {head.end}, before position {place.next} of the same epoch: its newest samples are gone"
        lost = DataLost(log, "gone", what, first=head.end, last=place.next - 1)
        return _passed(
            lost, Place(place.epoch, head.end, None, place.passing("gone", place.next - head.end).lost), strict
        )
    return Reached(Place(place.epoch, place.next, None, place.lost))


def _passed(lost: DataLost, place: Place, strict: bool) -> Reached:
    if strict:
        raise lost
    return Reached(place, lost)


def damaged_between(head: Head, start: int, end: int) -> int:
    """Positions in a range that are known to be unreadable."""
    return sum(max(min(last + 1, end) - max(first, start), 0) for first, last in head.damaged)


def admit(available: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """How many positions of each log a batch takes, by what each has; at most `limit` together, at least 1 if any."""
    total = sum(available.values())
    if limit is None or total <= limit:
        return dict(available)
    taken = {log: rows * limit // total for log, rows in available.items()}
    # What rounding leaves over goes to the first that have more, so that a limit below the number of logs moves on.
    for log in sorted(available, key=lambda log: (-(available[log] * limit % total), log)):
        if sum(taken.values()) == limit:
            break
        taken[log] += 1
    return taken


def pieces_of(start: Offset, end: Offset) -> list[Piece]:
    """What lies between two offsets; the same for the same offsets, whatever the logs have come to since."""
    found = []
    for log, place in sorted(end.items()):
        before = start.get(log)
        if place.begin is not None:
            begin = place.begin
        elif before is not None and before.epoch == place.epoch:
            begin = before.next
        else:
            begin = place.next  # neither a beginning nor a place before: there is nothing to read
        if begin < place.next:
            found.append(Piece(log, place.epoch, begin, place.next))
    return found


def split(pieces: list[Piece], parts: int, least: int = LEAST_ROWS) -> list[Piece]:
    """Cut pieces into about `parts` of them together, none smaller than `least` unless it was."""
    total = sum(piece.rows for piece in pieces)
    found = []
    for piece in pieces:
        share = max(round(parts * piece.rows / total), 1)
        count = max(min(share, piece.rows // least), 1)
        bounds = [piece.start + piece.rows * at // count for at in range(count + 1)]
        found += [Piece(piece.log, piece.epoch, low, high) for low, high in pairwise(bounds) if low < high]
    return found
