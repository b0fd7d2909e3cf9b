"""`timestamping/drop_future_timestamp`: puts from the future do not arrive, and nothing else is held back."""

from __future__ import annotations

from datetime import timedelta

import pytest

import elea
from elea.testing import Network

AHEAD = timedelta(seconds=10)


def stamps(session: elea.Session) -> tuple[elea.Timestamp, elea.Timestamp]:
    now = session.new_timestamp()
    return now, elea.Timestamp(now.get_time() + AHEAD, now.get_id())


def config(**entries: str) -> elea.Config:
    made = elea.Config()
    for path, value in entries.items():
        made.insert_json5(path.replace("__", "/"), value)
    return made


@pytest.mark.parametrize("rules", [False, True], ids=["plain", "with rules"])
def test_a_router_drops_puts_from_the_future_and_passes_the_rest(rules: bool, caplog: pytest.LogCaptureFixture) -> None:
    entries = {"timestamping__drop_future_timestamp": "true"}
    if rules:
        entries["low_pass_filter"] = (
            '[{flows: ["ingress"], messages: ["put"], key_exprs: ["a"], size_limit: 100, id: "small"}]'
        )
    net = Network(seed=1)
    router, robot, desk = net.router("router", config=config(**entries)), net.client("robot"), net.client("desk")
    net.link(robot, router)
    net.link(desk, router)
    seen, kept = desk.subscribe("a"), router.subscribe("a")
    net.settle()
    now, future = stamps(robot)

    for payload, stamp in (("now", now), ("future", future), ("unstamped", None), ("later", future)):
        robot.put("a", payload, timestamp=stamp)
    robot.delete("a", timestamp=future)  # as in eclipse-zenoh
    router.put("a", "own", timestamp=future)
    net.run(1.0)

    assert [sample.payload.to_string() for sample in seen] == ["now", "unstamped", ""]
    assert [sample.payload.to_string() for sample in kept] == ["now", "unstamped", ""]
    assert router._node.future is not None
    assert (router._node.space.guard is not None) == rules
    assert router._node.future.dropped == 3
    assert [line for line in caplog.messages if "too far ahead" in line] == [
        "samples dropped: reason=timestamp too far ahead key=a dropped=1",
        "samples dropped: reason=timestamp too far ahead key=a dropped=2",
    ]


def test_who_gives_no_timestamps_drops_none() -> None:
    net = Network(seed=1)
    robot, desk = net.peer("robot", config=config(timestamping__drop_future_timestamp="true")), net.peer("desk")
    net.link(desk, robot)
    seen = desk.subscribe("a")
    net.settle()

    robot.put("a", "1", timestamp=stamps(robot)[1])
    net.run(1.0)

    assert len(seen) == 1
