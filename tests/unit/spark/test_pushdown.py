"""Filters of Spark as narrower options: never less than what the filter lets through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from elea.spark.options import ReadOptions
from elea.spark.pushdown import narrowed

OPTIONS = ReadOptions.parse({"path": "a/**"})
AT = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=7)
NS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 10**9 + 7000
KEY: Any = ("key",)
TIME: Any = ("timestamp",)


def test_keys_become_key_expressions_if_the_one_asked_for_has_them() -> None:
    assert narrowed(OPTIONS, [EqualTo(KEY, "a/b")]).key_exprs == ("a/b",)
    assert narrowed(OPTIONS, [In(KEY, ("a/c", "a/b", "x", "a//b"))]).key_exprs == ("a/b", "a/c")
    assert narrowed(OPTIONS, [StringStartsWith(KEY, "a/b/c")]).key_exprs == ("a/b/**",)


def test_what_cannot_be_said_with_key_expressions_changes_nothing() -> None:
    several = ReadOptions.parse({"path": "a/**,b/**"})
    for options, one in (
        (OPTIONS, EqualTo(KEY, "b")),
        (OPTIONS, StringStartsWith(KEY, "b/c")),
        (OPTIONS, StringStartsWith(KEY, "a")),
        (OPTIONS, StringStartsWith(KEY, "a/*/")),
        (OPTIONS, IsNotNull(KEY)),
        (OPTIONS, Not(EqualTo(KEY, "a/b"))),
        (OPTIONS, EqualTo(("value", "key"), "a/b")),
        (several, EqualTo(KEY, "a/b")),
    ):
        assert narrowed(options, [one]) == options


def test_times_reach_to_the_end_of_their_microsecond() -> None:
    def between(*filters: Any) -> tuple[int | None, int | None]:
        found = narrowed(OPTIONS, filters)
        return found.starting_timestamp, found.ending_timestamp

    assert between(GreaterThanOrEqual(TIME, AT), LessThan(TIME, AT)) == (NS, NS)
    assert between(GreaterThan(TIME, AT), LessThanOrEqual(TIME, AT)) == (NS + 1000, NS + 1000)
    assert between(EqualTo(TIME, AT)) == (NS, NS + 1000)
    assert between(GreaterThan(TIME, AT), GreaterThanOrEqual(TIME, AT)) == (NS + 1000, None)


def test_a_kind_is_passed_on() -> None:
    assert narrowed(OPTIONS, [EqualTo(("kind",), "DELETE")]).kind == "delete"
    assert narrowed(OPTIONS, [EqualTo(("kind",), "delete")]).kind is None
