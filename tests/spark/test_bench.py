"""`bench.spark` yields figures: every case that needs Spark, with few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.spark.__main__ import measure
from bench.spark.cases import Plan
from bench.spark.stage import stage


@pytest.mark.long
def test_cases_yield_figures(spark: Any, tmp_path: Path) -> None:
    plan = Plan(rows=600, sizes=(600,), puts=2, seconds=0.1)

    with stage(spark, plan.rows, tmp_path) as on:
        table = measure(on, plan, ["stream", "batch", "less"], 1, warm=False)

    assert table.notes == []
    assert all(value > 0 for values in table.values.values() for value in values)
    assert all(table.ratio(row) is not None for row in table.rows if row.theirs)
    assert list(tmp_path.iterdir()) == []
