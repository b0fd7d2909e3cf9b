"""When a wait is awake: the policy in simulated time, and the wait itself over real sockets."""

from __future__ import annotations

import os
import random
import time
from itertools import pairwise

import pytest

from elea.io.errors import LinkClosed
from elea.io.link import TcpLink
from elea.io.timers import monotonic
from elea.io.vigil import (
    EARNED,
    EARNED_BETWEEN,
    LEAST_CROWDED,
    LIMIT,
    LONGEST,
    MOST_CROWDED,
    NEAR,
    PURSE,
    REMEMBERED,
    Vigil,
)
from tests.unit.io.ends import in_thread, pair

WAKE = 50e-6


class End:
    """One who waits, works and sends, in simulated time; `late` is what the machine's others take of a wait awake."""

    def __init__(self, work: float) -> None:
        self.vigil = Vigil()
        self.work = work
        self.sent = 0
        self.awake = False
        self.begun = 0.0
        self.used = 0.0
        """Seconds awake in vain."""

    def begin(self, now: float) -> None:
        self.begun = now
        self.awake = self.vigil.begin(self.sent, now)

    def take(self, arrival: float, late: float = 0.0) -> float:
        """Something arrives; when the answer has been sent, and the next wait begun."""
        until = self.begun + LIMIT
        if self.awake and arrival <= until:
            now = max(arrival, self.begun) + late
            self.vigil.came(now, now - late - self.begun)
        else:
            if self.awake:
                self.vigil.missed(until + late, LIMIT)
                self.used += LIMIT + late
            now = max(arrival, until + late if self.awake else 0.0) + WAKE
            self.vigil.ended(now)
        self.sent += 1
        self.begin(now + self.work)
        return now + self.work


def talk(ends: list[End], trips: int, pause: float = 0.0) -> list[float]:
    """A message goes round; how long each round took."""
    now, times = 0.0, []
    for _ in range(trips):
        start = now
        for end in ends:
            now = end.take(now)
        times.append(now - start)
        now += pause
    return times


@pytest.mark.parametrize("work", [5e-6, 20e-6, 60e-6])
def test_two_that_talk_are_soon_awake_and_stay_so(work: float) -> None:
    ends = [End(work), End(work)]

    times = talk(ends, 5_000)

    assert max(times[-1_000:]) == pytest.approx(2 * work)
    assert sum(times[:1_000]) < 1_000 * 2 * (work + WAKE)
    assert all(end.vigil.hits > 4_000 for end in ends)


def test_four_waits_on_a_way_through_a_broker_settle() -> None:
    ends = [End(10e-6) for _ in range(4)]

    times = talk(ends, 20_000)

    assert sum(times[-1_000:]) / 1_000 < 4 * (10e-6 + WAKE / 2)


def test_slow_answers_are_awaited_asleep() -> None:
    ends = [End(20e-6), End(2e-3)]

    talk(ends, 2_000)

    assert ends[0].vigil.hits == 0
    assert ends[0].vigil.misses <= 1  # the first message was there at once


def test_answers_that_just_miss_the_limit_cost_little() -> None:
    ends = [End(20e-6), End(LIMIT + 20e-6)]

    times = talk(ends, 20_000)

    assert ends[0].vigil.misses > 0
    assert ends[0].used < sum(times) / 64


def test_answers_that_take_more_than_a_hit_earns_are_mostly_awaited_asleep() -> None:
    ends = [End(20e-6), End((EARNED + LIMIT) / 2)]

    times = talk(ends, 20_000)

    assert ends[0].vigil.rests > 0
    assert ends[0].vigil.hits < 0.2 * len(times)


def test_who_only_receives_never_waits_awake() -> None:
    vigil, now = Vigil(), 0.0
    for _ in range(1_000):
        assert not vigil.begin(7, now)
        now += 20e-6
        vigil.ended(now)


def test_keep_alives_are_awaited_asleep() -> None:
    vigil, now = Vigil(), 0.0
    for sent in range(1, 1_000):
        assert not vigil.begin(sent, now)
        now += 2.5
        vigil.ended(now)


def test_on_a_busy_machine_it_is_rarely_tried() -> None:
    """Two others want the cores: one wait in six loses a slice of 4 ms by waiting awake."""
    chance = random.Random(1)
    ends = [End(10e-6), End(10e-6)]
    now, lost = 0.0, 0.0
    for _ in range(200_000):
        for end in ends:
            late = 4e-3 if end.awake and chance.random() < 1 / 6 else 0.0
            lost += late
            now = end.take(now, late)

    assert lost < 0.005 * now
    assert all(end.vigil.rests > 0 for end in ends)


def test_a_crowd_is_avoided_longer_each_time_until_it_has_gone() -> None:
    vigil, now, sent, rests = Vigil(), 0.0, 1, []
    for _ in range(16):
        begun = now
        while not vigil.begin(sent, now):
            vigil.ended(now)
            now += 1e-3
            sent += 1
        rests.append(now - begun)
        now += 4e-3
        vigil.came(now, 1e-4)
        vigil.ended(vigil._begun + 1e-5)
        sent += 1
    assert rests[1:] == pytest.approx([min(LEAST_CROWDED * 2**n, MOST_CROWDED) for n in range(15)], abs=2e-3)

    now += MOST_CROWDED
    begun = now
    vigil.begin(sent, now)
    vigil.ended(now)
    while now - begun < MOST_CROWDED:  # nobody takes the core for as long as it rested
        sent += 1
        assert vigil.begin(sent, now)
        now += 2e-5
        vigil.came(now, 2e-5)
    vigil.begin(sent + 1, now)
    vigil.came(now + 4e-3, 1e-4)
    vigil.ended(vigil._begun + 1e-5)
    now += 4e-3
    assert not vigil.begin(sent + 2, now + LEAST_CROWDED / 2)
    assert vigil.begin(sent + 3, now + LEAST_CROWDED * 1.1)  # it rests as at first


