"""A shelf whose samples lie there without the first chunks of their keys: what a storage's `strip_prefix` asks for.

It stands between a log and its shelf. The log, its index and everybody above see whole keys; files have the rest of
them only, so that a directory can be served under another prefix. The key that is the prefix itself lies there as the
empty one. Spec: zenoh-1 section 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreCorrupt, StoreError
from elea.store.catalogue import Damage
from elea.store.columns import SCHEMA, Facts
from elea.store.shelf import Checkpoint, KeyedBlocks, Part, Run, Shelf, State, View

__all__ = ["StrippedShelf"]

_KEY: Final = SCHEMA.get_field_index("key")


class _Part:
    """A part of the log as it is seen from above."""

    def __init__(self, inner: Part, prefix: str) -> None:
        self.inner = inner
        self._prefix = prefix

    # A view is made anew with each change; what a reader remembers of a part must stay its own.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Part) and self.inner is other.inner

    def __hash__(self) -> int:
        return hash(self.inner)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def first(self) -> int:
        return self.inner.first

    @property
    def blocks(self) -> Sequence[Run]:
        return self.inner.blocks

    @property
    def next(self) -> int:
        return self.inner.next

    def block_of(self, position: int) -> Run | None:
        return self.inner.block_of(position)

    def load(self, block: Run) -> pa.RecordBatch:
        return _with_keys(self.inner.load(block), _KEY, _whole, self._prefix)

    def message(self, block: Run) -> bytes:
        data: bytes = self.load(block).serialize().to_pybytes()
        return data

    def blocks_with(self, key: str) -> KeyedBlocks | None:
        if key != self._prefix and not key.startswith(f"{self._prefix}/"):
            return None
        return self.inner.blocks_with(key[len(self._prefix) + 1 :])

    def forget_keys(self) -> None:
        self.inner.forget_keys()


class StrippedShelf:
    """See the module."""

    def __init__(self, inner: Shelf, prefix: str) -> None:
        self.inner = inner
        self.prefix = prefix
        self._seen: tuple[View, View] | None = None

    @property
    def epoch(self) -> str:
        return self.inner.epoch

    @property
    def next(self) -> int:
        return self.inner.next

    @property
    def state(self) -> State:
        return self.inner.state

    @property
    def damage(self) -> list[Damage]:
        return self.inner.damage

    @property
    def view(self) -> View:
        inner, seen = self.inner.view, self._seen
        if seen is None or seen[0] is not inner:
            parts = tuple(_Part(part, self.prefix) for part in inner.parts)
            base = None if inner.base is None else _Part(inner.base, self.prefix)
            seen = self._seen = inner, View(inner.first, parts, base)
        return seen[1]

    @property
    def cursors_lost(self) -> bool:
        return bool(getattr(self.inner, "cursors_lost", False))

    def check_writable(self) -> None:
        self.inner.check_writable()

    def write(self, blocks: Sequence[tuple[pa.RecordBatch, Facts]]) -> None:
        self.inner.write([(self._short(batch), facts) for batch, facts in blocks])

    def trim(self, first: int, kept: Sequence[pa.RecordBatch]) -> None:
        self.inner.trim(first, [self._short(batch) for batch in kept])

    def load_checkpoint(self) -> Checkpoint | None:
        found = self.inner.load_checkpoint()
        if found is None:
            return None
        end, latest, sources = found
        return end, _with_keys(latest, 0, _whole, self.prefix), sources

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        end, latest, sources = checkpoint
        self.inner.save_checkpoint((end, _with_keys(latest, 0, _rest, self.prefix), sources))

    def sync(self) -> None:
        self.inner.sync()

    def roll(self) -> None:
        self.inner.roll()

    def sizes(self) -> list[tuple[int, int, int, int]]:
        return self.inner.sizes()

    def cursors(self) -> dict[str, int]:
        return self.inner.cursors()

    def put_cursor(self, name: str, position: int) -> None:
        self.inner.put_cursor(name, position)

    def drop_cursor(self, name: str) -> bool:
        return self.inner.drop_cursor(name)

    def notes(self) -> dict[str, str]:
        return self.inner.notes()

    def put_note(self, name: str, value: str) -> None:
        self.inner.put_note(name, value)

    def drop_note(self, name: str) -> bool:
        return self.inner.drop_note(name)

    def note_damage(self, error: StoreCorrupt) -> None:
        self.inner.note_damage(error)

    def close(self) -> None:
        self.inner.close()

    def _short(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = batch.column(_KEY)
        below = pc.or_(pc.starts_with(keys, f"{self.prefix}/"), pc.equal(keys, self.prefix))
        if not pc.all(below).as_py():
            key = keys.filter(pc.invert(below))[0].as_py()
            raise StoreError(f"key {key!r} does not begin with {self.prefix!r}, which this store strips; not stored")
        return _with_keys(batch, _KEY, _rest, self.prefix)


def _with_keys(batch: pa.RecordBatch, column: int, change: Any, prefix: str) -> pa.RecordBatch:
    return batch.set_column(column, batch.schema.field(column), change(batch.column(column), prefix))


def _rest(keys: pa.Array, prefix: str) -> pa.Array:
    """The keys without the prefix and the slash behind it."""
    # By characters: `binary_slice` fails on values that end before the start (pyarrow 26.0.1).
    return pc.utf8_slice_codeunits(keys, len(prefix) + 1)


def _whole(rest: pa.Array, prefix: str) -> pa.Array:
    """The opposite."""
    keys = pc.binary_join_element_wise(pa.scalar(prefix), rest, "/")
    return pc.if_else(pc.equal(rest, ""), pa.scalar(prefix), keys)
