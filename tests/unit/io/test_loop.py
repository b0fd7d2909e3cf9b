"""The loop: what it serves and in which order, who leads, and that nothing a handler does holds up anybody else."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from elea.api.apierrors import ChannelClosed
from elea.api.channels import Handler
from elea.io.dispatch import Mailbox
from elea.io.interrupts import Shield
from elea.io.leadership import HELD_UP
from elea.io.loop import IN, OUT, SERVED, Flushable, Loop, Pollable
from elea.io.poller import Poller
from elea.model.errors import OperationTimeout
from elea.wire import compiled
from tests.unit.io.ends import in_thread, open_files, own_threads, until
from tests.unit.io.pollers import POLLERS, choose

SOON = 0.5
"""Seconds: far more than anything here takes, far less than what a blocked handler waits."""
LONG = 30.0


@pytest.fixture(params=POLLERS)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    choose(monkeypatch, request.param)
    files = open_files()
    made = Loop("test")
    yield made
    made.close()
    assert until(lambda: not own_threads())
    assert until(lambda: open_files() <= files)


class Port(Pollable):
    """A socket in the loop: one octet is one thing for a mailbox, or for a function in the turn."""

    def __init__(
        self, loop: Loop, box: Mailbox | None = None, *, on_octet: Callable[[int], object] = lambda _: None
    ) -> None:
        super().__init__()
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.ready = 0
        self.got: list[int] = []
        self._loop = loop
        self._box = box
        self._on_octet = on_octet
        loop.add(self, self.near.fileno())

    def send(self, *octets: int) -> None:
        self.far.sendall(bytes(octets))

    def on_ready(self, mask: int) -> None:
        self.ready += 1
        try:
            data = self.near.recv(4_096)
        except BlockingIOError:
            return
        for octet in data:
            self.got.append(octet)
            self._on_octet(octet)
            if self._box is not None:
                self._loop.dispatch.add(self._box, octet)

    def close(self) -> None:
        self._loop.remove(self)
        self.near.close()
        self.far.close()


@pytest.fixture
def ports() -> Iterator[Callable[..., Port]]:
    made: list[Port] = []

    def make(loop: Loop, box: Mailbox | None = None, **options: Any) -> Port:
        made.append(Port(loop, box, **options))
        return made[-1]

    yield make
    for port in made:
        port.close()


def round_trip(loop: Loop) -> bool:
    """Whether somebody leads, and does what there is to do."""
    done = threading.Event()
    loop.soon(done.set)
    return done.wait(LONG)


# -- what it serves -----------------------------------------------------------------------------------------------


def test_a_loop_with_nothing_to_do_has_no_thread_and_no_file() -> None:
    files = open_files()
    loop = Loop("idle")

    assert not own_threads()
    assert open_files() == files
    loop.close()


def test_what_is_to_be_done_soon_is_done_in_order_by_one_thread(loop: Loop) -> None:
    done: list[tuple[int, int]] = []

    for number in range(100):
        loop.soon(lambda number=number: done.append((number, threading.get_ident())))  # type: ignore[misc]

    assert until(lambda: len(done) == 100)
    assert [number for number, _ in done] == list(range(100))
    assert len({thread for _, thread in done}) == 1
    assert threading.get_ident() not in {thread for _, thread in done}


def test_many_threads_have_things_done_and_nothing_is_forgotten(loop: Loop) -> None:
    done: list[tuple[int, int]] = []

    def ask(who: int) -> None:
        for number in range(1_000):
            loop.soon(lambda number=number: done.append((who, number)))  # type: ignore[misc]

    threads = [in_thread(lambda who=who: ask(who)) for who in range(4)]  # type: ignore[misc]
    for thread in threads:
        thread.join(LONG)

    assert until(lambda: len(done) == 4_000)
    for who in range(4):
        assert [number for asker, number in done if asker == who] == list(range(1_000))


def test_a_sleeping_leader_is_woken_at_once_every_time(loop: Loop) -> None:
    loop.after(60.0, lambda: None)
    waits = []
    for _ in range(300):
        begun = time.monotonic()
        assert round_trip(loop)
        waits.append(time.monotonic() - begun)

    assert sorted(waits)[len(waits) // 2] < SOON / 10
    assert max(waits) < 10 * SOON


def test_what_is_done_may_ask_for_more_and_others_are_served_between(loop: Loop, ports: Callable[..., Port]) -> None:
    port, over, turns = ports(loop), threading.Event(), []

    def again() -> None:
        turns.append(1)
        if not over.is_set():
            loop.soon(again)

    loop.soon(again)
    port.send(1)

    assert until(lambda: port.got == [1])
    over.set()
    assert len(turns) > 1


def test_a_failure_of_one_stops_no_other(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    with caplog.at_level(logging.CRITICAL, "elea.io"):
        for number in range(3):
            loop.soon(lambda number=number: done.append(1 // (number - 1)))  # type: ignore[misc]
        assert until(lambda: len(done) == 2)

    assert done == [-1, 1]
    assert loop.failures == 1


def test_descriptors_are_served_by_what_is_asked_for(loop: Loop, ports: Callable[..., Port]) -> None:
    port, other = ports(loop), ports(loop)
    port.send(1, 2)
    assert until(lambda: port.got == [1, 2])

    loop.change(port, 0)
    port.send(3)
    other.send(9)
    assert until(lambda: other.got == [9])
    assert round_trip(loop)
    assert port.got == [1, 2]
    loop.change(port, IN)
    assert until(lambda: port.got == [1, 2, 3])

    loop.change(port, OUT)
    before = port.ready
    assert until(lambda: port.ready > before)
    loop.remove(port)
    assert round_trip(loop)
    before = port.ready
    port.send(4)
    assert round_trip(loop)
    assert port.ready == before


def test_who_is_removed_by_another_in_the_same_turn_is_not_served(loop: Loop, ports: Callable[..., Port]) -> None:
    """Both are ready when the turn begins; whoever comes first removes the other."""
    held, go_on, pair = threading.Event(), threading.Event(), list[Port]()

    def hold() -> None:
        held.set()
        go_on.wait(LONG)

    def remove(mine: int) -> None:
        loop.remove(pair[1 - mine])

    pair += [ports(loop, on_octet=lambda _: remove(0)), ports(loop, on_octet=lambda _: remove(1))]
    loop.soon(hold)
    assert held.wait(LONG)
    for port in pair:
        port.send(1)
    go_on.set()

    assert until(lambda: pair[0].got or pair[1].got)
    assert round_trip(loop)
    assert sorted(len(port.got) for port in pair) == [0, 1]


def test_who_fails_is_served_no_more_and_the_others_are(
    loop: Loop, ports: Callable[..., Port], caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = ports(loop, on_octet=lambda octet: 1 // 0), ports(loop)

    with caplog.at_level(logging.CRITICAL, "elea.io"):
        failing.send(1)
        assert until(lambda: loop.failures == 1)
        failing.send(2)
        other.send(3)
        assert until(lambda: other.got == [3])

    assert failing.got == [1]
    assert loop.failures == 1


def test_a_descriptor_may_come_back_under_the_same_number(loop: Loop, ports: Callable[..., Port]) -> None:
    numbers = set()
    for turn in range(50):
        port = ports(loop)
        numbers.add(port.near.fileno())
        port.send(turn)
        assert until(lambda port=port, turn=turn: port.got == [turn])  # type: ignore[misc]
        port.close()

    assert len(numbers) < 50


def test_timers_run_between_and_while_links_are_busy(loop: Loop, ports: Callable[..., Port]) -> None:
    ran: list[float] = []
    port, over = ports(loop), threading.Event()

    def flood() -> None:
        while not over.is_set():
            port.send(*range(200))

    flooding = in_thread(flood)
    loop.every(0.01, lambda: ran.append(time.monotonic()))

    assert until(lambda: len(ran) > 20)
    over.set()
    flooding.join(LONG)
    assert len(port.got) > 200


# -- writing at the end of a turn ---------------------------------------------------------------------------------


class Letters(Flushable):
    """Counts how often it is flushed, and whether within a turn."""

    def __init__(self, loop: Loop, again: int = 0) -> None:
        super().__init__()
        self.flushed: list[tuple[bool, int]] = []
        self.put = 0
        self.times: list[float] = []
        self._loop = loop
        self._again = again

    def on_flush(self) -> bool:
        self.is_dirty = False
        self.flushed.append((self._loop.in_turn, self.put))
        self.times.append(time.monotonic())
        self._again -= 1
        return self._again >= 0


def test_what_is_put_in_a_turn_is_written_once_at_its_end(loop: Loop, ports: Callable[..., Port]) -> None:
    letters = Letters(loop)

    def put(_: int) -> None:
        assert loop.in_turn
        letters.put += 1
        loop.flush_soon(letters)

    port = ports(loop, on_octet=put)
    port.send(*range(50))

    assert until(lambda: letters.flushed)
    assert round_trip(loop)
    assert letters.flushed == [(False, 50)]


def test_what_others_put_is_written_by_the_leader_soon(loop: Loop) -> None:
    for _ in range(200):
        letters = Letters(loop)
        loop.flush_soon(letters)

        assert until(lambda letters=letters: letters.flushed, SOON * 10)  # type: ignore[misc]
        assert letters.flushed == [(False, 0)]


def test_who_wants_to_be_looked_at_again_is_until_he_does_not(loop: Loop) -> None:
    letters = Letters(loop, again=20)

    loop.flush_soon(letters)

    assert until(lambda: len(letters.flushed) == 21)
    assert round_trip(loop)
    time.sleep(0.01)
    assert len(letters.flushed) == 21
    assert letters.times[-1] - letters.times[0] < 20 * SOON


@pytest.mark.parametrize("written_in", [0.0, 0.05])
def test_a_link_is_served_as_long_as_the_last_turn_took_to_write(loop: Loop, written_in: float) -> None:
    """Else what goes to very many links would be written one by one."""

    class Slow(Flushable):
        def on_flush(self) -> bool:
            self.is_dirty = False
            time.sleep(written_in)
            return False

    served: list[bool] = []

    def serve() -> None:
        loop.begin_serving(Pollable())
        time.sleep(2 * SERVED)
        served.append(loop.is_served_long())

    loop.soon(lambda: loop.flush_soon(Slow()))
    loop.soon(lambda: loop.soon(serve))

    assert until(lambda: served)
    assert served == [written_in == 0.0]


def test_a_failure_to_write_stops_no_other(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Flushable):
        def on_flush(self) -> bool:
            raise RuntimeError("bug")

    letters = Letters(loop)

    with caplog.at_level(logging.CRITICAL, "elea.io"):
        loop.flush_soon(Failing())
        loop.flush_soon(letters)
        assert until(lambda: letters.flushed)

    assert round_trip(loop)
    assert loop.failures == 1


# -- handlers that take their time --------------------------------------------------------------------------------


class Slow:
    """A handler that can be held up, and notes what it gets and by whom."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.threads: list[str] = []
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.blocks = True
        self.box = Mailbox(self._take)

    def _take(self, item: int) -> None:
        self.threads.append(threading.current_thread().name)
        self.got.append(item)
        self.begun.release()
        if self.blocks:
            self.go_on.wait(LONG)


