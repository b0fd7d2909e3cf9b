"""`format("zenoh.capture")` in a real Spark: captures of the real eclipse-zenoh, recorded before and just now."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.recording import Recording

zenoh = pytest.importorskip("zenoh")

NAMES = ("REAL_TIME", "INTERACTIVE_HIGH", "INTERACTIVE_LOW", "DATA_HIGH", "DATA", "DATA_LOW", "BACKGROUND")
PRIORITIES = {int(one): one for one in (getattr(zenoh.Priority, name) for name in NAMES)}
RECORDED = Path(__file__).parents[1] / "unit" / "cli" / "recorded"
SAMPLES = 200
ALONE = {"scouting": {"multicast": {"enabled": False}}, "transport": {"shared_memory": {"enabled": False}}}


def test_captures_are_found_split_and_read(spark: Any) -> None:
    reader = spark.read.format("zenoh.capture").schema("key string, message string, direction string, error string")

    frame = reader.option("splitBytes", 4000).load([str(RECORDED / "plain.pcap"), f"{RECORDED}/[cl]*.pcap"])
    puts = frame.where("message = 'PUSH PUT' AND direction = 'accepting' OR error IS NOT NULL")
    rows = puts.groupBy("key").count().collect()

    assert {row["key"]: row["count"] for row in rows} == {"demo/0": 3, "demo/1": 3, "demo/2": 3, "demo/big": 2}
    assert puts.rdd.getNumPartitions() == 8


def test_broken_capture_is_rows_or_the_end_of_the_query(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes((RECORDED / "plain.pcap").read_bytes()[:-9])
    reader = spark.read.format("zenoh.capture")

    errors = reader.load(str(tmp_path)).where("error IS NOT NULL").collect()

    assert [row["error"].split(":")[0] for row in errors] == ["TRUNCATED"]
    with pytest.raises(Exception, match=r"CaptureError: .*cut\.pcap, packet \d+: TRUNCATED"):
        reader.option("mode", "FAILFAST").load(str(tmp_path)).count()


def test_rows_of_a_capture_are_the_samples_that_went(spark: Any, tmp_path: Path) -> None:
    sent = samples(random.Random(5))
    with router(len(sent)) as (port, arrived), Recording(port) as recording, publish(recording.port, sent):
        assert arrived.wait(120)
        recording.write(tmp_path / "live.pcap")

    rows = spark.read.format("zenoh.capture").load(str(tmp_path / "live.pcap")).collect()

    columns = ("key", "kind", "payload", "encoding", "attachment", "priority")
    pushes = [row for row in rows if row["kind"] is not None]
    went = [tuple(plain(row[name]) for name in columns) for row in pushes]
    assert sorted(went, key=repr) == sorted(sent, key=repr)  # priorities overtake each other
    assert [row["error"] for row in rows] == [None] * len(rows)
    assert sum(row["message"] == "FRAGMENT" for row in rows) > 2
    assert json.loads(rows[0]["json"])["whatami"] == "client"
    assert rows[0]["time"].year >= 2026


@pytest.mark.parametrize("page", ["captures.md", "payloads.md"])
def test_examples_of_the_page_run(spark: Any, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    names = {"spark": spark, "captures": str(RECORDED)}

    for block in re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, page, "exec"), names)

    assert ("demo/0" if page == "captures.md" else "[78]") in capsys.readouterr().out


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def samples(chance: random.Random) -> list[tuple[Any, ...]]:
    """What is published: (key, kind, payload, encoding, attachment, priority)."""
    made: list[tuple[Any, ...]] = []
    for number in range(SAMPLES):
        key = f"fleet/{chance.randrange(5)}/{chance.choice(['temp', 'é', 'speed'])}"
        attachment = chance.choice([None, b"", chance.randbytes(9)])
        attachment = attachment or None  # eclipse-zenoh sends an empty one as none
        priority = chance.randrange(1, 8)
        if chance.random() < 0.1:
            made.append((key, "DELETE", None, None, attachment, priority))
            continue
        size = 200_000 if number in (50, 100) else chance.randrange(300)
        encoding = chance.choice(["zenoh/bytes", "application/json", "text/plain;utf-8"])
        made.append((key, "PUT", chance.randbytes(size), encoding, attachment, priority))
    return made


@contextmanager
def router(expected: int) -> Iterator[tuple[int, threading.Event]]:
    """A real router on a free port, and whether as many samples have come to it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    config = {"mode": "router", "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]}, **ALONE}
    arrived: list[object] = []
    enough = threading.Event()

    def count(sample: object) -> None:
        arrived.append(sample)
        if len(arrived) == expected:
            enough.set()

    with zenoh.open(zenoh.Config.from_json5(json.dumps(config))) as session:
        session.declare_subscriber("fleet/**", count)
        yield port, enough


def publish(port: int, sent: list[tuple[Any, ...]]) -> Any:
    """Everything to the router; the session, for what is on its way leaves with it."""
    config = {"mode": "client", "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]}, **ALONE}
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
    for key, kind, payload, encoding, attachment, priority in sent:
        options: dict[str, Any] = {"attachment": attachment, "priority": PRIORITIES[priority]}
        options["congestion_control"] = zenoh.CongestionControl.BLOCK
        if kind == "PUT":
            session.put(key, payload, encoding=zenoh.Encoding(encoding), **options)
        else:
            session.delete(key, **options)
    return session
