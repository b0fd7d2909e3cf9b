"""Reading less than everything: one column, a count, one key. Asked for as docs/spark.md says, beside Parquet.

Spark tells a Python source neither columns nor filters nor counts, so what is not wanted is left out by schema and
options. Rates are rows of the log a second, whatever comes out of it: reading less shows as a greater one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.inflight import KEYS
from bench.spark import cpu
from bench.spark.stage import FLEET

if TYPE_CHECKING:
    from bench.spark.stage import Stage

__all__ = ["RATES", "runs"]

KEY = KEYS[0]

RATES = {
    "one column → noop": ("less column", "spark.read.parquet.select → noop", "parquet column"),
    "one column → noop, without asking": ("less select", "spark.read.parquet.select → noop", "parquet column"),
    "count()": ("less count", "spark.read.parquet.count()", "parquet count"),
    "count(), without asking": ("less plain count", "spark.read.parquet.count()", "parquet count"),
    "one key of 10,000 → noop": ("less key", "spark.read.parquet.where → noop", "parquet key"),
    "one key of 10,000 → noop, without asking": ("less where", "spark.read.parquet.where → noop", "parquet key"),
}
"""What is measured: our figure, what it is set beside, and the figure of that."""


def runs() -> Iterator[tuple[str, Callable[[Stage], dict[str, float]]]]:
    """Each way with its name."""
    for name, action in {
        "less column": lambda on: _noop(_log(on, schema="key string")),
        "less select": lambda on: _noop(_log(on).select("key")),
        "parquet column": lambda on: _noop(_parquet(on).select("key")),
        "less count": lambda on: _log(on, schema="offset bigint").count(),
        "less plain count": lambda on: _log(on).count(),
        "parquet count": lambda on: _parquet(on).count(),
        "less key": lambda on: _noop(_log(on, KEY)),
        "less where": lambda on: _noop(_log(on).where(f"key = '{KEY}'")),
        "parquet key": lambda on: _noop(_parquet(on).where(f"key = '{KEY}'")),
    }.items():
        yield name, partial(_timed, name=name, action=action)


def _timed(on: Stage, name: str, action: Callable[[Stage], Any]) -> dict[str, float]:
    on.parquet()  # made before the clock runs
    begin, used = time.perf_counter(), cpu.seconds()
    action(on)
    took, used = time.perf_counter() - begin, cpu.seconds() - used
    return {name: on.rows / took, f"{name}, CPU": used / on.rows * 1e6}


def _log(on: Stage, key: str = FLEET, *, schema: str | None = None) -> Any:
    reader = on.spark.read.format("zenoh").option("connect", on.locator)
    return (reader if schema is None else reader.schema(schema)).load(key)


def _parquet(on: Stage) -> Any:
    return on.spark.read.parquet(on.parquet())


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()
