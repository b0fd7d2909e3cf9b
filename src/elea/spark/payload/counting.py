"""Where corrupt payloads are counted: Spark has no counters for Python sources, but observes what passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CORRUPT", "VALUE", "observed"]

VALUE: Final = "value"
"""The column of decoded payloads."""

CORRUPT: Final = "_corrupt"
"""The column of the payloads that could not be decoded; null where all is well."""


def observed(frame: DataFrame, name: str | Any = "zenoh") -> DataFrame:
    """The same frame, counting its `rows` and `corrupt` payloads as it is read.

    A stream shows them in `query.lastProgress.observedMetrics["zenoh"]`; for a batch pass an `Observation` as `name`
    and read its `get` after the action.

    Args:
        frame: what the source gave, with the column `_corrupt`.
        name: of the metrics, or a pyspark `Observation`.
    """
    from pyspark.sql import functions as f

    return frame.observe(name, f.count(f.lit(1)).alias("rows"), f.count(f.col(CORRUPT)).alias("corrupt"))
