"""What a log knows beside its samples: the newest of every key, and the numbers of the sources.

All of it can be made from the log again. A checkpoint saves most of the work when the log is opened.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreCorrupt
from elea.model.timestamp import believed_time
from elea.store.columns import run_of
from elea.store.latest import Latest
from elea.store.logreads import Range, Reader
from elea.store.shelf import Checkpoint, Part, View
from elea.store.sources import Sources
from elea.store.stamps import believed_times

__all__ = ["Index", "note_batch"]

_LATEST: Final = pa.schema([("key", pa.string()), ("ntp64", pa.uint64()), ("place", pa.int64())])
_SOURCES: Final = pa.schema(
    [("id", pa.binary()), ("eid", pa.uint32()), ("first", pa.uint64()), ("last", pa.uint64()), ("position", pa.int64())]
)

Snapshot = tuple[int, dict[str, int], list[tuple[bytes, int, int, int, int]]]
"""The position up to which it counts, the newest entries, the numbers of the sources."""

_PLACE: Final = (1 << 64) - 1

_NOTED: Final = [
    "key", "ntp64", "kind", "position", "stamp_id", "arrival", "source_id", "source_eid", "source_sn", "once",
]  # fmt: skip
_ROWS_AT_ONCE: Final = 4096


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
        run, positions = run_of(batch), batch.column("position")
        first, last = positions[0].as_py(), positions[batch.num_rows - 1].as_py()
        if run is not None and last - first == batch.num_rows - 1 and self.sources.has_none(*run):
            self.sources.add_run(*run, first)
            return
        chosen = batch.filter(once)
        names = ("source_id", "source_eid", "source_sn", "position")
        for row in zip(*(chosen.column(name).to_pylist() for name in names), strict=True):
            self.sources.add(*row)

    def rebuild(self, found: Checkpoint | None, view: View, end: int) -> int:
        """Fill the index for a log that was just opened; the position up to which the checkpoint served."""
        start = view.first
        if found is not None and view.first <= found[0] <= end and _is_believed(found, view):
            start = found[0]
            self._restore(found, view)
        elif view.base is not None:
            for block in view.base.blocks:
                with contextlib.suppress(StoreCorrupt):  # reported by the recovery already
                    self.take_in(view.base.load(block))
        for batch in self._noted(Range(start=start, end=end, skip_damaged=True), view):
            self.take_in(batch)
        return start

    def _noted(self, wanted: Range, view: View) -> Iterator[pa.RecordBatch]:
        """What the index wants to know of a range, with small blocks joined: each costs as much as a large one."""
        found: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._reader.batches(wanted, view):
            found.append(batch.select(_NOTED))
            rows += batch.num_rows
            if rows >= _ROWS_AT_ONCE:
                yield pa.concat_batches(found)
                found, rows = [], 0
        if found:
            yield pa.concat_batches(found)

    def snapshot(self, end: int) -> Snapshot:
        """Everything as it is now; quick, because a writer waits."""
        return end, dict(self.latest.entries), self.sources.rows()

    def checkpoint(self, snapshot: Snapshot) -> Checkpoint:
        """A snapshot as columns."""
        end, entries, rows = snapshot
        # Not lists of numbers: a million keys would take 80 MB more, just when the broker has a lot to do.
        times = array("Q", (entry >> 64 for entry in entries.values()))
        places = array("q", (entry & _PLACE for entry in entries.values()))
        keys = pa.array(entries, pa.string(), size=len(entries))
        latest = pa.record_batch([keys, _column(times, pa.uint64()), _column(places, pa.int64())], schema=_LATEST)
        columns = [[row[index] for row in rows] for index in range(len(_SOURCES))]
        return end, latest, pa.record_batch(columns, schema=_SOURCES)

    def _restore(self, found: Checkpoint, view: View) -> None:
        _, latest, sources = found
        self.latest.freeze(_without_trimmed(latest, view))
        rows = [sources.column(index).to_pylist() for index in range(len(_SOURCES))]
        self.sources.restore(list(zip(*rows, strict=True)))


def _is_believed(found: Checkpoint, view: View) -> bool:
    """Whether a checkpoint has only times that are believed; older versions wrote down others, too."""
    newest = pc.max(found[1].column("ntp64")).as_py()
    arrivals = [block.facts.max_arrival for part in view.parts for block in part.blocks]
    return newest is None or not arrivals or believed_time(newest, max(arrivals)) == newest


def _without_trimmed(latest: pa.RecordBatch, view: View) -> pa.RecordBatch:
    """The entries of a checkpoint but for deletions that retention forgot after it was written."""
    if not view.first:
        return latest
    places = latest.column("place")
    deleted = pc.equal(pc.bit_wise_and(places, pa.scalar(1, pa.int64())), pa.scalar(1, pa.int64()))
    old = pc.and_(deleted, pc.less(places, pa.scalar(view.first << 1, pa.int64())))
    if not pc.any(old).as_py():
        return latest
    kept = pa.array([position << 1 | 1 for position in _positions(view.base)], pa.int64())
    return latest.filter(pc.or_(pc.invert(old), pc.is_in(places, value_set=kept)))


def _column(numbers: array[int], type_: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)])


def note_batch(latest: Latest, batch: pa.RecordBatch) -> None:
    """Show samples to an index of the newest."""
    names = ("key", "kind", "position", "stamp_id")
    keys, kinds, positions, ids = (batch.column(name).to_pylist() for name in names)
    latest.note(keys, believed_times(batch).to_pylist(), kinds, positions, ids)


def _positions(base: Part | None) -> set[int]:
    found: set[int] = set()
    for block in base.blocks if base is not None else ():
        with contextlib.suppress(StoreCorrupt):  # reported by the recovery already
            found.update(base.load(block).column("position").to_pylist() if base is not None else ())
    return found
