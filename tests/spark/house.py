"""A simulated house and a pipeline for it: what its tables must have, computed with pandas from the broker's log.

Lamps report every 10 s, some late, some wrong, some not at all readable; switches are pressed, and lamps answer. The
pipeline keeps the reports (bronze, with rules), joins them with what was known of the rooms before (`as_of`), counts
them by minute and floor (gold), joins switches with the lamps' answers (stream with stream), and publishes alerts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import elea

__all__ = ["FILE", "Sample", "differences", "expected", "put", "rooms", "simulated", "stored", "tables"]

BEGIN = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
LATE_SECONDS = 8.0
"""How late a report may come; the watermark waits for ten."""

FILE = """
[pipeline]
name = "hour"
checkpoints = "state"
trigger = "1 second"
connect = "{locator}"

[source.lights]
keyexpr = "myhouse/floor/*/room/*/LightStatus"
format = "json"
schema = "at TIMESTAMP, n BIGINT, brightness INT"
event_time = "value.at"
watermark = "10 seconds"
{limit}

[source.switches]
keyexpr = "myhouse/floor/*/room/*/Switch"
format = "json"
schema = "at TIMESTAMP, press BIGINT"
event_time = "value.at"
watermark = "10 seconds"

[source.rooms]
keyexpr = "myhouse/rooms/*"
format = "json"
schema = "use STRING"
as_of = "{as_of}"

[step.silver]
sql = '''
SELECT split(l.key, '/')[2] AS floor, split(l.key, '/')[4] AS room, r.value.use AS use, l.value.n AS n,
       l.value.brightness AS brightness, l.event_time AS event_time
FROM lights l LEFT JOIN rooms r ON r.key = concat('myhouse/rooms/', split(l.key, '/')[4])
WHERE l.value.brightness BETWEEN 0 AND 100
'''

[step.minutes]
sql = '''
SELECT floor, use, window.start AS start, window.end AS end, count(*) AS reports, sum(brightness) AS brightness,
       max(brightness) AS most
FROM silver GROUP BY window(event_time, '1 minute'), floor, use
'''

[step.answered]
sql = '''
SELECT s.value.press AS press, l.value.n AS n, s.event_time AS pressed, l.event_time AS lit
FROM switches s JOIN lights l
  ON split(s.key, '/')[2] = split(l.key, '/')[2] AND split(s.key, '/')[4] = split(l.key, '/')[4]
 AND l.event_time BETWEEN s.event_time AND s.event_time + INTERVAL 5 SECONDS
'''

[step.alerts]
sql = '''
SELECT concat('alerts/', value.n) AS key, value.brightness AS brightness FROM lights WHERE value.brightness > 100
'''

[table.bronze]
from = "lights"
path = "tables/bronze"
expect = [
  {{ name = "readable", check = "value IS NOT NULL" }},
  {{ name = "known brightness", check = "value.brightness BETWEEN 0 AND 100" }},
  {{ name = "not a test", check = "value.n >= 0", otherwise = "drop" }},
]

[table.gold]
from = "minutes"
path = "tables/gold"
partition_by = ["floor"]
retention = "7 days"

[table.answers]
from = "answered"
path = "tables/answers"

