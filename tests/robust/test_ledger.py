"""The ledger against a broker that is killed, and whose power is cut: small runs of `tests.robust.ledger`."""

from __future__ import annotations

import pytest

from tests.robust.disks import missing_for_disks
from tests.robust.faulty import POINTS
from tests.robust.ledger import run, run_cuts

pytest.importorskip("pyarrow")


@pytest.mark.slow
def test_killed_broker_loses_nothing_doubles_nothing_and_invents_nothing() -> None:
    # Any point may be among the four of a run; `python -m tests.robust.ledger --points all` passes every one.
    outcome = run(8)

    assert outcome.verdict.is_clean, outcome.verdict.examples
    assert outcome.unreached == ()
    assert outcome.kills == 8
    assert outcome.acknowledged > 20
    assert set(outcome.points) <= {*POINTS, "random", "starting"}


@pytest.mark.slow
def test_power_cut_under_the_broker_loses_nothing_acknowledged() -> None:
    why = missing_for_disks()
    if why is not None:
        pytest.skip(why)

    outcome = run_cuts(2)

    assert outcome.verdict.is_clean, outcome.verdict.examples
    assert outcome.acknowledged > 10


@pytest.mark.slow
def test_ledger_sees_what_a_store_loses_that_does_not_sync() -> None:
    why = missing_for_disks()
    if why is not None:
        pytest.skip(why)

    for _ in range(5):  # until there was something in memory when the power was cut
        verdict = run_cuts(3, sync="relaxed").verdict
        assert (verdict.phantom, verdict.dup) == (0, 0)
        if verdict.lost:
            return
    raise AssertionError("nothing lost")
