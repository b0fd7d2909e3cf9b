"""A driver killed between the commit of its sinks and Spark's: nothing lost, nothing twice. More: tests.spark.kills."""

from __future__ import annotations

from typing import Any

from tests.spark.kills import CONTROLS, TARGETS, run


def test_driver_killed_between_two_commits_repeats_nothing(spark: Any) -> None:
    outcomes = {one.target: one for one in run(["point"], targets=[*TARGETS, *CONTROLS], settle=0, spark=spark)}

    for target in TARGETS:
        assert (outcomes[target].lost, outcomes[target].duplicated) == (0, 0)
        assert outcomes[target].found == outcomes[target].expected > 0
    for target in CONTROLS:  # the same kill is seen where nothing protects
        assert outcomes[target].lost == 0
        assert outcomes[target].duplicated > 0
