"""The same source and sink in a project for Spark Declarative Pipelines: `examples/declarative`, as a user runs it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.declaring import ROWS, run_apart


def check(found: dict[str, Any], rows: int, runs: int) -> None:
    everything = {"wanted": rows, "found": rows, "lost": 0, "duplicated": 0}

    assert found["bronze"] == everything
    assert found["silver"] == everything
    assert found["alerts"] == {"wanted": rows // 2, "found": rows // 2, "lost": 0, "duplicated": 0}
    assert found["gold"] == {str(floor): len(range(floor, rows, 3)) for floor in range(3)}
    assert found["corrupt"] == ["no JSON"] * runs


def test_run_takes_samples_to_tables_and_back() -> None:
    found = run_apart(runs=1)

    check(found, ROWS, 1)
    assert found["batches"] == 1


@pytest.mark.long
def test_each_run_takes_what_is_new() -> None:
    found = run_apart()

    check(found, 2 * ROWS, 2)
    assert found["batches"] == 2


@pytest.mark.long
def test_runs_killed_in_the_middle_lose_and_repeat_nothing() -> None:
    found = run_apart(kills=3)

    check(found, 5 * ROWS, 5)
    assert found["kills"] > 0
