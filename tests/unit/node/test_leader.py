"""Who leads the loop of a node, over real sockets: threads that wait read for themselves, handlers hold up nobody."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

import elea
from elea.io.loop import Loop
from elea.model.errors import OperationTimeout, ProtocolError
from elea.model.limits import DEFAULT_CAPACITY
from elea.node.admin import metrics
from elea.node.connection import Connection
from elea.node.dialect import Machine
from elea.node.zenoh1.machine import Zenoh1Machine
from tests.unit.api.logkeeper import config, wait_until

BLOCK = elea.CongestionControl.BLOCK
LEASE_MS = 4_000
LONG = 1_000_000


@contextmanager
def pair(**entries: Any) -> Iterator[tuple[elea.Session, elea.Session]]:
    """A router, and the only client of it; no keep-alive wakes who ought not to sleep."""
    entries = {"transport__link__tx__lease": LONG, **entries}
    with elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)) as router:
        locator = router._runtime.links.locators()[0]
        with elea.open(config("client", connect__endpoints=[locator], **entries)) as client:
            yield router, client


@contextmanager
def star(clients: int, **entries: Any) -> Iterator[tuple[elea.Session, list[elea.Session]]]:
    """A router, and clients of it."""
    with ExitStack() as stack:
        router = stack.enter_context(elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], **entries)))
        locator = router._runtime.links.locators()[0]
        ends = [stack.enter_context(elea.open(config("client", connect__endpoints=[locator]))) for _ in range(clients)]
        yield router, ends


def loop_of(session: elea.Session) -> Loop:
    return session._node.loop


def connections_of(session: elea.Session) -> list[Connection]:
    return list(session._runtime.links.connections)


def ask(session: elea.Session, selector: str = "question", **options: Any) -> list[str]:
    return [reply.ok.payload.to_string() for reply in session.get(selector, **options) if reply.ok is not None]


def until_led(session: elea.Session, work: Callable[[], object], times: int = 3) -> None:
    """Do something until the threads that wait have read for themselves some times."""
    before, end = loop_of(session).turns, time.monotonic() + 60
    while loop_of(session).turns < before + times:
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


def started(wait: Callable[[], object]) -> Waiting:
    waiting = Waiting(wait)
    waiting.start()
    return waiting


def leading(session: elea.Session, subscriber: Any) -> Waiting:
    """A thread that waits for the next sample of a subscriber, and leads."""

    def wait() -> object:
        until_led(session, lambda: (session.put("please", "mine"), subscriber.recv()), 1)
        return subscriber.recv()

    while True:
        waiting = started(wait)
        time.sleep(0.1)
        if loop_of(session).leader == waiting.ident:
            return waiting
        session.put("please", "mine")  # the worker was faster: once more
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


# -- threads that wait --------------------------------------------------------------------------------------------


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

        server = started(answer)
        until_led(client, lambda: ask(router, "asked"))
        assert ask(router, "asked") == ["by a client"]
        queryable.undeclare()
        server.result()


def test_a_node_with_several_links_is_led_by_its_users_too() -> None:
    with star(4) as (router, ends):
        for number, end in enumerate(ends):
            end.declare_queryable(f"question/{number}", lambda query: query.reply(query.key_expr, "answer"))
        for number in range(4):
            wait_until(lambda number=number: ask(router, f"question/{number}"), "the queryable is known")

        until_led(router, lambda: [ask(router, f"question/{number}") for number in range(4)], 20)

        assert [ask(router, f"question/{number}") for number in range(4)] == [["answer"]] * 4


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
            router.declare_publisher(key, congestion_control=BLOCK) for key in ("mine/0", "mine/1", "mine/2", "called")
        ]
        wait_until(lambda: all(each.matching_status.matching for each in publishers), "the subscribers are known")
        takers = [started(partial(take, subscriber)) for subscriber in subscribers]
        for number in range(count):
            for publisher in publishers:
                publisher.put(str(number))
            if number % 500 == 0:
                loop_of(client)._shared_until = 0.0
                time.sleep(0.01)  # the link falls idle: who waits takes the lead

        assert [taker.result() for taker in takers] == [list(range(count))] * 3
        wait_until(lambda: len(called) == count, "all samples are delivered")
        assert called == list(range(count))
        assert not threads["called"] & threads["mine"]


def test_a_flood_for_one_channel_is_taken_by_its_own_rule() -> None:
    bursts, burst = 60, 1_000
    with pair() as (router, client):
        subscriber = client.declare_subscriber("flood")
        publisher = router.declare_publisher("flood", congestion_control=BLOCK)
        wait_until(lambda: publisher.matching_status.matching, "the subscriber is known")
        loop, taken = loop_of(client), 0

        def take() -> list[int]:
            nonlocal taken
            got = []
            while taken < bursts * burst:
                got.append(int(subscriber.recv().payload.to_string()))
                taken += 1
            return got

        taker = started(take)
        for number in range(bursts):
            # Whoever reads this finds more than one batch, and somebody who waits for all of them.
            wait_until(
                lambda number=number: taken == number * burst and subscriber.handler._takers,
                "the taker waits",
            )
            for index in range(burst):
                publisher.put(str(number * burst + index))

        assert taker.result() == list(range(bursts * burst))
        assert subscriber.dropped == 0
        assert loop.turns > 0

        for number in range(10 * DEFAULT_CAPACITY):
            publisher.put(str(number))
        wait_until(lambda: len(subscriber.handler) == DEFAULT_CAPACITY, "the channel is full, and no more than that")


def test_a_query_is_over_in_time_while_its_asker_leads() -> None:
    kept: list[elea.Query] = []
    with pair() as (router, client):
        router.declare_queryable("silent", kept.append)
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        until_led(client, lambda: ask(client))
        replies = list(client.get("silent", timeout=0.3))

        assert [reply.err.payload.to_string() for reply in replies if reply.err is not None] == ["Timeout"]
        kept.clear()


def test_what_other_threads_do_reaches_the_one_who_leads() -> None:
    with bringing() as (_, client, subscriber):
        waiting = leading(client, subscriber)
        client.put("mine", "from here")
        sample = waiting.result()
        assert isinstance(sample, elea.Sample)
        assert sample.payload.to_string() == "from here"

        waiting = leading(client, subscriber)
        subscriber.undeclare()
        assert isinstance(waiting.result(), elea.ZError)


def heard_at(connection: Connection) -> float:
    machine = connection.machine
    assert isinstance(machine, Zenoh1Machine)
    assert machine.receiver is not None
    return machine.receiver.last_heard


def test_both_ends_stay_alive_while_a_user_leads_and_after() -> None:
    with bringing(transport__link__tx__lease=LEASE_MS) as (router, client, subscriber):
        (connection,), (other,) = connections_of(client), connections_of(router)

        def heard() -> list[float]:
            return [heard_at(each) for each in (connection, other)]

        def await_keep_alives() -> None:
            """Both hear of each other, although nobody says anything."""
            for _ in range(2):
                last = heard()
                wait_until(
                    lambda last=last: all(now > then for now, then in zip(heard(), last, strict=True)),
                    "keep-alives come",
                )

        waiting = leading(client, subscriber)
        await_keep_alives()
        assert loop_of(client).leader == waiting.ident
        router.put("mine", "at last")
        waiting.result()
        await_keep_alives()

        assert not connection.ended.is_set()
        assert not other.ended.is_set()


@pytest.mark.parametrize(("sign", "lease_ms"), [(signal.SIGKILL, LONG), (signal.SIGSTOP, LEASE_MS)])
def test_the_end_of_the_other_node_is_noticed_while_a_user_leads(sign: signal.Signals, lease_ms: int) -> None:
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
                (connection,) = connections_of(client)
                waiting = leading(client, subscriber)
                process.send_signal(sign)
                assert connection.ended.wait(60)
                assert waiting.is_alive()  # the client tries to come back
            assert isinstance(waiting.result(), elea.ZError)
        finally:
            process.kill()


def test_sessions_that_were_led_by_users_leave_nothing_open() -> None:
    def visit() -> None:
        with bringing() as (_, client, subscriber):
            waiting = leading(client, subscriber)
            client.close()
            assert isinstance(waiting.result(), elea.ZError)

    visit()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        visit()

    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before, "all files are closed")


def test_a_program_that_ends_while_its_threads_lead_does_end() -> None:
    program = """if 1:
        import elea, threading
        from tests.unit.node.test_leader import bringing, leading
        stage = bringing()
        router, client, subscriber = stage.__enter__()
        leading(client, subscriber)
        print("ends", flush=True)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout == "ends\n"
    assert done.returncode == 0, done.stderr


