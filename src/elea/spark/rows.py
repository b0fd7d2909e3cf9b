"""How the columns of a log become the rows of `format("zenoh")`.

Columns that nobody asked for are not made: a schema given by the user is the choice of columns. Everything here works
on whole Arrow columns; no row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.columnar.samplecolumns import encodings, microseconds, only, repeated

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Made", "Rows", "payload_of"]

Made = Callable[[pa.RecordBatch], dict[str, pa.Array]]
"""Columns of a batch of a log to those that a format of payloads makes of them, by name."""

_KINDS: Final = ("PUT", "DELETE")


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


def payload_of(batch: pa.RecordBatch) -> pa.Array:
    """Null where a key is deleted: such a sample has no payload."""
    payload, kind = batch.column("payload"), batch.column("kind")
    if only(kind) == 0:
        return payload
    return pc.if_else(pc.equal(kind, 0), payload, pa.scalar(None, payload.type))


def _kind(batch: pa.RecordBatch) -> pa.Array:
    kinds = batch.column("kind")
    one = only(kinds)
    return pa.array(_KINDS).take(kinds) if one is None else repeated(_KINDS[one], len(kinds))


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
    "encoding": encodings,
    "timestamp": microseconds,
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
