"""Handles that a program drops without a word: the session forgets them, and lives on."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

import elea

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