# -- interrupts ---------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """What a signal raises."""


def receive_one(client: elea.Session, subscriber: Any) -> bool:
    try:
        subscriber.handler.recv(timeout=0.05)
    except OperationTimeout:
        return False
    return True


def iterate(client: elea.Session, subscriber: Any) -> bool:
    for _ in subscriber:
        return True
    raise AssertionError("it has ended")


def get(client: elea.Session, subscriber: Any) -> bool:
    assert ask(client) == ["answer"]
    return False


@pytest.mark.parametrize(
    ("number", "timer", "wait"),
    [
        (signal.SIGINT, False, receive_one),
        (signal.SIGALRM, True, receive_one),
        (signal.SIGINT, False, get),
    ],
    ids=["recv SIGINT", "recv SIGALRM by setitimer", "get SIGINT"],
)
def test_interrupts_end_no_session_and_lose_no_sample(
    number: signal.Signals, timer: bool, wait: Callable[[elea.Session, Any], bool]
) -> None:
    """The main thread waits, and is interrupted at moments of all kinds; a function gets all there is to get."""
    count, inside, interrupts = 20_000, [False], [0]

    def interrupt(*_: object) -> None:
        if inside[0]:
            inside[0] = False
            interrupts[0] += 1
            raise Interrupted

    with pair() as (router, client):
        every: list[int] = []
        taken = 0
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        ask(client)  # imports what questions need
        client.declare_subscriber("mine", lambda sample: every.append(int(sample.payload.to_string())))
        subscriber = client.declare_subscriber("mine", elea.handlers.RingChannel(count))
        publisher = router.declare_publisher("mine", congestion_control=BLOCK)
        wait_until(lambda: publisher.matching_status.matching, "the subscribers are known")
        main, over = threading.get_ident(), threading.Event()

        def send_signals() -> None:
            turn = 0
            while not over.wait(0.0001 * (turn % 17)):
                turn += 1
                signal.pthread_kill(main, number)

        def publish() -> None:
            for item in range(count):
                publisher.put(str(item))
                if not item % 50:
                    time.sleep(0.001)

        before = signal.signal(number, interrupt)
        threads = [started(publish)]
        if timer:
            signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
        else:
            threads.append(started(send_signals))
        try:
            end = time.monotonic() + 60
            while len(every) < count or (len(subscriber.handler) and wait is not get):
                assert time.monotonic() < end
                loop_of(client)._shared_until = 0.0
                try:
                    inside[0] = True
                    taken += wait(client, subscriber)
                    inside[0] = False
                except Interrupted:
                    inside[0] = False
        finally:
            inside[0] = False
            over.set()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            for thread in threads:  # no signal comes after them
                thread.result()
            signal.signal(number, before)

        assert every == list(range(count))
        left = len(subscriber.handler)
        assert taken + left >= count - interrupts[0]  # one may be lost between the channel and its user, each time
        assert left == (count if wait is get else 0)
        assert interrupts[0] > 50
        assert subscriber.dropped == 0
        assert not any(each.ended.is_set() for each in (*connections_of(client), *connections_of(router)))
        assert len(connections_of(client)) == 1
        assert [ask(client) for _ in range(20)] == [["answer"]] * 20


