"""What a log knows beside its samples: the newest of every key, and the numbers of the sources.

All of it can be made from the log again. A checkpoint saves most of the work when the log is opened.
"""

from __future__ import annotations

import contextlib
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreCorrupt
from elea.store.latest import Latest, is_deleted, position_of
from elea.store.reading import Range, Reader
from elea.store.shelf import Checkpoint, Part, View
from elea.store.sources import Sources

__all__ = ["Index", "note_batch"]

_LATEST: Final = pa.schema([("key", pa.string()), ("ntp64", pa.uint64()), ("place", pa.int64())])
_SOURCES: Final = pa.schema(
    [("id", pa.binary()), ("eid", pa.uint32()), ("first", pa.uint64()), ("last", pa.uint64()), ("position", pa.int64())]
)

Snapshot = tuple[int, dict[str, int], list[tuple[bytes, int, int, int, int]]]
"""The position up to which it counts, the newest entries, the numbers of the sources."""

_PLACE: Final = (1 << 64) - 1


class Index:
    """The two dictionaries and their checkpoint."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.latest = Latest(self.stamp_id_at)
        self.sources = Sources()

    def stamp_id_at(self, position: int) -> bytes:
        """The node that stamped a sample; empty if the sample cannot be read."""
        try:
            batch, row = self._reader.find(position)
        except StoreCorrupt:
            return b""
        stamp_id: bytes = batch.column("stamp_id")[row].as_py()
        return stamp_id

    def take_in(self, batch: pa.RecordBatch) -> None:
        """Samples that were appended some time ago."""
        note_batch(self.latest, batch)
        self.remember(batch)

    def remember(self, batch: pa.RecordBatch) -> None:
        """The numbers of samples that are to be stored once."""
        once = batch.column("once")
        if not pc.any(once).as_py():
            return
        chosen = batch.filter(once)
        names = ("source_id", "source_eid", "source_sn", "position")
        for row in zip(*(chosen.column(name).to_pylist() for name in names), strict=True):
            self.sources.add(*row)

    def rebuild(self, found: Checkpoint | None, view: View, end: int) -> int:
        """Fill the index for a log that was just opened; the position up to which the checkpoint served."""
        start = view.first
        if found is not None and view.first <= found[0] <= end:
            start = found[0]
            self._restore(found, view)
        elif view.base is not None:
            for block in view.base.blocks:
                with contextlib.suppress(StoreCorrupt):  # reported by the recovery already
                    self.take_in(view.base.load(block))
        for batch in self._reader.batches(Range(start=start, end=end, skip_damaged=True), view):
            self.take_in(batch)
        return start

    def snapshot(self, end: int) -> Snapshot:
        """Everything as it is now; quick, because a writer waits."""
        return end, dict(self.latest.entries), self.sources.rows()

    def checkpoint(self, snapshot: Snapshot) -> Checkpoint:
        """A snapshot as columns."""
        end, entries, rows = snapshot
        places = [entry & _PLACE for entry in entries.values()]
        times = [entry >> 64 for entry in entries.values()]
        latest = pa.record_batch([list(entries), times, places], schema=_LATEST)
        columns = [[row[index] for row in rows] for index in range(len(_SOURCES))]
        return end, latest, pa.record_batch(columns, schema=_SOURCES)

    def _restore(self, found: Checkpoint, view: View) -> None:
        _, latest, sources = found
        columns = [latest.column(index).to_pylist() for index in range(len(_LATEST))]
        self.latest.entries = {key: time << 64 | place for key, time, place in zip(*columns, strict=True)}
        rows = [sources.column(index).to_pylist() for index in range(len(_SOURCES))]
        self.sources.restore(list(zip(*rows, strict=True)))
        self._forget_trimmed(view)

    def _forget_trimmed(self, view: View) -> None:
        """Deletions that a checkpoint still has, but retention forgot after it was written."""
        entries = self.latest.entries
        old = [key for key, entry in entries.items() if is_deleted(entry) and position_of(entry) < view.first]
        kept = _positions(view.base) if old else set()
        for key in old:
            if position_of(entries[key]) not in kept:
                del entries[key]


def note_batch(latest: Latest, batch: pa.RecordBatch) -> None:
    """Show samples to an index of the newest."""
    names = ("key", "ntp64", "kind", "position", "stamp_id")
    keys, times, kinds, positions, ids = (batch.column(name).to_pylist() for name in names)
    latest.note(keys, times, kinds, positions, ids)


def _positions(base: Part | None) -> set[int]:
    found: set[int] = set()
    for block in base.blocks if base is not None else ():
        with contextlib.suppress(StoreCorrupt):  # reported by the recovery already
            found.update(base.load(block).column("position").to_pylist() if base is not None else ())
    return found
