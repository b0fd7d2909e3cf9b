"""Arrow payloads, sample by sample: the one row of a stream, through the entrance for Arrow from outside."""

from __future__ import annotations

import pyarrow as pa

from elea.model.errors import ArrowRefused
from elea.store.entrance import read_row

__all__ = ["decode_row"]


def decode_row(payload: bytes) -> object:
    """The row of a stream with one, as a mapping.

    Raises:
        ValueError: it is no such stream, or its names are not distinct.
    """
    try:
        table = read_row(payload)
        if len(set(table.column_names)) != table.num_columns:
            raise ValueError("two columns have one name")
        return _exact(table).to_pylist()[0]
    except (ArrowRefused, pa.ArrowException, IndexError, OverflowError, MemoryError) as error:
        raise ValueError(f"no Arrow stream of one row: {error}") from error


def _exact(table: pa.Table) -> pa.Table:
    """Times as Python has them: nanoseconds would become values of pandas, where that is installed."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarse = pa.timestamp("us", field.type.tz)
            table = table.set_column(at, field.name, table.column(at).cast(coarse, safe=False))
    return table