def test_a_handler_that_blocks_loses_the_lead_and_all_others_are_served(loop: Loop, ports: Callable[..., Port]) -> None:
    slow, ran = Slow(), list[float]()
    blocked, other, same = ports(loop, slow.box), ports(loop), ports(loop, slow.box)
    blocked.send(1)
    assert slow.begun.acquire(timeout=LONG)
    begun = time.monotonic()

    other.send(7)
    assert until(lambda: other.got == [7])
    assert time.monotonic() - begun < SOON + HELD_UP
    loop.after(0.0, lambda: ran.append(1.0))
    assert until(lambda: ran)
    blocked.send(2)
    same.send(3)
    assert until(lambda: (blocked.got, same.got) == ([1, 2], [3]))
    assert slow.got == [1]  # it is one thing at a time
    assert loop.takeovers >= 1

    slow.blocks = False
    slow.go_on.set()
    assert until(lambda: len(slow.got) == 3)
    assert slow.got[1:] in ([2, 3], [3, 2])
    assert round_trip(loop)


def test_a_quick_handler_costs_no_takeover(loop: Loop, ports: Callable[..., Port]) -> None:
    got: list[int] = []
    port = ports(loop, Mailbox(got.append))

    for turn in range(100):
        port.send(turn)
        assert until(lambda turn=turn: got[-1:] == [turn])  # type: ignore[misc]

    assert loop.takeovers <= 5  # this machine may be busy


