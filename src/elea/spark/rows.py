"""How the columns of a log become the rows of `format("zenoh")`.

Columns that nobody asked for are not made: a schema given by the user is the choice of columns. Everything here works
on whole Arrow columns; no row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.model.encoding import CUSTOM_ENCODING, Encoding

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Made", "Rows", "payload_of"]

Made = Callable[[pa.RecordBatch], dict[str, pa.Array]]
"""Columns of a batch of a log to those that a format of payloads makes of them, by name."""

_KINDS: Final = ("PUT", "DELETE")

_HALF, _FRACTION = np.uint64(32), np.uint64(0xFFFFFFFF)
_MICROS, _UP = np.uint64(1_000_000), np.uint64(0xFFFFFFFF // 1000)


class Rows:
    """Makes the rows of one schema."""

    def __init__(self, schema: StructType, decode: Made | None) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._decode = decode

    def rows_of(self, batch: pa.RecordBatch, log: str | None = None) -> pa.RecordBatch:
        """The rows of a batch in the columns of a log (`elea.store.columns.SCHEMA`), exactly as Spark wants them.

        Args:
            log: the name of the log; without one, positions mean nothing and `offset` is null.
        """
        names = self.schema.names
        made = {} if self._decode is None else self._decode(batch)
        if "log" in names:
            made["log"] = pa.nulls(batch.num_rows, pa.string()) if log is None else pa.repeat(log, batch.num_rows)
        if "offset" in names and log is None:
            made["offset"] = pa.nulls(batch.num_rows, pa.int64())
        columns = []
        for field in self.schema:
            column = made[field.name] if field.name in made else _MAKERS[field.name](batch)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


# -- columns ---------------------------------------------------------------------------------------------------------


def _same(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: batch.column(name)


def _only(column: pa.Array) -> int | None:
    """The number of all rows of a column that is never null; None if they differ, or there is no row."""
    numbers = column.to_numpy()
    if not len(numbers):
        return None
    low = numbers.min()  # three times as quick as Arrow's
    return int(low) if low == numbers.max() else None


def _repeated(text: str, rows: int) -> pa.Array:
    """A column of one text. Made once for many batches, it stays in the processor's cache."""
    return _long(text, 1 << rows.bit_length()).slice(0, rows)


@lru_cache(maxsize=32)
def _long(text: str, rows: int) -> pa.Array:
    return pa.repeat(text, rows)


def payload_of(batch: pa.RecordBatch) -> pa.Array:
    """Null where a key is deleted: such a sample has no payload."""
    payload, kind = batch.column("payload"), batch.column("kind")
    if _only(kind) == 0:
        return payload
    return pc.if_else(pc.equal(kind, 0), payload, pa.scalar(None, payload.type))


def _encoding(batch: pa.RecordBatch) -> pa.Array:
    """`name;schema`, as an `Encoding` prints itself."""
    ids, schema = batch.column("encoding"), batch.column("schema")
    is_bare = schema.null_count == len(schema)
    if is_bare and (only := _only(ids)) is not None:
        return _repeated(_text(only, None), len(ids))
    numbers = pc.dictionary_encode(ids)
    if is_bare:
        return pa.array([_text(id, None) for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    schemas = pc.dictionary_encode(schema)
    if len(schemas.dictionary) * 8 < len(schema) or not _is_text(schema):
        return _by_pairs(numbers, schemas)
    names = pa.array([_text(id, b"") for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    joined = pc.binary_join_element_wise(names, schema.cast(pa.string()), "")
    plain = pa.array([_text(id, None) for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    return pc.if_else(pc.is_valid(schema), joined, plain)


def _by_pairs(numbers: pa.DictionaryArray, schemas: pa.DictionaryArray) -> pa.Array:
    """By distinct pairs, which are few as a rule."""
    width = len(schemas.dictionary) + 1
    second = pc.fill_null(pc.cast(schemas.indices, pa.int64()), width - 1)
    pairs = pc.dictionary_encode(pc.add(pc.multiply(pc.cast(numbers.indices, pa.int64()), width), second))
    ids, known = numbers.dictionary.to_pylist(), [*schemas.dictionary.to_pylist(), None]
    texts = [_text(ids[pair // width], known[pair % width]) for pair in pairs.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(pairs.indices)


@lru_cache(maxsize=4096)
def _text(id: int, schema: bytes | None) -> str:
    return str(Encoding.of(id, schema)) if id != CUSTOM_ENCODING or schema else ""


def _is_text(column: pa.Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _microseconds(batch: pa.RecordBatch) -> pa.Array:
    """The time of an NTP64 number, cut to microseconds; null where a sample has no timestamp."""
    stamps = batch.column("ntp64").to_numpy()
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


def _kind(batch: pa.RecordBatch) -> pa.Array:
    kinds = batch.column("kind")
    only = _only(kinds)
    return pa.array(_KINDS).take(kinds) if only is None else _repeated(_KINDS[only], len(kinds))


def _hlc(batch: pa.RecordBatch) -> pa.Array:
    """Eight octets of time, the highest first, and the id: sorts like the timestamp. Null where there is none."""
    stamps = np.ascontiguousarray(batch.column("ntp64").to_numpy(zero_copy_only=False).astype(">u8"))
    octets = pa.Array.from_buffers(pa.binary(8), len(stamps), [None, pa.py_buffer(stamps)]).cast(pa.binary())
    ids = batch.column("stamp_id")
    joined = pc.binary_join_element_wise(octets, ids, pa.scalar(b"", pa.binary()))
    return pc.if_else(pc.greater(pc.binary_length(ids), 0), joined, pa.scalar(None, pa.binary()))


def _priority(batch: pa.RecordBatch) -> pa.Array:
    return pc.bit_wise_and(batch.column("qos"), pa.scalar(7, pa.uint8()))


def _congestion(batch: pa.RecordBatch) -> pa.Array:
    from elea.model.qos import Qos

    names = pa.array([Qos.from_raw(raw).congestion_control.name for raw in range(256)])
    return names.take(batch.column("qos"))


def _express(batch: pa.RecordBatch) -> pa.Array:
    return pc.not_equal(pc.bit_wise_and(batch.column("qos"), pa.scalar(16, pa.uint8())), 0)


def _arrival(batch: pa.RecordBatch) -> pa.Array:
    return batch.column("arrival").cast(pa.timestamp("us", "UTC"), safe=False)


def _number(name: str) -> Callable[[pa.RecordBatch], Any]:
    def column(batch: pa.RecordBatch) -> pa.Array:
        numbers = batch.column(name)
        # Above 2^63 they come out negative, and distinct; as they are in memory, they need not be copied.
        return numbers.view(pa.int64()) if numbers.type == pa.uint64() else numbers.cast(pa.int64())

    return column


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "key": _same("key"),
    "payload": payload_of,
    "encoding": _encoding,
    "timestamp": _microseconds,
    "kind": _kind,
    "attachment": _same("attachment"),
    "source_id": _same("source_id"),
    "sn": _number("source_sn"),
    "hlc": _hlc,
    "priority": _priority,
    "congestion": _congestion,
    "express": _express,
    "offset": _same("position"),
    "ingest_time": _arrival,
    "source_eid": _number("source_eid"),
}
