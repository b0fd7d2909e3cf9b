"""Ways to neighbours with predicates: what is remembered, counted and told."""

from __future__ import annotations

import json

import elea
from elea.model.limits import FILTERS_REMEMBERED
from elea.node.filteredway import FilteredWay, Filters
from elea.node.openmetrics import OpenMetrics
from elea.space.way import NOWHERE, Way
from elea.wire.details import RawSample
from tests.unit.api.stores import broker, client, config


class FullWay(Way):
    """A way on which a put would wait."""

    def is_full(self, qos: int, reliable: bool) -> bool:
        return True


def test_predicates_are_remembered_up_to_a_bound() -> None:
    filters = Filters()
    way = Way("k", (), NOWHERE)
    first = filters.way(way, ("a = 0",))
    assert isinstance(first, FilteredWay)

    for number in range(FILTERS_REMEMBERED):
        filters.way(way, (f"a = {number}",))
    again = filters.way(way, ("a = 0",))
    assert isinstance(again, FilteredWay)
    assert again.where is first.where

    filters.way(way, ("b = 1",))  # `a = 1` is the one that was not asked for since
    assert len(filters.form()) == FILTERS_REMEMBERED
    assert ["a=1"] not in [one["predicates"] for one in filters.form()]


def test_what_is_held_back_is_counted_and_told() -> None:
    filters = Filters()
    way = filters.way(Way("k", (), NOWHERE), ("a > 1", "a < -1"))
    assert isinstance(way, FilteredWay)

    run: list[RawSample] = [
        (0, 0, b"", 5, None, payload) for payload in (b'{"a": 2}', b'{"a": 0}', b"\xff", b'{"a": -2}')
    ]
    assert way.chosen("k", run) == [run[0], run[3]]
    way.put(None, b'{"a": 3}', 5, True)
    way.put(None, b'{"a": 0}', 5, True)

    assert filters.form() == [{"predicates": ["a>1", "a<-1"], "passed": 3, "kept_back": 3, "unreadable": 1}]
    page = OpenMetrics(descriptors=False)
    filters.meter(page)
    assert 'elea_filtered_samples_total{result="kept_back"} 3' in str(page)
    assert 'elea_filtered_samples_total{result="unreadable"} 1' in str(page)


def test_way_is_as_full_as_the_one_behind_it() -> None:
    way = Filters().way(FullWay("k", (), NOWHERE), ("a = 1",))

    assert way.is_full(5, True)
    assert way.put_columns(None, (), None, 5) is False


def test_admin_space_tells_of_predicates() -> None:
    with (
        elea.open(config("router", adminspace__enabled=True, listen__endpoints=["tcp/127.0.0.1:0"])) as router,
        client(router) as robot,
        client(router) as desk,
        desk.declare_subscriber("k", where="value > 1") as subscriber,
    ):
        for number in range(3):
            robot.put("k", str(number))
        assert subscriber.recv().payload.to_string() == "2"
        (reply,) = robot.get(f"@/{router.zid()}/router/predicates")

        assert json.loads(reply.ok.payload.to_bytes()) == [
            {"predicates": ["value>1"], "passed": 1, "kept_back": 2, "unreadable": 0}
        ]


def test_broker_without_predicates_tells_of_none() -> None:
    with broker() as router, client(router) as robot:
        assert router._node.filters is None
        assert list(robot.get(f"@/{router.zid()}/router/predicates", timeout=1)) == []