def test_several_handlers_may_block_at_once(loop: Loop, ports: Callable[..., Port]) -> None:
    handlers = [Slow() for _ in range(4)]
    for number, slow in enumerate(handlers):
        ports(loop, slow.box).send(number)
        assert slow.begun.acquire(timeout=LONG)
    other = ports(loop)
    other.send(7)

    assert until(lambda: other.got == [7])
    assert loop.takeovers >= 3
    for slow in handlers:
        slow.go_on.set()
    assert until(lambda: len(loop.threads) <= 2)
    assert round_trip(loop)


def test_takeovers_go_on_as_often_as_handlers_block(loop: Loop, ports: Callable[..., Port]) -> None:
    other = ports(loop)
    for turn in range(10):
        slow = Slow()
        ports(loop, slow.box).send(turn)
        assert slow.begun.acquire(timeout=LONG)
        other.send(turn)
        assert until(lambda turn=turn: other.got[-1:] == [turn])  # type: ignore[misc]
        slow.go_on.set()

    assert loop.takeovers >= 5
    assert until(lambda: len(loop.threads) <= 2)


def test_a_handler_that_was_slow_is_left_to_a_worker_of_its_own(loop: Loop, ports: Callable[..., Port]) -> None:
    slow = Slow()
    port = ports(loop, slow.box)
    port.send(1)
    assert slow.begun.acquire(timeout=LONG)
    time.sleep(HELD_UP * 2)
    slow.go_on.set()
    assert until(lambda: not slow.box._busy.locked())
    slow.go_on.clear()

    port.send(2)
    assert slow.begun.acquire(timeout=LONG)
    assert round_trip(loop)
    slow.go_on.set()

    assert slow.threads[0].startswith("elea-loop")
    assert slow.threads[1] == "elea-dispatch"


