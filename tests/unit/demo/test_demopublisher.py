"""What the publishers of the demo say, and the ledgers they keep."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from elea.demo import ledger
from elea.demo.demopublisher import GROUP, Publisher
from elea.demo.world import BATTERY_MOST, HOT, PUBLISHERS, Origin, readings
from elea.model.keyexpr import KeyExpr


@pytest.mark.parametrize("by", PUBLISHERS)
def test_readings_are_numbered_and_their_keys_are_the_pipelines(by: str) -> None:
    found = list(islice(readings(by, seed=3), 2000))

    assert [Origin.parse(one.origin)[:2] for one in found] == [(by, number) for number in range(2000)]
    sources = {"house": "myhouse/floor/*/*/*/LightStatus", "fleet": "fleet/*/status", "eclipse": "fleet/*/status"}
    assert by == "vehicle" or all(KeyExpr(sources[by]).includes(one.key) for one in found)


def test_some_robots_are_hot_and_some_batteries_broken() -> None:
    values = [json.loads(one.payload) for one in islice(readings("fleet", seed=3), 5000)]

    assert 0 < sum(value["temperature"] > HOT for value in values) < 500
    assert 0 < sum(value["battery"] > BATTERY_MOST for value in values) < 100


def test_ledger_says_what_was_tried_and_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "house.jsonl"
    writer = ledger.Writer(path)
    writer.note("tried", 0, 3)
    writer.note("acknowledged", 0, 3)
    writer.note("tried", 3, 5)
    writer.close()
    with path.open("a") as file:
        file.write('{"acknowledged": [3, 5]}')  # its process was killed before the line was whole

    found = ledger.read(path)

    assert found == ledger.Ledger("house", 5, frozenset({0, 1, 2}))


def test_publisher_is_silent_until_it_is_told_to_go(tmp_path: Path) -> None:
    writer = ledger.Writer(tmp_path / "house.jsonl")
    publisher = Publisher("house", writer, rate=1e6, seed=1)

    assert publisher.turn() == []
    publisher.is_going = True
    groups = publisher.turn()
    writer.close()

    assert groups
    assert max(len(group) for group in groups) <= GROUP
