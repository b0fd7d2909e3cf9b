"""`elea demo`, as a user runs it, for a few seconds. With kills, and more than once: tests.spark.demos."""

from __future__ import annotations

import pytest

from tests.spark.demos import demo


@pytest.mark.long
def test_demo_brings_everything_through_and_counts_it() -> None:
    run = demo("--seconds", "3", "--rate", "500")

    outcome = run.outcome
    assert run.code == 0, outcome
    assert (outcome["lost"], outcome["duplicated"], outcome["is_good"]) == (0, 0, True)
    assert outcome["publishers"] == ["house", "fleet", "eclipse", "vehicle"]
    assert outcome["not_stored"] == {}  # nobody was killed, so the real peer's samples are all there, too
    checks = {one["what"]: one for one in outcome["checks"]}
    driven = checks["vehicle, messages"]["found"]
    lit = checks["lamp, Spark rows"]["found"] - checks["alerts in the log"]["found"]
    assert checks["bronze"]["found"] + driven + lit == outcome["tried"] > outcome["acknowledged"] > 0
    nodes = ("2017 udp", "2018 tcp, pulling", "2018 serial", "Elea 1.x", "eclipse-zenoh 1.x")
    assert all(checks[f"lamp, {node}"]["found"] > checks["alerts in the log"]["found"] for node in nodes)
    assert driven > 0
    assert checks["vehicle, calls"]["found"] > 0
    assert outcome["failed_calls"] == {}
    assert checks["alerts received"]["found"] == checks["alerts in the log"]["found"] > 0
    assert checks["gold, windows"]["found"] > 0
    assert set(outcome["first_seconds"]) == {
        "first sample",
        "first call",
        "Spark",
        "first row",
        "first alert",
        "all generations",
    }
    assert 0 < outcome["waited"]["p50"] <= outcome["waited"]["p99"] <= outcome["seconds"]
    assert run.page.count("<svg") == 11
    assert [event["event"] for event in run.events][:2] == ["broker", "publishers"]
