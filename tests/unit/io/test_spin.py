"""Spinning: the policy in simulated time, and loops that do it, or do not, over real sockets."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from elea.io import loop as module
from elea.io.loop import Loop, Pollable
from elea.io.poller import Found, Poller
from elea.io.spin import LIMIT, MOST, NEAR, WORTH, Spin
from elea.wire import compiled

WAKE = 50e-6
"""Seconds that waking a thread takes here."""


class Waiter:
    """One who waits in simulated time, as the leader does: the policy is asked before each wait, and told after."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.spin = Spin(limit)
        self.spun = 0.0
        """Seconds spent spinning."""
        self.waited = 0.0

    def wait(self, seconds: float) -> float:
        """Something comes after some seconds; when it is noticed."""
        spin, noticed = self.spin, seconds
        if spin.is_due() and seconds <= spin.limit:
            spin.hit(seconds)
            self.spun += seconds
        else:
            if spin.is_due():
                spin.miss()
                self.spun += spin.limit
            noticed = seconds + WAKE
            spin.slept(noticed)
        self.waited += noticed
        return noticed

    @property
    def tries(self) -> int:
        return self.spin.hits + self.spin.misses


def talk(waiters: list[Waiter], work: float, trips: int) -> list[float]:
    """A message goes round; each waits for as long as the others take. How long each round took."""
    times, last = [], [work + WAKE] * len(waiters)
    for _ in range(trips):
        for index, waiter in enumerate(waiters):
            others = sum(last) - last[index] + work * (len(waiters) - 1)
            last[index] = waiter.wait(others) - others
        times.append(sum(last) + work * len(waiters))
    return times


@pytest.mark.parametrize("work", [2e-6, 10e-6, 40e-6])
def test_two_that_talk_soon_spin_and_stay_so(work: float) -> None:
    waiters = [Waiter(), Waiter()]

    times = talk(waiters, work, 1_000)

    assert all(waiter.spin.hits > 950 for waiter in waiters)
    assert max(times[100:]) == pytest.approx(2 * work)


def test_four_on_a_way_through_a_broker_settle() -> None:
    waiters = [Waiter() for _ in range(4)]

    times = talk(waiters, 5e-6, 20_000)

    assert sum(times[-1_000:]) / 1_000 < 4 * 5e-6 + 2 * WAKE


def test_keep_alives_and_slow_traffic_are_never_tried() -> None:
    for pause in (2.5, 0.01, NEAR):
        waiter = Waiter()
        for _ in range(10_000):
            waiter.wait(pause)

        assert waiter.tries == 0


def test_answers_that_just_miss_the_limit_cost_a_bounded_number_of_tries() -> None:
    waiter = Waiter()

    for _ in range(100_000):
        waiter.wait(LIMIT + 20e-6)

    assert 0 < waiter.spin.misses < 100_000 / MOST + 12
    assert waiter.spun < waiter.waited / 500


def test_answers_that_take_longer_than_a_wake_up_are_no_success() -> None:
    waiter = Waiter()

    for _ in range(100_000):
        waiter.wait((WORTH + LIMIT) / 2)

    assert waiter.spin.hits == 0
    assert waiter.spin.misses < 100_000 / MOST + 12


def test_a_machine_where_half_the_tries_fail_tries_less_and_less() -> None:
    chance, waiter = random.Random(3), Waiter()

    for _ in range(100_000):
        waiter.wait(20e-6 if chance.random() < 0.5 else 0.9 * NEAR - WAKE)

    assert waiter.spun < 0.1 * waiter.waited


def test_a_bad_time_is_forgotten() -> None:
    waiter = Waiter()
    for _ in range(100_000):
        waiter.wait(LIMIT + 20e-6)
    before = waiter.spin.hits

    for _ in range(3 * MOST):
        waiter.wait(20e-6)

    assert waiter.spin.hits - before > 1.5 * MOST


def test_one_long_wait_makes_it_look_again() -> None:
    waiter = Waiter()
    for _ in range(10):
        waiter.wait(20e-6)
    assert waiter.spin.is_due()

    waiter.wait(1.0)
    assert not waiter.spin.is_due()
    for _ in range(10):
        waiter.wait(20e-6)

    assert waiter.spin.is_due()


