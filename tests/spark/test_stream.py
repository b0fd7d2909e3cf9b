"""`format("zenoh")` as a stream: once and only once, over restarts of everything, and losses that are counted."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zenoh
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from elea.model.errors import SessionError
from elea.spark.options import ReadOptions
from elea.spark.stream import ZenohStreamReader
from elea.store import Record, Retention, open_log
from tests.interop.inbox import free_port
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client
from tests.spark.streaming import Stream, cursors, put, until


def test_a_stream_over_several_logs_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    options = ("--store", str(tmp_path / "store"), "--persist", "a/**", "--persist", "b/**")
    with StoringBroker(*options) as broker, client(broker.locator) as session:
        stream = Stream(spark, broker.locator, tmp_path / "checkpoint", sourceId="mine", maxOffsetsPerTrigger="30")
        put(session, "a/x", range(60))
        put(session, "b/x", range(60, 90))

        stream.sink.fail_at = 1
        with pytest.raises(Exception, match="the sink fails"):
            stream.drain()
        held = cursors(session)
        stream.sink.fail_at = None
        put(session, "a/x", range(90, 100))
        query = stream.drain()

        assert stream.sink.numbers == list(range(100))
        assert stream.sink.repeated == 1
        assert [len(rows) for rows in stream.sink.batches.values()] == [30, 30, 30, 10]
        assert [len({row[0] for row in rows}) for rows in stream.sink.batches.values()][:2] == [2, 2]
        # The batch that failed is still held: what comes before it is done.
        first = {log: found["mine"] for log, found in held.items() if "mine" in found}
        done = {log: sum(row[0] == log for row in stream.sink.batches[0]) for log in first}
        assert first == done
        progress = [one["sources"][0] for one in query.recentProgress if one["numInputRows"]]
        ends = {log: place["next"] for log, place in json.loads(progress[-1]["endOffset"]).items()}
        assert sum(ends.values()) == 100
        assert progress[-1]["latestOffset"] == progress[-1]["endOffset"]


def test_a_stream_outlives_its_broker(spark: Any, broker: StoringBroker, tmp_path: Path) -> None:
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", maxBytesPerTrigger="100000")
    query = stream.start().start()
    try:
        with client(broker.locator) as session:
            put(session, "fleet/x", range(3000))
            until(lambda: len(stream.sink.rows) >= 3000, "rows before the kill")
            broker.kill()
            broker.restart()
            put(session, "fleet/x", range(3000, 3500))
            until(lambda: len(stream.sink.rows) >= 3500 or not query.isActive, "rows after the restart")
    finally:
        query.stop()

    assert stream.sink.numbers == list(range(3500))
    assert query.exception() is None
    assert 1 < len(stream.sink.batches[min(stream.sink.batches)]) < 3000  # about 100,000 octets


def test_what_is_lost_stops_the_query_or_is_counted(spark: Any, broker: StoringBroker, tmp_path: Path) -> None:
    (directory,) = [path for path in (tmp_path / "store").iterdir() if path.name.startswith("all")]
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint")

    def start(change: Callable[[], object]) -> None:
        """Do something to the files while the broker is down."""
        broker.stop()
        change()
        broker.restart()

    def lost() -> dict[str, int]:
        """Read on without what is lost, after the query has refused to; what has been counted since it began."""
        with pytest.raises(Exception, match=r"(?s)DataLost.*failOnDataLoss=false"):
            stream.drain()
        query = stream.drain(failOnDataLoss="false")
        ends = [json.loads(one["sources"][0]["endOffset"]) for one in query.recentProgress]
        (place,) = ends[-1].values()
        return place.get("lost", {})  # type: ignore[no-any-return]

    def trim() -> None:
        with open_log(directory, segment_bytes=4096) as log:
            for name in list(log.cursors()):
                log.drop_cursor(name)
            for number in range(10, 60):
                log.append([Record("fleet/x", str(number).encode(), number << 32, b"\1", number)])
            log.retain(Retention(samples=10), 10**18)
            trimmed.append(log.first - 10)

    def damage() -> None:
        with open_log(directory) as log:
            log.append([Record("fleet/x", b"1000", 1 << 32, b"\1", 0)])
            log.append([Record("fleet/x", b"1001", 1 << 32, b"\1", 0)])
        (segment,) = [path for path in directory.glob("*.arrows") if b"1000" in path.read_bytes()]
        data = bytearray(segment.read_bytes())
        data[data.index(b"1000")] ^= 0xFF
        segment.write_bytes(data)

    trimmed: list[int] = []
    with client(broker.locator) as session:
        put(session, "fleet/x", range(10))
        stream.drain()
        start(trim)
        assert trimmed[0] > 0
        assert lost() == {"trimmed": trimmed[0]}
        assert stream.sink.numbers == [*range(10), *range(10 + trimmed[0], 60)]

        start(damage)
        assert lost() == {"trimmed": trimmed[0], "damaged": 1}
        assert stream.sink.numbers == [*range(10), *range(10 + trimmed[0], 60), 1001]

        start(lambda: shutil.rmtree(directory))
        put(session, "fleet/x", range(2000, 2003))
        assert lost() == {"trimmed": trimmed[0], "damaged": 1, "replaced": 1}
        assert stream.sink.numbers == [*range(10), *range(10 + trimmed[0], 60), 1001, *range(2000, 2003)]


def test_a_log_that_appears_later_is_read_and_a_silent_broker_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Spark: what its driver would do, step by step."""
    monkeypatch.setattr("elea.spark.stream.FIND_SECONDS", 0.0)
    schema = StructType([StructField("key", StringType()), StructField("payload", BinaryType())])

    def reader(broker: StoringBroker, timeout: str) -> ZenohStreamReader:
        options = {"connect": broker.locator, "path": "**", "startingOffsets": "latest", "requestTimeoutMs": timeout}
        return ZenohStreamReader(ReadOptions.parse(options), schema)

    options = ("--store", str(tmp_path / "store"), "--persist", "a/**")
    with StoringBroker(*options) as broker, client(broker.locator) as session:
        put(session, "a/x", range(3))
        stream = reader(broker, "60000")
        start = stream.initialOffset()
        broker.stop()
        broker.restart("--persist", "b/**")
        put(session, "a/x", range(3, 5))
        put(session, "b/x", range(5, 9))
        until(lambda: len(stream.latestOffset(start, ReadAllAvailable())) == 2, "the new log is found")
        end = stream.latestOffset(start, ReadAllAvailable())

        batches = [batch for piece in stream.partitions(start, end) for batch in stream.read(piece)]

        assert sorted(int(one) for batch in batches for one in batch.column("payload").to_pylist()) == [*range(3, 9)]
        impatient = reader(broker, "1500")
        impatient.initialOffset()
        broker.running.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(SessionError, match=r"has not answered for 1500 ms; .*goes on from its checkpoint"):
                impatient.latestOffset(end, ReadAllAvailable())
        finally:
            broker.running.process.send_signal(signal.SIGCONT)
        impatient.stop()


