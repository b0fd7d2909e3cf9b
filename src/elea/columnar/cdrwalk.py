"""One step through all payloads at once: where each member is in each of them, and its values as a column.

Payloads of one encapsulation lie in one buffer. A walk knows a place in each and moves all of them over the same
member: a few operations of NumPy, whatever the number of payloads. What lies beyond the end of a payload, or makes no
sense, ends the walk with the rows that are at fault (`Refused`); they are left to the decoder of single samples.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from elea.columnar.cdrtypes import arrow_type
from elea.content.schema.declared import (
    BOOLEAN,
    CHAR,
    Array,
    Declared,
    EnumType,
    Extensibility,
    Primitive,
    Sequence,
    Struct,
    Text,
    is_bytes,
)

__all__ = ["Refused", "Walk", "can_walk"]

RANKS: Final = 32
"""Elements that are no numbers in a sequence of one payload: each rank is a walk of its own. More are refused."""

WALKS: Final = 1_024
"""Walks over elements in all: lists of lists of lists would multiply their ranks."""

_LATIN_1: Final = pa.array([chr(code) for code in range(256)])


class Refused(Exception):
    """Rows that a walk cannot read."""

    def __init__(self, rows: Any) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


def can_walk(its: Declared, default: Extensibility) -> bool:
    """Whether a type has its members in the same order in all payloads: none is optional, no struct mutable."""
    if isinstance(its, Struct):
        if (its.extensibility or default) is Extensibility.MUTABLE:
            return False
        return all(not member.is_optional and can_walk(member.type, default) for member in its.members)
    return not isinstance(its, Sequence | Array) or can_walk(its.element, default)


class Walk:
    """Places in many payloads.

    Args:
        data: the buffer, as bytes of NumPy.
        rows: which payloads these are, in the order in which they lie there.
        base: where the alignment of each begins.
        at, end: where each is now, and where it ends.
    """

    def __init__(
        self,
        data: Any,
        rows: Any,
        base: Any,
        at: Any,
        end: Any,
        version: int,
        order: str,
        default: Extensibility,
        left: list[int] | None = None,
    ) -> None:
        self._data = data
        self._rows = rows
        self._base = base
        self.at = at
        self.end = end
        self._version = version
        self._order = order
        self._default = default
        self._greatest = 8 if version == 1 else 4
        self._left = [WALKS] if left is None else left

    def column(self, its: Declared) -> pa.Array:
        """The values of a type, and all places behind it."""
        if isinstance(its, Primitive):
            return _primitives(its, self._numbers(its.code, its.size))
        if isinstance(its, Struct):
            return self._struct(its)
        if isinstance(its, Text):
            return self._texts(its)
        if isinstance(its, EnumType):
            return self._labels(its)
        if self._version == 1 or isinstance(its.element, Primitive):
            return self._many(its)
        stop, outer = self._delimited()
        found = self._many(its)
        self.at, self.end = stop, outer
        return found

    def _require(self, good: Any) -> None:
        if not good.all():
            raise Refused(self._rows[~good])

    # -- numbers

    def _align(self, size: int) -> None:
        aligned = min(size, self._greatest)
        if aligned > 1:
            # In place: a walk owns its places.
            self.at += (self._base - self.at) & (aligned - 1)

    def _numbers(self, code: str, size: int) -> Any:
        self._align(size)
        self._require(self.at + size <= self.end)
        found = self._view(code, size)[self.at]
        self.at += size
        return found

    def _view(self, code: str, size: int) -> Any:
        """The number that begins at each byte of the buffer."""
        kind = np.dtype(f"{self._order}{'u1' if code in '?c' else np.dtype(code).str[1:]}")
        return np.ndarray((max(0, len(self._data) - size + 1),), kind, self._data, 0, (1,))

    def _lengths(self) -> Any:
        return self._numbers("I", 4).astype(np.int64)

    def _delimited(self) -> tuple[Any, Any]:
        """Go to behind a length in bytes: where what has it ends, which is the end now, and where the end was."""
        size = self._lengths()
        stop, outer = self.at + size, self.end
        self._require(stop <= outer)
        self.end = stop
        return stop, outer

    # -- texts and bytes

    def _texts(self, its: Text) -> pa.Array:
        size = self._lengths()
        good = size <= self.end - self.at
        if its.bound is not None:
            good &= size <= its.bound + 1
        self._require(good)
        last = self.at + size - 1
        self._require((self._data[last] == 0) | (size == 0))
        found = self._slices(self.at, np.maximum(size - 1, 0))
        self.at = last + 1
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            raise Refused(self._rows[[not _is_text(each) for each in found.to_pylist()]]) from None

    def _slices(self, at: Any, size: Any) -> pa.Array:
        """Pieces of the buffer. They lie in order, so they are every other one of those that it is cut into."""
        count = len(at)
        if not count:
            return pa.array([], pa.binary())
        cuts = np.empty(2 * count, np.int32)
        cuts[0::2] = at
        cuts[1::2] = at + size
        every = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(cuts), pa.py_buffer(self._data)])
        return every.take(_indices(np.arange(0, 2 * count, 2, dtype=np.int64)))

    def _labels(self, its: EnumType) -> pa.Array:
        numbers = self._numbers({1: "b", 2: "h", 4: "i"}[its.size], its.size)
        labels = sorted((number, label) for label, number in its.labels.labels)
        known = np.array([number for number, _ in labels], np.int64)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        self._require(known[places] == numbers)
        return pa.array([label for _, label in labels], pa.string()).take(_indices(places.astype(np.int64)))

    # -- structs

    def _struct(self, its: Struct) -> pa.Array:
        is_delimited = self._version == 2 and (its.extensibility or self._default) is Extensibility.APPENDABLE
        stop, outer = self._delimited() if is_delimited else (None, None)
        columns = [self.column(member.type) for member in its.members]
        if is_delimited:
            self.at, self.end = stop, outer
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(its)))

    # -- arrays and sequences

    def _many(self, its: Sequence | Array) -> pa.Array:
        if isinstance(its, Array):
            counts = np.full(len(self.at), its.count, np.int64)
        else:
            counts = self._lengths()
            if its.bound is not None:
                self._require(counts <= its.bound)
        if isinstance(its.element, Primitive):
            found = self._run(its.element, counts, as_bytes=is_bytes(its))
            if is_bytes(its):
                return found
        else:
            found = self._ranks(its.element, counts)
        sizes = its.sizes[:0:-1] if isinstance(its, Array) else ()
        for size in sizes:
            found = _lists(np.full(len(found) // size, size, np.int64), found)
        return _lists(counts if not isinstance(its, Array) else np.full(len(self.at), its.sizes[0], np.int64), found)

    def _run(self, its: Primitive, counts: Any, *, as_bytes: bool) -> pa.Array:
        """Numbers one behind the other."""
        aligned = min(its.size, self._greatest)
        # A sequence without elements is not padded for them.
        self.at += np.where(counts > 0, (self._base - self.at) & (aligned - 1), 0)
        self._require(counts * its.size <= self.end - self.at)
        if as_bytes:
            found = self._slices(self.at, counts)
        else:
            total = int(counts.sum())
            before = np.cumsum(counts) - counts
            places = np.repeat(self.at - before * its.size, counts)
            places += np.arange(total, dtype=np.int64) * its.size
            found = _primitives(its, self._view(its.code, its.size)[places])
        self.at += counts * its.size
        return found

    def _ranks(self, its: Declared, counts: Any) -> pa.Array:
        """Elements of which nobody knows where they end: the first of all payloads, then the second, …"""
        self._require((counts <= self.end - self.at) & (counts <= RANKS))
        parts: list[pa.Array] = []
        order: list[Any] = []
        for rank in range(int(counts.max(initial=0))):
            self._left[0] -= 1
            if self._left[0] < 0:
                raise Refused(self._rows)
            has = np.flatnonzero(counts > rank)
            inner = Walk(
                self._data, self._rows[has], self._base[has], self.at[has], self.end[has],
                self._version, self._order, self._default, self._left,
            )  # fmt: skip
            parts.append(inner.column(its))
            self.at[has] = inner.at
            order.append(has * RANKS + rank)
        if not parts:
            return pa.array([], arrow_type(its))
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays(parts).take(_indices(np.argsort(np.concatenate(order), kind="stable")))


def _indices(places: Any) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])


def _lists(counts: Any, values: pa.Array) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    places = pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)])
    return pa.ListArray.from_arrays(places, values)


def _primitives(its: Primitive, values: Any) -> pa.Array:
    if its == BOOLEAN:
        bits = np.packbits(values != 0, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    if its == CHAR:
        return _LATIN_1.take(_indices(values.astype(np.int64)))
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return pa.Array.from_buffers(arrow_type(its), len(values), [None, pa.py_buffer(np.ascontiguousarray(native))])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
