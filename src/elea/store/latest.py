"""The newest sample of every key: a dictionary in memory, made from the log and written down now and then.

Newest by timestamp, not by arrival: a late sample of an old time does not bring back an old value, and every store
that has the same samples has the same values. A deletion stays as a tombstone, else a late older put would undo it.
An entry is one integer (time, position, deleted): a third of the memory of a tuple, and nothing for the collector to
visit.

A checkpoint is taken over as it lies in the file. Until somebody wants all entries, or `load` is called, what came
later is in the dictionary, a key is looked for in both, and the newer entry counts: a million keys take a second to
become a dictionary, and a broker should answer before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Latest", "is_deleted", "position_of"]

_TIME: Final = 64
_POSITION: Final = (1 << 64) - 1

_ROWS_AT_ONCE: Final = 4096
"""Entries made of columns without giving other threads a chance: some 2 ms."""


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

    __slots__ = ("_changing", "_frozen", "_loading", "_newer", "_stamp_id_at")

    def __init__(self, stamp_id_at: Callable[[int], bytes]) -> None:
        self._newer: dict[str, int] = {}
        self._frozen: pa.RecordBatch | None = None
        self._changing = threading.Lock()
        self._loading = threading.Lock()
        self._stamp_id_at = stamp_id_at

    def newest_time(self) -> int:
        """The newest time of all keys, 0 without any."""
        frozen = self._frozen
        found = 0 if frozen is None else pc.max(frozen.column(1)).as_py() or 0
        with self._changing:
            return max(found, max(self._newer.values(), default=0) >> _TIME)

    @property
    def entries(self) -> dict[str, int]:
        """All entries."""
        if self._frozen is not None:
            self.load()
        return self._newer

    def get(self, key: str) -> int | None:
        """The entry of one key."""
        frozen = self._frozen  # before the other: while `load` exchanges them, an entry may be in both but not in none
        newer = self._newer.get(key)
        if frozen is None:
            return newer
        row = pc.index(frozen.column(0), pa.scalar(key, pa.string())).as_py()  # 3 ms for a million
        if row < 0:
            return newer
        old: int = frozen.column(1)[row].as_py() << _TIME | frozen.column(2)[row].as_py()
        return old if newer is None or not self._is_newer(newer, old) else newer

    def freeze(self, checkpoint: pa.RecordBatch) -> None:
        """Take over a checkpoint: key, time, and position and deletion as in an entry. Nothing is there yet."""
        self._frozen = checkpoint

    def load(self) -> None:
        """Make a checkpoint that was taken over part of the dictionary; others read and write meanwhile."""
        with self._loading:
            frozen = self._frozen
            if frozen is None:
                return
            whole: dict[str, int] = {}
            for start in range(0, frozen.num_rows, _ROWS_AT_ONCE):
                keys, times, places = (column.to_pylist() for column in frozen.slice(start, _ROWS_AT_ONCE).columns)
                for key, time, place in zip(keys, times, places, strict=True):
                    whole[key] = time << _TIME | place
            with self._changing:
                for key, entry in self._newer.items():
                    old = whole.get(key)
                    if old is None or self._is_newer(entry, old):
                        whole[key] = entry
                self._newer = whole
                self._frozen = None

    def note(
        self, keys: Sequence[str], times: Sequence[int], kinds: Sequence[int], positions: Iterable[int],
        stamp_ids: Sequence[bytes] | None = None,
    ) -> None:  # fmt: skip
        """Take in samples; 0.2 µs each. They must be readable at their positions already, or `stamp_ids` given."""
        with self._changing:
            entries = self._newer
            get = entries.get
            for row, (key, time, kind, position) in enumerate(zip(keys, times, kinds, positions, strict=True)):
                old = get(key)
                if old is not None:
                    old_time = old >> 64
                    if old_time > time:
                        continue
                    stamp_id = None if stamp_ids is None else stamp_ids[row]
                    if old_time == time and not self._wins(position, old, stamp_id):
                        continue
                entries[key] = time << 64 | position << 1 | kind

    def _is_newer(self, entry: int, old: int) -> bool:
        if entry >> _TIME != old >> _TIME:
            return entry >> _TIME > old >> _TIME
        return self._wins(position_of(entry), old, None)

    def _wins(self, position: int, old: int, stamp_id: bytes | None) -> bool:
        before = (old & _POSITION) >> 1
        ours = self._stamp_id_at(position) if stamp_id is None else stamp_id
        return (ours, position) >= (self._stamp_id_at(before), before)

    def forget_tombstones(self, older_than: int) -> int:
        """Drop deletions with a time below `older_than`; how many."""
        entries = self.entries
        old = [key for key, entry in entries.items() if entry & 1 and entry >> _TIME < older_than]
        for key in old:
            del entries[key]
        return len(old)
