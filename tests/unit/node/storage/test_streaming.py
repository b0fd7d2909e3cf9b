"""Answers to readers that take their time, or go away: bounded memory, and an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.io.outbox import QUEUE_BYTES
from elea.node.zenoh1.face import Zenoh1Face
from tests.unit.node.storage.serving import NONE, WAIT, Broker, batch, broker, eventually, told, values

KEYS, OCTETS = 60_000, 1_000
"""60 MB, which no socket buffer takes."""

READER = """
import sys, elea
config = elea.Config.from_json5(sys.argv[1])
with elea.open(config) as session:
    replies = session.get(sys.argv[2], consolidation=elea.ConsolidationMode.NONE, timeout=600)
    first = next(iter(replies))
    print("first", flush=True)
    sys.stdin.readline()
    octets = len(first.ok.payload.to_bytes())
    count = 1
    for reply in replies:
        if reply.ok is not None:
            count += 1
            octets += len(reply.ok.payload.to_bytes())
    print(count, octets, flush=True)
"""


@pytest.fixture(scope="module")
def full() -> Iterator[Broker]:
    with broker(home={"key_expr": "home/**", "volume": "memory"}) as made:
        with made.client() as session:
            for start in range(0, KEYS, 10_000):
                rows = [(f"home/{number}", b"x" * OCTETS) for number in range(start, start + 10_000)]
                told(session, f"@store/batch/home/*?src=a1.1.{start}", payload=batch(rows))
        yield made


class Reader:
    """A process that asks, takes the first answer, and then stands still."""

    def __init__(self, made: Broker, selector: str) -> None:
        config = {
            "mode": "client",
            "connect": {"endpoints": [made.locator]},
            "scouting": {"multicast": {"enabled": False}},
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", READER, json.dumps(config), selector],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "first\n"
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> str:
        os.kill(self.process.pid, signal.SIGCONT)
        out, _ = self.process.communicate("\n", timeout=4 * WAIT)
        return out.strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def reader(full: Broker, request: pytest.FixtureRequest) -> Iterator[Reader]:
    made = Reader(full, request.param)
    yield made
    made.kill()


def queued(made: Broker) -> int:
    """Octets that wait for slow readers."""
    sessions = [connection.face for connection in list(made.session._runtime.links.connections)]
    lanes: list[Any] = [
        lane for session in sessions if isinstance(session, Zenoh1Face) for lane in session.outbox._order
    ]
    return sum(lane.queued for lane in lanes)


def stands_still(made: Broker) -> bool:
    """Whether no more answers are made although there is one under way."""
    before = [connection.machine.outbox.messages for connection in _open(made)]
    threading.Event().wait(0.5)
    return bool(made.storages.answering) and before == [c.machine.outbox.messages for c in _open(made)]


def _open(made: Broker) -> list[Any]:
    return [one for one in list(made.session._runtime.links.connections) if one.face is not None]


SELECTORS = pytest.mark.parametrize("reader", ["home/*", "home/*?_history", "@store/read/home/**"], indirect=True)


@SELECTORS
def test_answers_wait_for_a_slow_reader_and_then_go_on(full: Broker, reader: Reader) -> None:
    eventually(lambda: stands_still(full), "the answer waits")
    waiting = queued(full)
    with full.client() as other:
        assert values(other, "home/7") == [("home/7", "x" * OCTETS)]

    count, octets = reader.go_on().split()

    assert waiting <= QUEUE_BYTES
    assert int(octets) >= KEYS * OCTETS
    assert int(count) == KEYS or int(count) > KEYS * OCTETS >> 20
    eventually(lambda: not full.storages.answering, "the answer has ended")


@SELECTORS
def test_answer_ends_when_the_reader_goes(full: Broker, reader: Reader) -> None:
    eventually(lambda: stands_still(full), "the answer waits")
    reader.kill()

    eventually(lambda: not full.storages.answering, "the answer has ended")


def test_answer_ends_when_its_time_is_over(full: Broker) -> None:
    go_on = threading.Event()
    with full.client() as session:
        session.get("home/*", lambda _: go_on.wait(WAIT), consolidation=NONE, timeout=0.2)
        eventually(lambda: not full.storages.answering, "the answer has ended")
        go_on.set()


def test_broker_with_a_slow_reader_can_be_closed(full: Broker) -> None:
    with broker(home={"key_expr": "home/**", "volume": "memory"}) as made:
        with made.client() as session:
            told(session, "@store/batch/home/*?src=a1.1.0", payload=batch([("home/x", b"x" * 100_000)] * 300))
        reader = Reader(made, "home/*?_history")
        try:
            eventually(lambda: stands_still(made), "the answer waits")
            made.session.close()
            assert not made.storages.answering
        finally:
            reader.kill()


def test_process_that_asks_itself_gets_everything(full: Broker) -> None:
    count = sum(1 for reply in full.session.get("home/*", consolidation=NONE, timeout=WAIT) if reply.ok is not None)

    assert count == KEYS
    assert elea.__version__
