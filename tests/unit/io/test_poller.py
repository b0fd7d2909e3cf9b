"""The poller, where the system has a good one and where it has not."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from elea.io.poller import IN, OUT, Poller
from tests.unit.io.ends import open_files, repeat
from tests.unit.io.pollers import POLLERS, choose


@pytest.fixture(params=POLLERS)
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poller]:
    choose(monkeypatch, request.param)
    files = open_files()
    made = Poller()
    yield made
    made.close()
    assert open_files() == files


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


def found(poller: Poller, seconds: float = 1.0) -> dict[int, int]:
    """What is ready, without the bell of changes."""
    ready = dict(poller.wait(seconds))
    while list(ready) == [poller.bell]:
        poller.silence()
        ready = dict(poller.wait(seconds))
    ready.pop(poller.bell, None)
    return ready


def test_what_can_be_read_is_reported_until_it_has_been(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    poller.add(near.fileno(), IN)
    assert found(poller, 0.0) == {}

    far.send(b"x")
    assert found(poller) == found(poller) == {near.fileno(): IN}
    near.recv(1)

    assert found(poller, 0.0) == {}


def test_room_to_write_is_reported_if_it_is_asked_for(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    poller.add(near.fileno(), IN)
    poller.change(near.fileno(), IN | OUT)
    far.send(b"x")
    assert found(poller) == {near.fileno(): IN | OUT}

    poller.change(near.fileno(), OUT)
    assert found(poller) == {near.fileno(): OUT}
    with pytest.raises(BlockingIOError):
        repeat(lambda: near.send(bytes(1 << 16)))
    assert found(poller, 0.0) == {}


def test_a_descriptor_nobody_asks_about_is_silent_and_may_be_asked_about_again(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    far.send(b"x")
    poller.add(near.fileno(), 0)
    assert found(poller, 0.0) == {}
    poller.change(near.fileno(), IN)
    assert found(poller) == {near.fileno(): IN}
    poller.change(near.fileno(), 0)
    assert found(poller, 0.0) == {}
    poller.change(near.fileno(), IN)
    poller.remove(near.fileno())

    assert found(poller, 0.0) == {}


def test_a_descriptor_nobody_asks_about_is_silent_even_if_it_is_reset(poller: Poller) -> None:
    """Else a link that waits for room keeps the loop busy when its other end dies."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        near, _ = server.accept()
    with near:
        poller.add(near.fileno(), IN)
        poller.change(near.fileno(), 0)
        far.send(b"last words")
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()

        assert found(poller, 0.05) == {}
        poller.change(near.fileno(), IN)
        assert found(poller)[near.fileno()] & ~OUT
        poller.remove(near.fileno())


def test_the_end_of_the_other_side_is_reported_to_who_reads(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    poller.add(near.fileno(), IN)

    far.close()

    assert found(poller)[near.fileno()] & ~OUT
    assert near.recv(1) == b""


def test_ringing_ends_one_wait_whenever_it_comes(poller: Poller) -> None:
    poller.ring()
    poller.ring()
    assert dict(poller.wait(10.0)) == {poller.bell: IN}
    poller.silence()
    assert poller.wait(0.0) == []
    poller.silence()  # it is silent already

    begun = time.monotonic()
    ringer = threading.Timer(0.05, poller.ring)
    ringer.start()
    assert dict(poller.wait(-1.0)) == {poller.bell: IN}

    assert 0.04 < time.monotonic() - begun < 5
    ringer.join()


def test_a_wait_keeps_its_time(poller: Poller) -> None:
    begun = time.monotonic()

    assert poller.wait(0.05) == []

    assert 0.04 < time.monotonic() - begun < 5


def test_what_is_added_while_one_waits_is_seen(poller: Poller, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    far.send(b"x")
    adder = threading.Timer(0.05, poller.add, (near.fileno(), IN))
    adder.start()

    assert found(poller, 30.0) == {near.fileno(): IN}
    adder.join()


def test_many_rings_fill_nothing(poller: Poller) -> None:
    for _ in range(20_000):
        poller.ring()

    assert dict(poller.wait(1.0)) == {poller.bell: IN}
    for _ in range(200):
        poller.silence()
    assert poller.wait(0.0) == []
