"""Acknowledged puts in groups, and a broker that is killed: a small run of `tests.robust.acking`."""

from __future__ import annotations

import signal

import pytest

from tests.robust.acking import run

pytest.importorskip("pyarrow")


def test_puts_wait_out_an_orderly_stop_of_the_broker() -> None:
    outcome = run(kills=1, by=signal.SIGTERM)

    assert outcome.rows > outcome.puts > 0


@pytest.mark.slow
def test_every_acknowledged_sample_is_stored_once() -> None:
    outcome = run(kills=2)

    assert outcome.kills == 2
    assert outcome.rows > outcome.puts > 0
