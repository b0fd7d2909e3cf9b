"""A subscriber slower than its publisher, with a router between them: BLOCK loses nothing, DROP loses and counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import elea
from elea.io.loop import IN
from elea.model.errors import SessionClosed
from elea.node.connection import Connection
from tests.unit.api import logkeeper
from tests.unit.api.logkeeper import wait_until

COUNT = 3_000
ANSWERS = 16_000  # 128 MB: more than the kernel holds on two connections
PAYLOAD = bytes(8_000)
PATIENCE = 60.0


def config(mode: str, side: str, locator: str) -> elea.Config:
    rest = "scouting: {multicast: {enabled: false}}"
    return elea.Config.from_json5(f"{{mode: '{mode}', {side}: {{endpoints: ['{locator}']}}, {rest}}}")


@pytest.fixture
def sessions() -> Iterator[tuple[elea.Session, elea.Session, elea.Session]]:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        locator = router._runtime.links.locators()[0]
        with (
            elea.open(config("client", "connect", locator)) as publisher,
            elea.open(config("client", "connect", locator)) as subscriber,
        ):
            deadline = time.monotonic() + PATIENCE
            while len(router._runtime.links.connections) < 2:  # a client may be ready a moment before
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield router, publisher, subscriber


def publish(
    sessions: tuple[elea.Session, elea.Session, elea.Session], control: elea.CongestionControl
) -> tuple[list[int], int]:
    """What arrived, and what the publisher and the router say they lost."""
    router, publisher, subscriber = sessions
    got: list[int] = []

    def take(sample: elea.Sample) -> None:
        got.append(int.from_bytes(sample.payload.to_bytes()[:4], "little"))
        time.sleep(0.0002)

    with subscriber.declare_subscriber("slow", take):
        made = publisher.declare_publisher("slow", congestion_control=control)
        deadline = time.monotonic() + PATIENCE
        while not made.matching_status.matching and time.monotonic() < deadline:
            time.sleep(0.01)
        for number in range(COUNT):
            made.put(number.to_bytes(4, "little") + PAYLOAD)
        last = -1
        while len(got) != last and len(got) < COUNT and time.monotonic() < deadline:
            last = len(got)
            time.sleep(1.0)
    return got, sum(publisher.info.dropped().values()) + sum(router.info.dropped().values())


def test_samples_that_must_not_be_dropped_all_arrive(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    got, lost = publish(sessions, elea.CongestionControl.BLOCK)

    assert got == list(range(COUNT))
    assert lost == 0


def test_every_sample_arrives_or_is_counted_as_lost(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    got, lost = publish(sessions, elea.CongestionControl.DROP)

    assert got == sorted(set(got))
    assert len(got) + lost == COUNT


def test_a_slow_asker_gets_all_answers_and_slows_the_answerer(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    """128 MB of replies, where 1 MiB may wait on a link: whoever answers waits, and no link is given up."""
    router, answerer, asker = sessions
    links = set(router._runtime.links.connections)

    def answer(query: elea.Query) -> None:
        for number in range(ANSWERS):
            query.reply("many", number.to_bytes(4, "little") + PAYLOAD)

    got: list[int] = []
    with answerer.declare_queryable("many", answer):
        querier = asker.declare_querier("many", consolidation=elea.ConsolidationMode.NONE, timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not querier.matching_status.matching and time.monotonic() < deadline:
            time.sleep(0.01)
        for reply in querier.get():
            assert reply.ok is not None
            got.append(int.from_bytes(reply.ok.payload.to_bytes()[:4], "little"))
            if len(got) == 1:
                time.sleep(1.5)  # long enough to fill every buffer on the way

    assert got == list(range(ANSWERS))
    assert set(router._runtime.links.connections) == links


# -- a subscriber that stands still -------------------------------------------------------------------------------

SUBSCRIBER = """if 1:
    import sys, threading, elea
    from tests.unit.api.logkeeper import config
    got, enough = [], threading.Event()

    def take(sample):
        got.append(int.from_bytes(sample.payload.to_bytes()[:4], "little"))
        if len(got) == int(sys.argv[2]):
            enough.set()

    with elea.open(config("client", connect__endpoints=[sys.argv[1]], transport__link__tx__lease=600_000)) as session:
        session.declare_subscriber("stopped", take)
        print("ready", flush=True)
        sys.stdin.readline()
        enough.wait(60)
        print(len(got), got == list(range(len(got))), flush=True)
