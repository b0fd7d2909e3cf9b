"""Deadlines of queries: due in time, cheap when they are not needed, and never piling up."""

from __future__ import annotations

from collections.abc import Callable

from elea.io.loop import Loop
from elea.io.timers import Timer
from elea.node.querytimeouts import SWEEP, Timeouts


class Still(Loop):
    """A loop whose time goes on when it is told to."""

    def __init__(self) -> None:
        super().__init__("test")
        self.time = 0.0
        self.now = lambda: self.time
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        self.timers.append((when, callback))
        return Timer(when, callback, None)

    def run(self, until: float) -> None:
        while self.timers and min(when for when, _ in self.timers) <= until:
            self.timers.sort(key=lambda timer: timer[0])
            self.time, work = self.timers.pop(0)
            work()
        self.time = until


def made() -> tuple[Still, set[int], list[tuple[float, int]], Timeouts]:
    loop, waiting, due = Still(), set[int](), list[tuple[float, int]]()
    return loop, waiting, due, Timeouts(loop, waiting, lambda number: due.append((loop.time, number)))


def test_those_still_waiting_are_told_when_their_time_is_over() -> None:
    loop, waiting, due, timeouts = made()

    for number, seconds in ((1, 10.0), (2, 3.0), (3, 10.0)):
        waiting.add(number)
        timeouts.add(seconds, number)
        loop.run(loop.time + 1)
    loop.run(30.0)

    assert due == [(4.0, 2), (10.0, 1), (12.0, 3)]
    assert (len(timeouts), loop.timers) == (0, [])


def test_a_length_of_time_can_be_used_again() -> None:
    loop, waiting, due, timeouts = made()

    for number in (1, 2):
        waiting.add(number)
        timeouts.add(10.0, number)
        loop.run(loop.time + 20.0)

    assert due == [(10.0, 1), (30.0, 2)]


def test_many_waits_of_one_length_need_one_timer() -> None:
    loop, waiting, due, timeouts = made()

    for number in range(500):
        waiting.add(number)
        timeouts.add(10.0, number)
        loop.run(loop.time + 0.001)
        waiting.discard(number)

    assert len(loop.timers) == 1
    loop.run(30.0)
    assert [number for _, number in due if number in waiting] == []
    assert (len(timeouts), loop.timers) == (0, [])


def test_what_is_over_does_not_pile_up() -> None:
    loop, waiting, due, timeouts = made()
    waiting.add(-1)
    timeouts.add(10.0, -1)

    for number in range(20 * SWEEP):
        timeouts.add(10.0, number)

    assert len(timeouts) <= SWEEP
    loop.run(10.0)
    assert (10.0, -1) in due


def test_a_wait_of_no_time_is_over_at_once() -> None:
    loop, waiting, due, timeouts = made()
    waiting.add(1)

    timeouts.add(0.0, 1)
    loop.run(0.0)

    assert due == [(0.0, 1)]
