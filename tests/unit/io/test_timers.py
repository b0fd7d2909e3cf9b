"""Timers: the loop runs what is due, in order, and nothing stops it but closing."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from elea.io.loop import Loop
from elea.io.timers import Timer, Timers, monotonic, wall_ns
from tests.unit.io.ends import own_threads, until


def test_loop_runs_deadlines_in_order_of_time(loop: Loop) -> None:
    ran: list[int] = []
    now = monotonic()

    for delay in (3, 1, 2):
        loop.at(now + delay * 0.01, lambda delay=delay: ran.append(delay))  # type: ignore[misc]

    assert until(lambda: len(ran) == 3)
    assert ran == [1, 2, 3]


def test_loop_wakes_when_needed(loop: Loop) -> None:
    loop.after(30, lambda: None)
    late: list[float] = []
    due = monotonic() + 0.02

    loop.at(due, lambda: late.append(monotonic() - due))

    assert until(lambda: late)
    assert 0 <= late[0] < 10


def test_loop_repeats_until_cancelled(loop: Loop) -> None:
    ran: list[float] = []
    timer = loop.every(0.002, lambda: ran.append(monotonic()))
    assert until(lambda: len(ran) >= 5)

    timer.cancel()
    until(lambda: not len(loop), 1)
    count = len(ran)
    time.sleep(0.02)

    assert len(ran) <= count + 1


def test_loop_starts_repeating_at_a_given_time(loop: Loop) -> None:
    ran: list[int] = []

    loop.every(60, lambda: ran.append(1), first=monotonic())

    assert until(lambda: ran)


def test_loop_leaves_out_what_was_cancelled(loop: Loop) -> None:
    ran: list[str] = []

    def begin() -> None:
        loop.after(0, lambda: ran.append("cancelled")).cancel()
        loop.after(0, lambda: ran.append("kept"))

    loop.soon(begin)  # the leader, who runs timers, cannot be late for itself

    assert until(lambda: ran)
    assert ran == ["kept"]


def test_loop_forgets_cancelled_timeouts_long_before_they_are_due(loop: Loop) -> None:
    for _ in range(10_000):
        loop.after(3_600, lambda: None).cancel()

    assert len(loop._timers._heap) <= 1_024
    assert len(loop) == 0


def test_failing_timer_is_counted_and_stops_nobody(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []

    with caplog.at_level(logging.CRITICAL, "elea.io"):
        loop.after(0, lambda: ran.append(1 // 0))
        loop.after(0.005, lambda: ran.append(1))
        assert until(lambda: ran)

    assert loop.failures == 1


def test_callback_may_add_timers_and_close(loop: Loop) -> None:
    done = threading.Event()

    def again() -> None:
        loop.close()
        done.set()

    loop.after(0, lambda: void(loop.after(0, again)))

    assert done.wait(5)
    assert loop.after(0, lambda: None).cancelled
    assert until(lambda: not own_threads())


def test_period_must_be_sensible(loop: Loop) -> None:
    with pytest.raises(ValueError, match="below"):
        loop.every(0, lambda: None)


def test_timers_say_how_long_the_first_is_away() -> None:
    timers = Timers()
    assert timers.next(5.0) == -1.0
    late, soon = Timer(9.0, lambda: None, None), Timer(7.0, lambda: None, None)

    assert timers.add(late)
    assert timers.add(soon)
    assert not timers.add(Timer(8.0, lambda: None, None))

    assert timers.next(5.0) == 2.0
    assert timers.next(7.5) == 0.0
    soon.cancel()
    assert timers.next(5.0) == 3.0
    assert (timers.pop(7.9), len(timers)) == (None, 2)
    timers.clear()
    assert (timers.next(5.0), timers.pop(99.0), len(timers)) == (-1.0, None, 0)


def test_a_period_that_was_missed_is_not_caught_up_with() -> None:
    timers = Timers()
    timer = Timer(1.0, lambda: None, 1.0)
    timers.add(timer)

    runs = 0
    while timers.pop(10.5) is timer:
        runs += 1

    assert runs <= 2  # the one that is late, and the one that is due now
    assert timers.next(10.5) == 1.0


def test_timers_that_are_due_together_run_in_the_order_they_were_added() -> None:
    timers, made = Timers(), [Timer(1.0, lambda: None, None) for _ in range(50)]
    for timer in made:
        timers.add(timer)

    assert [timers.pop(1.0) for _ in made] == made


def test_clocks_go_forward() -> None:
    assert monotonic() <= monotonic()
    assert abs(wall_ns() / 1e9 - time.time()) < 1


def void(_: object) -> None: ...
