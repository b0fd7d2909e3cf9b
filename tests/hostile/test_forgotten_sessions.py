"""Sessions that a program drops without `close()`: their links, threads and descriptors go, whatever they declared."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable

import pytest

import elea
from tests.robust.hostile import configuration, eventually

ROUNDS = 5

DECLARATIONS: dict[str, Callable[[elea.Session], object]] = {
    "nothing": lambda session: None,
    "publisher": lambda session: session.declare_publisher("a"),
    "publisher that put": lambda session: session.declare_publisher("a").put("x"),
    "put": lambda session: session.put("a", "x"),
    "querier": lambda session: session.declare_querier("a"),
    "querier that asked": lambda session: list(session.declare_querier("a").get()),
    "get": lambda session: list(session.get("a")),
    "subscriber": lambda session: session.declare_subscriber("a", lambda _: None),
    "subscriber with a channel": lambda session: session.declare_subscriber("a"),
    "pull": lambda session: session.declare_subscriber("a", mode=elea.Pull()),
    "periodic": lambda session: session.declare_subscriber("a", lambda _: None, mode=elea.Periodic(0.05, 0.01)),
    "queryable": lambda session: session.declare_queryable("a", lambda query: query.reply("a", "x")),
    "queryable that uses the session": lambda session: session.declare_queryable("a", lambda _: session.put("b", "x")),
    "queryable with a channel": lambda session: session.declare_queryable("a"),
    "token": lambda session: session.liveliness().declare_token("a"),
    "liveliness": lambda session: session.liveliness().declare_subscriber("a", lambda _: None),
    "matching": lambda session: session.declare_publisher("a").declare_matching_listener(lambda _: None),
    "events": lambda session: session.info.declare_transport_events_listener(lambda _: None),
}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kept", [False, True], ids=["handle dropped", "handle dropped later"])
@pytest.mark.parametrize("what", DECLARATIONS)
def test_forgotten_session_is_closed(what: str, kept: bool) -> None:
    listening = configuration("router", more={"listen/endpoints": ["tcp/127.0.0.1:0"]})
    with elea.open(listening) as router:
        locator = router.info.locators()[0]
        with elea.open(configuration("client", connect=[locator])):
            pass  # the first one has the router open what it keeps
        gc.collect()
        before = threading.active_count(), descriptors()

        for _ in range(ROUNDS):
            session = elea.open(configuration("client", connect=[locator]))
            handle = DECLARATIONS[what](session)
            if not kept:
                del handle
            del session
            if kept:
                del handle

        def is_gone() -> bool:
            gc.collect()
            return not list(router.info.transports())

        eventually(is_gone, "the router has lost them all", show=lambda: list(router.info.transports()))
        eventually(lambda: descriptors() <= before[1], "descriptors are closed", show=descriptors)
        eventually(lambda: threading.active_count() <= before[0] + 1, "threads end", show=threading.enumerate)


def test_handle_keeps_its_session() -> None:
    listening = configuration("router", more={"listen/endpoints": ["tcp/127.0.0.1:0"]})
    with elea.open(listening) as router, router.declare_subscriber("a") as subscriber:
        publisher = elea.open(configuration("client", connect=router.info.locators()[:1])).declare_publisher("a")
        gc.collect()

        publisher.put("x")

        assert subscriber.recv().payload.to_string() == "x"
        publisher.undeclare()


def test_queryable_without_a_handle_answers_as_long_as_its_session_is_there() -> None:
    with elea.open(configuration("peer")) as session:
        session.declare_queryable("a", lambda query: query.reply("a", "x"))
        gc.collect()

        assert [reply.ok.payload.to_string() for reply in session.get("a")] == ["x"]
