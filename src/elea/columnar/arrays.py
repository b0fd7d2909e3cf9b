"""Between Arrow and NumPy without `pyarrow.array`, `pyarrow.scalar` and `to_numpy`.

All three load pandas where it is installed: 0.2 to 0.5 s, once, in the thread that reads a link and while samples wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["given_in", "numbers_in", "numbers_of", "octets_of", "texts_of", "zeros"]


def numbers_of(values: Any, type_: pa.DataType, given: Any = None) -> pa.Array:
    """An array of one dimension as it is, without a copy; null where `given`, a mask, is False."""
    return pa.Array.from_buffers(type_, len(values), [_bitmap(given), pa.py_buffer(np.ascontiguousarray(values))])


def zeros(count: int, type_: pa.DataType) -> pa.Array:
    """As many zeros."""
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(bytes(count * type_.bit_width // 8))])


def octets_of(values: Sequence[bytes], type_: pa.DataType | None = None) -> pa.Array:
    """An array of bytes; those of text, if `type_` says so.

    Raises:
        ValueError: they are more than the 2 GiB that offsets can say.
    """
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"a column of {offsets[-1]} bytes, where 2147483647 fit: put fewer samples at a time")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(type_ or pa.binary(), len(values), buffers)


def texts_of(values: Sequence[str]) -> pa.Array:
    """An array of text."""
    return octets_of([each.encode() for each in values], pa.string())


def numbers_in(array: pa.Array, dtype: Any) -> Any:
    """The values of an array of numbers, `dtype` each, without a copy; nobody knows what stands where it is null."""
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def given_in(array: pa.Array) -> Any:
    """A mask: where an array is not null."""
    if not array.null_count:
        return np.ones(len(array), bool)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(bool)


def _bitmap(given: Any) -> pa.Buffer | None:
    return None if given is None or given.all() else pa.py_buffer(np.packbits(given, bitorder="little"))
