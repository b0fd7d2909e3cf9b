"""The ways of keys that a session remembers: as many as its bound says, and forgotten ones are found again."""

from __future__ import annotations

import pytest

import elea
from elea.api import batchput
from elea.api import session as threaded
from elea.testing import Network

BOUND = 8


@pytest.mark.parametrize("destination", [None, elea.Locality.REMOTE])
def test_a_session_remembers_the_ways_of_so_many_keys_and_no_more(
    destination: elea.Locality | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threaded, "MAX_PUT_ROUTES", BOUND)
    net = Network(seed=1)
    robot, desk = net.peer("robot"), net.peer("desk")
    net.link(desk, robot)
    seen = desk.subscribe("a/*")
    net.settle()
    sizes: list[int] = []

    for number in [*range(3 * BOUND + 1), 0]:  # the first one again, which has been forgotten
        robot.put(f"a/{number}", f"{number}", allowed_destination=destination)
        sizes.append(len(robot._put_routes))
    net.run(1.0)

    assert sizes == [*range(1, BOUND + 1), *range(1, BOUND + 1), *range(1, BOUND + 1), 1, 2]
    assert [sample.payload.to_string() for sample in seen] == [*map(str, range(3 * BOUND + 1)), "0"]


def test_the_ways_of_one_key_to_other_destinations_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "MAX_PUT_ROUTES", 2)
    net = Network(seed=1)
    robot = net.peer("robot")
    places = [elea.Locality.ANY, elea.Locality.REMOTE, elea.Locality.SESSION_LOCAL]

    for destination in places:
        robot.put("a", "1", allowed_destination=destination)

    assert list(robot._put_routes) == [("a", elea.Locality.SESSION_LOCAL)]


def test_a_batch_that_is_published_keeps_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(batchput, "MAX_PUT_ROUTES", BOUND)
    net = Network(seed=1)
    robot = net.peer("robot")
    seen = robot.subscribe("a/*")

    for _ in range(2):
        robot.put_batch([(f"a/{number}", f"{number}") for number in range(3 * BOUND)], durability="volatile")
    net.run(1.0)

    assert robot._bulk is not None
    assert len(robot._bulk._put_routes) <= BOUND
    assert sorted(int(sample.payload.to_string()) for sample in seen) == sorted([*range(3 * BOUND)] * 2)