def test_no_limit_is_no_spinning() -> None:
    waiter = Waiter(limit=0.0)

    for _ in range(1_000):
        waiter.wait(1e-6)

    assert waiter.tries == 0


# -- loops --------------------------------------------------------------------------------------------------------


class Answering(Pollable):
    """Says every octet again, and says so to the loop if it is one that talks."""

    def __init__(self, loop: Loop, *, talks: bool) -> None:
        super().__init__()
        self.near, self.far = socket.socketpair()
        self._loop = loop
        self._talks = talks
        loop.add(self, self.near.fileno())

    def on_ready(self, mask: int) -> None:
        self.near.send(self.near.recv(100))
        if self._talks:
            self._loop.writes += 1

    def ask(self) -> None:
        self.far.send(b"x")
        self.far.recv(1)

    def close(self) -> None:
        self._loop.remove(self)
        self.near.close()
        self.far.close()


@pytest.fixture
def patient() -> Iterator[Loop]:
    """A loop whose spins find something, however slow the machine is."""
    loop = Loop("test", 1.0)
    yield loop
    loop.close()


def tried(loop: Loop) -> int:
    return loop.spin.hits + loop.spin.misses


def ask_until_due(answering: Answering, loop: Loop) -> None:
    """Talk until waits were short."""
    end = time.monotonic() + 30
    while not loop.spin.is_due():
        answering.ask()
        assert time.monotonic() < end


def test_a_loop_that_talks_spins(patient: Loop) -> None:
    answering = Answering(patient, talks=True)
    end = time.monotonic() + 30
    while tried(patient) < 20:
        ask_until_due(answering, patient)
        answering.ask()
        assert time.monotonic() < end

    answering.close()


def test_a_loop_that_only_receives_never_spins(patient: Loop) -> None:
    answering = Answering(patient, talks=False)

    for _ in range(2_000):
        answering.ask()

    assert tried(patient) == 0
    answering.close()


def test_a_loop_that_spins_is_woken_by_others_and_runs_its_timers(patient: Loop) -> None:
    answering = Answering(patient, talks=True)
    for _ in range(50):
        ask_until_due(answering, patient)
        answering.ask()  # now it spins, for up to a second
        done, late = threading.Event(), threading.Event()
        begun = time.monotonic()
        patient.soon(done.set)
        assert done.wait(5)
        patient.writes += 1
        patient.after(0.005, late.set)
        assert late.wait(5)
        assert time.monotonic() - begun < 0.9

    answering.close()


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-ins")
def test_one_thread_of_a_process_spins_at_a_time(patient: Loop) -> None:
    answering = Answering(patient, talks=True)
    ask_until_due(answering, patient)
    with module._spinning:
        time.sleep(0.01)
        before = tried(patient)
        for _ in range(200):
            answering.ask()
        assert tried(patient) == before

    answering.close()


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-ins")
def test_who_begins_to_spin_gives_way_before_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Often the one who is to send what is waited for wants this very core."""
    order: list[str] = []

    class Looking(Poller):
        def wait(self, seconds: float) -> Found:
            order.append("look")
            return super().wait(seconds)

    monkeypatch.setattr(module, "give_way", lambda: order.append("give way"))
    loop, poller = Loop("test"), Looking()
    poller.ring()

    assert loop._spin(poller, time.monotonic(), 1.0)
    assert order == ["give way", "look"]
    assert loop.spin.hits == 1
    poller.close()


def test_an_idle_loop_sleeps(patient: Loop) -> None:
    patient.spin.limit = LIMIT
    answering = Answering(patient, talks=True)
    for _ in range(200):
        answering.ask()
    time.sleep(0.05)
    before, used = tried(patient), time.thread_time()
    cpu = time.process_time()
    time.sleep(0.5)

    assert tried(patient) == before
    assert time.process_time() - cpu - (time.thread_time() - used) < 0.25
    answering.close()