class InterruptingMachine(Machine):
    """The machine of a link, with a Ctrl-C whenever the main thread is about to take a batch."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine.reader)
        self.face, self.outbox = machine.face, machine.outbox
        self.interrupts = 0
        self._machine = machine

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        if threading.current_thread() is threading.main_thread():
            self.interrupts += 1
            signal.raise_signal(signal.SIGINT)
        self._machine.receive(batch, now)

    def on_end(self) -> None:
        self._machine.on_end()


@pytest.mark.parametrize("wait", [receive_one, iterate])
def test_interrupt_while_a_batch_is_taken_loses_nothing_of_it(wait: Callable[[elea.Session, Any], bool]) -> None:
    """The main thread leads; some of what it takes is for another handler."""
    with pair() as (router, client):
        others: list[int] = []
        client.declare_subscriber("others", lambda sample: others.append(int(sample.payload.to_string())))
        subscriber = client.declare_subscriber("mine")
        known = router.declare_publisher("mine")
        wait_until(lambda: known.matching_status.matching, "the subscribers are known")
        until_led(client, lambda: (router.put("mine", "x"), subscriber.recv()))
        (connection,) = connections_of(client)
        machine = connection.machine = InterruptingMachine(connection.machine)
        put, interrupts, over = 0, 0, threading.Event()

        def publish() -> None:
            nonlocal put
            turn = 0
            while not over.wait(0.002):
                turn += 1
                if turn % 5 == 0:  # not each time: who reads for others does not lead for a while
                    router.put("others", str(put), congestion_control=BLOCK)
                    put += 1
                router.put("mine", "x")

        publishing, end = started(publish), time.monotonic() + 60
        try:
            while interrupts < 50:
                assert time.monotonic() < end
                loop_of(client)._shared_until = 0.0
                try:
                    wait(client, subscriber)
                except KeyboardInterrupt:
                    interrupts += 1
                subscriber.handler.drain(1_000)
        finally:
            over.set()
            publishing.result()

        wait_until(lambda: len(others) >= put, "all have come")
        assert others == list(range(put))
        assert interrupts <= machine.interrupts
        assert not connection.ended.is_set()
        assert connections_of(client) == [connection]


@pytest.mark.parametrize("express", [False, True], ids=["", "express"])
def test_interrupted_puts_leave_the_link_and_the_other_samples_as_they_were(express: bool) -> None:
    with pair() as (router, client):
        came: list[int] = []
        router.declare_subscriber("mine", lambda sample: came.append(int(sample.payload.to_string())))
        publisher = client.declare_publisher("mine", congestion_control=BLOCK, express=express)
        wait_until(lambda: publisher.matching_status.matching, "the subscriber is known")
        (connection,) = connections_of(client)
        main, over, inside = threading.get_ident(), threading.Event(), [False]
        item, interrupts, put = 0, 0, []

        def send() -> None:
            turn = 0
            while not over.wait(0.0001 * (turn % 7)):
                turn += 1
                signal.pthread_kill(main, signal.SIGINT)

        before = signal.signal(signal.SIGINT, lambda *_: _raise_if(inside))
        sender = started(send)
        try:
            end = time.monotonic() + 60
            while interrupts < 500 and not connection.ended.is_set():
                assert time.monotonic() < end
                item += 1
                try:
                    inside[0] = True
                    publisher.put(str(item))
                    inside[0] = False
                    put.append(item)
                except Interrupted:
                    interrupts += 1
        finally:
            inside[0] = False
            over.set()
            sender.result()
            signal.signal(signal.SIGINT, before)
        publisher.put("0")

        wait_until(lambda: came[-1:] == [0] or connection.ended.is_set(), "the last one has come")
        assert not connection.ended.is_set()
        assert came[:-1] == sorted(set(came[:-1]))
        assert set(put) <= set(came)
        assert connections_of(client) == [connection]


def _raise_if(inside: list[bool]) -> None:
    if inside[0]:
        inside[0] = False
        raise Interrupted


# -- handlers -----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("size", [8, 3_000, 100_000], ids=["small", "larger", "in fragments"])
def test_nothing_is_lost_or_reordered_when_a_function_blocks_in_the_middle_of_a_batch(size: int) -> None:
    """Much has been received when the function blocks: another thread goes on with it."""
    count = 2_000 if size < 1_000 else 200
    with pair() as (router, client):
        blocked: list[int] = []
        other: list[int] = []

        def block(sample: elea.Sample) -> None:
            blocked.append(int(sample.payload.to_bytes()[:8]))
            if len(blocked) % 37 == 1:
                time.sleep(0.03)

        client.declare_subscriber("blocked", block)
        client.declare_subscriber("other", lambda sample: other.append(int(sample.payload.to_bytes()[:8])))
        publishers = [router.declare_publisher(key, congestion_control=BLOCK) for key in ("blocked", "other")]
        wait_until(lambda: all(each.matching_status.matching for each in publishers), "the subscribers are known")
        for number in range(count):
            for publisher in publishers:
                publisher.put(b"%08d" % number + bytes(size))

        wait_until(lambda: len(other) == count, "the other gets all")
        wait_until(lambda: len(blocked) == count, "and so does the slow one")
        assert other == blocked == list(range(count))
        assert client.info.dropped() == dict.fromkeys(client.info.dropped(), 0)


def test_a_function_that_blocks_leaves_its_link_and_all_others_to_another_thread() -> None:
    with star(3) as (router, ends):
        go_on, begun = threading.Event(), threading.Event()

        def hold_up(_: elea.Sample) -> None:
            begun.set()
            assert go_on.wait(60)

        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        for end in ends:
            wait_until(lambda end=end: ask(end), "the queryable is known")
        with router.declare_subscriber("held", hold_up):
            publisher = ends[0].declare_publisher("held", congestion_control=BLOCK)
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            try:
                for _ in range(5):
                    begun.clear()
                    go_on.clear()
                    publisher.put(b"x")
                    assert begun.wait(60)
                    start = time.monotonic()
                    for end in ends:
                        assert ask(end) == ["answer"]
                    assert time.monotonic() - start < 5
                    go_on.set()
            finally:
                go_on.set()

        assert loop_of(router).takeovers >= 1
        assert "elea_takeovers_total" in metrics(router._node, router._runtime.links)


def test_functions_may_ask_and_wait_while_users_do() -> None:
    """Each sample makes its function ask another question over the same link."""
    with pair() as (router, client):
        router.declare_queryable("question/*", lambda query: query.reply(query.key_expr, str(query.key_expr)))
        wait_until(lambda: ask(client, "question/first"), "the queryable is known")
        answers: list[list[str]] = []
        client.declare_subscriber("ask", lambda s: answers.append(ask(client, f"question/{s.payload.to_string()}")))
        publisher = router.declare_publisher("ask", congestion_control=BLOCK)
        wait_until(lambda: publisher.matching_status.matching, "the subscriber is known")

        def use(number: int) -> list[str]:
            return [answer for turn in range(100) for answer in ask(client, f"question/{number}-{turn}")]

        users = [started(partial(use, number)) for number in range(4)]
        for number in range(100):
            publisher.put(str(number))

        for number, user in enumerate(users):
            assert user.result() == [f"question/{number}-{turn}" for turn in range(100)]
        wait_until(lambda: len(answers) == 100, "all functions have their answers")
        assert answers == [[f"question/{number}"] for number in range(100)]


# -- many links ---------------------------------------------------------------------------------------------------


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


def test_talks_and_bursts_through_a_router_lose_nothing_and_keep_their_order() -> None:
    with star(4) as (router, ends):
        echoes = [Echo(ends[i], ends[(i + 1) % 4], f"talk{i}") for i in range(4)]
        sent: list[list[bytes]] = [[] for _ in echoes]

        def speak(index: int) -> None:
            mine = random.Random(index)
            for _ in range(150):
                words = [
                    b"%d:" % (len(sent[index]) + k) + mine.randbytes(mine.choice((0, 8, 900, 30_000, 200_000)))
                    for k in range(mine.choice((1, 1, 1, 1, 5, 40)))
                ]
                sent[index] += words
                echoes[index].say(*words)

        for speaker in [started(partial(speak, index)) for index in range(4)]:
            assert speaker.result() is None

        assert [echo.came for echo in echoes] == sent
        assert router._runtime.links.dropped() == dict.fromkeys(router._runtime.links.dropped(), 0)


@pytest.mark.parametrize("which", [0, 1])
def test_the_end_of_a_link_is_the_end_of_that_session_only(which: int) -> None:
    with star(3) as (router, ends):
        echo, other = Echo(ends[0], ends[1]), Echo(ends[1 - which], ends[2], "other")
        echo.say(b"word")

        ends[which].close()

        wait_until(lambda: len(connections_of(router)) == 2, "the end of one session")
        for _ in range(20):
            other.say(b"word")


@pytest.mark.parametrize("which", [0, 1])
def test_what_breaks_a_rule_ends_the_session_it_came_by(which: int) -> None:
    with star(3) as (router, ends):
        echo, other = Echo(ends[0], ends[1]), Echo(ends[1 - which], ends[2], "other")
        (end,) = connections_of(ends[which])
        victim = next(each for each in connections_of(router) if each.link.remote == end.link.local)
        others = [each for each in connections_of(router) if each is not victim]
        echo.say(b"word")

        end.link.send(b"\x02\x00\xff\xff")

        assert victim.ended.wait(60)
        assert isinstance(victim.error, ProtocolError)
        for _ in range(20):
            other.say(b"word")
        assert not any(each.ended.is_set() for each in others)


def test_a_router_closes_while_others_talk_through_it() -> None:
    with star(2) as (router, (near, far)):
        echo, over = Echo(near, far), threading.Event()

        def talk() -> None:
            while not over.is_set():
                echo._there.put(b"word")

        talking = started(talk)
        time.sleep(0.05)
        workers = loop_of(router).threads
        start = time.monotonic()
        router.close()

        assert time.monotonic() - start < 30
        for thread in workers:
            thread.join(30)
            assert not thread.is_alive()
        over.set()
        near.close()
        talking.result()


def test_two_hundred_links_need_no_more_threads_than_one() -> None:
    """A child is the router, so that its threads can be counted; the sessions are opened here."""
    program = """if 1:
        import sys, threading, elea
        from tests.unit.api.logkeeper import config
        router = elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"]))
        print(router._runtime.links.locators()[0], flush=True)
        for line in sys.stdin:
            names = [thread.name for thread in threading.enumerate() if thread.name.startswith("elea-loop")]
            print(len(router._runtime.links.connections), len(names), threading.active_count(), flush=True)
    """
    with (
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
        ExitStack() as stack,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        locator = process.stdout.readline().strip()

        def counts() -> list[int]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return [int(word) for word in process.stdout.readline().split()]

        got: list[str] = []
        for number in range(200):
            session = stack.enter_context(elea.open(config("client", connect__endpoints=[locator])))
            session.declare_subscriber("all", lambda sample, number=number: got.append(f"{number}"))
            if number in (0, 199):
                wait_until(lambda number=number: counts()[0] == number + 1, "all are connected")
        wait_until(lambda: session.put("all", "x") or len(set(got)) == 200, "everybody is served")
        connections, loops, threads = counts()

        assert connections == 200
        assert loops <= 2
        assert threads <= 1 + 2 + 2  # itself, the loop, and what brings things to slow handlers
        process.stdin.close()


# -- spinning -----------------------------------------------------------------------------------------------------


def spins(session: elea.Session) -> int:
    return loop_of(session).spin.hits + loop_of(session).spin.misses


def test_who_does_not_want_it_never_spins() -> None:
    with pair(transport__link__rx__spin=0) as (router, client):
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        wait_until(lambda: ask(client), "the queryable is known")
        for _ in range(500):
            assert ask(client) == ["answer"]

        assert spins(client) == spins(router) == 0


def test_questions_are_awaited_by_a_spin_and_all_answered() -> None:
    with pair(transport__link__rx__spin=1_000_000) as (router, client):
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        end = time.monotonic() + 60
        while spins(client) + spins(router) < 20:
            ask(client)
            assert time.monotonic() < end

        assert 'elea_spins_total{result="hit"}' in metrics(client._node, client._runtime.links)


def test_a_stream_is_received_asleep() -> None:
    with pair() as (router, client):
        seen: list[int] = []
        with client.declare_subscriber("stream", lambda sample: seen.append(1)):
            publisher = router.declare_publisher("stream", congestion_control=BLOCK)
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            time.sleep(0.1)  # what declaring said is over
            before = spins(client)
            for _ in range(20_000):
                publisher.put(b"sample")
            wait_until(lambda: len(seen) == 20_000, "all samples")

            assert spins(client) == before


def test_idle_sessions_sleep_and_live_on_keep_alives() -> None:
    with pair(transport__link__tx__lease=1_000) as (router, client):
        time.sleep(0.3)
        before, used = spins(router) + spins(client), time.process_time()
        time.sleep(2.5)

        assert spins(router) + spins(client) <= before + 10  # of 20 keep-alives: both may speak at once
        assert time.process_time() - used < 1.0
        assert len(list(client.info.routers_zid())) == 1


def test_a_thread_that_computes_is_not_starved() -> None:
    with pair() as (router, client):
        router.declare_queryable("question", lambda query: query.reply("question", "answer"))
        wait_until(lambda: ask(client), "the queryable is known")
        turns, stop = 0, False

        def compute() -> None:
            nonlocal turns
            while not stop:
                sum(range(1_000))
                turns += 1

        thread = started(compute)
        end, asked = time.monotonic() + 2, 0
        while time.monotonic() < end:
            assert ask(client) == ["answer"]
            asked += 1
        stop = True
        thread.result()

        start, alone = time.monotonic(), 0
        while time.monotonic() < start + 0.5:
            sum(range(1_000))
            alone += 1
        assert turns > 4 * alone / 20  # a twentieth of what it does alone: how much, is the interpreter's to say
        assert asked > 10


def test_node_that_was_late_itself_takes_nobody_for_dead() -> None:
    """What a neighbour has said in time counts, also if it is read after its lease."""
    short = {"transport__link__tx__lease": 400}
    with elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"], transport__link__tx__lease=LONG)) as router:
        locator = router._runtime.links.locators()[0]
        with elea.open(config("client", connect__endpoints=[locator], **short)):
            wait_until(lambda: len(connections_of(router)) == 1, "a session")
            [connection] = connections_of(router)
            done = threading.Event()

            loop_of(router).soon(partial(time.sleep, 0.8))
            loop_of(router).soon(done.set)

            assert done.wait(10)
            assert not connection.ended.wait(0.2)
