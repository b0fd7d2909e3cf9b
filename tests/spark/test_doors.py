"""A few predicates through every door; `python -m tests.spark.doors` has all, and prints the table."""

from __future__ import annotations

from typing import Any

from tests.spark.doors import DOORS, PREDICATES, Doors, answers, expected

FEW = [
    "NOT speed > 2",
    "kind = 'DELETE' OR speed = 6",
    "key LIKE 'doors/1/%' AND speed < 0",
    "name IS NULL",
    "mode = 'ON' OR mode > 1 AND pos.x > 2 OR pos.x = 1.5",
]


def test_every_door_brings_the_same_rows(spark: Any) -> None:
    doors = Doors(spark)
    try:
        found = answers(doors, FEW)
    finally:
        doors.close()

    assert {door: found[door] for door in DOORS} == {door: [expected(text, door) for text in FEW] for door in DOORS}


def test_each_predicate_chooses_some_samples() -> None:
    assert [text for text in PREDICATES if not 1 < len(expected(text)) < 40] == []
    assert len(PREDICATES) == 21
