"""Followers of a log whose broker is killed: a small run of `tests.robust.following`."""

from __future__ import annotations

import pytest

from tests.robust.following import run

pytest.importorskip("pyarrow")


@pytest.mark.slow
def test_followers_miss_nothing_and_get_nothing_twice() -> None:
    outcome = run(12_000, writers=2, kills=2, cuts=3)

    assert outcome.acknowledged == 12_000
    assert outcome.stored >= outcome.acknowledged
    assert (outcome.kills, outcome.cuts) == (2, 3)
