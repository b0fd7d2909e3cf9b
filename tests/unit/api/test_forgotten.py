"""Handles that a program drops: they end, or go on if a function is their handler; the session lives on."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

import elea
from tests.unit.node.storage.serving import eventually

QUIET = "{mode: 'peer', scouting: {multicast: {enabled: false}}, listen: {endpoints: ['tcp/127.0.0.1:0']}}"
ROUNDS = 50


@pytest.mark.parametrize(
    "declare",
    [
        lambda session: session.declare_publisher("a"),
        lambda session: session.declare_querier("a"),
        lambda session: session.declare_subscriber("a", lambda _: None),
        lambda session: session.declare_queryable("a", lambda _: None),
        lambda session: session.liveliness().declare_token("a"),
        lambda session: session.liveliness().declare_subscriber("a", lambda _: None),
        lambda session: session.declare_publisher("a").declare_matching_listener(lambda _: None),
    ],
    ids=["publisher", "querier", "subscriber", "queryable", "token", "liveliness", "matching"],
)
def test_dropped_handles_are_forgotten(declare: Callable[[elea.Session], object]) -> None:
    """In compiled classes this once was a matter of freed memory: so there are many, and others in their place."""
    with elea.open(elea.Config.from_json5(QUIET)) as session:
        for _ in range(ROUNDS):
            declare(session)
        gc.collect()
        others = [[number] for number in range(1000)]

        left = list(session._handles)

        assert all(hasattr(handle, "undeclare") for handle in left)
        assert others[-1] == [999]
    assert session.is_closed()


def test_loop_over_a_subscriber_without_a_name_goes_on() -> None:
    with elea.open(elea.Config.from_json5(QUIET)) as session:
        samples = iter(session.declare_subscriber("a"))
        gc.collect()
        session.put("a", "x")

        assert next(samples).payload.to_string() == "x"


def test_loop_that_was_left_is_taken_up_again() -> None:
    with elea.open(elea.Config.from_json5(QUIET)) as session:
        subscriber = session.declare_subscriber("a")
        session.put("a", "x")
        session.put("a", "y")
        taken: list[str] = []

        for _ in range(2):
            for sample in subscriber:
                taken.append(sample.payload.to_string())
                break
            gc.collect()

        assert taken == ["x", "y"]


def test_dropped_handle_does_not_count_among_the_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    with elea.open(elea.Config.from_json5(QUIET)) as session:
        monkeypatch.setattr("elea.api.sessionbase.MAX_DECLARATIONS", 2)
        for _ in range(10):
            session.declare_subscriber("a")
            gc.collect()
            # The last reference may be that of a thread which has just run it.
            eventually(lambda: len(session._handles) == 0, "the handle is gone")
