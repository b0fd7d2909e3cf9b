"""Decoding a column piece by piece, so that bad payloads do not spoil the good ones.

A quick function takes many payloads at once or refuses them all; a slow one takes each for itself. A refused piece
is cut into small ones, and those that are refused again are left to the slow one: few bad payloads cost a column
another quick pass, and nothing but bad ones cost little more than the slow function alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["permissive"]

AT_ONCE_BYTES: Final = 1 << 24
"""Payload octets handed to the quick function; it holds a few times as much."""

FEW: Final = 1_024
"""Rows of a small piece; a quick call costs as much as a hundred slow rows."""

Quick = Callable[[pa.Array], "pa.Array | None"]
Slow = Callable[[pa.Array], pa.Array]


def permissive(payloads: pa.Array, target: pa.DataType, quick: Quick, slow: Slow) -> tuple[pa.Array, pa.Array]:
    """The values of `payloads`, null where there is none, and the payloads that have none though they are not null."""
    if isinstance(payloads, pa.ChunkedArray):
        payloads = payloads.combine_chunks()
    if payloads.type != pa.binary():
        payloads = payloads.cast(pa.binary())
    present = payloads.drop_null() if payloads.null_count else payloads
    parts = [found for piece in _pieces(present) for found in _decoded(piece, quick, slow)]
    values = pa.concat_arrays(parts) if parts else pa.array([], target)
    if payloads.null_count:
        places = pc.cumulative_sum(pc.cast(payloads.is_valid(), pa.int64()))
        values = values.take(pc.if_else(payloads.is_valid(), pc.subtract(places, 1), None))
    bad = pc.and_(values.is_null(), payloads.is_valid())
    return values, pc.if_else(bad, payloads, pa.scalar(None, pa.binary()))


def _pieces(payloads: pa.Array) -> Iterator[pa.Array]:
    """Cut so that no piece has many more octets than the limit."""
    count, at = len(payloads), 0
    while at < count:
        # As many rows as would fit if all were of the mean size of those ahead.
        mean = max(1, payloads.slice(at).nbytes // (count - at))
        rows = max(1, min(count - at, AT_ONCE_BYTES // mean))
        piece = payloads.slice(at, rows)
        while rows > 1 and piece.nbytes > 2 * AT_ONCE_BYTES:
            rows = (rows + 1) // 2
            piece = payloads.slice(at, rows)
        yield piece
        at += rows


def _decoded(payloads: pa.Array, quick: Quick, slow: Slow) -> Iterator[pa.Array]:
    found = quick(payloads)
    if found is not None:
        yield found
    elif len(payloads) <= FEW:
        yield slow(payloads)
    else:
        for at in range(0, len(payloads), FEW):
            yield from _decoded(payloads.slice(at, FEW), quick, slow)
