"""A small run in which everything went well."""

from __future__ import annotations

import json
from collections import defaultdict

from elea.demo.drivejudge import DriveEvidence, Message
from elea.demo.judge import Evidence, Stored, Window, judge, latency_of
from elea.demo.lampjudge import LampEvidence
from elea.demo.ledger import Ledger
from elea.demo.stage import Outcome
from elea.demo.world import HOT, Origin

__all__ = ["BEGIN", "CALLS", "LIT", "drive_evidence", "evidence", "lamp_evidence", "outcome"]

BEGIN = 1_700_000_000
"""Seconds since 1970; the first window begins here."""

SAMPLES = 40
"""Of each publisher, four a second."""

CALLS = 5
LIT = 6
"""Puts of each node of the lamp."""


def evidence() -> Evidence:
    """Two publishers of Elea, all acknowledged, and one that is not."""
    rows: list[Stored] = []
    windows: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    for by in ("house", "fleet", "eclipse"):
        for number in range(SAMPLES):
            micros = BEGIN * 1_000_000 + number * 250_000
            key, value = _light(number) if by == "house" else _robot(number)
            rows.append(Stored(key, json.dumps(value).encode(), Origin(by, number, micros).text(), micros))
            if by == "house":
                windows[micros // 5_000_000 * 5, key.split("/")[2]].append(value["luminosity"])
    newest = max(row.micros for row in rows)
    values = [(row.origin, json.loads(row.payload)) for row in rows]
    hot = [origin for origin, value in values if value.get("temperature", 0) > HOT]
    return Evidence(
        ledgers=[
            Ledger("house", SAMPLES, frozenset(range(SAMPLES))),
            Ledger("fleet", SAMPLES, frozenset(range(SAMPLES))),
            Ledger("eclipse", SAMPLES),
        ],
        log=[row.origin for row in rows],
        bronze=rows,
        silver_lights=[origin for origin, value in values if "luminosity" in value],
        silver_robots=[origin for origin, value in values if value.get("battery", 999) <= 100],
        quarantine=[origin for origin, value in values if value.get("battery", 0) > 100],
        gold=[
            Window(begins, floor, len(found), sum(found) / len(found))
            for (begins, floor), found in windows.items()
            if (begins + 7) * 1_000_000 <= newest
        ],
        alerts=hot,
        received=list(hot),
        drive=drive_evidence(),
        lamp=lamp_evidence(hot),
    )


def lamp_evidence(hot: list[str]) -> LampEvidence:
    """Two nodes, and what Spark has put of readings that are hot."""
    puts = [Origin(by, number, BEGIN).text() for number in range(LIT) for by in ("2017 udp", "Elea 1.x")]
    puts += [json.dumps({"origin": origin}) for origin in hot]
    return LampEvidence(
        ledgers={by: Ledger(by, LIT, frozenset(range(LIT))) for by in ("2017 udp", "Elea 1.x")},
        seen={
            "2017 udp": ["probe 0 0", *(one for one in puts if not one.startswith("2017"))],
            "Elea 1.x": ["probe 0 0", *puts],
        },
        log=["probe 0 0", *puts],
        rows=["probe 0 0", *puts],
        late=puts[-1],
        own=frozenset({"Elea 1.x"}),
    )


def drive_evidence() -> DriveEvidence:
    """A vehicle that has published, and was called; the last call has failed."""
    rows = [
        Message(f"p{number}", "PUBLISH", None, Origin("vehicle", number, BEGIN).text(), 50.0 + number, 100.0)
        for number in range(SAMPLES)
    ]
    for number in range(CALLS):
        origin = Origin("phone", number, BEGIN).text()
        answer: tuple[str | None, float | None, float | None] = (origin, 0.0, 30.0)
        rows.append(Message(f"q{number}", "REQUEST", None, origin, 0.0, 30.0))
        answer = answer if number < CALLS - 1 else (None, None, None)
        rows.append(Message(f"r{number}", "RESPONSE", f"q{number}", *answer))
    return DriveEvidence(
        vehicle=Ledger("vehicle", SAMPLES), phone=Ledger("phone", CALLS, frozenset(range(CALLS - 1))),
        log=rows, table=list(rows),
    )  # fmt: skip


def _light(number: int) -> tuple[str, dict[str, float]]:
    return f"myhouse/floor/{number % 2}/bedroom/1/LightStatus", {"on": True, "luminosity": number / 3}


def _robot(number: int) -> tuple[str, dict[str, float]]:
    return f"fleet/robot-{number % 3}/status", {
        "speed": 1.0,
        "battery": 170.0 if number == 7 else 50.0,
        "temperature": HOT + 3 if number % 10 == 0 else 50.0,
    }


def outcome() -> Outcome:
    """Of a run of twenty seconds in which the driver was killed."""
    found = evidence()
    samples = tuple((at / 40, 1.0 + (at % 40) / 40) for at in range(800))
    alerts = tuple((float(at), 2.0) for at in range(20))
    queries = ("bronze", "silver_lights", "silver_robots", "gold_floors", "silver_vehicle", "alerts")
    return Outcome(
        verdict=judge(found),
        to_table=latency_of(late for _, late in samples),
        to_alert=latency_of(late for _, late in alerts),
        waited=None,
        samples=samples,
        alerts=alerts,
        batches=tuple({"query": query, "time": float(at), "ms": 300 + at} for at in range(20) for query in queries),
        windows=tuple(sorted(found.gold)),
        calls=latency_of([0.002, 0.003]),
        failed_calls={"DEADLINE_EXCEEDED": 1},
        drive=tuple((at / 10, 50.0 + at % 30, 70.0) for at in range(200)),
        marks={"first sample": 1.2, "first call": 1.6, "Spark": 7.5, "first row": 11.0, "first alert": 12.5},
        kills=((14.0, "driver <&>"),),
        drivers=2,
        publishers=("house", "fleet", "eclipse", "vehicle"),
        began=float(BEGIN),
        seconds=20.0,
    )
