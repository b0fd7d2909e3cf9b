"""`qos/publication`: the configuration stands above what a program says."""

from __future__ import annotations

from typing import Any

import pytest

import elea
from elea.api.publicationqos import PublicationQos
from elea.testing import Network

ENTRY = {
    "key_exprs": ["a/**", "exact"],
    "config": {
        "congestion_control": "block",
        "priority": "data_high",
        "express": True,
        "reliability": "best_effort",
        "allowed_destination": "remote",
    },
}


def qos(sample: elea.Sample) -> tuple[Any, ...]:
    return sample.congestion_control, sample.priority, sample.express


def test_puts_and_publishers_on_included_keys_have_the_quality_of_the_configuration() -> None:
    net = Network(seed=1)
    config = elea.Config()
    config.insert_json5("qos/publication", str([ENTRY]).replace("True", "true").replace("'", '"'))
    robot, desk = net.peer("robot", config=config), net.peer("desk")
    net.link(desk, robot)
    seen, own = desk.subscribe("**"), robot.subscribe("**")
    net.settle()

    robot.put("a/1", "1", priority=elea.Priority.BACKGROUND, congestion_control=elea.CongestionControl.DROP)
    robot.delete("exact", express=False)
    publisher = robot.declare_publisher("a/2", reliability=elea.Reliability.RELIABLE)
    publisher.put("2")
    robot.put("b", "3")
    robot.put("a/*", "4")
    net.run(1.0)

    theirs = (elea.CongestionControl.BLOCK, elea.Priority.DATA_HIGH, True)
    plain = (elea.CongestionControl.DROP, elea.Priority.DATA, False)
    assert {str(sample.key_expr): qos(sample) for sample in seen} == {
        "a/1": theirs, "exact": theirs, "a/2": theirs, "b": plain, "a/*": theirs,
    }  # fmt: skip
    assert [str(sample.key_expr) for sample in own] == ["b"]  # the others go elsewhere only
    assert (publisher.reliability, publisher.priority) == (elea.Reliability.BEST_EFFORT, elea.Priority.DATA_HIGH)


def test_an_expression_that_no_entry_includes_is_left_alone_and_so_is_what_an_entry_does_not_say() -> None:
    quality = (None, elea.Priority.DATA_LOW, None, None, None)
    rules = PublicationQos([{"key_exprs": ["a/*"], "config": {"express": True, "priority": None}}])

    assert rules.over("a/**", quality) is quality
    assert rules.over("a/1", quality) == (None, elea.Priority.DATA_LOW, True, None, None)


def test_of_several_entries_the_first_counts_and_the_others_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    rules = PublicationQos(
        [{"key_exprs": ["a/1"], "config": {"express": True}}, {"key_exprs": ["**"], "config": {"priority": "data"}}]
    )

    for _ in range(3):
        assert rules.over("a/1", (None,) * 5) == (None, None, True, None, None)

    assert [line for line in caplog.messages if "qos/publication" in line] == [
        "several entries of qos/publication: key=a/1 used=a/1 others=**"
    ]


def test_the_keys_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.api.publicationqos.MAX_PUT_ROUTES", 4)
    rules = PublicationQos([{"key_exprs": ["**"], "config": {"express": True}}])

    for number in range(50):
        rules.over(f"a/{number}", (None,) * 5)

    assert len(rules._known) <= 4
