"""Ranges of time for a backfill, as they are written."""

from __future__ import annotations

import pytest

from elea.model.errors import ConfigError
from elea.spark.offsets import Place
from elea.spark.pipeline import rangebackfill
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


def test_logs_are_read_as_far_as_the_query_has_come() -> None:
    start = {"known": Place("e1", 3), "new": Place("e2", 4)}

    found = rangebackfill._ends("t", start, {"known": Place("e1", 9)}, accept_loss=False)

    assert found == {"known": Place("e1", 9), "new": Place("e2", 4)}


@pytest.mark.parametrize(
    ("start", "problem", "accepted"),
    [
        ({"all": Place("e2", 3)}, "log all was made anew, with the epoch e2: .* epoch e1", {"all": Place("e2", 3)}),
        ({}, "log all is offered by no broker: .* epoch e1", {}),
    ],
    ids=["anew", "gone"],
)
def test_a_log_that_cannot_be_read_again_takes_no_rows_away_unless_that_is_accepted(
    start: dict[str, Place], problem: str, accepted: dict[str, Place]
) -> None:
    """The next run reads a log that was made anew from its beginning: what is read of it here would be there twice."""
    done = {"all": Place("e1", 9)}

    with pytest.raises(ConfigError, match=f"range of table t: {problem}.*--accept-loss"):
        rangebackfill._ends("t", start, done, accept_loss=False)
    assert rangebackfill._ends("t", start, done, accept_loss=True) == accepted
