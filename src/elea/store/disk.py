"""The shelf of a persistent log: a directory of segments with a catalogue.

    NNNNNNNNNNNNNNNNNNNN.arrows   segments, named after their first position; the last one grows
    base.arrows                   newest samples of keys that retention has taken the segments of
    catalogue.sqlite              epoch, sealed segments, cursors, damage
    index                         checkpoint of the newest-sample index and the sources; can be deleted
    lock                          held by the one process that writes
    poisoned                      the disk failed under the store; the last segment is written anew at the next opening
    *.torn                        ends that were cut off after a crash, for whoever wants to look

Every write goes `write, sync, publish`. A full disk leaves the log as it was; any other error makes it read-only,
because after a failed sync nobody can say what is on the disk, and asking again would be answered with a lie.
"""

from __future__ import annotations

import contextlib
import errno
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa

from elea.model.errors import StoreCorrupt, StoreError, StoreFull, StoreInUse, StoreReadOnly
from elea.model.limits import STORE_SEGMENT_BYTES
from elea.store.catalogue import Catalogue, CatalogueDamaged, Damage
from elea.store.checksum import crc32
from elea.store.columns import Facts
from elea.store.files import Files, Handle, Lock, make_directory
from elea.store.frames import BLOCK, seal
from elea.store.recovery import BASE, CATALOGUE, Mark, check_no_orphans, identify, recover, row_of, segment_name
from elea.store.segment import Header, Segment, header_frame, write_segment
from elea.store.shelf import Checkpoint, State, View

__all__ = ["DiskShelf", "Sync"]

INDEX: Final = "index"
POISONED: Final = "poisoned"
LOCK: Final = "lock"

_INDEX_HEAD: Final = struct.Struct("<8sIqQQ")
_INDEX_MAGIC: Final = b"EleaIdx1"
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Sync(Enum):
    """When an append returns."""

    DURABLE = "durable"
    """When the samples are on the disk: they outlive a power cut."""

    RELAXED = "relaxed"
    """When the system has them: they outlive the process, not a power cut, until `sync` is called."""


