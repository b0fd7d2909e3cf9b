"""Timestamps in columns: which are too far ahead, which are believed, and others in the place of some.

What is too far ahead when it comes gets another timestamp or is refused by whoever takes it; what lies in a log so far
ahead of its arrival was taken by an older version, and counts as of its arrival (`believed_time`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreError
from elea.model.limits import NODE_ID_BYTES
from elea.model.timestamp import believed_time

__all__ = ["believed_times", "check_stamps", "counted", "is_believed", "restamped"]


def is_believed(newest: int, oldest_arrival_ns: int) -> bool:
    """Whether all of some samples are believed, of which these are the newest time and the oldest arrival."""
    return oldest_arrival_ns > 0 and believed_time(newest, oldest_arrival_ns) == newest


def believed_times(batch: pa.RecordBatch) -> pa.Array:
    """The times for which the samples of a batch count; mostly those of their timestamps."""
    times = batch.column("ntp64")
    if not batch.num_rows:
        return times
    arrivals = batch.column("arrival").cast(pa.int64())
    if is_believed(pc.max(times).as_py(), pc.min(arrivals).as_py()):
        return times
    found = map(believed_time, times.to_pylist(), arrivals.to_pylist())
    return pa.array(found, pa.uint64())


def check_stamps(batch: Any) -> tuple[pa.Array, pa.Array]:
    """The columns of times and nodes of a batch from elsewhere.

    Raises:
        StoreError: they are no timestamps.
    """
    try:
        times, ids = batch.column("ntp64").cast(pa.uint64()), batch.column("stamp_id").cast(pa.binary())
    except pa.ArrowException as error:
        raise StoreError(f"ntp64 and stamp_id of a batch are no timestamps: {error}") from error
    if times.null_count or ids.null_count:
        raise StoreError("some samples of the batch have half a timestamp: give ntp64 and stamp_id to all, or to none")
    for id in pc.unique(ids).to_pylist():
        if len(id) > NODE_ID_BYTES or not id.strip(b"\0"):
            raise StoreError(f"stamp_id {id[:80]!r} is no node id: it has 1 to {NODE_ID_BYTES} octets, not all 0")
    return times, ids


def restamped(
    times: pa.Array, ids: pa.Array, limit: int, reserve: Callable[[int], int], id: bytes
) -> tuple[pa.Array, pa.Array, int]:
    """The same columns with new timestamps for those behind `limit`, and how many these are.

    Args:
        reserve: gives the first of so many consecutive times.
        id: the node that gives them.
    """
    newest = pc.max(times).as_py()
    if newest is None or newest <= limit:
        return times, ids, 0
    ahead = pc.greater(times, pa.scalar(limit, pa.uint64()))
    count: int = pc.sum(ahead).as_py()
    times = pc.replace_with_mask(times, ahead, counted("Q", pa.uint64(), reserve(count), count))
    ids = pc.replace_with_mask(ids, ahead, pa.scalar(id, pa.binary()))
    return times, ids, count


def counted(code: str, type_: pa.DataType, first: int, rows: int) -> pa.Array:
    """A column of consecutive numbers; `code` is that of their `array`."""
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(array(code, range(first, first + rows)))])
