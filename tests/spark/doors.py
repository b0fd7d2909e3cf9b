"""The same predicates through every door: `python -m tests.spark.doors` prints a table of doors and predicates.

Samples of all kinds (JSON, CBOR, CDR of a type that the data space declares, text, what nobody can read, deletions)
lie in a broker and are put live as well. Each door is asked for those for which a predicate holds. An answer that is
not what the oracle, written by hand, expects makes the program fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cbor2

import elea
from elea.content.registry import type_key
from elea.content.schema import parse_idl
from tests.cdr import write
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client
from tests.unit.api.stores import config
from tests.unit.node.early.client import EarlyClient

__all__ = ["DOORS", "PREDICATES", "Doors", "answers", "expected"]

Row = dict[str, Any]
BLOCK: Final[dict[str, Any]] = {"congestion_control": elea.CongestionControl.BLOCK}
JSON: Final = "application/json"
CBOR: Final = "application/cbor"
CDR: Final = "application/cdr;demo::Door"
IDL: Final = """module demo { enum Mode { OFF, ON, AUTO }; struct Pos { double x; double y; };
    @final struct Door { long n; long speed; string name; Mode mode; Pos pos; }; };"""


def contents() -> list[Row]:
    """What is put: number, encoding, payload (None deletes) and, for the oracle, content (None if it has none)."""
    rows: list[Row] = []
    for number in range(40):
        content: Row = {"n": number, "speed": number % 9 - 2, "name": ["ann", "bob", "a_c", "Ann's", None][number % 5]}
        if number % 3:
            content["pos"] = {"x": number / 4, "y": None if number % 4 == 0 else 1.0}
        if number % 4:
            content["hist"] = [number % 5, number % 7][: number % 3]
        if number % 2:
            content["on"] = number % 6 == 1
        is_json = number % 4 != 3
        payload = json.dumps(content).encode() if is_json else cbor2.dumps(content)
        rows.append({"encoding": JSON if is_json else CBOR, "payload": payload, "content": content})
    door = parse_idl(IDL)["demo::Door"]
    for number in range(8):
        content = {
            "n": number,
            "speed": number - 3,
            "name": "cdr",
            "mode": number % 3,
            "pos": {"x": number / 2, "y": 1.0},
        }
        payload = write(door, content, version=1 + number % 2, little=number % 3 > 0)
        content["mode"] = ["OFF", "ON", "AUTO"][number % 3]
        rows.append({"encoding": CDR, "payload": payload, "content": content})
    rows.append({"encoding": CDR, "payload": b"\0\1\0\0\1", "content": None})
    rows.append({"encoding": "", "payload": b"21.5", "content": {"value": 21.5}})
    rows.append({"encoding": "text/plain", "payload": b"21.5", "content": {"value": "21.5"}})
    rows.append({"encoding": JSON, "payload": b"[1, 2]", "content": {"value": [1, 2]}})
    rows += [{"encoding": JSON, "payload": payload, "content": None} for payload in (b"{", b"\xff\xfe", b"")]
    rows.append({"encoding": "image/png", "payload": b"{}", "content": None})
    rows += [{"encoding": "", "payload": None, "content": None} for _ in range(3)]
    return [{**row, "key": f"doors/{number % 2}/{number:02}"} for number, row in enumerate(rows)]


def _is(row: Row, name: str, test: Callable[[Any], bool]) -> bool:
    """Whether a field is there, of a type that can be compared, and as wanted."""
    found = None if row["content"] is None else row["content"].get(name)
    try:
        return found is not None and test(found)
    except TypeError:
        return False


def _x(row: Row) -> Any:
    return ((row["content"] or {}).get("pos") or {}).get("x")


def _number(row: Row, place: int) -> Any:
    hist = (row["content"] or {}).get("hist") or []
    return hist[place] if place < len(hist) else None


PREDICATES: Final[dict[str, Callable[[Row], bool]]] = {
    "speed > 2": lambda row: _is(row, "speed", lambda speed: speed > 2),
    "NOT speed > 2": lambda row: _is(row, "speed", lambda speed: speed <= 2),
    "speed BETWEEN 0 AND 2.5": lambda row: _is(row, "speed", lambda speed: 0 <= speed <= 2.5),
    "speed IN (1, 2.0, 'x')": lambda row: _is(row, "speed", lambda speed: speed in (1, 2)),
    "name LIKE 'a%'": lambda row: _is(row, "name", lambda name: name.startswith("a")),
    "name LIKE 'a_c' OR name = 'Ann''s'": lambda row: _is(row, "name", lambda name: name in ("a_c", "Ann's")),
    "name MATCH '[aA]nn*,b?b'": lambda row: _is(row, "name", lambda name: name in ("ann", "Ann's", "bob")),
    "name IS NULL": lambda row: row["content"] is not None and row["content"].get("name") is None,
    "name IS NOT NULL AND speed <> 0": lambda row: _is(row, "name", bool) and _is(row, "speed", lambda s: s != 0),
    "on = TRUE": lambda row: _is(row, "on", lambda on: on is True),
    "pos.x >= 5": lambda row: _x(row) is not None and _x(row) >= 5,
    "pos.y = 1 AND NOT (pos.x < 5)": lambda row: (
        _x(row) is not None and _x(row) >= 5 and row["content"]["pos"]["y"] == 1
    ),
    "hist[1] = 3": lambda row: _number(row, 1) == 3,
    "distance(hist, [1, 1]) <= 2": lambda row: (
        _number(row, 1) is not None and (_number(row, 0) - 1) ** 2 + (_number(row, 1) - 1) ** 2 <= 4
    ),
    "kind = 'DELETE' OR speed = 6": lambda row: row["payload"] is None or _is(row, "speed", lambda speed: speed == 6),
    "key LIKE 'doors/1/%' AND speed < 0": lambda row: (
        row["key"].startswith("doors/1/") and _is(row, "speed", lambda speed: speed < 0)
    ),
    "mode = 'ON' OR mode > 1 AND pos.x > 2 OR pos.x = 1.5": lambda row: (
        _is(row, "mode", lambda mode: mode == "ON" or (mode == "AUTO" and _x(row) > 2)) or _x(row) == 1.5
    ),
    "encoding = 'application/cbor'": lambda row: row["encoding"] == CBOR,
    "value = 21.5 OR value = '21.5'": lambda row: _is(row, "value", lambda value: value in (21.5, "21.5")),
    "timestamp > '2020-01-01T00:00:00Z' AND kind = 'PUT' AND sample.size < 6": lambda row: (
        row["payload"] is not None and len(row["payload"]) < 6
    ),
    "n > 10 AND (speed = 1 OR name = 'bob') AND nosuch IS NULL": lambda row: (
        _is(row, "n", lambda n: n > 10)
        and (_is(row, "speed", lambda speed: speed == 1) or _is(row, "name", lambda name: name == "bob"))
    ),
}


def expected(text: str, door: str = "") -> list[str]:
    """The keys that an oracle chooses; deletions do not travel in the early dialects."""
    rows = [row for row in contents() if row["payload"] is not None or door != "selection"]
    return sorted(row["key"] for row in rows if PREDICATES[text](row))


class Doors:
    """A broker with the samples, and the ways to ask it."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._directory = tempfile.TemporaryDirectory()
        self._broker = StoringBroker("--store", self._directory.name, "--persist", "doors/**")
        self._session = client(self._broker.locator)
        self._runs = 0
        self.put()

    def close(self) -> None:
        self._session.close()
        self._broker.stop()
        self._directory.cleanup()

    def put(self) -> None:
        """Put everything, and wait until it is safe."""
        self._session.put(type_key(CDR), IDL, durability="persistent", ack=True)
        for row in contents():
            if row["payload"] is None:
                self._session.delete(row["key"], ack=True)
            else:
                self._session.put(row["key"], row["payload"], encoding=row["encoding"] or None, ack=True)

    @staticmethod
    def _publish(robot: elea.Session, rows: list[Row]) -> None:
        # With a timestamp: routers stamp puts only, and early sessions have none.
        for row in rows:
            stamp = robot.new_timestamp()
            if row["payload"] is None:
                robot.delete(row["key"], timestamp=stamp, **BLOCK)
            else:
                robot.put(row["key"], row["payload"], encoding=row["encoding"] or None, timestamp=stamp, **BLOCK)

    def subscriber(self, texts: list[str]) -> list[list[str]]:
        """Live samples: published again, by another session, to a subscriber for each predicate."""
        found: list[list[str]] = [[] for _ in texts]
        last = threading.Event()
        with client(self._broker.locator) as robot, client(self._broker.locator) as desk:
            for text, keys in zip(texts, found, strict=True):
                desk.declare_subscriber("live/**", _collector(keys), where=text.replace("doors/", "live/"))
            desk.declare_subscriber("last", lambda sample: last.set())
            publisher = robot.declare_publisher("last", **BLOCK)
            while not publisher.matching_status.matching:
                last.wait(0.05)
            self._publish(robot, [{**row, "key": row["key"].replace("doors/", "live/")} for row in contents()])
            publisher.put("")
            assert last.wait(30)
        return [sorted(key.replace("live/", "doors/") for key in keys) for keys in found]

    def get(self, text: str) -> list[str]:
        """A get of history."""
        replies = self._session.get(
            "doors/**?_history", where=text, consolidation=elea.ConsolidationMode.NONE, timeout=30
        )
        return sorted(str(reply.ok.key_expr) for reply in replies)

    def history(self, text: str) -> list[str]:
        """What a subscriber with history pulls."""
        with self._session.declare_subscriber("doors/**", mode=elea.Pull(), since=0, where=text) as subscriber:
            return sorted(str(sample.key_expr) for sample in subscriber.pull())

    def selection(self, texts: list[str]) -> list[list[str]]:
        """Devices of the 2018 dialect, each with a selection, at a broker that speaks both."""
        found: list[list[str]] = []
        listening = ["tcp/127.0.0.1:0", "tcp/127.0.0.1:0?dialect=zenoh2018"]
        with elea.open(config("router", listen__endpoints=listening)) as router:
            links = router._runtime.links
            (early,), (modern,) = links.locators("zenoh2018"), links.locators("zenoh1")
            self._declare(router, modern)
            for text in texts:
                with EarlyClient(early, f"d{len(found)}".encode()) as device, client(modern) as robot:
                    selection = device.m.SelectionDecl(1, f"zenoh://doors/**?{{{text}}}".encode())
                    assert (device.declare(selection), device.subscribe(1)) == (0, 0)
                    assert device.subscribe(2, "zenoh://last") == 0
                    self._publish(robot, contents())
                    robot.put("last", b"last", **BLOCK)
                    device.until(lambda device=device: b"last" in device.payloads())
                    names = [one.resource.decode() for one in device.seen if getattr(one, "resource", None)]
                    found.append(sorted(name.removeprefix("zenoh://") for name in names))
        return found

    @staticmethod
    def _declare(router: elea.Session, locator: str) -> None:
        """Let a router without a store know the type: it is told as long as it asks for it."""
        schemas, waiting = router._node.schemas, threading.Event()
        schemas.begin()
        with client(locator) as robot:
            while schemas.registry.struct(elea.Encoding(CDR).id, elea.Encoding(CDR).schema) is None:
                robot.put(type_key(CDR), IDL, **BLOCK)
                waiting.wait(0.05)

    def batch(self, text: str) -> list[str]:
        """`spark.read`."""
        frame = self._spark.read.format("zenoh").option("connect", self._broker.locator).option("predicate", text)
        return sorted(row.key for row in frame.load("doors/**").select("key").collect())

    def stream(self, text: str) -> list[str]:
        """`spark.readStream`, to its present end."""
        self._runs += 1
        name = f"doors_{self._runs}"
        frame = self._spark.readStream.format("zenoh").option("connect", self._broker.locator)
        frame = frame.option("predicate", text).option("startingOffsets", "earliest").load("doors/**").select("key")
        place = Path(self._directory.name) / f"checkpoint-{name}"
        query = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", str(place))
        query.trigger(availableNow=True).start().awaitTermination()
        return sorted(row.key for row in self._spark.table(name).collect())

    def command(self, text: str) -> list[str]:
        """`elea get --where`."""
        words = ["get", "doors/**?_history", "--consolidation", "none", "--json", "--where", text]
        done = subprocess.run(
            [sys.executable, "-m", "elea", *words, "-e", self._broker.locator, "--no-multicast-scouting"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return sorted(json.loads(line)["key"] for line in done.stdout.splitlines())


def _collector(keys: list[str]) -> Callable[[elea.Sample], None]:
    return lambda sample: keys.append(str(sample.key_expr))


DOORS: Final = ("subscriber", "selection", "get", "history", "stream", "batch", "command")


def answers(doors: Doors, texts: list[str]) -> dict[str, list[list[str]]]:
    """What each door brings for each predicate."""
    found = {"subscriber": doors.subscriber(texts), "selection": doors.selection(texts)}
    for name in DOORS[2:]:
        ask: Callable[[str], list[str]] = getattr(doors, name)
        found[name] = [ask(text) for text in texts]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    import elea.spark

    texts = list(PREDICATES)
    doors = Doors(elea.spark.session("doors", master="local[2]"))
    try:
        found = answers(doors, texts)
    finally:
        doors.close()
    width = max(map(len, texts))
    print(f"{'predicate':<{width}} rows  {'  '.join(door.ljust(4) for door in DOORS)}")
    differing = 0
    for at, text in enumerate(texts):
        wanted = expected(text)
        marks = []
        for door in DOORS:
            is_same = found[door][at] == expected(text, door)
            differing += not is_same
            marks.append(("same" if is_same else str(len(found[door][at]))).ljust(max(4, len(door))))
        print(f"{text:<{width}} {len(wanted):>4}  {'  '.join(marks)}")
    print(f"{len(texts)} predicates x {len(DOORS)} doors on {len(contents())} samples: {differing} answers differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
