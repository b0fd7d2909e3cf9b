"""What a log needs of the place where its samples lie: the seam between memory and disk."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import pyarrow as pa

from elea.model.errors import StoreCorrupt
from elea.store.catalogue import Damage
from elea.store.columns import Facts

__all__ = ["Checkpoint", "KeyedBlocks", "Part", "Run", "Shelf", "State", "View"]


class State(Enum):
    """What a log can do at present."""

    OPEN = "open"
    FULL = "full"
    """There was no room for the last samples; the next append tries again."""

    READ_ONLY = "read-only"
    """It was opened so, or the disk failed: nothing is taken any more until the log is opened again."""

    CLOSED = "closed"


class Run(Protocol):
    """Consecutive samples, stored together."""

    @property
    def facts(self) -> Facts: ...
    @property
    def size(self) -> int:
        """Octets, about."""
        ...


class KeyedBlocks(NamedTuple):
    """Where a key is in one part."""

    numbers: list[int]
    """The blocks that may have it, in order."""

    gaps: list[int]
    """The blocks before which positions are missing."""

    octets: int
    """Memory that knowing this takes, for all keys."""


class Part(Protocol):
    """A part of a log: a segment on disk, or its twin in memory. Its blocks are in the order of positions."""

    @property
    def name(self) -> str: ...
    @property
    def first(self) -> int: ...
    @property
    def blocks(self) -> Sequence[Run]: ...
    @property
    def next(self) -> int: ...
    def block_of(self, position: int) -> Run | None: ...
    def load(self, block: Run) -> pa.RecordBatch: ...
    def message(self, block: Run) -> bytes: ...
    def blocks_with(self, key: str) -> KeyedBlocks | None:
        """Where a key is; None if that is not known: then all blocks are looked at."""
        ...

    def forget_keys(self) -> None:
        """Give the memory of that back."""


class View(NamedTuple):
    """What a reader needs, as it was at one moment: segments that are replaced or removed later stay readable in it."""

    first: int
    """The oldest position of the history."""

    parts: tuple[Part, ...]
    """The history, in the order of positions."""

    base: Part | None
    """The samples before `first` that are still the newest of their keys."""


Checkpoint = tuple[int, pa.RecordBatch, pa.RecordBatch]
"""The position up to which it counts, the newest entries, the numbers of the sources."""


class Shelf(Protocol):
    """The samples of one log. One thread at a time changes it; any number read the view, which is only replaced."""

    @property
    def epoch(self) -> str: ...
    @property
    def next(self) -> int: ...
    @property
    def state(self) -> State: ...
    @property
    def view(self) -> View: ...
    @property
    def damage(self) -> list[Damage]: ...
    def check_writable(self) -> None: ...
    def write(self, blocks: Sequence[tuple[pa.RecordBatch, Facts]]) -> None: ...
    def sync(self) -> None: ...
    def roll(self) -> None: ...
    def trim(self, first: int, kept: Sequence[pa.RecordBatch]) -> None: ...
    def sizes(self) -> list[tuple[int, int, int, int]]: ...
    def cursors(self) -> dict[str, int]: ...
    def put_cursor(self, name: str, position: int) -> None: ...
    def drop_cursor(self, name: str) -> bool: ...
    def notes(self) -> dict[str, str]: ...
    def put_note(self, name: str, value: str) -> None: ...
    def drop_note(self, name: str) -> bool: ...
    def note_damage(self, error: StoreCorrupt) -> None: ...
    def load_checkpoint(self) -> Checkpoint | None: ...
    def save_checkpoint(self, checkpoint: Checkpoint) -> None: ...
    def close(self) -> None: ...
