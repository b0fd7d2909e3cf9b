"""A thread that waits reads the link itself: all that may happen to it meanwhile, over real sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import elea
from elea.broker.leading import LOST, Lead
from elea.model.errors import OperationTimeout
from elea.model.limits import DEFAULT_CAPACITY
from tests.unit.api.logkeeper import config, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd: nobody takes the lead")

LEASE_MS = 4_000
LONG = 1_000_000


@contextmanager
def pair(**entries: Any) -> Iterator[tuple[elea.Session, elea.Session]]:
    """A router, and the only client of it; no keep-alive wakes a reader that ought not to sleep."""
    entries = {"transport__link__tx__lease": LONG, **entries}
    with elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as router:
        locator = router._runtime.links.locators()[0]
        with elea.open(config("client", connect__endpoints=[locator], **entries)) as client:
            yield router, client


def lead_of(session: elea.Session) -> Lead:
    lead = session._node.lead
    assert lead is not None
    return lead


def ask(session: elea.Session, selector: str = "question", **options: Any) -> list[str]:
    return [reply.ok.payload.to_string() for reply in session.get(selector, **options) if reply.ok is not None]


def until_led(session: elea.Session, work: Callable[[], object], times: int = 3) -> None:
    """Do something until the threads that wait have read for themselves some times."""
    before, end = lead_of(session).turns, time.monotonic() + 60
    while lead_of(session).turns < before + times:  # without a pause: who waits too long finds the lead taken
        work()
        assert time.monotonic() < end


class Waiting(threading.Thread):
    """A thread that waits at a channel, and what came of it."""

    def __init__(self, wait: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._wait = wait
        self.came: object = None

    def run(self) -> None:
        try:
            self.came = self._wait()
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.came = error

    def result(self) -> object:
        self.join(60)
        assert not self.is_alive()
        return self.came


def leading(session: elea.Session, subscriber: Any) -> Waiting:
    """A thread that waits for the next sample of a subscriber, and has the lead."""
    lead = lead_of(session)

    def wait() -> object:
        until_led(session, lambda: (session.put("please", "mine"), subscriber.recv()), 1)
        return subscriber.recv()

    while True:
        waiting = Waiting(wait)
        waiting.start()
        time.sleep(0.1)
        if lead._reader == waiting.ident:
            return waiting
        session.put("please", "mine")  # the link's own thread was faster: once more
        waiting.result()


@contextmanager
def bringing(**entries: Any) -> Iterator[tuple[elea.Session, elea.Session, Any]]:
    """A client with a subscriber, and a router that puts a sample on its key whenever it is asked to."""
    with pair(**entries) as (router, client):
        router.declare_subscriber("please", lambda sample: router.put(sample.payload.to_string(), "brought"))
        subscriber = client.declare_subscriber("mine")
        wait_until(lambda: client.put("please", "mine") or subscriber.try_recv(), "the way is known")
        while subscriber.try_recv() or _more(subscriber):
            pass
        yield router, client, subscriber


def _more(subscriber: Any) -> bool:
    try:
        subscriber.handler.recv(timeout=0.3)
    except OperationTimeout:
        return False
    return True


def test_question_after_question_is_read_by_the_one_who_asks() -> None:
    with pair() as (router, client):
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        until_led(client, lambda: ask(client), 20)

        assert ask(client) == ["answer"]


def test_samples_and_queries_are_read_by_the_ones_who_wait() -> None:
    with bringing() as (router, client, subscriber):
        until_led(client, lambda: (client.put("please", "mine"), subscriber.recv()))

        queryable = client.declare_queryable("asked")

        def answer() -> None:
            for query in queryable:
                with query:
                    query.reply("asked", "by a client")

        server = Waiting(answer)
        server.start()
        until_led(client, lambda: ask(router, "asked"))
        assert ask(router, "asked") == ["by a client"]
        queryable.undeclare()
        server.result()


def test_many_threads_that_wait_all_get_what_is_theirs() -> None:
    with pair() as (router, client):
        router.declare_queryable("question/*", lambda query: query.reply(query.key_expr, str(query.key_expr)))
        wait_until(lambda: ask(client, "question/first"), "the queryable is known")

        def run(number: int) -> list[str]:
            return [answer for turn in range(60) for answer in ask(client, f"question/{number}-{turn}")]

        threads = [Waiting(partial(run, number)) for number in range(8)]
        for thread in threads:
            thread.start()

        for number, thread in enumerate(threads):
            assert thread.result() == [f"question/{number}-{turn}" for turn in range(60)]


def test_samples_for_channels_and_functions_arrive_whole_and_in_order() -> None:
    count = 4_000
    with pair() as (router, client):
        threads: dict[str, set[int]] = {"called": set(), "mine": set()}
        called: list[int] = []

        def call(sample: elea.Sample) -> None:
            threads["called"].add(threading.get_ident())
            called.append(int(sample.payload.to_string()))

        def take(subscriber: Any) -> list[int]:
            threads["mine"].add(threading.get_ident())
            return [int(subscriber.recv().payload.to_string()) for _ in range(count)]

        subscribers = [client.declare_subscriber(f"mine/{number}") for number in range(3)]
        client.declare_subscriber("called", call)
        publishers = [
            router.declare_publisher(key, congestion_control=elea.CongestionControl.BLOCK)
            for key in ("mine/0", "mine/1", "mine/2", "called")
        ]
        wait_until(lambda: all(each.matching_status.matching for each in publishers), "the subscribers are known")
        takers = [Waiting(partial(take, subscriber)) for subscriber in subscribers]
        for taker in takers:
            taker.start()
        for number in range(count):
            for publisher in publishers:
                publisher.put(str(number))
            if number % 500 == 0:
                time.sleep(0.01)  # the link falls idle: who waits takes the lead

        assert [taker.result() for taker in takers] == [list(range(count))] * 3
        wait_until(lambda: len(called) == count, "all samples are delivered")
        assert called == list(range(count))
        assert not threads["called"] & threads["mine"]


def test_a_flood_for_one_channel_is_taken_by_its_own_rule() -> None:
    bursts, burst = 60, 1_000
    with pair() as (router, client):
        subscriber = client.declare_subscriber("flood")
        publisher = router.declare_publisher("flood", congestion_control=elea.CongestionControl.BLOCK)
        wait_until(lambda: publisher.matching_status.matching, "the subscriber is known")
        lead, taken = lead_of(client), 0

        def take() -> list[int]:
            nonlocal taken
            got = []
            while taken < bursts * burst:
                got.append(int(subscriber.recv().payload.to_string()))
                taken += 1
            return got

        taker = Waiting(take)
        taker.start()
        for number in range(bursts):
            # Whoever reads this finds more than one batch, and somebody who waits for all of them.
            wait_until(lambda: taken == number * burst and (lead._reader or lead._wanted), "the taker waits")  # noqa: B023
            for index in range(burst):
                publisher.put(str(number * burst + index))

        assert taker.result() == list(range(bursts * burst))
        assert subscriber.dropped == 0

        for number in range(10 * DEFAULT_CAPACITY):
            publisher.put(str(number))
        wait_until(lambda: len(subscriber.handler) == DEFAULT_CAPACITY, "the channel is full, and no more than that")


def test_a_slow_function_of_another_subscriber_holds_up_nobody_who_waits() -> None:
    with bringing() as (_, client, subscriber):
        go_on, inside = threading.Event(), threading.Event()

        def be_slow(_: elea.Sample) -> None:
            inside.set()
            go_on.wait(60)

        client.declare_subscriber("slow", be_slow)
        waiting = leading(client, subscriber)
        client.put("please", "slow")
        wait_until(lambda: client.put("please", "slow") or inside.wait(0.1), "the function is called")
        client.put("please", "mine")

        assert isinstance(waiting.result(), elea.Sample)
        assert not go_on.is_set()
        go_on.set()


def test_recv_keeps_its_time_while_it_reads() -> None:
    with bringing() as (_, client, subscriber):
        until_led(client, lambda: (client.put("please", "mine"), subscriber.recv()))
        begun = time.monotonic()
        turns = lead_of(client).turns
        with pytest.raises(OperationTimeout):
            subscriber.handler.recv(timeout=0.3)
        assert time.monotonic() - begun >= 0.3

        client.put("please", "mine")
        assert subscriber.handler.recv(timeout=60).payload.to_string() == "brought"
        assert lead_of(client).turns >= turns


def test_a_query_is_over_in_time_while_its_asker_reads() -> None:
    kept: list[elea.Query] = []
    with pair() as (router, client):
        router.declare_queryable("silent", kept.append)
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        until_led(client, lambda: ask(client))
        replies = list(client.get("silent", timeout=0.3))

        assert [reply.err.payload.to_string() for reply in replies if reply.err is not None] == ["Timeout"]
        kept.clear()


def test_what_other_threads_do_reaches_the_one_who_reads() -> None:
    with bringing() as (_, client, subscriber):
        waiting = leading(client, subscriber)
        client.put("mine", "from here")
        sample = waiting.result()
        assert isinstance(sample, elea.Sample)
        assert sample.payload.to_string() == "from here"

        waiting = leading(client, subscriber)
        subscriber.undeclare()
        assert isinstance(waiting.result(), elea.ZError)
        until_led(client, lambda: (client.put("please", "mine"), ask(client, "nobody")), 0)


def test_closing_ends_the_wait_of_the_one_who_reads() -> None:
    with bringing() as (_, client, subscriber):
        waiting = leading(client, subscriber)
        client.close()

        assert isinstance(waiting.result(), elea.ZError)


def test_both_ends_stay_alive_while_a_user_reads_and_after() -> None:
    with bringing(transport__link__tx__lease=LEASE_MS) as (router, client, subscriber):
        connection = lead_of(client)._connection
        (other,) = router._runtime.links.connections

        def await_keep_alives() -> None:
            """Both hear of each other, although nobody says anything."""
            for _ in range(2):
                last = [each._receiver.last_heard for each in (connection, other) if each._receiver is not None]

                def came() -> bool:
                    heard = [each._receiver.last_heard for each in (connection, other) if each._receiver is not None]
                    return all(now > then for now, then in zip(heard, last, strict=True))  # noqa: B023

                wait_until(came, "keep-alives come")

        waiting = leading(client, subscriber)
        await_keep_alives()
        assert lead_of(client)._reader == waiting.ident
        router.put("mine", "at last")
        waiting.result()
        await_keep_alives()

        assert not connection.ended.is_set()
        assert not other.ended.is_set()


@pytest.mark.parametrize(("sign", "lease_ms"), [(signal.SIGKILL, LONG), (signal.SIGSTOP, LEASE_MS)])
def test_the_end_of_the_other_node_is_noticed_while_a_user_reads(sign: signal.Signals, lease_ms: int) -> None:
    program = f"""if 1:
        import elea, sys, time
        from tests.unit.api.logkeeper import config
        lease = {{"transport__link__tx__lease": {lease_ms}}}
        router = elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **lease))
        router.declare_subscriber("please", lambda sample: router.put(sample.payload.to_string(), "brought"))
        print(router._runtime.links.locators()[0], flush=True)
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            locator = process.stdout.readline().strip()
            lease = {"transport__link__tx__lease": lease_ms}
            with elea.open(config("client", connect__endpoints=[locator], **lease)) as client:
                subscriber = client.declare_subscriber("mine")
                connection = lead_of(client)._connection
                waiting = leading(client, subscriber)
                process.send_signal(sign)
                assert connection.ended.wait(60)
                assert waiting.is_alive()  # the client tries to come back
                wait_until(lambda: client._node.lead is not connection.lead, "the lead is offered no more")
            assert isinstance(waiting.result(), elea.ZError)
        finally:
            process.kill()


