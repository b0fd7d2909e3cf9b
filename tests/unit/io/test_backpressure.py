"""Backpressure: links that wait for a gate are not read, and all the others are."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elea.io.backpressure import Gate
from elea.io.linkerrors import LinkClosed, LinkStalled
from elea.io.loop import IN, Loop, Pollable
from elea.io.outbox import Outbox
from tests.unit.io.ends import until
from tests.unit.io.test_outbox import Valve, framed, put


class MemoryHandover(Gate):
    """A gate that a test opens."""

    def __init__(self) -> None:
        self.opened = False
        self.looks = 0

    def is_open(self) -> bool:
        self.looks += 1
        return self.opened


class Source(Pollable):
    """A link that brings something for which there may be no room: it is then held."""

    def __init__(self, loop: Loop, hold: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.got: list[int] = []
        self.pauses = 0
        self.resumed = 0
        self._loop = loop
        self._hold = hold
        loop.add(self, self.near.fileno())

    def on_ready(self, mask: int) -> None:
        self.got += self.near.recv(1)
        self._hold()

    def pause(self) -> None:
        self.pauses += 1
        self._loop.change(self, 0)

    def resume(self) -> None:
        self.pauses -= 1
        self.resumed += 1
        if not self.pauses:
            self._loop.change(self, IN)

    def send(self, *octets: int) -> None:
        self.far.send(bytes(octets))

    def close(self) -> None:
        self._loop.remove(self)
        self.near.close()
        self.far.close()


@pytest.fixture
def sources() -> Iterator[Callable[..., Source]]:
    made: list[Source] = []

    def make(*arguments: Any) -> Source:
        made.append(Source(*arguments))
        return made[-1]

    yield make
    for source in made:
        source.close()


def test_a_gate_is_open_unless_it_says_otherwise() -> None:
    assert Gate().is_open()


def test_a_link_that_is_held_is_not_read_until_the_gate_is_open(loop: Loop, sources: Callable[..., Source]) -> None:
    door, held = MemoryHandover(), list[bool]()
    source, other = sources(loop, lambda: held.append(loop.hold(door))), sources(loop)
    source.send(1, 2, 3)
    assert until(lambda: source.got == [1])

    for number in range(50):  # the others are served all the time
        other.send(number)
        assert until(lambda number=number: other.got[-1:] == [number])  # type: ignore[misc]
    assert (source.got, source.pauses, held) == ([1], 1, [True])
    assert door.looks > 1
    door.opened = True

    assert until(lambda: source.got == [1, 2, 3])
    assert until(lambda: source.resumed == 3 and not source.pauses)
    assert not loop._gates


def test_several_links_may_wait_for_one_gate(loop: Loop, sources: Callable[..., Source]) -> None:
    door = MemoryHandover()
    waiting = [sources(loop, lambda: loop.hold(door)) for _ in range(5)]
    for source in waiting:
        source.send(1, 2)
    assert until(lambda: all(source.pauses for source in waiting))
    assert [source.got for source in waiting] == [[1]] * 5

    door.opened = True

    assert until(lambda: [source.got for source in waiting] == [[1, 2]] * 5)


def test_one_link_may_wait_for_several_gates_and_for_each_once(loop: Loop, sources: Callable[..., Source]) -> None:
    doors = [MemoryHandover(), MemoryHandover()]
    source = sources(loop, lambda: [loop.hold(door) for door in (*doors, *doors)])
    source.send(1, 2)
    assert until(lambda: source.pauses == 2)

    doors[0].opened = True
    assert until(lambda: source.pauses == 1)
    time.sleep(0.01)
    assert source.got == [1]
    doors[1].opened = True

    assert until(lambda: source.got == [1, 2])


def test_only_who_reads_can_hold_a_link(loop: Loop) -> None:
    door, held = MemoryHandover(), list[bool]()
    assert not loop.hold(door)

    loop.soon(lambda: held.append(loop.hold(door)))  # it leads, but reads no link

    assert until(lambda: held == [False])
    assert not loop._gates


def test_a_loop_without_closed_gates_does_not_look(loop: Loop, sources: Callable[..., Source]) -> None:
    door = MemoryHandover()
    source = sources(loop, lambda: loop.hold(door))
    door.opened = True
    source.send(1)
    assert until(lambda: source.got == [1] and source.resumed == 1)
    looks = door.looks

    source._hold = lambda: None
    source.send(2)
    assert until(lambda: source.got == [1, 2])
    time.sleep(0.02)

    assert door.looks == looks


def test_a_link_that_is_closed_while_it_waits_stops_nobody(loop: Loop, sources: Callable[..., Source]) -> None:
    """An outbox closes its link before anybody else knows."""
    door = MemoryHandover()
    source, waiting, other = (
        sources(loop, lambda: loop.hold(door)),
        sources(loop, lambda: loop.hold(door)),
        sources(loop),
    )
    for each in (source, waiting):
        each.send(1, 2)
    assert until(lambda: source.pauses and waiting.pauses)

    source.near.close()
    door.opened = True

    assert until(lambda: waiting.got == [1, 2])
    other.send(1)
    assert until(lambda: other.got == [1])


def test_closing_forgets_who_waits(sources: Callable[..., Source]) -> None:
    loop, door = Loop("test"), MemoryHandover()
    source = sources(loop, lambda: loop.hold(door))
    source.send(1, 2)
    assert until(lambda: source.pauses)

    loop.close()
    door.opened = True
    time.sleep(0.01)

    assert source.got == [1]


# -- outboxes as gates --------------------------------------------------------------------------------------------


@pytest.fixture
def valve(loop: Loop) -> Valve:
    return Valve(loop)


def full(valve: Valve, **options: Any) -> Outbox:
    """An outbox with a little more than it may have."""
    outbox = valve.outbox(framed, queue_bytes=5_000, **options)
    while not outbox.is_full(5):
        assert outbox.push(5, (bytes(500), b""), 500, 64)
    return outbox


def test_a_link_whose_samples_find_no_room_is_read_again_when_half_is_gone(
    loop: Loop, valve: Valve, sources: Callable[..., Source]
) -> None:
    outbox = full(valve, wait_before_close=30.0)
    source, other = sources(loop, lambda: outbox.hold_back(5)), sources(loop)
    source.send(1, 2)
    assert until(lambda: source.pauses)
    other.send(1)
    assert until(lambda: other.got == [1])
    assert source.got == [1]
    assert outbox.waited == 1

    valve.open()

    assert until(lambda: source.got == [1, 2])
    assert outbox.flush(10)
    assert outbox.losses.counts == {"full": 0, "closed": 0, "refused": 0, "oversized": 0}
    assert outbox.error is None
    outbox.close()


def test_an_outbox_that_has_room_holds_nobody(loop: Loop, valve: Valve, sources: Callable[..., Source]) -> None:
    outbox = valve.outbox(framed, queue_bytes=5_000)
    held: list[bool] = []
    source = sources(loop, lambda: held.append(outbox.hold_back(5)))
    put(outbox, b"something")
    source.send(1)

    assert until(lambda: held == [True])
    assert source.pauses == 0
    outbox.close()


def test_who_reads_no_link_is_told_to_wait_himself(valve: Valve) -> None:
    outbox = full(valve)

    assert not outbox.hold_back(5)
    outbox.close()
    assert outbox.hold_back(5)  # there is nothing to wait for


def test_a_link_that_stays_full_is_given_up_and_those_who_wait_go_on(
    loop: Loop, valve: Valve, sources: Callable[..., Source]
) -> None:
    broken: list[LinkClosed] = []
    outbox = full(valve, wait_before_close=0.1, on_broken=broken.append)
    waiting = [sources(loop, lambda: outbox.hold_back(5)) for _ in range(3)]
    begun = time.monotonic()
    for source in waiting:
        source.send(1, 2)

    assert until(lambda: broken)
    assert 0.1 <= time.monotonic() - begun < 5
    assert isinstance(broken[0], LinkStalled)
    assert until(lambda: [source.got for source in waiting] == [[1, 2]] * 3)
    assert len(broken) == 1
    assert valve.closed
    assert outbox.losses.counts["closed"] > 0


def test_a_link_that_is_closed_lets_those_go_on_who_wait_for_it(
    loop: Loop, valve: Valve, sources: Callable[..., Source]
) -> None:
    outbox = full(valve, wait_before_close=30.0)
    source = sources(loop, lambda: outbox.hold_back(5))
    source.send(1, 2)
    assert until(lambda: source.pauses)

    threading.Timer(0.02, outbox.close).start()

    assert until(lambda: source.got == [1, 2])


def test_a_link_that_is_slow_but_alive_is_not_given_up(
    loop: Loop, valve: Valve, sources: Callable[..., Source]
) -> None:
    """Each wait has a time of its own: it ends whenever there was room."""
    outbox = full(valve, wait_before_close=0.2)
    sent = [0]

    def bring() -> None:
        for _ in range(20):
            outbox.push(5, (bytes(500), b""), 500, 64)
        sent[0] += 20
        outbox.hold_back(5)

    source = sources(loop, bring)
    source.send(*range(6))
    for _ in range(6):
        assert until(lambda: source.pauses or len(source.got) == 6)
        time.sleep(0.1)
        valve.open()
        assert until(lambda: not outbox.queued(5))
        valve.shut()
    valve.open()

    assert until(lambda: len(source.got) == 6)
    assert outbox.flush(10)
    assert outbox.error is None
    assert sent == [120]
    outbox.close()