"""


class Stopped:
    """A subscriber in a process of its own that is stopped and may go on."""

    def __init__(self, locator: str, count: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUBSCRIBER, locator, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> str:
        os.kill(self.process.pid, signal.SIGCONT)
        out, _ = self.process.communicate("\n", timeout=2 * PATIENCE)
        return out.strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Scene:
    """A router, a stopped subscriber, someone who publishes for it with BLOCK, and two who only talk."""

    def __init__(self, router: elea.Session, stopped: Stopped, publisher: elea.Session, others: list[elea.Session]):
        self.router = router
        self.stopped = stopped
        self.publisher = publisher
        self.others = others
        self.put = 0
        self.problems: list[Exception] = []
        self.source = self._connection_of(publisher)

    def _connection_of(self, session: elea.Session) -> Connection:
        (end,) = session._runtime.links.connections
        return next(each for each in self.router._runtime.links.connections if each.link.remote == end.link.local)

    def publish(self, count: int) -> threading.Thread:
        """Put so much, in a thread that may have to wait."""
        made = self.publisher.declare_publisher("stopped", congestion_control=elea.CongestionControl.BLOCK)
        wait_until(lambda: made.matching_status.matching, "the subscriber is known")

        def run() -> None:
            try:
                for number in range(count):
                    made.put(number.to_bytes(4, "little") + PAYLOAD)
                    self.put += 1
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.problems.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def stands_still(self) -> bool:
        before = self.put
        time.sleep(0.3)
        return self.put == before

    def talk(self, turns: int = 20) -> float:
        """The longest that a question of one of the others to the other took."""
        longest = 0.0
        for _ in range(turns):
            begun = time.monotonic()
            replies = [reply.ok for reply in self.others[0].get("question")]
            assert [reply.payload.to_string() for reply in replies if reply is not None] == ["answer"]
            longest = max(longest, time.monotonic() - begun)
        return longest


@contextmanager
def scene(count: int, **entries: Any) -> Iterator[Scene]:
    with elea.open(logkeeper.config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as router:
        locator = router._runtime.links.locators()[0]
        stopped = Stopped(locator, count)
        lease = {"transport__link__tx__lease": 600_000}
        try:
            with (
                elea.open(logkeeper.config("client", connect__endpoints=[locator], **lease)) as publisher,
                elea.open(logkeeper.config("client", connect__endpoints=[locator])) as asker,
                elea.open(logkeeper.config("client", connect__endpoints=[locator])) as answerer,
            ):
                answerer.declare_queryable("question", lambda query: query.reply("question", "answer"))
                wait_until(lambda: any(asker.get("question")), "the queryable is known")
                wait_until(lambda: len(router._runtime.links.connections) == 4, "all are connected")
                yield Scene(router, stopped, publisher, [asker, answerer])
        finally:
            stopped.kill()


LEASE = {"transport__link__tx__lease": 600_000}
NEVER = {"transport__link__tx__queue__congestion_control__block__wait_before_close": 600_000_000}


def test_the_link_of_a_blocked_publisher_is_not_read_and_all_others_are() -> None:
    count = 4_000  # 32 MB: more than the kernel holds on two connections
    with scene(count, **LEASE, **NEVER) as all_of_it:
        all_of_it.stopped.stop()
        publishing = all_of_it.publish(count)
        wait_until(all_of_it.stands_still, "nothing more is taken")
        assert all_of_it.put < count
        assert not all_of_it.source.mask & IN
        put = all_of_it.put

        assert all_of_it.talk() < 2.0
        assert (all_of_it.put, all_of_it.source.mask & IN) == (put, 0)
        assert all_of_it.router._node.loop.takeovers <= 2  # nobody waits in a turn

        assert all_of_it.stopped.go_on() == f"{count} True"
        publishing.join(PATIENCE)
        assert not publishing.is_alive()
        assert not all_of_it.problems
        wait_until(lambda: all_of_it.source.mask & IN, "the link is read again")
        assert sum(all_of_it.router.info.dropped().values()) == 0


def test_samples_that_may_be_dropped_pass_by_a_subscriber_that_stands_still() -> None:
    with scene(1, **LEASE, **NEVER) as all_of_it:
        all_of_it.stopped.stop()
        got: list[int] = []
        all_of_it.others[0].declare_subscriber("stopped", lambda sample: got.append(1))
        made = all_of_it.publisher.declare_publisher("stopped", congestion_control=elea.CongestionControl.DROP)
        wait_until(lambda: made.put(b"first") or got, "the other subscriber is known")

        for number in range(COUNT):
            made.put(number.to_bytes(4, "little") + PAYLOAD)
            if not number % 50:
                time.sleep(0.001)

        assert all_of_it.talk() < 2.0
        assert all_of_it.source.mask & IN
        wait_until(lambda: made.put(b"last") or len(got) > COUNT / 2, "the others get most of it")


def test_a_subscriber_that_stands_still_is_given_up_and_the_publisher_goes_on() -> None:
    count = 4_000
    waits = {"transport__link__tx__queue__congestion_control__block__wait_before_close": 500_000}
    with scene(count, **LEASE, **waits) as all_of_it:
        links = all_of_it.router._runtime.links
        others = {connection for connection in links.connections if connection.peer_id}
        ended: list[Connection] = []
        links.link_listeners.append(lambda connection, joined: None if joined else ended.append(connection))
        all_of_it.stopped.stop()
        begun = time.monotonic()
        publishing = all_of_it.publish(count)

        wait_until(lambda: ended, "the subscriber is given up")
        assert time.monotonic() - begun >= 0.5
        publishing.join(PATIENCE)

        assert not publishing.is_alive()
        assert not all_of_it.problems
        assert all_of_it.put == count
        (victim,) = ended
        assert "no more" in str(victim.error) or isinstance(victim.error, SessionClosed | elea.ZError)
        assert set(links.connections) == others - {victim}
        wait_until(lambda: all_of_it.source.mask & IN, "the link is read again")
        assert all_of_it.talk() < 2.0
        assert sum(all_of_it.router.info.dropped().values()) > 0


def test_a_subscriber_that_dies_while_others_wait_for_it_lets_them_go_on() -> None:
    count = 4_000
    with scene(count, **LEASE, **NEVER) as all_of_it:
        all_of_it.stopped.stop()
        publishing = all_of_it.publish(count)
        wait_until(all_of_it.stands_still, "nothing more is taken")

        all_of_it.stopped.kill()
        publishing.join(PATIENCE)

        assert not publishing.is_alive()
        assert all_of_it.put == count
        wait_until(lambda: all_of_it.source.mask & IN, "the link is read again")
        assert all_of_it.talk() < 2.0


ECHO = """if 1:
    import sys, threading, elea
    from tests.unit.api.logkeeper import config
    with elea.open(config("client", connect__endpoints=[sys.argv[1]], transport__link__tx__lease=600_000)) as session:
        hold = threading.Event()
        session.declare_subscriber("itself", lambda sample: hold.wait(600), allowed_origin=elea.Locality.ANY)
        publisher = session.declare_publisher("itself", congestion_control=elea.CongestionControl.BLOCK)
        other = elea.open(config("client", connect__endpoints=[sys.argv[1]], transport__link__tx__lease=600_000))
        again = other.declare_publisher("itself", congestion_control=elea.CongestionControl.BLOCK)
        print("ready", flush=True)
        while True:
            again.put(bytes(100_000))