def test_a_plain_router_is_read_through_a_spool(spark: Any, tmp_path: Path) -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    config = zenoh.Config()
    for path, value in {"mode": "router", "listen/endpoints": [locator], "scouting/multicast/enabled": False}.items():
        config.insert_json5(path, json.dumps(value))
    options = {"ingest": "spool", "spoolDir": str(tmp_path / "spool")}
    stream = Stream(spark, locator, tmp_path / "checkpoint", "fleet/**", **options)

    def rows(key: str) -> list[int]:
        return sorted(int(row[3]) for row in stream.sink.rows if row[2] == key)

    def put_while_it_runs(router: Any, numbers: range, probe: str) -> None:
        query = stream.start().start()

        def is_there(key: str, count: int) -> bool:
            if not rows(probe):
                router.put(probe, "0")
                time.sleep(0.1)
            return len(rows(key)) >= count or not query.isActive

        try:
            until(lambda: is_there(probe, 1), "the spool is subscribed")
            for number in numbers:
                router.put("fleet/x", str(number))
            until(lambda: is_there("fleet/x", numbers.stop), "rows")
            assert query.exception() is None
        finally:
            query.stop()

    with zenoh.open(config) as router:
        put_while_it_runs(router, range(100), "fleet/probe/1")
        put_while_it_runs(router, range(100, 200), "fleet/probe/2")

    assert rows("fleet/x") == list(range(200))
