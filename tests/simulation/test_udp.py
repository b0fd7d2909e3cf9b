"""Samples through a lossy relay over real UDP; `python -m tests.simulation.udp` does it with 100,000."""

from __future__ import annotations

import pytest

from tests.simulation.udp import Weather, numbered, through_a_relay


@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
@pytest.mark.parametrize("batches", [True, False])
def test_samples_arrive_once_in_order_and_at_a_fair_price(dialect: str, batches: bool) -> None:
    account = through_a_relay(numbered(2_000, 64), dialect, batches=batches, patience=60.0)

    assert account.ratio <= 2.2


def test_a_clean_network_costs_little_more_than_the_samples() -> None:
    account = through_a_relay(numbered(2_000, 64), weather=Weather(0.0, 0.0, 0.0), patience=60.0)

    assert account.ratio <= 1.05