def test_who_is_being_served_is_told_of_a_takeover_once_and_by_another(loop: Loop) -> None:
    told: list[tuple[int, bool]] = []
    slow = Slow()

    class Delivering(Port):
        def on_ready(self, mask: int) -> None:
            super().on_ready(mask)
            assert self._loop.in_turn
            served = self._loop.deliver()
            told.append((threading.get_ident(), served))

        def on_takeover(self) -> None:
            told.append((threading.get_ident(), True))

    port = Delivering(loop, slow.box)
    port.send(1)
    assert slow.begun.acquire(timeout=LONG)
    assert until(lambda: told)
    slow.go_on.set()
    assert until(lambda: len(told) == 2)

    (follower, _), (leader, may_go_on) = told
    assert follower != leader
    assert not may_go_on
    assert round_trip(loop)
    port.close()


def test_who_is_about_to_wait_steps_aside(loop: Loop, ports: Callable[..., Port]) -> None:
    port = ports(loop)

    def wait(begun: threading.Event, go_on: threading.Event) -> None:
        assert loop.is_led_here()
        loop.step_aside()
        assert not loop.is_led_here()
        begun.set()
        go_on.wait(LONG)

    for turn in range(10):
        begun, go_on = threading.Event(), threading.Event()
        loop.soon(partial(wait, begun, go_on))
        assert begun.wait(LONG)
        port.send(turn)
        assert until(lambda turn=turn: port.got[-1:] == [turn])  # type: ignore[misc]
        go_on.set()
    loop.step_aside()  # who does not lead need not

    assert loop.failures == 0
    assert until(lambda: len(loop.threads) <= 2)


# -- threads of the user's that wait ------------------------------------------------------------------------------