def test_one_mishap_is_a_short_rest_and_the_next_one_soon_is_a_longer_one() -> None:
    """The core is lost for 4 ms once, and again a while later: whether that is a crowd depends on the while."""
    for pause, again in ((REMEMBERED / 2, 2 * LEAST_CROWDED), (REMEMBERED * 2, LEAST_CROWDED)):
        vigil = Vigil()
        vigil.again(0.0)
        vigil.came(4e-3, 1e-4)
        assert not vigil.again(4e-3 + 0.9 * LEAST_CROWDED)
        now = 4e-3 + 1.1 * LEAST_CROWDED + pause
        assert vigil.again(now)
        now += 4e-3
        vigil.came(now, 1e-4)
        assert not vigil.again(now + 0.9 * again)
        assert vigil.again(now + 1.1 * again)


def guard(waits: int, spent: float, used: float, in_the_way: bool) -> tuple[Vigil, float]:
    """One who passes things on: how many waits he had awake, all of them hits."""
    vigil, now, awake = Vigil(earned=EARNED_BETWEEN), 0.0, 0
    for _ in range(waits):
        if vigil.again(now):
            awake += 1
            vigil.came(now + spent, used, in_the_way)
        now += spent + 20e-6
    return vigil, awake / waits


def test_a_guard_with_a_core_of_its_own_stays_awake() -> None:
    vigil, awake = guard(20_000, 40e-6, 39e-6, False)
    assert awake == 1.0
    assert vigil.rests == 0


def test_a_guard_on_a_core_where_others_work_stays_awake() -> None:
    vigil, awake = guard(20_000, 80e-6, 30e-6, False)
    assert awake == 1.0
    assert vigil.rests == 0


def test_a_guard_that_shares_its_core_with_one_awake_rests_most_of_the_time() -> None:
    vigil, awake = guard(20_000, 50e-6, 25e-6, True)
    assert awake < 0.1
    assert vigil.rests > 3


def test_a_guard_that_is_in_the_way_now_and_then_stays_awake() -> None:
    """The kernel puts two on one core for a moment: one wait of five."""
    vigil, now = Vigil(earned=EARNED_BETWEEN), 0.0
    for number in range(10_000):
        assert vigil.again(now)
        now += 45e-6
        vigil.came(now, 25e-6 if number % 5 == 0 else 44e-6, number % 5 == 0)
        now += 20e-6


def test_a_short_rest_of_one_end_does_not_make_the_other_one_rest() -> None:
    """Waits are twice as long while the other rests: what was saved up is enough for that."""
    vigil, now = Vigil(), 0.0
    vigil._purse = PURSE
    for _ in range(20):  # trips of 200 µs, for two rests of 2 ms
        assert vigil.again(now)
        now += 185e-6
        vigil.came(now, 185e-6)
        now += 20e-6
    assert vigil.rests == 0


def test_rests_grow_while_nothing_comes_of_them_and_a_full_purse_ends_that() -> None:
    vigil, now, tried = Vigil(), 0.0, []
    for sent in range(1, 100_000):
        if vigil.begin(sent, now):
            now += LIMIT
            vigil.missed(now, LIMIT)
            tried.append(now)
        now += NEAR / 2
        vigil.ended(vigil._begun + NEAR / 2)
    gaps = [after - before for before, after in pairwise(tried) if after - before > NEAR]
    assert gaps[0] < 0.1
    assert gaps[-1] > 0.5

    now += 2 * LONGEST
    for sent in range(100):
        assert vigil.begin(sent, now)
        vigil.came(now, 1e-6)
    for _ in range(10):
        vigil.missed(now, LIMIT)
    assert not vigil.begin(100, now)
    assert vigil.begin(101, now + 0.02)  # it rests as at first


# -- over sockets -----------------------------------------------------------------------------------------------------

linux = pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="the system lets nobody else run")


@linux
def test_octets_that_come_are_read_and_time_is_kept() -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        assert isinstance(near, TcpLink)
        view = memoryview(bytearray(10))
        assert near.receive_awake(view, monotonic() + 0.001) == -1

        far.send(b"octets")
        assert near.receive_awake(view, monotonic() + 60) == 6
        assert bytes(view[:6]) == b"octets"


@linux
@pytest.mark.parametrize("is_ours", [True, False])
def test_the_end_of_the_link_ends_a_wait_awake(is_ours: bool) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        assert isinstance(near, TcpLink)
        came: list[int] = []
        thread = in_thread(lambda: came.append(near.receive_awake(memoryview(bytearray(10)), monotonic() + 60)))
        time.sleep(0.05)
        (near if is_ours else far).close()
        thread.join(30)

        assert came == [0]
        near.close()
        assert near.receive_awake(memoryview(bytearray(10)), monotonic() + 60) == 0


@linux
def test_a_link_that_breaks_says_so_to_one_awake() -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        assert isinstance(near, TcpLink)
        near.send(b"never read, so that the other side resets")
        time.sleep(0.05)
        far._socket.setsockopt(1, 13, bytes([1, 0, 0, 0, 0, 0, 0, 0]))  # type: ignore[union-attr]  # linger for 0 s
        far._socket.close()  # type: ignore[union-attr]
        with pytest.raises(LinkClosed, match="reset"):
            near.receive_awake(memoryview(bytearray(10)), monotonic() + 60)
