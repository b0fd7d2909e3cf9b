"""Ranges of time for a backfill, as they are written."""

from __future__ import annotations

import pytest

from elea.model.errors import ConfigError
from elea.spark.pipeline.rangebackfill import Range


def test_a_range_is_a_condition_without_its_end() -> None:
    day = Range.parse("2026-03-01", "2026-03-02T02:00:00+02:00")

    assert day.condition("`at`") == "`at` >= '2026-03-01T00:00:00.000000Z' AND `at` < '2026-03-02T00:00:00.000000Z'"
    assert Range.parse("1000", "2000").end_us == 2_000_000


@pytest.mark.parametrize(
    ("begin", "end", "problem"),
    [
        ("yesterday", "2026-03-01", "--from: 'yesterday' does not do"),
        ("2026-03-01", "soon", "--until: 'soon' does not do"),
        ("2026-03-01", "2026-03-01", "--until: 2026-03-01 is not behind 2026-03-01"),
        ("2026-03-02", "2026-03-01", "--until: 2026-03-01 is not behind 2026-03-02"),
    ],
    ids=["no-begin", "no-end", "empty", "backwards"],
)
def test_what_is_no_range_is_refused(begin: str, end: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Range.parse(begin, end)
