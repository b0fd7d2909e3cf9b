"""The lamp of the demo: its nodes at a real broker, and its accounts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import elea
from elea.demo import lamp as lamps
from elea.demo import ledger
from elea.demo.lamp import LAMP, LAMP_LEDGER, Lamp, listening
from elea.demo.lampjudge import LampEvidence, judge_lamp, put_of
from elea.demo.world import Origin
from tests.interop.inbox import eventually
from tests.unit.demo.evidences import LIT, lamp_evidence

HOT = [("fleet", 0), ("fleet", 10)]
ORIGINS = [Origin(by, number, 1).text() for by, number in HOT]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[elea.Session, Lamp]]:
    """A broker that keeps the lamp on disk, and the lamp, whose nodes have not joined."""
    lamp = Lamp(tmp_path, lambda what: None)
    storages = {"lamp": {"key_expr": "lamp/**", "volume": "log"}}
    plugins = {"storage_manager": {"volumes": {"log": {"dir": str(tmp_path / "store")}}, "storages": storages}}
    entries = {
        "mode": "router",
        "scouting": {"multicast": {"enabled": False}},
        "listen": {"endpoints": ["tcp/127.0.0.1:0", *listening(lamp.serial)]},
        "plugins": plugins,
    }
    with elea.open(elea.Config.from_json5(json.dumps(entries))) as session:
        try:
            yield session, lamp
        finally:
            lamp.close()


def test_every_put_is_seen_by_all_nodes(
    broker: tuple[elea.Session, Lamp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lamps, "BETWEEN_SECONDS", 0.01)
    monkeypatch.setattr(lamps, "PROBE_SECONDS", 0.05)
    session, lamp = broker
    locators = [str(one) for one in session.info.locators()]
    lamp.start(session, dict(zip(("modern", "2017 udp", "2018 tcp"), locators, strict=False)))
    eventually(lambda: lamp.is_there, "everybody is there")
    lamp.go()
    burst = [("fleet", number) for number in range(200)]
    session.put_batch([(LAMP, json.dumps({"origin": Origin(*one, 1).text(), "robot": 40 * "r"})) for one in burst])

    def accounts() -> LampEvidence:
        return LampEvidence(
            ledgers={by: ledger.read(tmp_path / "ledger" / f"{LAMP_LEDGER}{by}.jsonl") for by in lamp.nodes},
            seen={name: list(seen) for name, seen in lamp.seen.items()},
            log=(stored := _stored(session)),
            rows=stored,
            late=lamp.late(),
            own=lamp.own,
        )

    eventually(lambda: all(one.tried > 3 for one in accounts().ledgers.values()), "all have put")
    lamp.hush()
    eventually(lambda: not any(one.lost for one in judge_lamp(accounts(), burst)), "all is seen", 60.0)

    checks = judge_lamp(accounts(), burst)
    assert len(checks) == 3 + len(lamp.nodes)
    assert not [one for one in checks if one.duplicated or one.wrong]
    device = ledger.read(tmp_path / "ledger" / f"{LAMP_LEDGER}2018 serial.jsonl")
    assert device.tried == len(device.acknowledged)


def _stored(session: elea.Session) -> list[str]:
    column = session.read(LAMP, timeout=60).read_all().column("payload")
    return [payload.decode() for payload in column.to_pylist()]


def test_what_went_well_is_good() -> None:
    checks = judge_lamp(lamp_evidence(ORIGINS), HOT)

    assert [(one.what, one.expected, one.found) for one in checks] == [
        ("lamp, log of the broker", 2 * LIT + 2, 2 * LIT + 2),
        ("lamp, Spark rows", 2 * LIT + 2, 2 * LIT + 2),
        ("lamp, 2017 udp", LIT + 2, LIT + 2),
        ("lamp, Elea 1.x", 2 * LIT + 2, 2 * LIT + 2),
        ("lamp, who comes late", 1, 1),
    ]
    assert not [one for one in checks if one.lost or one.duplicated or one.wrong]


def _seen(node: str, payloads: list[str]) -> LampEvidence:
    found = lamp_evidence(ORIGINS)
    return replace(found, seen={**found.seen, node: payloads})


def _changed() -> dict[str, tuple[LampEvidence, str, tuple[int, int, int]]]:
    found = lamp_evidence(ORIGINS)
    seen, log = list(found.seen["2017 udp"]), list(found.log)
    device, of_log = "lamp, 2017 udp", "lamp, log of the broker"
    return {
        "a put that a device has not seen": (_seen("2017 udp", seen[:1] + seen[2:]), device, (1, 0, 0)),
        "one that it has seen twice": (_seen("2017 udp", [*seen, seen[-1]]), device, (0, 1, 0)),
        "one that came after a later one": (_seen("2017 udp", [seen[2], seen[1], *seen[3:]]), device, (0, 0, 1)),
        "one of Spark's": (_seen("2017 udp", seen[:-1]), device, (1, 0, 0)),
        "one that nobody has put": (_seen("2017 udp", [*seen, "Elea 1.x 99 1"]), device, (0, 0, 1)),
        "one that is acknowledged and not kept": (replace(found, log=log[2:]), of_log, (1, 0, 0)),
        "one that is no row": (replace(found, rows=log[2:]), "lamp, Spark rows", (1, 0, 0)),
        "one that is not the latest": (replace(found, late=log[0]), "lamp, who comes late", (1, 0, 0)),
    }


@pytest.mark.parametrize("name", sorted(_changed()))
def test_what_is_wrong_is_seen(name: str) -> None:
    evidence, what, told = _changed()[name]

    found = next(one for one in judge_lamp(evidence, HOT) if one.what == what)

    assert (found.lost, found.duplicated, found.wrong) == told


def test_what_came_while_a_broker_was_dead_is_not_lost() -> None:
    found = _seen("2017 udp", ["Elea 1.x 3 1"])

    checks = {one.what: one for one in judge_lamp(replace(found, is_broker_killed=True), HOT)}

    assert (checks["lamp, 2017 udp"].expected, checks["lamp, 2017 udp"].lost) == (1, 0)


def test_puts_are_known_by_node_and_number() -> None:
    assert put_of("2018 serial 4 1700000000000000") == ("2018 serial", "4")
    assert put_of(json.dumps({"origin": "eclipse 5 17"})) == ("Spark", "eclipse 5")
