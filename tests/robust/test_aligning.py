"""Storages of two brokers that are killed and cut off from each other: a small run of `tests.robust.aligning`."""

from __future__ import annotations

import pytest

from tests.robust.aligning import run

pytest.importorskip("pyarrow")


@pytest.mark.slow
def test_brokers_that_were_away_catch_up_with_each_other() -> None:
    outcome = run(2_000, kills=2, partitions=1)

    assert outcome.stored == outcome.acknowledged > 2_000
    assert (outcome.kills, outcome.partitions) == (2, 1)
    assert outcome.aligned > 0
