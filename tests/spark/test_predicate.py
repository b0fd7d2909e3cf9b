"""Predicates as columns of Spark: the same verdicts as everywhere."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pyarrow as pa
import pytest

from elea.model.errors import InvalidPredicate
from elea.spark.predicate import column
from tests.property.predicates import differences
from tests.unit.columnar.predicatecases import REFUSED, TABLE, VERDICTS


@pytest.mark.parametrize("seed", [7, 8])
def test_spark_agrees_with_closure_and_arrow(spark: Any, seed: int) -> None:
    assert differences(seed, predicates=60, rows=100, spark=spark) == []


def test_verdicts_of_columns(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE.drop_columns(["u", "ns", "d"]))
    usable = {text: verdicts for text, verdicts in VERDICTS.items() if not text.startswith(("u ", "ns ", "d "))}

    found = frame.select([column(text, frame.schema).alias(text) for text in usable]).toArrow()

    assert found.to_pydict() == usable


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=REFUSED)
def test_strict_predicate_is_refused(spark: Any, text: str, problem: str) -> None:
    frame = spark.createDataFrame(TABLE.drop_columns(["u", "ns", "d"]))

    with pytest.raises(InvalidPredicate, match=problem):
        column(text, frame.schema, strict=True)


def test_pattern_takes_bounded_time(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"s": ["a" * 20_000]}))
    predicate = "s LIKE '" + "%a" * 127 + "%b'"

    start = monotonic()
    assert frame.where(column(predicate, frame.schema)).count() == 0
    assert monotonic() - start < 60  # against longer than anybody can wait
