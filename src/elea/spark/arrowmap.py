"""`mapInArrow` for the writers of tables, in batches of a size that suits Spark.

Unless told not to, Spark adds up the octets of a batch after every single row that it puts in: a fifth of the work.
Where rows are known to be small, a number of rows is limit enough. The first batch of a writer is done Spark's way, and
tells how large they are.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["ArrowMap"]

Function = Callable[[Any], "Iterator[pa.RecordBatch]"]

ROWS: Final = 4000
"""Rows of a batch: about a megabyte, which a processor keeps in its cache."""

BYTES: Final = 16 << 20
"""Octets of a batch of rows of the usual size: far fewer than Spark allows (64 MB), for some rows may be larger."""

SMALL_ROWS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS),
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}
"""The second is the number that means: do not count."""

_log: Final = logging.getLogger("elea.spark")


class ArrowMap:
    """Runs functions over the rows of batches, and remembers how large these were."""

    def __init__(self) -> None:
        self._row_bytes: float | None = None

    def note(self, rows: int, octets: int) -> None:
        """Learn how much memory the rows of a batch took."""
        if rows:
            self._row_bytes = octets / rows

    def __call__(self, rows: DataFrame, function: Function, result: str) -> list[Any]:
        """What the tasks have yielded, in rows of the schema `result`."""
        if self._row_bytes is None or self._row_bytes * ROWS > BYTES:
            return _collected(rows, function, result)
        try:
            with _settings(rows, SMALL_ROWS):
                return _collected(rows, function, result)
        except Exception as error:
            if "OutOfMemory" not in str(error):
                raise
            _log.warning("batch done again, with Spark's limits: its rows are larger than those before")
            self._row_bytes = None
            return _collected(rows, function, result)


def _collected(rows: DataFrame, function: Function, result: str) -> list[Any]:
    with warnings.catch_warnings():
        # Spark asks for pandas where it needs only Arrow, and complains of its version.
        warnings.simplefilter("ignore", FutureWarning)
        return list(rows.mapInArrow(function, result).collect())


@contextmanager
def _settings(rows: DataFrame, settings: dict[str, str]) -> Iterator[None]:
    conf = rows.sparkSession.conf
    before = {name: str(conf.get(name)) for name in settings}
    for name, value in settings.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            conf.set(name, value)
