"""What two logs should have in common: all samples since a time, and of older ones the newest of each key.

Retention has let go of the rest in one of them, and it shall not be brought back to it by the other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from elea.model.limits import CLOCK_MARGIN_NS
from elea.model.timestamp import ntp64_from_ns
from elea.store.log import Log
from elea.store.retention import Retention

__all__ = ["LEAF", "Scope", "scope_of", "trimmed_before"]

LEAF: Final = 40
"""The length of the buckets of time that a digest keeps, as a power of two in units of NTP64: 256 s."""

TOMBSTONE_NS: Final = Retention().tombstone_ns


class Scope(NamedTuple):
    """What counts: every sample from `floor` on; before, the newest of each key, but no deletion before `forget`.

    Both are times in NTP64 at which a leaf begins.
    """

    floor: int = 0
    forget: int = 0


def scope_of(log: Log, now_ns: int, *, age_ns: int | None = None, tombstone_ns: int = TOMBSTONE_NS) -> Scope:
    """What a log can be compared by: of what came before its oldest sample, or is too old, it has let go."""
    aged = 0 if age_ns is None else _leaf_from(now_ns - age_ns)
    return Scope(max(aged, trimmed_before(log, now_ns)), _leaf_from(now_ns - tombstone_ns))


def trimmed_before(log: Log, now_ns: int) -> int:
    """The time before which retention has let go of samples, 0 if it has of none.

    All of them had arrived before the oldest that is left: aligned samples arrive when they are brought, whatever their
    timestamps, so that it never goes back.
    """
    if not log.first:
        return 0
    oldest = next((block for part in log.shelf.view.parts for block in part.blocks), None)
    return _leaf_from((now_ns if oldest is None else oldest.facts.min_arrival) + CLOCK_MARGIN_NS)


def _leaf_from(ns: int) -> int:
    """The first leaf that begins at a time or later, as NTP64."""
    return -(-ntp64_from_ns(ns) >> LEAF) << LEAF if ns > 0 else 0
