"""A segment: one file of frames, the first of which is the schema. Reading, looking for damage, writing anew."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreCorrupt, StoreError, StoreTrimmed
from elea.store.catalogue import Damage
from elea.store.columns import SCHEMA, Facts, facts_of
from elea.store.files import Files, Handle, ReadingAhead
from elea.store.frames import BLOCK, HEADER, BadFrame, Block, bare, check_body, find_frames, head_size, read_head, seal
from elea.store.keyblocks import KeyBlocks
from elea.store.shelf import KeyedBlocks, Run

__all__ = ["FORMAT", "SUFFIX", "Header", "Scan", "Segment", "header_frame", "read_header", "scan", "write_segment"]

FORMAT: Final = 1
"""The version of the format; a file of a later one is refused, not guessed at."""

SUFFIX: Final = ".arrows"

_HEAD_GUESS: Final = 4096
"""Octets read for the head of a frame, which has some 2,100."""


class Header(NamedTuple):
    """What the first frame of a segment says."""

    log: str
    salt: int
    first: int
    size: int


class Scan(NamedTuple):
    """What is in a segment file."""

    blocks: list[Block]
    damage: list[Damage]
    end: int
    """The offset behind the last sound frame."""

    tail: str | None
    """What is wrong with the octets behind `end`; None if there are none."""


def header_frame(log: str, salt: int, first: int) -> bytes:
    """The first frame of a segment."""
    metadata = {"elea.format": str(FORMAT), "elea.log": log, "elea.salt": f"{salt:08x}"}
    message = SCHEMA.with_metadata(metadata).serialize()
    parts, _ = seal(message, HEADER, Facts(first, first - 1, 0, 0, 0, 0, 0), salt=0, offset=0)
    return b"".join(parts)


def read_header(handle: Handle) -> Header:
    """
    Raises:
        BadFrame: the file does not start as a segment does.
        StoreError: a later version of Elea wrote it.
    """
    data = handle.read(_HEAD_GUESS, 0)
    if len(data) >= 8 and (need := head_size(data)) > len(data):
        data = handle.read(need, 0)
    block = read_head(data, offset=0, magic=HEADER, salt=0)
    metadata = pa.ipc.read_schema(pa.py_buffer(data[: block.size])).metadata or {}
    try:
        version = int(metadata[b"elea.format"])
        header = Header(metadata[b"elea.log"].decode(), int(metadata[b"elea.salt"], 16), block.facts.first, block.size)
    except (KeyError, ValueError) as error:
        raise BadFrame(f"its header lacks {error}") from error
    if version > FORMAT:
        raise StoreError(f"{handle.path.name} has format {version}, this Elea reads {FORMAT}; use a newer one")
    return header


def scan(
    handle: Handle, *, start: int, size: int, salt: int, first: int, bodies: bool, dense: bool = True,
    watch: Callable[[int], None] | None = None,
) -> Scan:  # fmt: skip
    """Walk over the frames from offset `start` to `size`; the first sample should have position `first`.

    Heads are always checked, bodies if asked. Damage that sound frames follow is told apart from a bad end. Positions
    of a base, which holds what retention kept, are not `dense`.
    """
    name = handle.path.name
    ahead = ReadingAhead(handle, size)
    blocks: list[Block] = []
    damage: list[Damage] = []
    at, expected = start, first
    while at < size:
        try:
            block = _block_at(ahead, at, size, salt, bodies=bodies)
            if block.facts.first < expected or block.facts.last < block.facts.first:
                raise BadFrame(f"positions {block.facts.first} to {block.facts.last} where {expected} was due")
        except BadFrame as bad:
            found = _next_block(handle, at, size, salt, expected)
            if found is None:
                return Scan(blocks, damage, at, str(bad))
            damage.append(Damage(name, at, found.offset - at, expected, found.facts.first - 1, str(bad)))
            block = found
        else:
            if dense and block.facts.first > expected:
                damage.append(Damage(name, at, 0, expected, block.facts.first - 1, "samples are missing"))
        blocks.append(block)
        expected = block.facts.last + 1
        at = block.end
        if watch is not None:
            watch(at)
    return Scan(blocks, damage, at, None)


def _block_at(handle: ReadingAhead, at: int, size: int, salt: int, *, bodies: bool) -> Block:
    data = handle.read(min(_HEAD_GUESS, size - at), at)
    need = head_size(data)
    if at + need > size:
        raise BadFrame("its head is cut off")
    if need > len(data):
        data = handle.read(need, at)
    block = read_head(data, offset=at, magic=BLOCK, salt=salt)
    if block.end > size:
        raise BadFrame(f"{block.end - size} octets of its body are missing")
    if bodies:
        check_body(handle.read(block.body, at + block.head), block, salt)
    return block


def _next_block(handle: Handle, at: int, size: int, salt: int, expected: int) -> Block | None:
    data = handle.read(size - at, at)
    for block in find_frames(data, 8, offset=at, salt=salt):
        if block.facts.first >= expected:
            return block
    return None


class Segment:
    """One file of a log. The active one grows at its end; the others change only by being replaced."""

    def __init__(
        self, handle: Handle, header: Header, *, size: int, blocks: list[Block] | None, dense: bool = True
    ) -> None:
        self._handle = handle
        self._dense = dense
        self._blocks = blocks
        self._keys: KeyBlocks | None = None if blocks or blocks is None else KeyBlocks()
        self._keying = threading.Lock()
        self._building = threading.Lock()
        self.salt = header.salt
        self.first = header.first
        self.name = handle.path.name
        self.path: Path = handle.path
        self.start = header.size
        self.size = size
        """Octets that are part of the log; what an append in progress writes behind them is not."""

    @property
    def handle(self) -> Handle:
        """The open file."""
        return self._handle

    @property
    def blocks(self) -> list[Block]:
        """The blocks in order; those of an old segment are looked up when first asked for."""
        blocks = self._blocks
        if blocks is None:
            found = scan(
                self._handle, start=self.start, size=self.size, salt=self.salt, first=self.first, bodies=False,
                dense=self._dense,
            )  # fmt: skip
            blocks = self._blocks = found.blocks
        return blocks

    @property
    def next(self) -> int:
        """The position behind the last sample."""
        blocks = self.blocks
        return blocks[-1].facts.last + 1 if blocks else self.first

    def extend(self, blocks: Sequence[Block], size: int, keys: Iterable[Iterable[str]] = ()) -> None:
        """Make written frames part of the segment; `keys` are those of each."""
        self.size = size
        with self._keying:
            known = self._keys
            if known is not None:
                for its_keys in keys:
                    known.add(its_keys, gap=False)
            self.blocks.extend(blocks)

    def blocks_with(self, key: str) -> KeyedBlocks:
        """The blocks that may have a key; of a segment that did not grow under these eyes, all are read once."""
        known = self._keys
        if known is None:
            with self._building:
                known = self._keys or self._keyed()
        return KeyedBlocks(known.find(key), known.gaps, known.octets)

    def _keyed(self) -> KeyBlocks:
        known = KeyBlocks()
        while True:
            for number in range(known.count, len(self.blocks)):
                known.add(self._keys_of(self.blocks[number]), gap=self._is_gap(number))
            known.settle()
            with self._keying:  # who appends does not wait for the reading
                if known.count == len(self.blocks):
                    self._keys = known
                    return known

    def forget_keys(self) -> None:
        """Give the memory of that back; it can be made again."""
        self._keys = None

    def _keys_of(self, block: Block) -> list[str] | None:
        try:
            keys: list[str] = pc.unique(self.load(block).column("key")).to_pylist()
        except (StoreCorrupt, StoreTrimmed):  # told to whoever reads the block
            return None
        return keys

    def _is_gap(self, number: int) -> bool:
        blocks = self.blocks
        return number > 0 and blocks[number].facts.first != blocks[number - 1].facts.last + 1

    def block_of(self, position: int) -> Block | None:
        """The block that holds a position."""
        blocks = self.blocks
        at = bisect_right(blocks, position, key=lambda block: block.facts.first) - 1
        return blocks[at] if at >= 0 and position <= blocks[at].facts.last else None

    def message(self, block: Run) -> bytes:
        """A block as a plain Arrow message; the same errors as `sealed`."""
        return bare(self.sealed(block))

    def sealed(self, block: Run) -> bytes:
        """The octets of a block as they lie in the file, checked.

        Raises:
            StoreCorrupt: they are not what was written.
        """
        assert isinstance(block, Block)
        try:
            data = self._handle.read(block.size, block.offset)
        except FileNotFoundError as error:  # a reader that began before retention removed the file
            raise StoreTrimmed(block.facts.first, self.next) from error
        try:
            again = read_head(data, offset=block.offset, magic=BLOCK, salt=self.salt)
            check_body(memoryview(data)[again.head :], again, self.salt)
            if again.facts != block.facts:
                raise BadFrame("the file changed under the store")
        except BadFrame as bad:
            first, last = block.facts.first, block.facts.last
            raise StoreCorrupt(self.name, first, last=last, offset=block.offset, why=str(bad)) from bad
        return data

    def load(self, block: Run) -> pa.RecordBatch:
        """The samples of a block; the same errors."""
        message = pa.ipc.read_message(pa.py_buffer(self.sealed(block)))
        return pa.ipc.read_record_batch(message, SCHEMA)


def write_segment(files: Files, path: Path, header: bytes, batches: Iterable[pa.RecordBatch], salt: int) -> list[Block]:
    """Write a whole segment file in place of what `path` holds, and return its blocks; one batch is in memory."""
    blocks: list[Block] = []

    def frames() -> Iterator[bytes | memoryview]:
        yield header
        at = len(header)
        for batch in batches:
            frame, block = seal(batch.serialize(), BLOCK, facts_of(batch), salt=salt, offset=at)
            yield from frame
            blocks.append(block)
            at = block.end

    files.replace(path, frames())
    return blocks
