"""One thread of a router that waits awake for several links: what it reads, and all that may happen to it."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import elea
from elea.broker.guarding import MOST_WARDS, Guard
from elea.broker.links import Connection
from elea.io.vigil import PURSE, Vigil
from elea.model.errors import ProtocolError
from tests.unit.api.logkeeper import config, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd: nobody waits awake")

BLOCK = elea.CongestionControl.BLOCK


@contextmanager
def star(clients: int, **entries: Any) -> Iterator[tuple[elea.Session, list[elea.Session]]]:
    """A router that waits awake, and clients of it that do not: all share one interpreter."""
    with ExitStack() as stack:
        router = stack.enter_context(elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)))
        ends = [
            stack.enter_context(
                elea.open(
                    config(
                        "client",
                        connect__endpoints=[router._runtime.links.locators()[0]],
                        transport__link__rx__wait_awake=False,
                    )
                )
            )
            for _ in range(clients)
        ]
        yield router, ends


def guard_of(session: elea.Session) -> Guard:
    return session._runtime.links.guard


def connections_of(session: elea.Session) -> list[Connection]:
    return list(session._runtime.links.connections)


def let_it_pay(router: elea.Session, limit: float = 1.0) -> None:
    """Every wait of a link that talks is awake from now on, however slow the machine is."""
    guard = guard_of(router)
    guard.vigil.limit = limit
    guard.vigil._rests_until, guard.vigil._purse = 0.0, PURSE
    for connection in connections_of(router):
        connection.vigil._last = 0.0


class Echo:
    """What one client says another says again."""

    def __init__(self, near: elea.Session, far: elea.Session, name: str = "talk") -> None:
        self.came: list[bytes] = []
        self._here = threading.Semaphore(0)
        self._back = far.declare_publisher(f"{name}/back", express=True, congestion_control=BLOCK)
        self._there = near.declare_publisher(f"{name}/there", express=True, congestion_control=BLOCK)
        self._far = far.declare_subscriber(f"{name}/there", lambda sample: self._back.put(sample.payload))
        self._near = near.declare_subscriber(f"{name}/back", self._arrive)
        for publisher in (self._back, self._there):
            wait_until(lambda publisher=publisher: publisher.matching_status.matching, "a subscriber")

    def _arrive(self, sample: elea.Sample) -> None:
        self.came.append(sample.payload.to_bytes())
        self._here.release()

    def say(self, *payloads: bytes) -> None:
        """Say something, and wait until all of it has come back."""
        for payload in payloads:
            self._there.put(payload)
        for _ in payloads:
            assert self._here.acquire(timeout=60)


def talk_until(router: elea.Session, echo: Echo, done: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not done():
        let_it_pay(router)
        echo.say(b"word")
        assert time.monotonic() < end


def guarded(router: elea.Session, echo: Echo, times: int = 10) -> None:
    """Talk until the guard has read wards some times."""
    before = guard_of(router).served
    talk_until(router, echo, lambda: guard_of(router).served >= before + times)


def awake_waits(router: elea.Session) -> int:
    return sum(connection.vigil.hits + connection.vigil.misses for connection in connections_of(router))


def test_one_thread_of_a_router_serves_both_ends_of_a_talk() -> None:
    with star(2) as (router, (near, far)):
        echo = Echo(near, far)

        guarded(router, echo, 100)

        assert set(echo.came) == {b"word"}
        hits = [connection.vigil.hits for connection in connections_of(router)]
        assert all(count > 10 for count in hits)


def test_nothing_is_lost_or_reordered_while_reading_passes_between_threads() -> None:
    """Talks and bursts of random sizes, with waits so brief that guard and wards change all the time."""
    chance = random.Random(7)
    with star(4) as (router, ends):
        echoes = [Echo(ends[i], ends[(i + 1) % 4], f"talk{i}") for i in range(4)]
        sent: list[list[bytes]] = [[] for _ in echoes]
        guard = guard_of(router)

        def speak(index: int, seed: int) -> None:
            mine = random.Random(seed)
            for _ in range(150):
                size = mine.choice((1, 1, 1, 1, 5, 40))
                words = [
                    b"%d:" % (len(sent[index]) + k) + mine.randbytes(mine.choice((0, 8, 900, 30_000)))
                    for k in range(size)
                ]
                sent[index] += words
                echoes[index].say(*words)

        for limit in (1e-4, 1e-3, 1.0):
            speakers = [threading.Thread(target=speak, args=(i, chance.getrandbits(32)), daemon=True) for i in range(4)]
            for thread in speakers:
                thread.start()
            while any(thread.is_alive() for thread in speakers):
                let_it_pay(router, limit)
                time.sleep(0.001)

        assert [echo.came for echo in echoes] == sent
        assert guard.served > 0
        assert router._runtime.links.dropped() == dict.fromkeys(router._runtime.links.dropped(), 0)
        wait_until(lambda: not guard.wards, "the end of the talks")


def test_no_more_than_a_few_links_are_guarded() -> None:
    with star(2 * MOST_WARDS + 4) as (router, ends):
        echoes = [Echo(near, far, f"talk{i}") for i, (near, far) in enumerate(zip(ends[::2], ends[1::2], strict=True))]
        counts: set[int] = set()
        over = threading.Event()

        def speak(echo: Echo) -> None:
            while not over.is_set():
                echo.say(b"word")
                counts.add(len(guard_of(router).wards))

        speakers = [threading.Thread(target=speak, args=(echo,), daemon=True) for echo in echoes]
        for thread in speakers:
            thread.start()
        end = time.monotonic() + 60
        while MOST_WARDS not in counts and time.monotonic() < end:
            let_it_pay(router)
            time.sleep(0.001)
        for _ in range(300):  # and all of them go on
            let_it_pay(router)
            time.sleep(0.001)
        over.set()
        for thread in speakers:
            thread.join(60)

        assert max(counts) == MOST_WARDS


def test_a_stream_through_a_router_is_received_asleep() -> None:
    with star(2) as (router, (near, far)):
        seen: list[int] = []
        with far.declare_subscriber("stream", lambda sample: seen.append(1)):
            publisher = near.declare_publisher("stream", congestion_control=BLOCK)
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            time.sleep(0.1)  # what declaring said is over
            before = awake_waits(router)
            for _ in range(20_000):
                publisher.put(b"sample")
            wait_until(lambda: len(seen) == 20_000, "all samples")

            assert awake_waits(router) == before


def test_an_idle_router_sleeps() -> None:
    with star(2) as (router, (near, far)):
        guarded(router, Echo(near, far))
        guard_of(router).vigil.limit = 250e-6
        wait_until(lambda: not guard_of(router).wards, "the end of the talk")
        time.sleep(0.3)
        before, used = awake_waits(router), time.process_time()
        time.sleep(1.0)

        assert awake_waits(router) == before
        assert time.process_time() - used < 0.5


def test_who_does_not_want_it_has_no_guard() -> None:
    with star(2, transport__link__rx__wait_awake=False) as (router, (near, far)):
        echo = Echo(near, far)
        for _ in range(300):
            echo.say(b"word")

        assert guard_of(router).served == awake_waits(router) == 0


@pytest.mark.parametrize("which", [0, 1])
def test_the_end_of_a_guarded_link_is_the_end_of_that_session_only(which: int) -> None:
    with star(3) as (router, ends):
        echo, other = Echo(ends[0], ends[1]), Echo(ends[1 - which], ends[2], "other")
        guarded(router, echo)

        ends[which].close()

        wait_until(lambda: len(connections_of(router)) == 2, "the end of one session")
        guarded(router, other)
        assert not any(ward.ended.is_set() for ward in guard_of(router).wards)


@pytest.mark.parametrize("which", [0, 1])
def test_what_breaks_a_rule_ends_the_session_it_came_by(which: int) -> None:
    """Both links of the talk are tried: one of them is the guard's own, the other its ward."""
    with star(3) as (router, ends):
        echo, other = Echo(ends[0], ends[1]), Echo(ends[1 - which], ends[2], "other")
        end = connections_of(ends[which])[0]
        victim = next(each for each in connections_of(router) if each.link.remote == end.link.local)
        others = [each for each in connections_of(router) if each is not victim]
        guarded(router, echo)

        end.link.send(b"\x02\x00\xff\xff")

        assert victim.ended.wait(60)
        assert isinstance(victim.error, ProtocolError)
        guarded(router, other)
        assert not any(each.ended.is_set() for each in others)


