"""Virtual time: order, cancelling, timers of nodes, and where nodes get their time from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import elea
from elea.testing.timeline import MAX_AT_ONCE, Timeline, VirtualLoop


def run(timeline: Timeline, limit: float) -> None:
    while timeline.step(limit):
        pass


def test_things_happen_in_order_of_time_then_of_asking() -> None:
    timeline = Timeline()
    done: list[str] = []
    for name, when in (("c", 2.0), ("a", 1.0), ("b", 1.0), ("late", 9.0)):
        timeline.at(when, lambda name=name: done.append(name))  # type: ignore[misc]

    run(timeline, 5.0)

    assert done == ["a", "b", "c"]
    assert timeline.now == 2.0


def test_what_was_to_be_done_in_the_past_is_done_now() -> None:
    timeline = Timeline()
    seen: list[float] = []

    def ask_for_the_past() -> None:
        timeline.at(1.0, lambda: seen.append(timeline.now))

    timeline.at(3.0, ask_for_the_past)

    run(timeline, 10.0)

    assert seen == [3.0]


def test_cancelled_is_not_done() -> None:
    timeline = Timeline()
    done: list[int] = []
    timer = timeline.after(1.0, lambda: done.append(1))

    timer.cancel()
    run(timeline, 10.0)

    assert done == []


def test_an_endless_instant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = Timeline()

    def again() -> None:
        timeline.soon(again)

    timeline.soon(again)
    assert MAX_AT_ONCE > 1000
    monkeypatch.setattr("elea.testing.timeline.MAX_AT_ONCE", 1000)

    with pytest.raises(RuntimeError, match="answer each other"):
        run(timeline, 1.0)


def test_loop_runs_timers_in_virtual_time() -> None:
    timeline = Timeline(start_ns=5_000_000_000)
    loop = VirtualLoop(timeline, "test")
    seen: list[tuple[str, float]] = []
    loop.after(2.0, lambda: seen.append(("after", loop.now())))
    repeating = loop.every(1.5, lambda: seen.append(("every", loop.now())))
    loop.at(4.0, repeating.cancel)

    run(timeline, 100.0)

    assert seen == [("every", 1.5), ("after", 2.0), ("every", 3.0)]
    assert loop.wall_ns() == 9_500_000_000


def test_closed_loop_runs_nothing() -> None:
    timeline = Timeline()
    loop = VirtualLoop(timeline, "test")
    done: list[int] = []
    loop.after(1.0, lambda: done.append(1))

    loop.close()
    run(timeline, 10.0)

    assert done == []


@pytest.mark.parametrize(
    "name",
    [
        "node/node",
        "node/zenoh1/face",
        "node/localface",
        "api/session",
        "api/publisher",
        "api/putroute",
        "api/outgoingquery",
    ],
)
def test_nodes_ask_their_loop_what_time_it_is(name: str) -> None:
    """What took the time from the machine could not be simulated."""
    tree = ast.parse((Path(elea.__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}

    assert imported & {"time", "elea.io.timers.monotonic", "elea.io.timers.wall_ns"} == set()
