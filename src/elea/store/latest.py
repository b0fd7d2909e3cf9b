"""The newest sample of every key: a dictionary in memory, made from the log and written down now and then.

Newest by timestamp, not by arrival: a late sample of an old time does not bring back an old value, and every store
that has the same samples has the same values. A deletion stays as a tombstone, else a late older put would undo it.
An entry is one integer (time, position, deleted): a third of the memory of a tuple, and nothing for the collector to
visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

__all__ = ["Latest", "is_deleted", "position_of"]

_TIME: Final = 64
_POSITION: Final = (1 << 64) - 1


def position_of(entry: int) -> int:
    """The position of the sample an entry stands for."""
    return (entry & _POSITION) >> 1


def is_deleted(entry: int) -> bool:
    """Whether the sample is a deletion."""
    return entry & 1 == 1


def time_of(entry: int) -> int:
    """The NTP64 time of the sample."""
    return entry >> _TIME


class Latest:
    """Key → entry. `stamp_id_at(position)` is asked only when two nodes stamped a key at the same time."""

    __slots__ = ("_stamp_id_at", "entries")

    def __init__(self, stamp_id_at: Callable[[int], bytes]) -> None:
        self.entries: dict[str, int] = {}
        self._stamp_id_at = stamp_id_at

    def note(
        self, keys: Sequence[str], times: Sequence[int], kinds: Sequence[int], positions: Iterable[int],
        stamp_ids: Sequence[bytes] | None = None,
    ) -> None:  # fmt: skip
        """Take in samples; 0.2 µs each. They must be readable at their positions already, or `stamp_ids` given."""
        entries = self.entries
        get = entries.get
        for row, (key, time, kind, position) in enumerate(zip(keys, times, kinds, positions, strict=True)):
            old = get(key)
            if old is not None:
                old_time = old >> 64
                if old_time > time:
                    continue
                if old_time == time and not self._wins(position, old, None if stamp_ids is None else stamp_ids[row]):
                    continue
            entries[key] = time << 64 | position << 1 | kind

    def _wins(self, position: int, old: int, stamp_id: bytes | None) -> bool:
        before = (old & _POSITION) >> 1
        ours = self._stamp_id_at(position) if stamp_id is None else stamp_id
        return (ours, position) >= (self._stamp_id_at(before), before)

    def forget_tombstones(self, older_than: int) -> int:
        """Drop deletions with a time below `older_than`; how many."""
        old = [key for key, entry in self.entries.items() if entry & 1 and entry >> _TIME < older_than]
        for key in old:
            del self.entries[key]
        return len(old)
