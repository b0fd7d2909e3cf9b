"""What samples say, as columns made of those of a log or of live batches; no row becomes a Python object.

Without numpy, which a broker does not load.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from elea.content.samplepredicate import encoding_text

__all__ = ["encodings", "microseconds", "only", "repeated"]

_HALF, _FRACTION = pa.scalar(32, pa.uint64()), pa.scalar(0xFFFFFFFF, pa.uint64())
_MICROS, _UP = pa.scalar(1_000_000, pa.uint64()), pa.scalar(0xFFFFFFFF // 1000, pa.uint64())


def only(column: pa.Array) -> int | None:
    """The number of all rows of a column that is never null; None if they differ, or there is no row."""
    bounds = pc.min_max(column)
    low: int | None = bounds["min"].as_py()
    return low if low == bounds["max"].as_py() else None


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
    stamps = batch.column("ntp64")
    # Nanoseconds rounded up are cut, as everywhere else (`ns_from_ntp64`): they are exact for times made of
    # nanoseconds. (f * 10^9 + 2^32 - 1) // 2^32 // 1000 is the same as what follows, which has no division.
    parts = pc.add(pc.multiply(pc.bit_wise_and(stamps, _FRACTION), _MICROS), _UP)
    seconds = pc.multiply(pc.shift_right(stamps, _HALF), _MICROS)
    column = pc.add(pc.shift_right(parts, _HALF), seconds).view(pa.timestamp("us", "UTC"))
    length = pc.binary_length(batch.column("stamp_id"))
    if length.null_count or not pc.min(length).as_py():
        column = pc.if_else(pc.greater(length, 0), column, pa.scalar(None, column.type))
    return column
