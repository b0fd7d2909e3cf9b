"""How much of a log is kept: the policy, and the position it leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Retention", "Trimmed", "first_to_keep", "held_back"]

Size = tuple[int, int, int, int]
"""Of a segment: first position, position behind it, octets, newest arrival."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a log is kept, in whole segments; None is no bound. The newest sample of a key always stays."""

    age_ns: int | None = None
    octets: int | None = None
    samples: int | None = None
    tombstone_ns: int = 24 * 3600 * 1_000_000_000
    """How long a deletion is remembered once its segment is gone: as long as a late sample may come."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What retention did."""

    first: int
    """The first position that is left."""

    samples: int
    """Samples removed from history."""

    kept: int
    """Samples among them that stay, because they are the newest of their keys."""

    held_by: str | None = None
    """The cursor that stopped it, if one did."""


def first_to_keep(sizes: Sequence[Size], policy: Retention, now_ns: int) -> int | None:
    """The position before which everything may go; None if nothing may. Bounds on size always leave one segment."""
    octets = sum(size for _, _, size, _ in sizes)
    end = sizes[-1][1] if sizes else 0
    first: int | None = None
    for index, (_, after, size, newest) in enumerate(sizes):
        too_old = policy.age_ns is not None and newest < now_ns - policy.age_ns
        is_last = index == len(sizes) - 1
        too_large = policy.octets is not None and octets > policy.octets and not is_last
        too_many = policy.samples is not None and end - after >= policy.samples and not is_last
        if not (too_old or too_large or too_many):
            break
        first, octets = after, octets - size
    return first


def held_back(first: int, sizes: Sequence[Size], cursors: Mapping[str, int]) -> tuple[int, str | None]:
    """The position as far as the slowest cursor lets it go, and the name of that cursor if it is in the way."""
    slowest = min(cursors.items(), key=lambda item: item[1], default=None)
    if slowest is None or slowest[1] >= first:
        return first, None
    starts = [start for start, _, _, _ in sizes if start <= slowest[1]]
    return max(starts, default=0), slowest[0]
