"""Which blocks of a segment have samples of a key, so that a key's history need not be looked for in all of them.

Two columns in memory, the hash of a key and the number of a block: 8 bytes for each key of each block. A segment that
grows adds to them; of any other they are made when a key is first asked for, and put in order then.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["KeyBlocks"]

_MASK: Final = (1 << 32) - 1


class KeyBlocks:
    """The blocks of each key of one segment. One thread adds, any number look."""

    __slots__ = ("_blocks", "_hashes", "_sorted", "count", "gaps", "unread")

    def __init__(self) -> None:
        self._hashes = array("I")
        self._blocks = array("I")
        self._sorted = True
        self.count = 0
        """Blocks that are in here."""
        self.gaps: list[int] = []
        """Blocks before which positions are missing."""
        self.unread: list[int] = []
        """Blocks that could not be read: they may have any key."""

    @property
    def octets(self) -> int:
        """Memory, about."""
        return 8 * len(self._hashes)

    def add(self, keys: Iterable[str] | None, *, gap: bool) -> None:
        """The keys of the next block; None if they could not be read."""
        number = self.count
        if gap:
            self.gaps.append(number)
        if keys is None:
            self.unread.append(number)
        else:
            for key in set(keys):
                self._blocks.append(number)
                self._hashes.append(hash(key) & _MASK)  # last: who looks takes as many as there are hashes
            self._sorted = False
        self.count = number + 1

    def settle(self) -> None:
        """Put them in order: nothing more comes, and looking takes the logarithm of their number."""
        order = pc.sort_indices(_column(self._hashes))
        blocks, hashes = array("I"), array("I")
        blocks.frombytes(_bytes(_column(self._blocks).take(order)))
        hashes.frombytes(_bytes(_column(self._hashes).take(order)))
        self._blocks, self._hashes, self._sorted = blocks, hashes, True

    def find(self, key: str) -> list[int]:
        """The numbers of the blocks that may have a key, in order."""
        wanted = hash(key) & _MASK
        if self._sorted:
            low, high = bisect_left(self._hashes, wanted), bisect_right(self._hashes, wanted)
            found = set(self._blocks[low:high])
        else:
            column = _column(self._hashes)
            rows = pc.indices_nonzero(pc.equal(column, pa.scalar(wanted, pa.uint32()))).to_pylist()
            found = {self._blocks[row] for row in rows}
        return sorted(found.union(self.unread))


def _column(numbers: array[int]) -> pa.Array:
    # A copy: an array cannot grow while somebody looks at its memory.
    data = numbers.tobytes()
    return pa.Array.from_buffers(pa.uint32(), len(data) // 4, [None, pa.py_buffer(data)])


def _bytes(column: pa.Array) -> bytes:
    data: bytes = column.buffers()[1].to_pybytes()
    return data[column.offset * 4 : (column.offset + len(column)) * 4]
