"""The keeper runs what is due, in order, and nothing stops it but closing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from elea.io.timers import Keeper, monotonic, wall_ns
from tests.unit.io.ends import own_threads, until


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper("test")
    yield keeper
    keeper.close()


def test_keeper_runs_deadlines_in_order_of_time(keeper: Keeper) -> None:
    ran: list[int] = []
    now = monotonic()

    for delay in (3, 1, 2):
        keeper.at(now + delay * 0.01, lambda delay=delay: ran.append(delay))  # type: ignore[misc]

    assert until(lambda: len(ran) == 3)
    assert ran == [1, 2, 3]


def test_keeper_wakes_when_needed(keeper: Keeper) -> None:
    keeper.after(30, lambda: None)
    late: list[float] = []
    due = monotonic() + 0.02

    keeper.at(due, lambda: late.append(monotonic() - due))

    assert until(lambda: late)
    assert 0 <= late[0] < 0.1


def test_keeper_repeats_until_cancelled(keeper: Keeper) -> None:
    ran: list[float] = []
    timer = keeper.every(0.002, lambda: ran.append(monotonic()))
    assert until(lambda: len(ran) >= 5)

    timer.cancel()
    until(lambda: not len(keeper), 1)
    count = len(ran)
    time.sleep(0.02)

    assert len(ran) <= count + 1


def test_keeper_starts_repeating_at_a_given_time(keeper: Keeper) -> None:
    ran: list[int] = []

    keeper.every(60, lambda: ran.append(1), first=monotonic())

    assert until(lambda: ran)


def test_keeper_leaves_out_what_was_cancelled(keeper: Keeper) -> None:
    ran: list[str] = []
    keeper.after(0.01, lambda: ran.append("cancelled")).cancel()

    keeper.after(0.02, lambda: ran.append("kept"))

    assert until(lambda: ran)
    assert ran == ["kept"]


def test_keeper_forgets_cancelled_timeouts_long_before_they_are_due(keeper: Keeper) -> None:
    for _ in range(10_000):
        keeper.after(3_600, lambda: None).cancel()

    assert len(keeper._heap) <= 1_024
    assert len(keeper) == 0


def test_failing_timer_is_counted_and_stops_nobody(keeper: Keeper, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []

    with caplog.at_level(logging.CRITICAL, "elea.io"):
        keeper.after(0, lambda: ran.append(1 // 0))
        keeper.after(0.005, lambda: ran.append(1))
        assert until(lambda: ran)

    assert keeper.failures == 1


def test_callback_may_add_timers_and_close(keeper: Keeper) -> None:
    done = threading.Event()

    def again() -> None:
        keeper.close()
        done.set()

    keeper.after(0, lambda: void(keeper.after(0, again)))

    assert done.wait(5)
    assert keeper.after(0, lambda: None).cancelled
    assert until(lambda: not own_threads())


def test_period_must_be_sensible(keeper: Keeper) -> None:
    with pytest.raises(ValueError, match="below"):
        keeper.every(0, lambda: None)


def test_clocks_go_forward() -> None:
    assert monotonic() <= monotonic()
    assert abs(wall_ns() / 1e9 - time.time()) < 1


def void(_: object) -> None: ...
