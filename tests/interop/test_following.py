"""A real broker that keeps what eclipse-zenoh puts, and followers: history, live, cursors, replay, over a kill."""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import elea
from tests.interop.inbox import free_port
from tests.robust.children import broker, config, entries, eventually

zenoh = pytest.importorskip("zenoh")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def locator() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory, broker("--store", directory, "--persist", "k/**") as (_, where):
        yield where


@contextlib.contextmanager
def other(locator: str) -> Iterator[Any]:
    """A session of eclipse-zenoh."""
    made = zenoh.Config()
    for path, value in entries("client", "connect", locator).items():
        made.insert_json5(path, json.dumps(value))
    with zenoh.open(made) as session:
        yield session


def put(session: Any, key: str, *texts: str) -> None:
    for text in texts:
        session.put(key, text, congestion_control=zenoh.CongestionControl.BLOCK)


def texts_of(samples: list[Any]) -> list[str]:
    return [sample.payload.to_string() for sample in samples]


def test_history_and_what_comes_is_one_sequence(locator: str) -> None:
    with other(locator) as writer, elea.open(config("client", "connect", locator)) as session:
        put(writer, "k/history", *map(str, range(50)))
        eventually(lambda: _last(session, "k/history") == "49", "all is kept")

        with session.declare_subscriber("k/history", history=10) as subscriber:
            put(writer, "k/history", *map(str, range(50, 100)))
            samples = [subscriber.recv() for _ in range(60)]

    assert texts_of(samples) == list(map(str, range(40, 100)))
    positions = [sample.position for sample in samples]
    assert positions == sorted(set(positions))
    assert all(sample.timestamp is not None for sample in samples)


def test_deletions_are_part_of_the_history(locator: str) -> None:
    with other(locator) as writer, elea.open(config("client", "connect", locator)) as session:
        put(writer, "k/gone", "x")
        writer.delete("k/gone", congestion_control=zenoh.CongestionControl.BLOCK)

        with session.declare_subscriber("k/gone", since=timedelta(hours=1)) as subscriber:
            kinds = [subscriber.recv().kind for _ in range(2)]

    assert kinds == [elea.SampleKind.PUT, elea.SampleKind.DELETE]


def test_a_replay_has_every_sample_once_in_the_order_of_time(locator: str) -> None:
    with other(locator) as writer, elea.open(config("client", "connect", locator)) as session:
        put(writer, "k/replay", *map(str, range(1000)))
        eventually(lambda: _last(session, "k/replay") == "999", "all is kept")

        samples = list(session.replay("k/replay", since=timedelta(hours=1), pace=None))

    assert texts_of(samples) == list(map(str, range(1000)))


def test_a_follower_goes_on_when_its_broker_was_killed() -> None:
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        where = f"tcp/127.0.0.1:{free_port()}"
        options = ("--store", directory, "--persist", "k/**")
        with broker(*options, listen=where) as (child, _):
            session = stack.enter_context(elea.open(config("client", "connect", where)))
            for number in range(20):
                session.put("k/a", str(number), durability="persistent", ack=True)
            subscriber = stack.enter_context(session.declare_subscriber("k/**", since=0, cursor="c"))
            before = [subscriber.recv() for _ in range(15)]
            child.signal(signal.SIGKILL)
        stack.enter_context(broker(*options, listen=where))
        session.put("k/a", "20", durability="persistent", ack=True, timeout=120)
        after = [subscriber.recv() for _ in range(6)]

        assert texts_of(before + after) == list(map(str, range(21)))
        assert [sample.position for sample in before + after] == list(range(21))


def _last(session: elea.Session, key: str) -> str | None:
    found = [reply.ok for reply in session.get(key) if reply.ok is not None]
    return found[-1].payload.to_string() if found else None