"""


@pytest.mark.parametrize("turn", range(3))
def test_the_death_of_all_who_wait_for_each_other_ends_nothing_else(turn: int) -> None:
    with scene(1, **LEASE, **NEVER) as all_of_it:
        links = all_of_it.router._runtime.links
        before = set(links.connections)
        words = [sys.executable, "-c", ECHO, links.locators()[0]]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            wait_until(lambda: all_of_it.router._node.loop._gates, "its link waits for itself")
            time.sleep(0.1 * turn)
            process.kill()

        wait_until(lambda: set(links.connections) == before, "its sessions have ended")
        assert all_of_it.talk() < 2.0
        assert all_of_it.router._node.loop.failures == 0


def test_a_blocked_publisher_may_leave() -> None:
    """Its link is not read, and so its end is found when there is room again, or not at all: nothing may hang."""
    count = 4_000
    with scene(count, **LEASE, **NEVER) as all_of_it:
        all_of_it.stopped.stop()
        all_of_it.publish(count)
        wait_until(all_of_it.stands_still, "nothing more is taken")

        (end,) = all_of_it.publisher._runtime.links.connections
        end.link.close()
        assert all_of_it.talk() < 2.0
        all_of_it.stopped.kill()

        assert all_of_it.source.ended.wait(PATIENCE)
        assert not all_of_it.router._node.loop._gates


def test_a_function_of_the_router_that_is_full_holds_up_its_publisher_only(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    router, publisher, other = sessions
    go_on, got = threading.Event(), list[int]()

    def take(sample: elea.Sample) -> None:
        go_on.wait(PATIENCE)
        got.append(int.from_bytes(sample.payload.to_bytes()[:4], "little"))

    count = 12_000  # 96 MB: a mailbox and what the kernel holds are full
    router.declare_subscriber("full", take)
    router.declare_queryable("question", lambda query: query.reply("question", "answer"))
    made = publisher.declare_publisher("full", congestion_control=elea.CongestionControl.BLOCK)
    wait_until(lambda: made.matching_status.matching, "the subscriber is known")
    wait_until(lambda: any(other.get("question")), "the queryable is known")
    put = [0]

    def publish() -> None:
        for number in range(count):
            made.put(number.to_bytes(4, "little") + PAYLOAD)
            put[0] += 1

    publishing = threading.Thread(target=publish, daemon=True)
    publishing.start()
    last = -1
    while put[0] != last:
        last = put[0]
        time.sleep(0.3)
    for _ in range(20):
        assert any(other.get("question"))
    go_on.set()
    publishing.join(PATIENCE)

    assert not publishing.is_alive()
    wait_until(lambda: len(got) == count, "all samples")
    assert got == list(range(count))
    assert sum(router.info.dropped().values()) == 0
