"""The papers' figures hold for our bytes, and the page tells them as they are. Spec: zenoh-2018 section 8."""

from __future__ import annotations

import pytest

from tests.simulation.figures import (
    BROKER,
    PAGE,
    batch_overhead,
    core_lines,
    open_session,
    page,
    scenario,
    stream_overhead,
    tiny_state,
)


def test_a_stream_of_samples_costs_four_bytes_each() -> None:
    assert {stream_overhead(sn) for sn in range(128)} == {4}
    long = [stream_overhead(sn) for sn in range(1 << 14)]
    assert (long.count(4), long.count(5)) == (128, 16_256)
    assert stream_overhead(0, 128) == 5
    assert stream_overhead(0, size=127) == 4
    assert stream_overhead(0, size=128) == 5
    assert stream_overhead(0, prid=2) == 5


def test_a_batch_costs_four_bytes_and_one_for_each_sample() -> None:
    for count in range(1, 1001):
        assert batch_overhead(count) == count + (4 if count < 128 else 5)


@pytest.mark.requirement("Z18-FRM-08")
@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
@pytest.mark.parametrize(("chunked", "loss"), [(False, 0.0), (False, 0.2), (True, 0.0)])
@pytest.mark.parametrize("seed", range(5))
def test_twenty_bytes_are_enough_for_everything(dialect: str, chunked: bool, loss: float, seed: int) -> None:
    trip = scenario(dialect, chunked=chunked, loss=loss, seed=seed)

    assert trip.largest == 20
    assert bool(trip.lost) == bool(loss)


def test_a_session_has_little_state() -> None:
    saved, _, saved_full, objects = tiny_state()

    assert saved < 64
    assert saved_full < 512
    assert objects < 8192
    assert open_session() < 16_384


def test_the_core_is_small() -> None:
    assert core_lines() - core_lines(BROKER) < 2750  # the papers say about 2500 for theirs, in C
    assert core_lines(("tiny",)) <= 1000


def test_the_page_tells_the_figures_of_today() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert page(text) == text, "run python -m tests.simulation.figures --write"
