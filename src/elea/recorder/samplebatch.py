"""The columns of a capture: those of a live batch. What a file has in other types is put right or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.columnar.arrays import given_in, numbers_in, numbers_of
from elea.columnar.gather import SCHEMA
from elea.model.errors import InvalidSample
from elea.model.limits import ENCODING_SCHEMA_BYTES, KEY_EXPR_BYTES, NODE_ID_BYTES
from elea.wire.details import DEFAULT_QOS

__all__ = ["SCHEMA", "arrivals_of", "nanoseconds", "sample_batch"]

_DEFAULTS: Final = {"kind": 0, "encoding": 0, "qos": DEFAULT_QOS}
_REQUIRED: Final = ("key", "payload", "arrival")
_LENGTHS: Final = {
    "key": (1, KEY_EXPR_BYTES),
    "stamp_id": (1, NODE_ID_BYTES),
    "source_id": (1, NODE_ID_BYTES),
    "schema": (0, ENCODING_SCHEMA_BYTES),
}
_HALF: Final = np.uint64(32)
_FRACTION: Final = np.uint64(0xFFFFFFFF)
_SECOND: Final = np.uint64(1_000_000_000)


def sample_batch(columns: Mapping[str, Any], rows: int) -> pa.RecordBatch:
    """Samples of these columns; those that are not given are null, or what a plain put has.

    Raises:
        InvalidSample: a column is missing, or has what no sample can have.
    """
    found = []
    for field in SCHEMA:
        column = columns.get(field.name)
        if column is None:
            if field.name in _REQUIRED:
                raise InvalidSample(field.name, 0, None, "there is no such column")
            column = pa.nulls(rows, field.type)
        try:
            column = column if column.type == field.type else column.cast(field.type)
        except pa.ArrowException as error:
            raise InvalidSample(field.name, 0, None, f"the column is not of type {field.type}") from error
        if not field.nullable and column.null_count:
            if field.name not in _DEFAULTS:
                raise InvalidSample(field.name, 0, None, "it must not be null")
            column = pc.fill_null(column, pa.scalar(_DEFAULTS[field.name], field.type))
        _check_lengths(field.name, column)
        found.append(column)
    batch = pa.RecordBatch.from_arrays(found, schema=SCHEMA)
    if rows and pc.max(batch.column("kind")).as_py() > 1:
        raise InvalidSample("kind", 0, None, "0 is a put, 1 a deletion")
    return batch


def _check_lengths(name: str, column: pa.Array) -> None:
    if name in _LENGTHS and column.null_count < len(column):
        least, most = _LENGTHS[name]
        bounds = pc.min_max(pc.binary_length(column))
        if bounds["min"].as_py() < least or bounds["max"].as_py() > most:
            raise InvalidSample(name, 0, None, f"a value has not {least} to {most} bytes")


def nanoseconds(batch: pa.RecordBatch) -> tuple[Any, Any]:
    """When samples arrived, and the times of their timestamps (where they have none: of their arrival), since 1970."""
    arrivals = numbers_in(batch.column("arrival"), np.int64)
    stamps = batch.column("ntp64")
    if stamps.null_count == len(stamps):
        return arrivals, arrivals
    ntp64 = numbers_in(stamps, np.uint64)
    # Rounded up, as `ns_from_ntp64` does: exact for times made of nanoseconds.
    parts = ((ntp64 & _FRACTION) * _SECOND + _FRACTION) >> _HALF
    times = ((ntp64 >> _HALF) * _SECOND + parts).view(np.int64)
    return arrivals, np.where(given_in(stamps), times, arrivals)


def arrivals_of(values: Any) -> pa.Array:
    """A column of arrivals, in nanoseconds since 1970."""
    return numbers_of(values, SCHEMA.field("arrival").type)