def test_an_interrupt_leaves_the_session_as_it_was() -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    with bringing() as (_, client, subscriber):
        lead, main, over = lead_of(client), threading.get_ident(), threading.Event()

        def send() -> None:
            while not over.wait(0.05):
                if lead._reader == main:
                    signal.pthread_kill(main, signal.SIGUSR1)
                else:
                    client.put("please", "mine")  # the link's own thread reads: let both try again

        def wait() -> None:
            while True:
                until_led(client, lambda: (client.put("please", "mine"), subscriber.recv()), 1)
                subscriber.recv()

        before = signal.signal(signal.SIGUSR1, interrupt)
        sender = Waiting(send)
        sender.start()
        try:
            for _ in range(5):
                with pytest.raises(Interrupted):
                    wait()
            over.set()
            sender.result()
        finally:
            over.set()
            signal.signal(signal.SIGUSR1, before)
        wait_until(lambda: client.put("please", "mine") or subscriber.try_recv(), "the session goes on")

        assert not lead._connection.ended.is_set()


def test_a_lead_that_was_lost_is_found() -> None:
    assert LOST * 0.001 < 30
    with pair() as (router, client):
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        lead = lead_of(client)
        until_led(client, lambda: ask(client))
        wait_until(lambda: ask(client) and lead._right.acquire(False), "the lead is free")  # taken, but nobody says so

        assert ask(client) == ["answer"]


def test_sessions_that_were_read_by_users_leave_nothing_open() -> None:
    def visit() -> None:
        with pair() as (router, client):
            router.declare_queryable("question", lambda query: query.reply("question", "answer"))
            until_led(client, lambda: ask(client))

    visit()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        visit()

    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before, "all files are closed")


def test_a_node_with_two_links_or_a_router_offers_no_lead() -> None:
    with pair() as (router, client):
        assert router._node.lead is None
        peer = config("peer", connect__endpoints=[router._runtime.links.locators()[0]])
        with elea.open(peer) as first:
            assert lead_of(first)
            other = config("router", listen__endpoints=["tcp/127.0.0.1:0"])
            with elea.open(other) as second:
                first._runtime.links.connect(second._runtime.links.locators()[0])
                assert first._node.lead is None
            wait_until(lambda: first._node.lead is not None, "one link is left")
        assert lead_of(client)


def test_a_program_that_ends_while_its_threads_read_does_end() -> None:
    program = """if 1:
        import elea, threading
        from tests.unit.broker.test_leading import bringing, leading
        stage = bringing()
        router, client, subscriber = stage.__enter__()
        leading(client, subscriber)
        print("ends", flush=True)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout == "ends\n"
    assert done.returncode == 0, done.stderr