class Waiting:
    """A channel that is filled by a port, and read by who waits at it."""

    def __init__(self, loop: Loop, ports: Callable[..., Port]) -> None:
        self.loop = loop
        self.channel: Handler[int] = Handler(1_000)
        self.channel.source = cast(Any, SimpleNamespace(loop=loop))
        self.brought: list[tuple[int, int]] = []
        """Everything that was put into the channel, and by whom."""
        self.port = ports(loop, Mailbox(self._bring, channel=self.channel))

    def _bring(self, octet: int) -> None:
        self.brought.append((octet, threading.get_ident()))
        self.channel.push(octet)

    def answer_later(self) -> None:
        """Something comes while the channel is waited at, as an answer does."""
        threading.Timer(0.0005, lambda: self.port.send(1)).start()

    def lead(self, times: int = 1) -> None:
        """Wait for things until this thread has led some times."""
        before, end = self.loop.turns, time.monotonic() + LONG
        while self.loop.turns < before + times:
            self.answer_later()
            self.channel.recv(timeout=LONG)
            assert time.monotonic() < end


def test_who_waits_reads_for_himself(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)

    waiting.lead(20)

    assert loop.turns >= 20
    assert threading.get_ident() in {thread for _, thread in waiting.brought}
    assert loop.leader != threading.get_ident()