[publish.alerts_back]
from = "alerts"
format = "json"
"""


class Sample(NamedTuple):
    """A put of the house: its key and payload, and the second of the hour at which it arrives."""

    arrives: float
    key: str
    payload: str


def rooms(count: int) -> list[Sample]:
    """What is known of the rooms before the hour; of every fifth nothing."""
    uses = ("office", "kitchen", "hall")
    return [
        Sample(0.0, f"myhouse/rooms/r{room}", json.dumps({"use": uses[room % 3]})) for room in range(count) if room % 5
    ]


def simulated(count: int, seconds: int, seed: int) -> list[Sample]:
    """The hour, in the order of arrival."""
    chance = random.Random(seed)
    found = []
    n = press = 0
    for second in range(0, seconds, 10):
        for room in range(count):
            key = f"myhouse/floor/{room % 4}/room/r{room}"
            at = second + chance.randrange(10_000) / 1000
            value: dict[str, Any] = {"at": _iso(at), "n": n, "brightness": chance.randrange(101)}
            if chance.random() < 0.01:
                value["brightness"] = chance.choice((-1, 101, 255, None))
            if chance.random() < 0.005:
                value["n"] = -1
            payload = json.dumps(value) if chance.random() > 0.005 else "no JSON"
            late = chance.random() * LATE_SECONDS if chance.random() < 0.3 else 0.0
            found.append(Sample(at + late, f"{key}/LightStatus", payload))
            n += 1
            if chance.random() < 0.05:
                pressed = json.dumps({"at": _iso(at - chance.randrange(7000) / 1000), "press": press})
                found.append(Sample(at + chance.random(), f"{key}/Switch", pressed))
                press += 1
    return sorted(found)


def _iso(second: float) -> str:
    return (BEGIN + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def put(session: elea.Session, samples: Sequence[Sample]) -> None:
    """Have them stored, acknowledged."""
    session.put_batch([(one.key, one.payload) for one in samples], "**", timeout=120.0)


# -- the same with pandas ----------------------------------------------------------------------------------------------


def stored(session: elea.Session) -> list[tuple[str, bytes]]:
    """Keys and payloads of the log, in its order."""
    with session.read("myhouse/**") as reading:
        return [
            pair
            for batch in reading
            for pair in zip(batch.column("key").to_pylist(), batch.column("payload").to_pylist(), strict=True)
        ]


def expected(log: Sequence[tuple[str, bytes]]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that tables must have, by the name of the table."""
    import pandas as pd

    parsed = list(_parsed(log))
    lights = pd.DataFrame([one for one in parsed if one["kind"] == "LightStatus"])
    lights["at"] = pd.to_datetime(lights["at"])
    known = {one["room"]: one["use"] for one in parsed if one["kind"] == "rooms"}
    good = lights["brightness"].between(0, 100)
    broken = ~lights["readable"] | ~good
    tests = ~(lights["n"] >= 0)
    found = {
        "bronze": _rows(lights[~broken & ~tests], ["n", "at", "brightness"]),
        "quarantine": sorted(_aside(lights[broken], tests[broken]), key=str),
    }
    silver = lights[good].copy()
    silver["use"] = [known.get(room) for room in silver["room"]]
    silver["start"] = silver["at"].dt.floor("min")
    watermark = lights["at"].max() - pd.Timedelta(seconds=10)
    closed = silver[silver["start"] + pd.Timedelta(minutes=1) <= watermark]
    groups = closed.groupby(["floor", "use", "start"], dropna=False)["brightness"]
    gold = groups.agg(["size", "sum", "max"]).reset_index()
    found["gold"] = _rows(gold, ["floor", "use", "start", "size", "sum", "max"])
    presses = pd.DataFrame([one for one in parsed if one["kind"] == "Switch"])
    presses["at"] = pd.to_datetime(presses["at"])
    both = presses.merge(lights[lights["readable"]], on=["floor", "room"], suffixes=("_s", "_l"))
    inside = (both["at_l"] >= both["at_s"]) & (both["at_l"] <= both["at_s"] + pd.Timedelta(seconds=5))
    found["answers"] = _rows(both[inside], ["press_s", "n_l", "at_s", "at_l"])
    found["alerts"] = _rows(lights[lights["brightness"] > 100], ["n", "brightness"])
    return found


def _aside(lights: Any, tests: Any) -> Iterator[tuple[Any, ...]]:
    """Numbers of the rows that are kept aside, and the rules that each breaks."""
    for n, readable, test in zip(lights["n"], lights["readable"], tests, strict=True):
        rules = {"readable": not readable, "known brightness": True, "not a test": test}
        yield _plain(n), *(name for name, is_broken in rules.items() if is_broken)


def _parsed(log: Sequence[tuple[str, bytes]]) -> Iterator[dict[str, Any]]:
    for key, payload in log:
        parts = key.split("/")
        if parts[1] == "rooms":
            yield {"kind": "rooms", "room": parts[2], "use": json.loads(payload)["use"]}
            continue
        value: dict[str, Any] = {"at": None, "n": None, "brightness": None, "press": None}
        readable = payload.startswith(b"{")
        value |= json.loads(payload) if readable else {}
        yield {"kind": parts[-1], "floor": parts[2], "room": parts[4], "readable": readable, **value}


def _rows(frame: Any, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted((tuple(_plain(value) for value in row) for row in frame[columns].itertuples(index=False)), key=str)


def _plain(value: Any) -> Any:
    if value is None or value != value:
        return None
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if hasattr(value, "item"):
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def tables(place: Path, session: elea.Session) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that tables have, in the same form."""
    from deltalake import DeltaTable

    def read(name: str) -> list[dict[str, Any]]:
        return list(DeltaTable(place / "tables" / name).to_pyarrow_table().to_pylist())

    gold, answer = ("floor", "use", "start", "reports", "brightness", "most"), ("press", "n", "pressed", "lit")
    aside = [(one["value"] and one["value"]["n"], *one["broken_rules"]) for one in read("bronze_quarantine")]
    with session.read("alerts/*") as reading:
        alerts = [
            (int(key.rpartition("/")[2]), json.loads(payload)["brightness"])
            for batch in reading
            for key, payload in zip(batch.column("key").to_pylist(), batch.column("payload").to_pylist(), strict=True)
        ]
    values = [one["value"] for one in read("bronze")]
    return {
        "bronze": sorted([(one["n"], one["at"], one["brightness"]) for one in values], key=str),
        "quarantine": sorted(aside, key=str),
        "gold": sorted([tuple(one[name] for name in gold) for one in read("gold")], key=str),
        "answers": sorted([tuple(one[name] for name in answer) for one in read("answers")], key=str),
        "alerts": sorted(alerts, key=str),
    }


def differences(place: Path, session: elea.Session) -> dict[str, dict[str, int]]:
    """For each table: rows wanted, found, missing, and too many; the last two are to be 0."""
    from collections import Counter

    wanted, found = expected(stored(session)), tables(place, session)
    told = {}
    for name in wanted:
        want, have = Counter(wanted[name]), Counter(found[name])
        told[name] = {
            "wanted": want.total(),
            "found": have.total(),
            "missing": (want - have).total(),
            "extra": (have - want).total(),
        }
    return told