class DiskShelf:
    """Samples in a directory."""

    def __init__(
        self, path: Path, *, sync: Sync = Sync.DURABLE, read_only: bool = False, create: bool = True,
        segment_bytes: int = STORE_SEGMENT_BYTES, files: Files | None = None, random: Callable[[int], bytes],
    ) -> None:  # fmt: skip
        """
        Raises:
            StoreInUse: another process writes to it.
            StoreError: it is not there, or cannot be read.
        """
        self.path = path
        self.mode = sync
        self.state = State.READ_ONLY if read_only else State.OPEN
        self.reason = "opened for reading" if read_only else ""
        self.syncs = 0
        """How often samples were synced since the log was opened."""
        self._files = files or Files()
        self._random = random
        self._segment_bytes = segment_bytes
        self._resources = contextlib.ExitStack()
        self._read_only = read_only
        self._swapping = threading.Lock()  # appending, compacting and trimming each replace the view
        try:
            self._open(create=create)
        except OSError as error:
            self._resources.close()
            raise StoreError(f"cannot open the store {path}: {error}") from error
        except BaseException:
            self._resources.close()
            raise

    # -- opening -----------------------------------------------------------------------------------------------

    def _open(self, *, create: bool) -> None:
        if not self._read_only and create:
            make_directory(self.path)
        if not self.path.is_dir() or (self._read_only and not any(self.path.iterdir())):
            raise StoreError(f"there is no store in {self.path}; check the path")
        if not self._read_only:
            lock = Lock(self.path / LOCK)
            self._resources.callback(lock.release)
            holder = lock.take()
            if holder is not None:
                raise StoreInUse(str(self.path), holder)
            for left in self.path.glob("*.new"):  # a replacement that never took place
                left.unlink()
        self._catalogue, found = self._open_catalogue()
        self._resources.callback(self._catalogue.close)
        self._log = self._catalogue.fact("log") or ""
        self._salt = int(self._catalogue.fact("salt") or "0", 16)
        self.epoch = self._catalogue.fact("epoch") or self._log
        self._set_recovered(found)

    def _open_catalogue(self) -> tuple[Catalogue, list[Damage]]:
        path = self.path / CATALOGUE
        known = identify(self.path)
        missing = not path.exists()
        found: list[Damage] = []
        if not missing:
            try:
                return Catalogue(path, read_only=self._read_only), found
            except CatalogueDamaged as error:
                found.append(Damage(CATALOGUE, 0, path.stat().st_size, 0, -1, f"{error}; cursors are lost"))
        elif known is not None:
            found.append(Damage(CATALOGUE, 0, 0, 0, -1, "the file is missing; cursors are lost"))
        if self._read_only:
            problem = found[0].why if found else "there is no catalogue"
            raise StoreError(f"{problem}; open the store for writing to have it made anew")
        if not missing:
            # Kept, not repaired: what it says can no longer be told from what it said.
            aside = next(p for n in range(1_000_000) if not (p := path.with_name(f"{CATALOGUE}.{n}.damaged")).exists())
            self._files.rename(path, aside)
            path.with_name(f"{CATALOGUE}-journal").unlink(missing_ok=True)
        if known is None:
            check_no_orphans(self.path)
        return self._new_catalogue(path, known, lost=bool(found)), found

    def _new_catalogue(self, path: Path, known: tuple[str, int, int] | None, *, lost: bool) -> Catalogue:
        log, salt, first = known or (self._random(8).hex(), int.from_bytes(self._random(4), "little"), 0)
        catalogue = Catalogue(path)
        facts = {"log": log, "salt": f"{salt:08x}", "epoch": log, "first": str(first)}
        catalogue.set_facts(**facts, cursors_lost="1" if lost else "0")
        self._files.sync_directory(self.path)
        return catalogue

    def _set_recovered(self, damage: list[Damage]) -> None:
        if not self._read_only:
            for one in damage:
                self._catalogue.put_damage(one)
        found = recover(self.path, self._catalogue, self._files, read_only=self._read_only)
        while self._read_only and int(self._catalogue.fact("first") or "0") != found.first:
            # The writer has removed segments meanwhile, which only looked as if they were lost.
            found = recover(self.path, self._catalogue, self._files, read_only=True)
        self.view = View(found.first, tuple(found.segments), found.base)
        self.next = found.next
        self.torn = found.torn
        self.unknown = found.unknown
        self._active = None if self._read_only else found.active
        known = {(one.segment, one.offset, one.first) for one in found.damage}
        older = [one for one in self._catalogue.damage() if (one.segment, one.offset, one.first) not in known]
        self.damage = sorted([*older, *found.damage], key=lambda one: (one.first, one.segment, one.offset))
        if self._read_only:
            return
        if self._catalogue.fact("unsynced") == "1":
            # Positions of a relaxed log may have been read and then lost with the power: their next holders are others.
            self.epoch = self._random(8).hex()
            self._catalogue.set_facts(epoch=self.epoch, unsynced="0")
        self._heal()
        if self.mode is Sync.RELAXED:
            self._catalogue.set_facts(unsynced="1")

    def _heal(self) -> None:
        """After a failed sync the system may show octets that are not on the disk: write them anew."""
        marker = self.path / POISONED
        if not marker.exists():
            return
        if self._active is not None:
            self._rewrite(self._active, [self._active.load(block) for block in self._active.blocks])
        self._files.remove(marker)

    # -- writing -----------------------------------------------------------------------------------------------

    def check_writable(self) -> None:
        if self.state in (State.READ_ONLY, State.CLOSED):
            raise StoreReadOnly(self.reason or self.state.value)

    def write(self, blocks: Sequence[tuple[pa.RecordBatch, Facts]]) -> None:
        """Append, and return when it is as safe as the mode says.

        Raises:
            StoreFull: no room; the log is as before, and the next call tries again.
            StoreReadOnly: the disk failed; nothing more is taken.
        """
        self.check_writable()
        active = self._ensure_active()
        parts: list[bytes | memoryview] = []
        written = []
        at = active.size
        for batch, facts in blocks:
            frame, block = seal(batch.serialize(), BLOCK, facts, salt=self._salt, offset=at)
            parts += frame
            written.append(block)
            at = block.end
        try:
            self._files.write(active.handle, parts, active.size)
        except OSError as error:
            self._write_failed(active, error)
        self._files.reach("written")
        if self.mode is Sync.DURABLE:
            self._sync(active)
        self._files.reach("synced")
        active.extend(written, at, [batch.column("key").to_pylist() for batch, _ in blocks])
        self.next = active.next
        self.state = State.OPEN

    def sync(self) -> None:
        """Return when everything appended is on the disk."""
        self.check_writable()
        if self._active is not None:
            self._sync(self._active)

    def _sync(self, segment: Segment) -> None:
        try:
            self._files.sync(segment.handle)
            self.syncs += 1
        except OSError as error:
            self._poison(f"the disk failed to sync {segment.name}: {error}", error)

    def _write_failed(self, active: Segment, error: OSError) -> NoReturn:
        if error.errno not in _FULL:
            self._poison(f"the disk failed to write {active.name}: {error}", error)
        try:
            # What was written before the disk was full must not lie between this and the next frame.
            self._files.truncate(active.handle, active.size)
        except OSError as worse:
            self._poison(f"the disk is full and {active.name} cannot be cut: {worse}", worse)
        self.state = State.FULL
        raise StoreFull(f"no room in {self.path} ({error.strerror}); nothing was stored, free some space") from error

    def _poison(self, reason: str, error: BaseException) -> NoReturn:
        self.state = State.READ_ONLY
        self.reason = f"{reason}; check the disk and open the store again"
        with contextlib.suppress(OSError):  # a marker that cannot be written changes nothing about the state
            self._files.replace(self.path / POISONED, [reason.encode()])
        raise StoreReadOnly(self.reason) from error

    def _ensure_active(self) -> Segment:
        if self._active is not None and self._active.size >= self._segment_bytes:
            self.roll()
        if self._active is None:
            self._active = self._new_segment()
            with self._swapping:
                self.view = self.view._replace(parts=(*self.view.parts, self._active))
        return self._active

    def roll(self) -> None:
        """Seal the active segment; the next sample opens a new one."""
        active = self._active
        if active is None or not active.blocks:
            return
        if self.mode is Sync.RELAXED:
            self._sync(active)
        self._files.reach("roll-before-catalogue")
        self._guard(lambda: self._catalogue.put_segment(row_of(active), mark=str(Mark(active.next, 0, active.next))))
        self._files.reach("roll-after-catalogue")
        active.handle.unpin()
        self._active = None

    def _new_segment(self) -> Segment:
        path = self.path / segment_name(self.next)
        header = header_frame(self._log, self._salt, self.next)
        try:
            handle = self._files.open(path, create=True)
            try:
                self._files.write(handle, [header], 0)
                self._files.reach("segment-written")
                self._files.sync(handle)
                self._files.sync_directory(self.path)
            except OSError:
                path.unlink(missing_ok=True)
                raise
        except OSError as error:
            if error.errno in _FULL:
                self.state = State.FULL
                raise StoreFull(f"no room in {self.path} for a segment; nothing was stored, free some space") from error
            self._poison(f"the disk failed to make {path.name}: {error}", error)
        self._files.reach("segment-synced")
        return Segment(handle, Header(self._log, self._salt, self.next, len(header)), size=len(header), blocks=[])

    def _guard(self, change: Callable[[], None]) -> None:
        """A change of the catalogue on the way of a write."""
        try:
            change()
        except StoreFull:
            self.state = State.FULL
            raise
        except StoreError as error:
            self._poison(str(error), error)

    # -- upkeep ------------------------------------------------------------------------------------------------

    def compactable(self, rows: int) -> list[Segment]:
        """Sealed segments whose blocks are so small that joining them to blocks of `rows` pays."""
        found: list[Segment] = []
        for part in self.view.parts:
            assert isinstance(part, Segment)
            blocks = part.blocks
            held = sum(block.facts.rows for block in blocks)
            sound = len(blocks) > 1 and held == part.next - part.first
            fewer = max(1, -(-held // rows), part.size // STORE_SEGMENT_BYTES)
            if part is not self._active and sound and len(blocks) >= 4 * fewer:
                found.append(part)
        return found

    def compact(self, segment: Segment, batches: Iterable[pa.RecordBatch]) -> None:
        """Replace a sealed segment by the same samples in larger blocks."""
        self._rewrite(segment, batches)

    def _rewrite(self, old: Segment, batches: Iterable[pa.RecordBatch]) -> None:
        header = header_frame(self._log, self._salt, old.first)
        try:
            blocks = write_segment(self._files, old.path, header, batches, self._salt)
            handle = self._files.open(old.path) if old is self._active else Handle(old.path)
        except OSError as error:
            if error.errno in _FULL:
                raise StoreFull(f"no room to write {old.name} anew; it stays as it is") from error
            raise StoreError(f"{old.name} cannot be written anew: {error}") from error
        size = blocks[-1].end if blocks else len(header)
        new = Segment(handle, Header(self._log, self._salt, old.first, len(header)), size=size, blocks=blocks)
        with self._swapping:
            parts = tuple(new if part is old else part for part in self.view.parts)
            self.view = self.view._replace(parts=parts)
        if self._active is old:
            self._active = new
        else:
            self._catalogue.put_segment(row_of(new))

    def trim(self, first: int, kept: Sequence[pa.RecordBatch]) -> None:
        """Remove segments below `first`; `kept` becomes the base."""
        base_path = self.path / BASE
        header = header_frame(self._log, self._salt, 0)
        try:
            blocks = write_segment(self._files, base_path, header, kept, self._salt)
            handle = Handle(base_path)
        except OSError as error:
            raise (StoreFull if error.errno in _FULL else StoreError)(f"cannot write {BASE}: {error}") from error
        self._files.reach("trim-base-written")
        self._catalogue.drop_segments(first, first=str(first))
        self._files.reach("trim-catalogue-written")
        size = blocks[-1].end if blocks else len(header)
        facts = Header(self._log, self._salt, 0, len(header))
        base = Segment(handle, facts, size=size, blocks=blocks, dense=False)
        with self._swapping:
            gone = [part for part in self.view.parts if part.first < first]
            self.view = View(first, tuple(part for part in self.view.parts if part.first >= first), base)
        for part in gone:
            assert isinstance(part, Segment)
            self._files.remove(part.path)

    def sizes(self) -> list[tuple[int, int, int, int]]:
        """Per segment its first position, the position behind it, its octets, and the newest arrival."""
        rows = {row.first: row for row in self._catalogue.segments()}
        found: list[tuple[int, int, int, int]] = []
        parts = self.view.parts
        for index, part in enumerate(parts):
            assert isinstance(part, Segment)
            row = rows.get(part.first) or row_of(part)
            after = parts[index + 1].first if index + 1 < len(parts) else max(row.last + 1, part.first)
            found.append((part.first, after, part.size, row.max_arrival))
        return found

    # -- cursors, damage, checkpoint ---------------------------------------------------------------------------

    @property
    def cursors_lost(self) -> bool:
        """Whether the catalogue was lost, and cursors with it that retention should have waited for."""
        return self._catalogue.fact("cursors_lost") == "1"

    def accept_loss(self) -> None:
        """Somebody looked at the damage: forget it, and let retention go on without the lost cursors."""
        self.check_writable()
        self._catalogue.clear_damage()
        self._catalogue.set_facts(cursors_lost="0")
        self.damage = []

    def cursors(self) -> dict[str, int]:
        return self._catalogue.cursors()

    def put_cursor(self, name: str, position: int) -> None:
        self.check_writable()
        self._catalogue.put_cursor(name, position)

    def drop_cursor(self, name: str) -> bool:
        self.check_writable()
        return self._catalogue.drop_cursor(name)

    def notes(self) -> dict[str, str]:
        return self._catalogue.notes()

    def put_note(self, name: str, value: str) -> None:
        self.check_writable()
        self._catalogue.put_note(name, value)

    def drop_note(self, name: str) -> bool:
        self.check_writable()
        return self._catalogue.drop_note(name)

    def note_damage(self, error: StoreCorrupt) -> None:
        """Remember what a reader ran into."""
        damage = Damage(error.segment, error.offset, 0, error.position, error.last, error.why)
        if any(one[:2] == damage[:2] and one.first == damage.first for one in self.damage):
            return
        self.damage = [*self.damage, damage]
        if not self._read_only:
            with contextlib.suppress(StoreError):  # the reader gets the damage itself as its error
                self._catalogue.put_damage(damage)

    def load_checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, if it is whole and of this log."""
        try:
            data = (self.path / INDEX).read_bytes()
        except FileNotFoundError:
            return None
        try:
            magic, crc, position, latest, sources = _INDEX_HEAD.unpack_from(data)
            start = _INDEX_HEAD.size
            whole = magic == _INDEX_MAGIC and len(data) == start + latest + sources
            # Without a copy: it may have a hundred megabytes, and somebody waits.
            if not whole or crc32(memoryview(data)[12:], self._salt) != crc:
                raise ValueError("wrong checksum")
            octets = pa.py_buffer(data)
            parts = octets.slice(start, latest), octets.slice(start + latest)
            tables = [pa.ipc.open_stream(part) for part in parts]
            return position, tables[0].read_next_batch(), tables[1].read_next_batch()
        except (struct.error, ValueError, pa.ArrowException, StopIteration) as error:
            self.damage = [*self.damage, Damage(INDEX, 0, len(data), 0, -1, f"{error}; made anew from the segments")]
            return None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and move the mark behind which an end may be torn."""
        position, latest, sources = checkpoint
        tables = [_stream(latest), _stream(sources)]
        rest = _INDEX_HEAD.pack(_INDEX_MAGIC, 0, position, len(tables[0]), len(tables[1]))[12:]
        crc = self._salt
        for part in (rest, *tables):
            crc = crc32(part, crc)
        try:
            self._files.replace(self.path / INDEX, [_INDEX_MAGIC, struct.pack("<I", crc), rest, *tables])
        except OSError as error:
            raise (StoreFull if error.errno in _FULL else StoreError)(f"cannot write the index: {error}") from error

    def move_mark(self) -> None:
        """Say in the catalogue how far the active segment is on disk."""
        active = self._active
        if active is not None and self.state in (State.OPEN, State.FULL):
            self._catalogue.set_facts(mark=str(Mark(active.first, active.size, active.next)))

    def close(self) -> None:
        """Leave everything on disk and give the lock back."""
        if self.state is State.CLOSED:
            return
        try:
            if self.state in (State.OPEN, State.FULL):
                self.sync()
                self.move_mark()
                if self.mode is Sync.RELAXED:
                    self._catalogue.set_facts(unsynced="0")
        finally:
            self.state = State.CLOSED
            self._active = None
            self.view = View(self.view.first, (), None)
            self._resources.close()


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data
