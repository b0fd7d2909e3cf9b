"""What samples say, as columns made of those of a log or of live batches; no row becomes a Python object."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.content.samplepredicate import encoding_text

__all__ = ["encodings", "microseconds", "only", "repeated"]

_HALF, _FRACTION = np.uint64(32), np.uint64(0xFFFFFFFF)
_MICROS, _UP = np.uint64(1_000_000), np.uint64(0xFFFFFFFF // 1000)


def only(column: pa.Array) -> int | None:
    """The number of all rows of a column that is never null; None if they differ, or there is no row."""
    numbers = column.to_numpy()
    if not len(numbers):
        return None
    low = numbers.min()  # three times as quick as Arrow's
    return int(low) if low == numbers.max() else None


def repeated(text: str, rows: int) -> pa.Array:
    """A column of one text. Made once for many batches, it stays in the processor's cache."""
    return _long(text, 1 << rows.bit_length()).slice(0, rows)


@lru_cache(maxsize=32)
def _long(text: str, rows: int) -> pa.Array:
    return pa.repeat(text, rows)


def encodings(batch: pa.RecordBatch) -> pa.Array:
    """`name;schema`, as an `Encoding` prints itself."""
    ids, schema = batch.column("encoding"), batch.column("schema")
    is_bare = schema.null_count == len(schema)
    if is_bare and (one := only(ids)) is not None:
        return repeated(encoding_text(one, None), len(ids))
    numbers = pc.dictionary_encode(ids)
    if is_bare:
        return _names(numbers, None)
    schemas = pc.dictionary_encode(schema)
    if len(schemas.dictionary) * 8 < len(schema) or not _is_text(schema):
        return _by_pairs(numbers, schemas)
    names = _names(numbers, b"")
    joined = pc.binary_join_element_wise(names, schema.cast(pa.string()), "")
    plain = _names(numbers, None)
    return pc.if_else(pc.is_valid(schema), joined, plain)


def _names(numbers: pa.DictionaryArray, schema: bytes | None) -> pa.Array:
    texts = [encoding_text(id, schema) for id in numbers.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(numbers.indices)


def _by_pairs(numbers: pa.DictionaryArray, schemas: pa.DictionaryArray) -> pa.Array:
    """By distinct pairs, which are few as a rule."""
    width = len(schemas.dictionary) + 1
    second = pc.fill_null(pc.cast(schemas.indices, pa.int64()), width - 1)
    pairs = pc.dictionary_encode(pc.add(pc.multiply(pc.cast(numbers.indices, pa.int64()), width), second))
    ids, known = numbers.dictionary.to_pylist(), [*schemas.dictionary.to_pylist(), None]
    texts = [encoding_text(ids[pair // width], known[pair % width]) for pair in pairs.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(pairs.indices)


def _is_text(column: pa.Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def microseconds(batch: pa.RecordBatch) -> pa.Array:
    """The time of an NTP64 number, cut to microseconds; null where a sample has no timestamp."""
    column = batch.column("ntp64")
    stamps = (column.fill_null(0) if column.null_count else column).to_numpy()
    # Nanoseconds rounded up are cut, as everywhere else (`ns_from_ntp64`): they are exact for times made of
    # nanoseconds. (f * 10^9 + 2^32 - 1) // 2^32 // 1000 is the same as what follows, which has no division.
    micros = stamps & _FRACTION
    micros *= _MICROS
    micros += _UP
    micros >>= _HALF
    micros += (stamps >> _HALF) * _MICROS
    column = pa.Array.from_buffers(pa.timestamp("us", "UTC"), len(micros), [None, pa.py_buffer(micros)])
    ids = batch.column("stamp_id")
    ends = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
    if (ends[1:] == ends[:-1]).any():
        column = pc.if_else(pc.greater(pc.binary_length(ids), 0), column, pa.scalar(None, column.type))
    return column