def test_a_fault_found_by_the_guard_ends_the_ward() -> None:
    with star(2) as (router, ends):
        echo = Echo(ends[0], ends[1])
        guarded(router, echo)
        end = time.monotonic() + 60
        while not (wards := guard_of(router).wards):  # a ward looks after itself when the talk pauses
            let_it_pay(router)
            echo.say(b"word")
            assert time.monotonic() < end
        ward = wards[0]
        other = next(each for each in connections_of(router) if each is not ward)
        remote = next(each for each in ends if connections_of(each)[0].link.local == ward.link.remote)
        connections_of(remote)[0].link.send(b"\x02\x00\xff\xff")

        assert ward.ended.wait(60)
        assert isinstance(ward.error, ProtocolError)
        assert not other.ended.is_set()


def test_a_router_closes_while_it_is_on_guard() -> None:
    with star(2) as (router, (near, far)):
        echo = Echo(near, far)
        guarded(router, echo)
        readers = [connection._reading for connection in connections_of(router)]

        start = time.monotonic()
        router.close()

        for thread in readers:
            thread.join(30)
            assert not thread.is_alive()
        assert time.monotonic() - start < 30


def test_a_guard_held_up_by_a_handler_holds_up_no_link() -> None:
    with star(3) as (router, ends):
        echo, other = Echo(ends[0], ends[1]), Echo(ends[1], ends[0], "other")
        begun, go_on = threading.Event(), threading.Event()

        def hold_up(sample: elea.Sample) -> None:
            begun.set()
            assert go_on.wait(60)

        with router.declare_subscriber("held", hold_up):
            publisher = ends[0].declare_publisher("held", congestion_control=BLOCK)
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            try:
                for _ in range(5):  # the handler takes a guard each time
                    begun.clear()
                    go_on.clear()
                    guarded(router, echo)
                    publisher.put(b"x")
                    assert begun.wait(60)
                    for _ in range(20):
                        echo.say(b"word")
                        other.say(b"word")
                    go_on.set()
            finally:
                go_on.set()


class Talker:
    """A link in simulated time, whose waits are in the account of a guard."""

    def __init__(self) -> None:
        self.vigil = Vigil()
        self.sent = 0


def test_who_only_receives_does_not_talk_to_a_guard() -> None:
    talker, now = Talker(), 1.0
    talker.vigil.ended(now)
    talker.vigil._last = 0.0

    talks = []
    for send in (True, True, False, True):
        talker.sent += send
        talks.append(talker.vigil.talks(talker.sent, now))
        now += 1e-4
        talker.vigil.ended(now)

    assert talks == [True, True, False, True]


def test_a_link_talks_whatever_its_own_account_says() -> None:
    vigil, now = Vigil(), 1.0
    vigil._rests_until, vigil._last = 2.0, 0.0

    assert not vigil.begin(1, now)
    assert vigil.talks(2, now)
    assert not vigil.again(now)
    assert vigil.again(2.0)
