"""Columns with their corners, and what predicates say of them: for Arrow and for Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

__all__ = ["REFUSED", "TABLE", "VERDICTS"]

NAN: Final = float("nan")

TABLE: Final = pa.table(
    {
        "i": pa.array([1, 2**53 + 1, None], pa.int64()),
        "f": pa.array([1.0, NAN, None], pa.float64()),
        "s": pa.array(["a", "é", None], pa.string()),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
        "d": pa.array([Decimal("1.5"), None, None], pa.decimal128(5, 2)),
        "u": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "ns": pa.array([1_500, -1_500, None], pa.timestamp("ns")),
        "p": pa.array([[1.0, 2.0], [], None], pa.list_(pa.float64())),
        "key": pa.array(["k", "l", None], pa.string()),
        "odd name": pa.array([1, 2, 3], pa.int64()),
    }
)
VERDICTS: Final[dict[str, list[bool | None]]] = {
    "i > 9007199254740992": [False, True, None],
    "i > 9007199254740992.0": [False, False, None],
    "i < 18446744073709551615": [True, True, None],
    "i > f": [False, False, None],
    "f <> 1": [False, True, None],
    "NOT f > 5": [True, True, None],
    "u = 18446744073709551615": [True, False, None],
    "u > i": [True, False, None],
    "ns > '1970-01-01T00:00:00.000001Z'": [False, False, None],
    "ns >= '1969-12-31T23:59:59.999998Z'": [True, True, None],
    "d = 1.5": [True, None, None],
    "at >= '2026-01-01T00:00:00Z'": [True, None, None],
    "s > 'z'": [False, True, None],
    "s = 1": [None, None, None],
    "nosuch IS NULL": [True, True, True],
    "p[1] = 2": [True, None, None],
    "inRange(p, [1,2], 0)": [True, None, None],
    "key = 'k'": [True, False, None],
    '"odd name" > 1': [False, True, True],
    "property.x = 'y'": [None, None, None],
}
REFUSED: Final = {"nosuch = 1": "no field", "s = 1": "a text", "p LIKE 'x'": "no text", "i = s": "cannot be compared"}
