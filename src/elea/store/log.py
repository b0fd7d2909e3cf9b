"""A log of samples: append, the newest per key, history, the state at a time, cursors, retention.

Samples have dense positions in the order of their arrival, and timestamps that order them among all stores. One
engine serves both durabilities; where the samples lie is the shelf's affair. Any thread may call anything: appends
take turns, reads go on beside them and see what has been acknowledged.

    >>> from elea.store import Record, memory_log
    >>> log = memory_log()
    >>> log.append([Record("home/temp", b"21.5", ntp64=1 << 32, stamp_id=b"\\x01", arrival_ns=0)]).first
    0
    >>> log.latest("home/temp").record.payload
    b'21.5'
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import LimitReached, StoreCorrupt, StoreError, StoreTrimmed
from elea.model.limits import (
    STORE_BLOCK_BYTES,
    STORE_BLOCK_ROWS,
    STORE_CURSOR_CHARS,
    STORE_CURSORS,
    STORE_SEGMENT_BYTES,
)
from elea.model.pattern import Pattern
from elea.model.timestamp import believed_time, ntp64_from_ns
from elea.store.catalogue import Damage
from elea.store.columns import (
    SCHEMA,
    Facts,
    check_batch,
    facts_of,
    facts_of_fields,
    fields_of,
    from_fields,
    joined_blocks,
    number_rows,
    pieces,
    record_at,
    records_of,
    run_of,
)
from elea.store.disk import DiskShelf, Sync
from elea.store.files import Files
from elea.store.index import Index, note_batch
from elea.store.inplace import Place, place_of
from elea.store.latest import Latest, is_deleted, position_of
from elea.store.logreads import Keys, Range, Reader
from elea.store.memoryshelf import MemoryShelf
from elea.store.record import Receipt, Record, Stored
from elea.store.retention import Retention, Trimmed, first_to_keep, held_back
from elea.store.shelf import Part, Run, Shelf, State, View
from elea.store.sources import runs_of
from elea.store.stamps import believed_times, is_believed
from elea.store.strippedshelf import StrippedShelf

__all__ = ["Log", "memory_log", "open_log"]

END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"

_T = TypeVar("_T")

_KEYS_AT_ONCE: Final = 4096
_IN_VAIN: Final = 8
"""How often samples are fetched again that can be found one by one: retention may be just about to move them."""
_ONCE: Final = Record._fields.index("once")
_SOURCE: Final = Record._fields.index("source_id")


class Log:
    """See the module. Made by `open_log` and `memory_log`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        under = shelf.inner if isinstance(shelf, StrippedShelf) else shelf
        self._disk = under if isinstance(under, DiskShelf) else None
        self._reader = Reader(shelf)
        self._writing = threading.Lock()
        self._upkeep = threading.Lock()
        self._index = Index(self._reader)
        self._latest = self._index.latest
        self._sources = self._index.sources
        self._end = shelf.next
        self._checkpointed = self._index.rebuild(shelf.load_checkpoint(), shelf.view, self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- facts -------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """The identity of the positions: the same position in the same epoch is the same sample, always."""
        return self.shelf.epoch

    @property
    def first(self) -> int:
        """The position of the oldest sample of the history."""
        return self.shelf.view.first

    @property
    def end(self) -> int:
        """The position the next sample will get."""
        return self._end

    @property
    def state(self) -> State:
        """What the log can do at present."""
        return self.shelf.state

    @property
    def damage(self) -> list[Damage]:
        """Everything found damaged: when the log was opened, and by readers since."""
        return list(self.shelf.damage)

    @property
    def fresh(self) -> int:
        """Samples that came after the index was last written down: the next opening reads them again."""
        return self._end - self._checkpointed

    @property
    def syncs(self) -> int:
        """How often samples were synced since the log was opened; never, in memory."""
        return 0 if self._disk is None else self._disk.syncs

    @property
    def newest(self) -> int:
        """The newest time for which a sample of it counts, as NTP64; 0 without any."""
        return self._latest.newest_time()

    @property
    def keys(self) -> int:
        """Keys that have a value."""
        return sum(1 for entry in list(self._latest.entries.values()) if not is_deleted(entry))

    # -- writing -----------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], *, sift: bool = True) -> Receipt:
        """Store samples; when it returns they are as safe as the log's mode says.

        Args:
            sift: whether a sample whose number is known is left out. An alignment says no: it knows by timestamps what
                is missing, and numbers count as known by and by (`sources`). They are remembered in either case.

        Raises:
            StoreFull: no room; nothing of it is stored, and a later call may succeed.
            StoreReadOnly: the disk has failed, or the log is not open for writing.
            StoreError: a sample has a value that cannot be stored; nothing of it is.
        """
        with self._writing:
            self.shelf.check_writable()
            repeated: dict[int, int | None] = {}
            first = self._end
            fields = fields_of(records)
            numbered = True in fields[_ONCE]
            # Most samples that come together come from one writer and are new: a look at each is 3 µs, at a run 1.
            runs = runs_of(*fields[_SOURCE : _ONCE + 1]) if numbered and sift else None
            if numbered and sift and (runs is None or not self._sources.has_no_run(runs)):
                runs = None
                records, repeated = self._sift(records)
                fields = fields_of(records)
            if not records:
                return Receipt(first, 0, repeated)
            blocks = list(_blocks(fields, first))
            self._store(blocks, fields[0], _believed(fields), fields[5])
            if runs is not None:
                for id, entity, low, high, at in runs:
                    self._sources.add_run(id, entity, low, high, first + at)
            elif numbered:
                for position, record in enumerate(records, first):
                    if record.once:
                        self._remember(record.source_id, record.source_eid, record.source_sn, position)
            return Receipt(first, len(records), repeated)

    def append_arrow(self, batch: pa.RecordBatch) -> Receipt:
        """Store the rows of a batch with the columns of `SCHEMA` (positions are given anew); the same errors."""
        batch = check_batch(batch)
        with self._writing:
            self.shelf.check_writable()
            repeated: dict[int, int | None] = {}
            run = run_of(batch)
            if run is not None and not self._sources.has_none(*run):
                run = None
            numbered = run is None and pc.any(batch.column("once")).as_py()
            if numbered:
                _, repeated = self._sift([stored.record for stored in records_of(batch)])
                fresh = [row for row in range(batch.num_rows) if row not in repeated]
                batch = batch.take(pa.array(fresh, pa.int64()))
            first = self._end
            if not batch.num_rows:
                return Receipt(first, 0, repeated)
            batch = number_rows(batch, first)
            blocks = [(piece, facts_of(piece)) for piece in pieces(batch)]
            times = believed_times(batch).to_pylist()
            self._store(blocks, batch.column("key").to_pylist(), times, batch.column("kind").to_pylist())
            if run is not None:
                self._sources.add_run(*run, first)
            elif numbered:
                self._index.remember(batch)
            return Receipt(first, batch.num_rows, repeated)

    def sync(self) -> None:
        """Return when everything appended is on the disk; only a relaxed log needs it."""
        with self._writing:
            self.shelf.sync()

    def _store(
        self,
        blocks: list[tuple[pa.RecordBatch, Facts]],
        keys: Sequence[str],
        times: Sequence[int],
        kinds: Sequence[int],
    ) -> None:
        for key in set(keys):
            if not key or "*" in key:
                raise StoreError(f"{key!r} is no key: a store keeps single keys, not expressions")
        self.shelf.write(blocks)
        first = self._end
        self._latest.note(keys, times, kinds, range(first, first + len(keys)))
        self._end = first + len(keys)

    def _sift(self, records: Sequence[Record]) -> tuple[list[Record], dict[int, int | None]]:
        """The records that are new, and where the others are. Two of the same number in one batch are one sample."""
        fresh: list[Record] = []
        repeated: dict[int, int | None] = {}
        here: dict[tuple[bytes, int, int], int] = {}
        for index, record in enumerate(records):
            if record.once:
                id, entity, number = record.source_id, record.source_eid, record.source_sn
                if id is None or entity is None or number is None:
                    raise StoreError("a sample to be stored once needs a source: id, entity and number")
                known = here.get((id, entity, number), self._sources.find(id, entity, number))
                if known != -1:
                    repeated[index] = known
                    continue
                here[id, entity, number] = self._end + len(fresh)
            fresh.append(record)
        return fresh, repeated

    def knows(self, id: bytes, entity: int, number: int) -> bool:
        """Whether the sample with this number of a source is stored."""
        with self._writing:
            return self._sources.find(id, entity, number) != -1

    def _remember(self, id: bytes | None, entity: int | None, number: int | None, position: int) -> None:
        if id is not None and entity is not None and number is not None:
            self._sources.add(id, entity, number, position)

    # -- newest per key ----------------------------------------------------------------------------------------

    def latest(self, key: str, *, deleted: bool = False) -> Stored | None:
        """The newest sample of a key; of a deleted one only if asked for."""
        while True:
            entry = self._latest.get(key)
            if entry is None or (is_deleted(entry) and not deleted):
                return None
            try:
                return record_at(*self._reader.find(position_of(entry)))
            except StoreCorrupt:
                if self._latest.get(key) == entry:
                    raise  # else a newer one came, and retention took this one away

    def live_keys(self, keys: str | Pattern | None = None) -> list[str]:
        """The keys of an expression that have a value."""
        wanted = Keys(keys)
        items = list(self._latest.entries.items())
        return [key for key, entry in items if not is_deleted(entry) and wanted.has(key)]

    def older_keys(self, keys: str | Pattern | None, stamp: tuple[int, bytes]) -> list[str]:
        """The keys of an expression that have a value, and one that is older than a timestamp (time and node)."""
        wanted = Keys(keys)
        time, stamp_id = stamp
        found: list[str] = []
        for key in list(self._latest.entries):
            entry = self._latest.entries.get(key)
            if entry is None or is_deleted(entry) or entry >> 64 > time or not wanted.has(key):
                continue
            if entry >> 64 < time or self._index.stamp_id_at(position_of(entry)) < stamp_id:
                found.append(key)
        return found

    def latest_matching(
        self, keys: str | Pattern | None = None, *, deleted: bool = False, newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Stored]:  # fmt: skip
        """The newest sample of every key of an expression as it was at the call, in the order of positions.

        Eight octets a key are kept until it has ended, however slow the reader is; everything else is read as it is
        wanted. A sample that retention took away meanwhile had a newer one, which then comes at the end.
        """
        for batch in self.latest_arrow(keys, deleted=deleted, newest_first=newest_first, limit=limit):
            yield from records_of(batch)

    def latest_arrow(
        self, keys: str | Pattern | None = None, *, deleted: bool = False, newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """The same as batches."""
        wanted = Keys(keys)
        end = self._end
        positions = self._latest_positions(wanted, 0, deleted=deleted)
        positions = positions.sort("descending" if newest_first else "ascending").slice(0, limit)
        while (yield from self._newest_at(positions)):
            # Only what came since: each time less, unless who reads is slower than retention for ever.
            start, end = end, self._end
            positions = self._latest_positions(wanted, start, deleted=deleted).sort().slice(0, limit)

    def _newest_at(self, positions: pa.Array) -> Generator[pa.RecordBatch, None, int]:
        """The samples there, which were the newest of their keys; how many of them retention took meanwhile.

        Raises:
            StoreCorrupt: some of them cannot be read, and not because of that.
        """
        overtaken = 0
        for start in range(0, len(positions), _KEYS_AT_ONCE):
            chunk = positions.slice(start, _KEYS_AT_ONCE).to_pylist()
            in_vain = 0
            while chunk:  # retention may come as often as it likes while who reads takes its time
                done = 0
                try:
                    for batch in self._reader.fetch(chunk):
                        done += batch.num_rows  # first: who is given it may take its time
                        yield batch
                    break
                except StoreCorrupt:
                    left = self._not_overtaken(chunk[done:])
                    in_vain = in_vain + 1 if len(left) == len(chunk) else 0
                    if in_vain == _IN_VAIN:
                        raise
                    overtaken += len(chunk) - done - len(left)
                    chunk = left
        return overtaken

    def _latest_positions(self, wanted: Keys, start: int, *, deleted: bool) -> pa.Array:
        """Where the newest samples are, from a position on."""
        found = array("q")
        # The keys are listed first, in one step: while they are looked at, writers go on.
        for key in [wanted.one] if wanted.one is not None else list(self._latest.entries):
            entry = self._latest.get(key)
            if entry is not None and (deleted or not entry & 1) and wanted.has(key) and position_of(entry) >= start:
                found.append(position_of(entry))
        return pa.Array.from_buffers(pa.int64(), len(found), [None, pa.py_buffer(found)])

    def _not_overtaken(self, positions: list[int]) -> list[int]:
        """Those that retention has left, or kept aside; of the others a newer sample has come, else it had not gone."""
        left: list[int] = []
        for position in positions:
            try:
                self._reader.find(position)
            except StoreCorrupt:
                if position >= self.first:
                    raise
            else:
                left.append(position)
        return left

    def newest_before(self, ntp64: int) -> dict[str, tuple[int, int, bool]]:
        """The keys whose newest sample is older than a time: (its time, its position, whether it is a deletion)."""
        entries = self._latest.entries
        bound = ntp64 << 64
        found = [(key, entry) for key in list(entries) if (entry := entries.get(key, bound)) < bound]
        return {key: (entry >> 64, position_of(entry), is_deleted(entry)) for key, entry in found}

    def newest_time(self, key: str) -> int | None:
        """The time of the newest sample of a key, also of a deletion."""
        entry = self._latest.entries.get(key)
        return None if entry is None else entry >> 64

    def rows_at(self, positions: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The samples at these positions, in their order; those that cannot be read any more are passed over."""
        for start in range(0, len(positions), _KEYS_AT_ONCE):
            yield from self._readable(list(positions[start : start + _KEYS_AT_ONCE]))

    # -- history -----------------------------------------------------------------------------------------------

    def read(self, wanted: Range | None = None) -> Iterator[Stored]:
        """The samples of a range.

        Raises:
            StoreTrimmed: it starts before the oldest sample left.
            StoreCorrupt: some of them cannot be read, and it does not say to pass over those.
        """
        for batch in self._read(wanted, join=False):
            yield from records_of(batch)

    def read_arrow(self, wanted: Range | None = None) -> Iterator[pa.RecordBatch]:
        """The same as batches, without an object per row."""
        return self._read(wanted, join=True)

    def read_ipc(self, wanted: Range | None = None) -> Iterator[bytes]:
        """The same as the messages of an Arrow IPC stream; whole blocks go out as they lie on disk."""
        asked = self._resolve(wanted)
        yield SCHEMA.serialize().to_pybytes()
        if asked.is_plain:
            for message, _ in self._messages(asked, _message):
                yield message
        else:
            for batch in self._read(asked, join=True):
                yield batch.serialize().to_pybytes()
        yield END_OF_STREAM

    def read_messages(
        self, wanted: Range | None = None, *, in_place: bool = False
    ) -> Iterator[tuple[bytes | Place, int]]:
        """The batches of a range of positions as messages of an Arrow IPC stream, each with the position behind it.

        Whole blocks go out as they lie on disk, so the range must be plain (`Range.is_plain`); `in_place`, only where
        they lie is told.
        """
        return self._messages(self._resolve(wanted), _place if in_place else _message)

    def as_of(
        self, keys: str | Pattern | None = None, *, time_ns: int | None = None, position: int | None = None,
        newest_first: bool = False, limit: int | None = None,
    ) -> Iterator[Stored]:  # fmt: skip
        """The newest sample of each key among those with a timestamp up to `time_ns` and below `position`.

        What retention has taken is missing, except the samples that were the newest when it did. Deleted keys have
        none.
        """
        high = None if time_ns is None else ntp64_from_ns(time_ns)
        found = Latest(self._index.stamp_id_at)
        wanted = Keys(keys)
        end = self._end if position is None else min(position, self._end)
        view = self.shelf.view
        for batch in self._history(end, view):
            chosen = batch
            if high is not None:
                chosen = chosen.filter(pc.less_equal(believed_times(chosen), pa.scalar(high, pa.uint64())))
            mask = wanted.mask(chosen.column("key"))
            note_batch(found, chosen if mask is None else chosen.filter(mask))
        positions = sorted(position_of(entry) for entry in found.entries.values() if not is_deleted(entry))
        if newest_first:
            positions.reverse()
        for batch in self._reader.fetch(positions[:limit], view):
            yield from records_of(batch)

    def _history(self, end: int, view: View) -> Iterator[pa.RecordBatch]:
        """Everything below a position, what retention kept first."""
        if view.base is not None:
            for block in view.base.blocks:
                batch = view.base.load(block)
                yield batch.filter(pc.less(batch.column("position"), end))
        yield from self._reader.joined(Range(start=view.first, end=end), view)

    def _resolve(self, wanted: Range | None) -> Range:
        asked = self._reader.resolve(wanted or Range())
        return replace(asked, end=min(asked.end or 0, self._end))

    def _read(self, wanted: Range | None, *, join: bool) -> Iterator[pa.RecordBatch]:
        asked = self._resolve(wanted)
        if asked.by_time:
            return self._read_by_time(asked)
        return self._reader.joined(asked) if join else self._reader.batches(asked)

    def _read_by_time(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Three columns of the range are sorted in memory; the rows are then read by their positions."""
        names = ["ntp64", "stamp_id", "position"]
        plain = replace(wanted, by_time=False, newest_first=False, limit=None)
        view = self.shelf.view
        found = [_apart(batch.select(names)) for batch in self._reader.batches(plain, view)]
        if not found:
            return iter(())
        table = pa.Table.from_batches(found)
        direction = "descending" if wanted.newest_first else "ascending"
        order = pc.sort_indices(table, sort_keys=[(name, direction) for name in names])
        return self._reader.fetch(table.column("position").take(order[: wanted.limit]).to_pylist(), view)

    def _messages(self, wanted: Range, form: Callable[[Part, Run], _T]) -> Iterator[tuple[bytes | _T, int]]:
        """Large blocks in a form of their own; the ends of the range and small blocks read and joined."""
        start, end = wanted.start or 0, wanted.end or 0
        view = self.shelf.view
        since, rows, octets = start, 0, 0
        for part, block in self._reader.blocks(wanted, view):
            facts = block.facts
            large = facts.rows * 16 >= STORE_BLOCK_ROWS or block.size * 16 >= STORE_BLOCK_BYTES
            whole = large and facts.first >= start and facts.last < end
            if whole or rows >= STORE_BLOCK_ROWS // 4 or octets >= STORE_BLOCK_BYTES // 4:
                yield from self._encoded(replace(wanted, start=since, end=facts.first), view)
                since, rows, octets = facts.first, 0, 0
            if whole:
                try:
                    yield form(part, block), facts.last + 1
                except StoreCorrupt as error:
                    self.shelf.note_damage(error)
                    if not wanted.skip_damaged:
                        raise
                since = facts.last + 1
            else:
                rows += facts.rows
                octets += block.size
        yield from self._encoded(replace(wanted, start=since, end=end), view)

    def _encoded(self, wanted: Range, view: View) -> Iterator[tuple[bytes, int]]:
        found = list(self._reader.batches(wanted, view))
        if found:
            yield pa.concat_batches(found).serialize().to_pybytes(), wanted.end or 0

    # -- cursors -----------------------------------------------------------------------------------------------

    def cursors(self) -> dict[str, int]:
        """Every cursor: name → the position its owner wants next."""
        return self.shelf.cursors()

    def cursor(self, name: str) -> int | None:
        """One cursor."""
        return self.shelf.cursors().get(name)

    def move_cursor(self, name: str, position: int) -> None:
        """Set a cursor, durably; retention keeps everything from it on.

        Raises:
            StoreTrimmed: the position is no longer stored.
            ValueError: it is beyond the end, or the name is too long.
        """
        if not 0 < len(name) <= STORE_CURSOR_CHARS:
            raise ValueError(f"the name of a cursor has 1 to {STORE_CURSOR_CHARS} characters, not {len(name)}")
        if position > self._end:
            raise ValueError(f"cursor {name!r} cannot be at {position}, the log ends at {self._end}")
        if position < self.first:
            raise StoreTrimmed(position, self.first)
        known = self.shelf.cursors()
        if name not in known and len(known) >= STORE_CURSORS:
            raise LimitReached("STORE_CURSORS", STORE_CURSORS)
        self.shelf.put_cursor(name, position)

    def drop_cursor(self, name: str) -> bool:
        """Take a cursor away; whether there was one."""
        return self.shelf.drop_cursor(name)

    # -- notes -------------------------------------------------------------------------------------------------

    def notes(self) -> dict[str, str]:
        """Small texts that the user of the log keeps with it, by name."""
        return self.shelf.notes()

    def put_note(self, name: str, value: str) -> None:
        """Set a note; on the disk when it returns, also if the log is relaxed."""
        self.shelf.put_note(name, value)

    def drop_note(self, name: str) -> bool:
        """Take a note away; whether there was one."""
        return self.shelf.drop_note(name)

    # -- upkeep ------------------------------------------------------------------------------------------------

    def retain(self, policy: Retention, now_ns: int, *, past_cursors: bool = False) -> Trimmed:
        """Remove the oldest segments as far as the policy says and cursors allow."""
        with self._upkeep:
            before = self.first
            first, held_by = self._first_to_keep(policy, now_ns, past_cursors=past_cursors)
            oldest = ntp64_from_ns(max(now_ns - policy.tombstone_ns, 0))
            if first <= before:
                return Trimmed(before, 0, 0, held_by)
            with self._writing:
                self._latest.forget_tombstones(oldest)
            positions = sorted(at for at in map(position_of, list(self._latest.entries.values())) if at < first)
            kept = list(self._readable(positions))
            self.shelf.trim(first, kept)
            self._reader.forget()
            return Trimmed(first, first - before, sum(batch.num_rows for batch in kept), held_by)

    def _first_to_keep(self, policy: Retention, now_ns: int, *, past_cursors: bool) -> tuple[int, str | None]:
        sizes = self.shelf.sizes()
        if policy.age_ns is not None and sizes and sizes[-1][3] < now_ns - policy.age_ns:
            with self._writing:
                self.shelf.roll()  # else the newest segment could never go
            sizes = self.shelf.sizes()
        first = first_to_keep(sizes, policy, now_ns)
        if first is None or past_cursors:
            return first or self.first, None
        if getattr(self.shelf, "cursors_lost", False):
            return self.first, "cursors that were lost with the catalogue"
        return held_back(first, sizes, self.shelf.cursors())

    def _readable(self, positions: list[int]) -> Iterator[pa.RecordBatch]:
        """The rows at these positions that can still be read."""
        done = 0
        try:
            for batch in self._reader.fetch(positions):
                done += batch.num_rows
                yield batch
        except StoreCorrupt:
            for position in positions[done:]:
                with contextlib.suppress(StoreCorrupt):  # noted as damage when it was found
                    yield from self._reader.fetch([position])

    def compact(self, watch: Callable[[int, int], None] | None = None) -> int:
        """Join the small blocks of sealed segments; how many segments were written anew."""
        shelf = self._disk
        if shelf is None:
            return 0
        with self._upkeep:
            shelf.check_writable()
            segments = shelf.compactable(STORE_BLOCK_ROWS)
            for done, segment in enumerate(segments):
                shelf.compact(segment, joined_blocks(segment.load(block) for block in segment.blocks))
                if watch is not None:
                    watch(done + 1, len(segments))
            self._reader.forget()
            return len(segments)

    def load_index(self) -> None:
        """Make the checkpoint that the log was opened with quick to ask; who asks for all keys does so, too."""
        self._latest.load()

    def checkpoint(self) -> None:
        """Write the index down, so that the next opening reads only what came after."""
        with self._upkeep:
            self.load_index()  # before writers have to wait
            with self._writing:
                self.shelf.check_writable()
                self.shelf.sync()
                end = self._end
                found = None if end == self._checkpointed else self._index.snapshot(end)
            if found is None:
                return
            self.shelf.save_checkpoint(self._index.checkpoint(found))
            self._checkpointed = end
            if self._disk is not None:
                with self._writing:
                    self._disk.move_mark()

    def close(self) -> None:
        """Leave everything on disk, write the index down, and let other processes in."""
        if self.state is State.CLOSED:
            return
        try:
            if self.state is State.OPEN:
                with contextlib.suppress(StoreError):  # an index can be made again
                    self.checkpoint()
        finally:
            with self._writing:
                self._reader.forget()
                self.shelf.close()


def open_log(
    path: str | Path, *, sync: Sync = Sync.DURABLE, read_only: bool = False, create: bool = True,
    segment_bytes: int = STORE_SEGMENT_BYTES, files: Files | None = None, strip_prefix: str = "",
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> Log:  # fmt: skip
    """The log in a directory, made if it is not there. Readers in other processes open it `read_only`, beside a writer.

    Args:
        strip_prefix: what every key begins with and the files are to leave out.

    Raises:
        StoreInUse: another process has it open for writing.
        StoreError: it cannot be opened; the text says why.
    """
    options = {"sync": sync, "read_only": read_only, "create": create, "segment_bytes": segment_bytes, "files": files}
    shelf: Shelf = DiskShelf(Path(path), random=random, **options)  # type: ignore[arg-type]
    return Log(StrippedShelf(shelf, strip_prefix) if strip_prefix else shelf)


def _message(part: Part, block: Run) -> bytes:
    return part.message(block)


def _place(part: Part, block: Run) -> bytes | Place:
    return place_of(part, block) or part.message(block)


def memory_log(*, random: Callable[[int], bytes] = secrets.token_bytes) -> Log:
    """A log that lives as long as the process."""
    return Log(MemoryShelf(random(8).hex()))


def _believed(fields: list[tuple[Any, ...]]) -> Sequence[int]:
    """The times for which samples count, given field by field."""
    times, arrivals = fields[2], fields[4]
    if is_believed(max(times), min(arrivals)):
        return times
    return list(map(believed_time, times, arrivals))


def _blocks(fields: list[tuple[Any, ...]], first: int) -> Iterator[tuple[pa.RecordBatch, Facts]]:
    """Samples given field by field as blocks that are neither too long nor too large."""
    count, start = len(fields[0]), 0
    while start < count:
        stop = min(count, start + STORE_BLOCK_ROWS)
        try:
            octets = sum(map(len, fields[1][start:stop]))
        except TypeError as error:
            raise StoreError("a sample cannot be stored: its payload is not octets") from error
        if octets > STORE_BLOCK_BYTES:
            stop = start + max(1, (stop - start) * STORE_BLOCK_BYTES // octets)
        piece = fields if stop - start == count else [values[start:stop] for values in fields]
        yield from_fields(piece, first + start), facts_of_fields(piece, first + start)
        start = stop


def _apart(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, copied: a column of a block keeps all of the block, payloads too."""
    columns = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
