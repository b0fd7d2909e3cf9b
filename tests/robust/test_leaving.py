"""The end of a session, and of a program: what was put before it arrives, and it comes soon whatever others do."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import elea
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.node import gracefulclose
from elea.protocol.zenoh1.opening import Acceptor, Offer
from tests.robust.children import PATIENCE, config, eventually, node

SIZE = 10_000
COUNT = 400
"""Together 4 MB: more than the queue of a link and the kernel's buffers hold."""

SMALL = 65_536
"""What the kernel is asked to keep for each end: the rest waits in the program."""


class SlowRouter:
    """Accepts one session, then reads as slowly as it is told: a piece of 32 KiB, and a pause."""

    def __init__(self) -> None:
        self.octets = 0
        self.allowed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        self.locator = f"tcp/127.0.0.1:{self._listener.getsockname()[1]}#so_sndbuf={SMALL}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.allowed.set()
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        import random

        link, _ = self._listener.accept()
        with link:
            offer = Offer(NodeId.parse("ab").data, Role.ROUTER, batch_size=65_000)
            machine = Acceptor(offer, 0.0, cookie_key=b"k", random=random.Random(1))
            while machine.receive(self._batch(link), 0.0) is None:
                self._answer(link, machine)
            self._answer(link, machine)
            self.allowed.wait()
            while read := link.recv(32_768):
                self.octets += len(read)
                time.sleep(0.01)

    def _answer(self, link: socket.socket, machine: Acceptor) -> None:
        for batch in machine.to_send(0.0):
            link.sendall(len(batch).to_bytes(2, "little") + batch)

    def _batch(self, link: socket.socket) -> bytes:
        size = int.from_bytes(link.recv(2, socket.MSG_WAITALL), "little")
        return link.recv(size, socket.MSG_WAITALL)


def fill(session: elea.Session) -> int:
    """Put until nothing more is taken; how many were."""
    publisher = session.declare_publisher("robust/data", congestion_control=elea.CongestionControl.DROP)
    for number in range(COUNT):
        publisher.put(bytes(SIZE))
        if session.info.dropped()["full"]:
            return number
    return COUNT


def test_close_waits_for_a_slow_neighbour_that_goes_on_reading() -> None:
    router = SlowRouter()
    try:
        session = elea.open(config("client", "connect", router.locator))
        taken = fill(session)
        connection = next(iter(session._runtime.links.connections))
        router.allowed.set()

        session.close()

        assert connection.machine.outbox is not None
        assert connection.machine.outbox.losses.counts["closed"] == 0
        assert taken < COUNT
        eventually(lambda: router.octets > taken * SIZE, "all that was taken has arrived")
    finally:
        router.close()


def test_close_returns_although_a_neighbour_reads_nothing() -> None:
    router = SlowRouter()
    try:
        session = elea.open(config("client", "connect", router.locator))
        assert fill(session) < COUNT
        begin = time.monotonic()

        session.close()

        # Far below the patience of a reader, far above what it should be: a loaded machine must not fail here.
        assert time.monotonic() - begin < gracefulclose.STALLED_SECONDS + 10.0
        assert session.info.dropped()["closed"] > 0
    finally:
        router.close()


def test_close_returns_although_neighbours_are_stopped() -> None:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as session:
        locator = session.info.locators()[0]
        with node("client", "connect", locator) as one, node("client", "connect", locator) as two:
            eventually(lambda: len(session.info.transports()) == 2, "both are there")
            one.signal(signal.SIGSTOP)
            two.signal(signal.SIGSTOP)

            closing = threading.Thread(target=session.close)
            closing.start()
            closing.join(PATIENCE)

            assert not closing.is_alive()


def test_close_inside_a_callback_returns() -> None:
    done = threading.Event()
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        session = elea.open(config("client", "connect", router.info.locators()[0]))

        def leave(sample: elea.Sample) -> None:
            session.close()
            done.set()

        session.declare_subscriber("robust/data", leave)

        def called() -> bool:
            router.put("robust/data", "x")
            return done.wait(0.1)

        eventually(called, "the callback is done")
        eventually(lambda: not router.info.transports(), "the router knows")


FORGETFUL = """
import sys, threading, elea
config = elea.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("connect/endpoints", f'["{sys.argv[1]}"]')
config.insert_json5("scouting/multicast/enabled", "false")
session = elea.open(config)
session.declare_subscriber("robust/none", lambda sample: None)
token = session.liveliness().declare_token("robust/token")
publisher = session.declare_publisher("robust/data", congestion_control=elea.CongestionControl.BLOCK)
for number in range(500):
    publisher.put(bytes(10_000))
if sys.argv[2] == "fail":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(("way", "code"), [("end", 0), ("fail", 3)])
def test_program_that_forgets_to_close_ends_and_sends_what_it_put(way: str, code: int) -> None:
    got: list[int] = []
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        router.declare_subscriber("robust/data", lambda sample: got.append(len(sample.payload)))
        arguments = [sys.executable, "-c", FORGETFUL, router.info.locators()[0], way]

        ended = subprocess.run(arguments, timeout=PATIENCE, cwd=Path(__file__).parents[2], check=False)

        assert ended.returncode == code
        eventually(lambda: got == [10_000] * 500, "all samples have arrived")
        eventually(lambda: not router.info.transports(), "the session is gone")


UNSENT = """
import sys, elea
config = elea.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("connect/endpoints", f'["{sys.argv[1]}"]')
config.insert_json5("scouting/multicast/enabled", "false")
session = elea.open(config)
for number in range(80):
    session.put("robust/data", bytes(10_000))
print(session.info.dropped()["full"])
"""


def test_program_that_forgets_to_close_waits_for_a_slow_neighbour() -> None:
    router = SlowRouter()
    try:
        router.allowed.set()

        arguments = [sys.executable, "-c", UNSENT, router.locator]
        ended = subprocess.run(arguments, timeout=PATIENCE, check=True, capture_output=True, text=True)

        assert ended.stdout == "0\n"  # nothing was dropped, so all of it waited
        eventually(lambda: router.octets > 800_000, "all of it has arrived")
    finally:
        router.close()


def test_session_that_nobody_has_any_more_is_closed() -> None:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        session = elea.open(config("client", "connect", router.info.locators()[0]))
        session.put("robust/data", "x")
        eventually(lambda: router.info.transports(), "it is there")

        del session
        gc.collect()

        eventually(lambda: not router.info.transports(), "it is gone")
