"""Blocks gathered to a record batch: its columns grow with every block, and are handed over without another copy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.columnar import rows as k
from elea.columnar.arrays import numbers_of, texts_of, zeros
from elea.columnar.blocks import Block
from elea.columnar.compiled import kernels

__all__ = ["MOST", "SCHEMA", "Columns"]

SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("ntp64", pa.uint64()),
        pa.field("stamp_id", pa.binary()),
        pa.field("arrival", pa.timestamp("ns", "UTC"), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("encoding", pa.uint32(), nullable=False),
        pa.field("schema", pa.binary()),
        pa.field("attachment", pa.binary()),
        pa.field("source_id", pa.binary()),
        pa.field("source_eid", pa.uint32()),
        pa.field("source_sn", pa.uint64()),
        pa.field("qos", pa.uint8(), nullable=False),
    ]
)
"""The columns of a log without `position` and `once`; `ntp64` and `stamp_id` are null where nobody gave a timestamp."""

LEAST: Final = 1 << 16
MOST: Final = 1 << 30
"""Bytes of payloads in one batch, far below the 2 GiB that its offsets can say."""


class Columns:
    """Samples on their way to a batch of up to `rows`."""

    def __init__(self, rows: int, octets: int = MOST) -> None:
        """`octets` is what payloads should not exceed: memory for them is taken up to that, and more if need be."""
        compiled = kernels()
        self._gather: Any = gather if compiled is None else compiled.gather
        self._limit = rows
        self._wanted = min(octets, MOST)
        self._room = min(LEAST, self._wanted)
        self._codes = np.empty(rows, np.int32)
        self._flags = np.empty(rows, np.int32)
        self._known: tuple[list[str] | None, int, Any] = (None, 0, None)
        self._begin()

    def _begin(self) -> None:
        rows = self._limit
        self.count = 0
        self.octets = 0
        """Of the payloads so far."""
        self.held = 0
        """Bytes of blocks that are kept until the batch is made, since they have attachments or the like."""
        # Of Arrow's pool, which has the pages of batches before if they were not too large: 15 instead of 280 µs a MiB.
        self._times = pa.allocate_buffer(8 * rows)
        self._places = pa.allocate_buffer(4 * rows + 4)
        self._data = pa.allocate_buffer(self._room)
        self._arrivals = np.frombuffer(self._times, np.int64)
        self._offsets = np.frombuffer(self._places, np.int32)
        self._payloads = np.frombuffer(self._data, np.uint8)
        self._pieces: list[tuple[list[str], int]] = []  # whose codes, and up to which row
        self._detailed: list[tuple[int, Block]] = []

    def add(self, block: Block) -> Block | None:
        """Take what fits of a block; returns what is left of it, to be added after `take`."""
        rows = block.rows
        first, count = self.count, len(rows)
        left: Block | None = None
        if count > self._limit - first or self.octets + block.size > MOST:
            count = min(count, self._limit - first, max(1, count * (MOST - self.octets) // block.size))
            left, block = block.split(count)
            rows = block.rows
        last = first + count
        self._make_room(block.size)
        self.octets = self._gather(block.octets, rows, k.PAYLOAD, self._payloads, self.octets, self._offsets, first)
        self._codes[first:last] = rows[:, k.CODE]
        self._flags[first:last] = rows[:, k.FLAGS]
        self._arrivals[first:last] = block.arrival_ns
        if rows.shape[1] > k.PLAIN_WIDTH:
            self._detailed.append((first, block))
            self.held += block.size
        if self._pieces and self._pieces[-1][0] is block.keys:
            self._pieces[-1] = block.keys, last
        else:
            self._pieces.append((block.keys, last))
        self.count = last
        return left

    def _make_room(self, octets: int) -> None:
        wanted = self.octets + octets
        if wanted <= self._room:
            return
        self._room = max(min(4 * self._room, self._wanted), wanted)
        data = pa.allocate_buffer(self._room)
        payloads = np.frombuffer(data, np.uint8)
        payloads[: self.octets] = self._payloads[: self.octets]
        self._data, self._payloads = data, payloads

    @property
    def is_full(self) -> bool:
        """Whether no row fits any more."""
        return self.count >= self._limit or self.octets >= MOST

    def take(self) -> pa.RecordBatch:
        """The batch, and a new one begins."""
        count, flags = self.count, self._flags[: self.count]
        self._offsets[count] = self.octets
        detailed = _Detailed(count, self._detailed, self._gather)
        columns = [
            self._key_column(),
            pa.Array.from_buffers(pa.binary(), count, [None, self._places, self._data]),
            detailed.numbers(k.NTP64, k.STAMP, pa.uint64()),
            detailed.regions(k.STAMP),
            pa.Array.from_buffers(SCHEMA.field("arrival").type, count, [None, self._times]),
            numbers_of((flags >> 8 & 1).astype(np.uint8), pa.uint8()),
            detailed.numbers(k.ENCODING, None, pa.uint32()),
            detailed.regions(k.SCHEMA),
            detailed.regions(k.ATTACHMENT),
            detailed.regions(k.SOURCE),
            detailed.numbers(k.SOURCE_EID, k.SOURCE, pa.uint32()),
            detailed.numbers(k.SOURCE_SN, k.SOURCE, pa.uint64()),
            numbers_of((flags & 0xFF).astype(np.uint8), pa.uint8()),
        ]
        # The next batch is likely to be as large.
        self._room = min(max(LEAST, self.octets + self.octets // 8), self._wanted)
        self._begin()
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _key_column(self) -> pa.Array:
        first = 0
        parts = []
        for keys, last in self._pieces:
            known, length, array = self._known
            if known is not keys or length != len(keys):
                array = texts_of(keys)
                self._known = keys, len(array), array
            parts.append(array.take(numbers_of(self._codes[first:last], pa.int32())))
            first = last
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else texts_of([])


class _Detailed:
    """The columns that most samples have nothing in."""

    def __init__(self, count: int, blocks: list[tuple[int, Block]], gather: Any) -> None:
        self._count = count
        self._blocks = blocks
        self._gather = gather

    def numbers(self, column: int, region: int | None, type_: pa.DataType) -> pa.Array:
        """A column of numbers, null where there is no region; 0 everywhere else if there is none to go by."""
        if not self._blocks:
            return pa.nulls(self._count, type_) if region is not None else zeros(self._count, type_)
        values = np.zeros(self._count, np.int64)
        given = np.zeros(self._count, bool)
        for first, block in self._blocks:
            last = first + len(block)
            values[first:last] = block.rows[:, column]
            if region is not None:
                given[first:last] = block.rows[:, region] >= 0
        numbers = values.view(np.uint64).astype(type_.to_pandas_dtype())
        return numbers_of(numbers, type_, None if region is None else given)

    def regions(self, column: int) -> pa.Array:
        """A column of bytes, null where there are none."""
        sizes = [int(block.rows[:, column + 1].clip(0).sum()) for _, block in self._blocks]
        given = np.zeros(self._count, bool)
        for first, block in self._blocks:
            given[first : first + len(block)] = block.rows[:, column] >= 0
        if not given.any():
            return pa.nulls(self._count, pa.binary())
        out = np.empty(sum(sizes), np.uint8)
        offsets = np.empty(self._count + 1, np.int32)
        at = used = 0
        for first, block in self._blocks:
            offsets[at : first + 1] = used
            used = self._gather(block.octets, block.rows, column, out, used, offsets, first)
            at = first + len(block)
        offsets[at:] = used
        bitmap = pa.py_buffer(np.packbits(given, bitorder="little"))
        return pa.Array.from_buffers(pa.binary(), self._count, [bitmap, pa.py_buffer(offsets), pa.py_buffer(out)])


def gather(buf: Any, rows: Any, column: int, out: Any, used: int, offsets: Any, first: int) -> int:
    """The twin of the kernel, where there is no Numba."""
    starts = rows[:, column]
    lengths = np.where(starts >= 0, rows[:, column + 1], 0)
    ends = used + np.cumsum(lengths)
    offsets[first] = used
    offsets[first + 1 : first + 1 + len(rows)] = ends
    end = int(ends[-1]) if len(rows) else used
    if len(rows) and starts[0] >= 0 and (starts[1:] == starts[:-1] + lengths[:-1]).all():  # they lie behind each other
        out[used:end] = buf[int(starts[0]) : int(starts[0]) + end - used]
        return end
    octets = buf.tobytes()
    places = zip(starts.tolist(), lengths.tolist(), strict=True)
    out[used:end] = np.frombuffer(b"".join([octets[at : at + length] for at, length in places if at >= 0]), np.uint8)
    return end
