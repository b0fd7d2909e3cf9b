"""The longer programs, small: tables by key under a kill, and a few random changes of pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.spark import changing, merges


def test_tables_by_key_are_what_pandas_says_after_a_kill(spark: Any, tmp_path: Path) -> None:
    told = merges.run(tmp_path, kills=1, seed=5, spark=spark)

    for when in ("after kills", "after backfill"):
        assert {name: (one["missing"], one["extra"], one["twice"]) for name, one in told[when].items()} == {
            "now": (0, 0, 0), "history": (0, 0, 0),
        }  # fmt: skip
        assert told[when]["history"]["rows"] > 0


def test_changes_of_pipelines_go_on_rightly_or_are_refused(spark: Any) -> None:
    told = changing.run(spark, count=4, seed=11)

    assert told["wrong"] == []
    assert sum(told["outcomes"].values()) == 4
