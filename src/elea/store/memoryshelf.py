"""The shelf of a transient log: the same blocks as on disk, in memory."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from elea.model.errors import StoreCorrupt, StoreReadOnly
from elea.model.limits import STORE_BLOCK_ROWS
from elea.store.catalogue import Damage
from elea.store.columns import Facts, facts_of
from elea.store.shelf import Checkpoint, Run, State, View

__all__ = ["MemoryShelf"]

PART_BYTES: Final = 8 << 20
"""Octets of a part; retention drops whole parts."""


class _Held(NamedTuple):
    facts: Facts
    batch: pa.RecordBatch

    @property
    def size(self) -> int:
        return int(self.batch.nbytes)


class _MemoryPart:
    def __init__(self, first: int, blocks: Sequence[_Held] = ()) -> None:
        self.name = f"memory-{first}"
        self.first = first
        self.blocks: tuple[_Held, ...] = tuple(blocks)

    @property
    def next(self) -> int:
        return self.blocks[-1].facts.last + 1 if self.blocks else self.first

    @property
    def size(self) -> int:
        return sum(block.batch.nbytes for block in self.blocks)

    def block_of(self, position: int) -> _Held | None:
        blocks = self.blocks
        at = bisect_right(blocks, position, key=lambda block: block.facts.first) - 1
        return blocks[at] if at >= 0 and position <= blocks[at].facts.last else None

    def load(self, block: Run) -> pa.RecordBatch:
        return block.batch  # type: ignore[attr-defined]  # only our own blocks are handed back to us

    def message(self, block: Run) -> bytes:
        data: bytes = self.load(block).serialize().to_pybytes()
        return data

    def blocks_with(self, key: str) -> None:
        """Blocks in memory are large, and there is nothing to read: all of them are looked at."""

    def forget_keys(self) -> None:
        """Nothing is known of keys."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a batch. Small ones are joined with those before, like with like, so that each row moves seldom."""
        blocks = list(self.blocks)
        while blocks and blocks[-1].facts.rows <= batch.num_rows and batch.num_rows * 2 <= STORE_BLOCK_ROWS:
            batch = pa.concat_batches([blocks.pop().batch, batch])
        self.blocks = (*blocks, _Held(facts_of(batch), batch))


class MemoryShelf:
    """Samples in memory, gone with the process."""

    def __init__(self, epoch: str, *, part_bytes: int = PART_BYTES) -> None:
        self.epoch = epoch
        self.next = 0
        self.state = State.OPEN
        self.view = View(0, (), None)
        self.damage: list[Damage] = []
        self._part_bytes = part_bytes
        self._active: _MemoryPart | None = None
        self._active_bytes = 0
        self._cursors: dict[str, int] = {}
        self._notes: dict[str, str] = {}
        self._swapping = threading.Lock()

    def check_writable(self) -> None:
        if self.state is not State.OPEN:
            raise StoreReadOnly(self.state.value)

    def write(self, blocks: Sequence[tuple[pa.RecordBatch, Facts]]) -> None:
        for batch, _ in blocks:
            if self._active is None or self._active_bytes >= self._part_bytes:
                self._active = _MemoryPart(self.next)
                self._active_bytes = 0
                with self._swapping:
                    self.view = self.view._replace(parts=(*self.view.parts, self._active))
            self._active.add(batch)
            self._active_bytes += batch.nbytes
            self.next += batch.num_rows

    def sync(self) -> None:
        """Memory has nothing to be synced with."""

    def roll(self) -> None:
        self._active = None

    def trim(self, first: int, kept: Sequence[pa.RecordBatch]) -> None:
        blocks = [_Held(facts_of(batch), batch) for batch in kept if batch.num_rows]
        base = _MemoryPart(0, blocks) if blocks else None
        with self._swapping:
            self.view = View(first, tuple(part for part in self.view.parts if part.first >= first), base)

    def sizes(self) -> list[tuple[int, int, int, int]]:
        found = []
        for part in self.view.parts:
            assert isinstance(part, _MemoryPart)
            newest = max((block.facts.max_arrival for block in part.blocks), default=0)
            found.append((part.first, part.next, part.size, newest))
        return found

    def cursors(self) -> dict[str, int]:
        return dict(self._cursors)

    def put_cursor(self, name: str, position: int) -> None:
        self._cursors[name] = position

    def drop_cursor(self, name: str) -> bool:
        return self._cursors.pop(name, None) is not None

    def notes(self) -> dict[str, str]:
        return dict(self._notes)

    def put_note(self, name: str, value: str) -> None:
        self._notes[name] = value

    def drop_note(self, name: str) -> bool:
        return self._notes.pop(name, None) is not None

    def note_damage(self, error: StoreCorrupt) -> None:
        """Memory has no checksums, so nothing is ever found damaged."""

    def load_checkpoint(self) -> Checkpoint | None:
        return None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """There is nothing to be read again later."""

    def close(self) -> None:
        self.state = State.CLOSED
        self.view, self._active = View(self.view.first, (), None), None
