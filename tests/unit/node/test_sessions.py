"""How many sessions a node has, whom it has none with, and routes that change while somebody puts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import elea
from tests.interop.inbox import free_port

QUIET = "scouting: {multicast: {enabled: false}}"
PATIENCE = 20.0


def config(text: str) -> elea.Config:
    return elea.Config.from_json5(f"{{{QUIET}, {text}}}")


def client(router: elea.Session) -> elea.Session:
    return elea.open(config(f"mode: 'client', connect: {{endpoints: ['{router.info.locators()[0]}'], timeout_ms: 0}}"))


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_session_more_than_the_limit_is_refused() -> None:
    limit = "transport: {unicast: {max_sessions: 2}}"
    with (
        elea.open(config(f"mode: 'router', listen: {{endpoints: ['tcp/127.0.0.1:0']}}, {limit}")) as router,
        client(router),
        client(router) as second,
    ):
        links = router._runtime.links
        eventually(lambda: len(links.connections) == 2)
        with pytest.raises(elea.ZError):
            client(router)
        assert (len(links.connections), links.refused) == (2, 1)

        second.close()
        eventually(lambda: len(links.connections) == 1)
        client(router).close()


def test_a_node_that_dials_itself_gets_no_session() -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    there = f"mode: 'peer', listen: {{endpoints: ['{locator}']}}, connect: {{endpoints: ['{locator}'], "

    with pytest.raises(elea.ZError):
        elea.open(config(f"{there} exit_on_failure: true, timeout_ms: 0}}"))
    with elea.open(config(f"{there} exit_on_failure: false}}")) as session:
        time.sleep(0.1)
        assert list(session.info.peers_zid()) == []
        assert session._runtime.links.connections == set()


def test_a_subscriber_that_comes_after_the_first_put_gets_the_next() -> None:
    with (
        elea.open(config("mode: 'router', listen: {endpoints: ['tcp/127.0.0.1:0']}")) as router,
        client(router) as writer,
        client(router) as reader,
    ):
        publisher = writer.declare_publisher("late/1")
        publisher.put("nobody hears this")
        writer.put("late/2", "nor this")
        assert list(writer.get("late/answered")) == []  # so the router has had both
        came = threading.Event()
        got: list[str] = []

        def take(sample: elea.Sample) -> None:
            got.append(f"{sample.key_expr} {sample.payload.to_string()}")
            if len(got) == 2:
                came.set()

        reader.declare_subscriber("late/*", take)
        eventually(lambda: publisher.matching_status.matching)
        publisher.put("one")
        writer.put("late/2", "two")

        assert came.wait(PATIENCE)
        assert sorted(got) == ["late/1 one", "late/2 two"]


def test_deadlines_of_the_space_are_looked_at_by_one_thread_at_a_time() -> None:
    with elea.open(config("mode: 'peer', listen: {endpoints: ['tcp/127.0.0.1:0']}")) as session:
        settling = threading.Thread(target=session._node.settle)
        with session._node.lock:
            settling.start()
            settling.join(0.1)
            assert settling.is_alive(), "it looked at what another thread may be changing"
        settling.join(PATIENCE)
        assert not settling.is_alive()