def test_the_lead_is_given_back_when_something_is_for_others(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting, threads = Waiting(loop, ports), list[int]()
    other = ports(loop, Mailbox(lambda _: threads.append(threading.get_ident())))

    for turn in range(20):
        loop._shared_until = 0.0  # do not wait until it is tried again
        waiting.lead()
        threading.Timer(0.002, other.send, (turn,)).start()
        threading.Timer(0.02, waiting.port.send, (turn,)).start()
        assert waiting.channel.recv(timeout=LONG) >= 0
        assert until(lambda turn=turn: len(threads) == turn + 1)  # type: ignore[misc]

    assert threading.get_ident() not in threads
    assert [octet for octet, _ in waiting.brought[-1:]] == [19]


def test_links_and_timers_are_served_while_a_user_leads_and_after(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting, other = Waiting(loop, ports), ports(loop)
    ran: list[int] = []

    def lead() -> None:
        waiting.lead()
        with pytest.raises(OperationTimeout):
            waiting.channel.recv(timeout=1.0)
        waiting.lead()

    leading = in_thread(lead)
    for turn in range(200):
        loop.soon(lambda turn=turn: ran.append(turn))  # type: ignore[misc]
        loop.after(0.0, lambda turn=turn: ran.append(turn))  # type: ignore[misc]
        other.send(turn)
        assert until(lambda turn=turn: other.got[-1:] == [turn] and ran.count(turn) == 2)  # type: ignore[misc]
    leading.join(LONG)
    assert not leading.is_alive()
    assert round_trip(loop)


def test_a_wait_keeps_its_time_while_it_leads(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    for _ in range(5):
        waiting.lead()
        begun = time.monotonic()
        with pytest.raises(OperationTimeout):
            waiting.channel.recv(timeout=0.1)
        assert 0.1 <= time.monotonic() - begun < 0.1 + SOON


def test_what_other_threads_put_into_the_channel_ends_the_wait(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    for number in range(50):
        waiting.lead()
        threading.Timer(0.003, waiting.channel.push, (1_000 + number,)).start()

        assert waiting.channel.recv(timeout=LONG) == 1_000 + number


def test_closing_ends_the_wait_of_the_one_who_leads(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    waiting.lead()

    def close() -> None:
        time.sleep(0.05)
        loop.close()
        waiting.channel.close()

    closing = in_thread(close)
    with pytest.raises(ChannelClosed):
        waiting.channel.recv(timeout=LONG)
    closing.join(LONG)

    assert not closing.is_alive()


def test_many_that_wait_all_get_what_is_theirs(loop: Loop, ports: Callable[..., Port]) -> None:
    all_of_them = [Waiting(loop, ports) for _ in range(6)]
    got: list[list[int]] = [[] for _ in all_of_them]

    def take(number: int) -> None:
        for turn in range(100):
            if turn % 7 == number:
                threading.Timer(0.0005, all_of_them[number].port.send, (turn,)).start()
            else:
                all_of_them[number].port.send(turn)
            got[number].append(all_of_them[number].channel.recv(timeout=LONG))

    threads = [in_thread(lambda number=number: take(number)) for number in range(6)]  # type: ignore[misc]
    for thread in threads:
        thread.join(2 * LONG)

    assert got == [list(range(100))] * 6


def test_a_handler_may_wait_for_what_the_same_loop_reads(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting, got = Waiting(loop, ports), list[int]()

    def ask(octet: int) -> None:
        waiting.answer_later()
        got.append(octet + waiting.channel.recv(timeout=LONG))

    box = Mailbox(ask)
    port = ports(loop, box)
    for turn in range(20):
        box.is_slow = False  # each time it is the leader that finds out
        port.send(turn)
        assert until(lambda turn=turn: len(got) == turn + 1)  # type: ignore[misc]

    assert got == [turn + 1 for turn in range(20)]
    assert round_trip(loop)


def test_the_lead_is_not_lost_between_handlers_and_users_that_wait(loop: Loop, ports: Callable[..., Port]) -> None:
    """Handlers step aside all the time, and users take the lead in just that moment."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        inner, users = Waiting(loop, ports), [Waiting(loop, ports) for _ in range(3)]
        asked, over = list[int](), threading.Event()

        def ask(octet: int) -> None:
            inner.answer_later()
            asked.append(inner.channel.recv(timeout=LONG))

        box = Mailbox(ask)
        port = ports(loop, box)

        def use(waiting: Waiting) -> None:
            while not over.is_set():
                loop._shared_until = 0.0
                waiting.port.send(1)
                waiting.channel.recv(timeout=LONG)

        threads = [in_thread(lambda user=user: use(user)) for user in users]  # type: ignore[misc]
        for turn in range(300):
            box.is_slow = False
            port.send(turn & 0xFF)
            assert until(lambda turn=turn: len(asked) == turn + 1)  # type: ignore[misc]
        over.set()
        for thread in threads:
            thread.join(LONG)
            assert not thread.is_alive()
        assert round_trip(loop)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.skipif(compiled(), reason="plain only: machine code cannot be interrupted at a chosen place")
def test_who_takes_the_lead_just_when_it_is_free_gives_it_back_to_somebody() -> None:
    loop, aside, hold = Loop("test"), threading.Event(), threading.Event()
    assert round_trip(loop)
    release = loop._release

    def release_and_be_interrupted(me: int) -> None:
        release(me)
        aside.set()
        time.sleep(0.05)

    def handle(_: object) -> None:
        loop._release = release_and_be_interrupted  # type: ignore[method-assign]
        loop.step_aside()
        loop._release = release  # type: ignore[method-assign]
        hold.wait(LONG)

    loop.dispatch.add(Mailbox(handle), 1)
    loop.soon(lambda: None)
    aside.wait(SOON)
    loop.take(aside, Shield())
    time.sleep(0.1)
    loop.give_back()

    done = threading.Event()
    loop.soon(done.set)
    assert done.wait(LONG / 10)
    hold.set()
    assert round_trip(loop)
    loop.close()


@pytest.mark.skipif(compiled(), reason="plain only: machine code cannot be interrupted at a chosen place")
def test_who_tries_in_vain_does_not_disturb_the_one_who_leads() -> None:
    """The main thread is told from others, which cannot change what a signal does."""
    loop = Loop("test")
    assert round_trip(loop)
    problems: list[Exception] = []

    def lead() -> None:
        shield = Shield()
        while not loop.take(problems, shield):
            loop._steps_back = True
            assert round_trip(loop)
        tried.wait(LONG)
        try:
            loop.soon(lambda: None)
            loop.read(lambda: False, time.monotonic() + 0.1, shield)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            problems.append(error)
        finally:
            loop.give_back()

    tried = threading.Event()
    leading = in_thread(lead)
    assert until(lambda: loop.leader == leading.ident)
    assert not loop.take(tried, Shield())
    tried.set()
    leading.join(LONG)

    assert not problems
    loop.close()


# -- interrupts ---------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """What a signal raises."""


class Signals:
    """Sends this thread a signal again and again, at moments of all kinds, while it is `inside`."""

    def __init__(self, number: signal.Signals) -> None:
        self.inside = False
        self.count = 0
        self._number = number
        self._before = signal.signal(number, self._handle)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(threading.get_ident(),), daemon=True)
        self._thread.start()

    def _handle(self, *_: object) -> None:
        if self.inside:
            self.inside = False
            self.count += 1
            raise Interrupted

    def _send(self, main: int) -> None:
        pause = 0
        while not self._over.wait(0.0001 * (pause % 23)):
            signal.pthread_kill(main, self._number)
            pause += 1

    def close(self) -> None:
        self._over.set()
        self._thread.join(LONG)
        signal.signal(self._number, self._before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM], ids=["SIGINT", "SIGALRM"])
def test_an_interrupt_loses_nothing_and_leaves_a_leader(
    loop: Loop, ports: Callable[..., Port], number: signal.Signals
) -> None:
    count, burst, got = 30_000, 50, list[int]()
    waiting, other = Waiting(loop, ports), ports(loop)
    waiting.lead()
    first = len(waiting.brought)
    sent = [turn & 0xFF for turn in range(count)]

    def send() -> None:
        for at in range(0, count, burst):
            waiting.port.send(*sent[at : at + burst])
            time.sleep(0.0003)

    signals = Signals(number)
    sending = in_thread(send)
    try:
        end = time.monotonic() + LONG
        while len(waiting.brought) - first < count or len(waiting.channel):
            assert time.monotonic() < end
            try:
                signals.inside = True
                octet = waiting.channel.recv(timeout=0.05)
                signals.inside = False
                got.append(octet)
            except (Interrupted, OperationTimeout):
                signals.inside = False
    finally:
        signals.inside = False
        signals.close()
    sending.join(LONG)

    assert [octet for octet, _ in waiting.brought[first:]] == sent
    assert len(got) >= count - signals.count  # one may be lost between the channel and its user, each time
    assert signals.count > 20
    assert number is signal.SIGALRM or loop.turns > 20
    assert loop.failures == 0
    other.send(1)
    assert until(lambda: other.got == [1])
    assert round_trip(loop)


def test_an_interrupt_in_the_middle_of_a_turn_waits_for_its_end(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    interrupted: list[bool] = []

    def interrupt(octet: int) -> None:
        if octet == 5 and threading.current_thread() is threading.main_thread():
            interrupted.append(True)
            signal.raise_signal(signal.SIGINT)

    waiting.port._on_octet = interrupt
    end = time.monotonic() + LONG
    while len(interrupted) < 10:
        assert time.monotonic() < end
        waiting.lead()
        before, count = len(waiting.brought), len(interrupted)
        threading.Timer(0.002, waiting.port.send, range(2, 12)).start()
        try:
            waiting.channel.recv(timeout=LONG)
            assert len(interrupted) == count  # a worker has read it
        except KeyboardInterrupt:
            assert len(interrupted) == count + 1
        assert until(lambda before=before: len(waiting.brought) == before + 10)  # type: ignore[misc]
        assert [octet for octet, _ in waiting.brought[before:]] == list(range(2, 12))
        waiting.channel.drain(100)

    assert loop.failures == 0
    assert round_trip(loop)


def test_an_interrupt_comes_through_while_nothing_does(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    inside = threading.Event()

    def interrupt(*_: object) -> None:
        if inside.is_set():  # else it would hit whatever runs the tests
            raise Interrupted

    def wait() -> None:
        inside.set()
        try:
            waiting.channel.recv(timeout=LONG)
        finally:
            inside.clear()

    def kill(thread: int) -> None:
        inside.wait()
        time.sleep(0.02)
        signal.pthread_kill(thread, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        for _ in range(10):
            waiting.lead()
            killer = threading.Thread(target=kill, args=(threading.get_ident(),))
            killer.start()
            begun = time.monotonic()
            with pytest.raises(Interrupted):
                wait()
            assert time.monotonic() - begun < 10 * SOON
            killer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    waiting.lead()


def test_a_main_thread_with_other_handlers_of_signals_does_not_lead(loop: Loop, ports: Callable[..., Port]) -> None:
    waiting = Waiting(loop, ports)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        for _ in range(50):
            waiting.answer_later()
            waiting.channel.recv(timeout=LONG)
        assert loop.turns == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    waiting.lead()


# -- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["soon", "timer", "link", "handler", "flush", "a handler that was held up"])
def test_it_may_be_closed_from_everywhere(loop: Loop, ports: Callable[..., Port], where: str) -> None:
    closed = threading.Event()

    def close(_: object = None) -> None:
        if where == "a handler that was held up":
            time.sleep(HELD_UP * 5)
        loop.close()
        closed.set()

    class Closing(Flushable):
        def on_flush(self) -> bool:
            close()
            return False

    if where == "soon":
        loop.soon(close)
    elif where == "timer":
        loop.after(0.0, close)
    elif where == "link":
        ports(loop, on_octet=close).send(1)
    elif where == "flush":
        loop.flush_soon(Closing())
    else:
        ports(loop, Mailbox(close)).send(1)

    assert closed.wait(LONG)
    assert until(lambda: not own_threads())
    loop.close()


def test_nothing_runs_after_the_end(loop: Loop, ports: Callable[..., Port]) -> None:
    port = ports(loop)
    assert round_trip(loop)
    ran: list[int] = []
    loop.every(0.001, lambda: ran.append(1))
    assert until(lambda: ran)

    loop.close()
    count = len(ran)
    port.send(1)
    loop.soon(lambda: ran.append(2))
    loop.flush_soon(Letters(loop))
    loop.wake()
    assert loop.after(0.0, lambda: ran.append(3)).cancelled
    late = ports(loop)
    late.send(1)
    time.sleep(0.02)

    assert len(ran) <= count + 1
    assert port.got == late.got == []
    assert len(loop) == 0
    assert until(lambda: not own_threads())


def test_closing_while_others_use_it_is_quiet(loop: Loop, ports: Callable[..., Port]) -> None:
    """Whoever still rings must not write to a file that is closed, or is somebody else's by now."""
    problems: list[Exception] = []

    def use(loop: Loop, over: threading.Event) -> None:
        letters = Letters(loop)
        try:
            while not over.is_set():
                loop.soon(lambda: None)
                loop.flush_soon(letters)
                loop.after(0.001, lambda: None)
                loop.release()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            problems.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(100):
            other, over = Loop("other"), threading.Event()
            users = [in_thread(lambda other=other, over=over: use(other, over)) for _ in range(2)]  # type: ignore[misc]
            assert round_trip(other)
            try:
                other.close()
            except OSError as error:
                problems.append(error)
            over.set()
            for user in users:
                user.join(LONG)
    finally:
        sys.setswitchinterval(before)

    assert not problems


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-in for the poller")
def test_who_rings_late_rings_no_file_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if the leader has found out by itself that the loop is closed, and has gone."""

    class Dawdling(Poller):
        def ring(self) -> None:
            if closing.is_set():
                time.sleep(0.02)
            super().ring()

    monkeypatch.setattr("elea.io.loop.Poller", Dawdling)
    for _ in range(5):
        closing, files = threading.Event(), open_files()
        loop = Loop("test")
        loop.every(0.001, lambda: None)
        assert round_trip(loop)
        closing.set()

        loop.close()

        assert until(lambda: not own_threads())
        assert until(lambda files=files: open_files() <= files)  # type: ignore[misc]


def test_loops_that_users_led_leave_nothing_open(ports: Callable[..., Port]) -> None:
    files = open_files()
    for _ in range(20):
        loop = Loop("test")
        port_of = list[Port]()

        def make(loop: Loop, box: Mailbox, port_of: list[Port] = port_of) -> Port:
            port_of.append(Port(loop, box))
            return port_of[0]

        waiting = Waiting(loop, cast(Any, make))
        leading = in_thread(partial(take_until_closed, waiting))
        assert until(lambda loop=loop: loop.turns)  # type: ignore[misc]
        loop.close()
        waiting.channel.close()
        leading.join(LONG)
        assert not leading.is_alive()
        port_of[0].close()

    assert until(lambda: open_files() <= files)
    assert until(lambda: not own_threads())


def take_until_closed(waiting: Waiting) -> None:
    waiting.lead()
    for _ in waiting.channel:
        pass


def test_a_loop_can_be_closed_while_another_thread_starts_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop("test")
    about, closed = threading.Event(), threading.Event()
    helper = threading.Thread(target=lambda: loop.soon(lambda: None))

    class Late(threading.Thread):
        def start(self) -> None:
            about.set()
            assert closed.wait(LONG)
            super().start()

    monkeypatch.setattr("elea.io.leadership.threading.Thread", Late)
    helper.start()
    assert about.wait(LONG)

    loop.close()
    closed.set()
    helper.join(LONG)

    assert until(lambda: not loop.threads)
