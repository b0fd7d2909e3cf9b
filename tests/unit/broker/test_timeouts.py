"""Deadlines of queries: due in time, cheap when they are not needed, and never piling up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from elea.broker.timeouts import SWEEP, Timeouts


class Keeper:
    def __init__(self) -> None:
        self.time = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.time

    def at(self, when: float, work: Callable[[], None]) -> None:
        self.timers.append((when, work))

    def run(self, until: float) -> None:
        while self.timers and min(when for when, _ in self.timers) <= until:
            self.timers.sort(key=lambda timer: timer[0])
            self.time, work = self.timers.pop(0)
            work()
        self.time = until


def made() -> tuple[Keeper, set[int], list[tuple[float, int]], Timeouts]:
    keeper, waiting, due = Keeper(), set[int](), list[tuple[float, int]]()
    return keeper, waiting, due, Timeouts(cast(Any, keeper), waiting, lambda number: due.append((keeper.time, number)))


def test_those_still_waiting_are_told_when_their_time_is_over() -> None:
    keeper, waiting, due, timeouts = made()

    for number, seconds in ((1, 10.0), (2, 3.0), (3, 10.0)):
        waiting.add(number)
        timeouts.add(seconds, number)
        keeper.run(keeper.time + 1)
    keeper.run(30.0)

    assert due == [(4.0, 2), (10.0, 1), (12.0, 3)]
    assert (len(timeouts), keeper.timers) == (0, [])


def test_a_length_of_time_can_be_used_again() -> None:
    keeper, waiting, due, timeouts = made()

    for number in (1, 2):
        waiting.add(number)
        timeouts.add(10.0, number)
        keeper.run(keeper.time + 20.0)

    assert due == [(10.0, 1), (30.0, 2)]


def test_many_waits_of_one_length_need_one_timer() -> None:
    keeper, waiting, due, timeouts = made()

    for number in range(500):
        waiting.add(number)
        timeouts.add(10.0, number)
        keeper.run(keeper.time + 0.001)
        waiting.discard(number)

    assert len(keeper.timers) == 1
    keeper.run(30.0)
    assert [number for _, number in due if number in waiting] == []
    assert (len(timeouts), keeper.timers) == (0, [])


def test_what_is_over_does_not_pile_up() -> None:
    keeper, waiting, due, timeouts = made()
    waiting.add(-1)
    timeouts.add(10.0, -1)

    for number in range(20 * SWEEP):
        timeouts.add(10.0, number)

    assert len(timeouts) <= SWEEP
    keeper.run(10.0)
    assert (10.0, -1) in due


def test_a_wait_of_no_time_is_over_at_once() -> None:
    keeper, waiting, due, timeouts = made()
    waiting.add(1)

    timeouts.add(0.0, 1)
    keeper.run(0.0)

    assert due == [(0.0, 1)]
