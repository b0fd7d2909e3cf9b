"""A broker that is away, or just back: nobody reads less because of it, and nothing counts as lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import elea.spark
from elea.model.errors import BrokerAway, DataLost
from elea.spark.batch import ZenohBatchReader
from elea.spark.options import ReadOptions
from elea.spark.sessions import close_all
from elea.spark.stream import ZenohStreamReader
from tests.interop.storing import StoringBroker
from tests.spark.conftest import client
from tests.spark.streaming import Stream, put, until

SCHEMA = StructType([StructField("key", StringType()), StructField("payload", BinaryType())])


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[StoringBroker, StoringBroker]]:
    """Two brokers, each with a log of its own and a hundred keys in it."""
    with (
        StoringBroker("--store", str(tmp_path / "a"), "--persist", "fleet/a/**") as a,
        StoringBroker("--store", str(tmp_path / "b"), "--persist", "fleet/b/**") as b,
    ):
        for name, broker in (("a", a), ("b", b)):
            with client(broker.locator) as session:
                session.put_batch([(f"fleet/{name}/{n}", str(n)) for n in range(100)], timeout=60)
        yield a, b
        close_all()


def options_of(*brokers: StoringBroker, **more: str) -> ReadOptions:
    locators = ",".join(broker.locator for broker in brokers)
    return ReadOptions.parse({"connect": locators, "path": "fleet/**", "zenoh.mode": "peer", **more})


def count(options: ReadOptions) -> int:
    """What a job does: plan, and read in this process, which keeps its session as a worker of Spark does."""
    reader = ZenohBatchReader(options, SCHEMA)
    return sum(batch.num_rows for piece in reader.partitions() for batch in reader.read(piece))


@contextmanager
def back_in(broker: StoringBroker, seconds: float) -> Iterator[None]:
    """A broker that was killed is back after some time."""
    timer = threading.Timer(seconds, broker.restart)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.mark.parametrize("more", [{"mode": "query"}, {"asOf": "now()"}, {}], ids=["query", "as-of", "log"])
def test_batch_waits_for_a_broker_that_is_away(
    two: tuple[StoringBroker, StoringBroker], more: dict[str, str]
) -> None:  # fmt: skip
    options = options_of(*two, **more)
    assert count(options) == 200
    two[1].kill()

    with back_in(two[1], 1.5):
        found = count(options)

    assert found == 200


@pytest.mark.parametrize("more", [{"mode": "query"}, {"asOf": "now()"}, {}], ids=["query", "as-of", "log"])
def test_batch_names_the_broker_that_does_not_come_back(
    two: tuple[StoringBroker, StoringBroker], more: dict[str, str]
) -> None:
    assert count(options_of(*two, **more)) == 200  # patiently: a loaded machine takes its time
    two[1].kill()

    with pytest.raises(BrokerAway, match=r"away for \d+ s: broker .*requestTimeoutMs=1500.*nothing is lost") as caught:
        count(options_of(*two, requestTimeoutMs="1500", **more))

    assert caught.value.locators == (two[1].locator,)


def test_get_of_a_client_waits_for_its_only_broker(two: tuple[StoringBroker, StoringBroker]) -> None:
    options = ReadOptions.parse({"connect": two[0].locator, "path": "fleet/**", "mode": "query"})
    assert count(options) == 100
    two[0].kill()

    with back_in(two[0], 1.5):
        found = count(options)

    assert found == 100


def test_brokers_that_restart_all_the_time_take_no_row_from_a_get(two: tuple[StoringBroker, StoringBroker]) -> None:
    options = options_of(*two, asOf="now()")
    assert count(options) == 200

    def trouble() -> None:
        for _ in range(4):
            time.sleep(0.3)
            two[1].stop()  # in order: it must not say on its way out that there is nothing
            two[1].restart()

    thread = threading.Thread(target=trouble)
    thread.start()
    found = set()
    while thread.is_alive():
        found.add(count(options))
    thread.join()

    assert found == {200}


def test_stream_reads_on_while_one_of_two_brokers_is_away(two: tuple[StoringBroker, StoringBroker]) -> None:
    """Without Spark: what its driver would do, step by step."""
    a, b = two
    stream = ZenohStreamReader(options_of(a, b, startingOffsets="latest"), SCHEMA)
    start = stream.initialOffset()
    b.kill()
    with client(a.locator) as session:
        put(session, "fleet/a/x", range(3))

    until(lambda: stream.latestOffset(start, ReadAllAvailable()) != start, "the other log goes on")
    end = stream.latestOffset(start, ReadAllAvailable())
    time.sleep(1.1)
    stream.latestOffset(end, ReadAllAvailable())
    told = stream.reportLatestOffset()
    b.restart()
    with client(b.locator) as session:
        put(session, "fleet/b/x", range(5))
    until(lambda: stream.latestOffset(end, ReadAllAvailable()) != end, "the log is back")
    last = stream.latestOffset(end, ReadAllAvailable())
    stream.stop()

    log_a, log_b = sorted(start)  # fleet-a-…, fleet-b-…
    assert end[log_a]["next"] - start[log_a]["next"] == 3
    assert end[log_b]["next"] == start[log_b]["next"]
    assert told[log_b]["away"] >= 1
    assert "away" not in told[log_a]
    assert last[log_b]["next"] - start[log_b]["next"] == 5
    assert "lost" not in json.dumps(last)


def test_stream_gives_up_in_the_end_and_says_who_is_away(two: tuple[StoringBroker, StoringBroker]) -> None:
    stream = ZenohStreamReader(options_of(*two, startingOffsets="latest"), SCHEMA)
    start = stream.initialOffset()
    stream._logs._brokers._limit_ms = 1500  # from here on: what was before may take its time on a loaded machine
    two[1].kill()
    began = time.monotonic()

    def has_moved() -> bool:
        return stream.latestOffset(start, ReadAllAvailable()) != start

    with pytest.raises(BrokerAway) as caught:
        until(has_moved, "it gives up")
    stream.stop()

    assert caught.value.locators == (two[1].locator,)
    assert time.monotonic() - began >= 1.5


def test_run_to_the_end_does_not_end_without_a_broker_that_is_away(two: tuple[StoringBroker, StoringBroker]) -> None:
    stream = ZenohStreamReader(options_of(*two, startingOffsets="earliest"), SCHEMA)
    start = stream.initialOffset()
    two[1].kill()

    with back_in(two[1], 1.5):
        stream.prepareForTriggerAvailableNow()
        end = stream.latestOffset(start, ReadAllAvailable())
    stream.stop()

    assert sum(place["next"] for place in end.values()) == 200


def test_log_that_its_broker_has_no_more_is_lost_all_the_same(
    two: tuple[StoringBroker, StoringBroker], tmp_path: Path
) -> None:
    a, b = two
    stream = ZenohStreamReader(options_of(a, b, startingOffsets="latest"), SCHEMA)
    start = stream.initialOffset()
    b.stop()
    b._options = ("--store", str(tmp_path / "c"), "--persist", "other/**")
    b.restart()

    with pytest.raises(DataLost, match="no broker offers it any more"):
        until(lambda: stream.latestOffset(start, ReadAllAvailable()) != start, "the loss is found")
    stream.stop()


def test_query_outlives_the_restart_of_one_of_two_brokers_and_says_so(
    spark: Any, two: tuple[StoringBroker, StoringBroker], tmp_path: Path
) -> None:
    a, b = two
    locators = f"{a.locator},{b.locator}"
    stream = Stream(spark, locators, tmp_path / "checkpoint", "fleet/**", **{"zenoh.mode": "peer"})
    query = stream.start().start()
    try:
        until(lambda: len(stream.sink.rows) == 200, "rows before the kill")
        b.kill()
        until(lambda: "away for" in str(elea.spark.progress(query)) or not query.isActive, "the progress says so")
        with client(a.locator) as session:
            put(session, "fleet/a/x", range(3))
        until(lambda: len(stream.sink.rows) == 203 or not query.isActive, "rows of the other broker meanwhile")
        b.restart()
        with client(b.locator) as session:
            put(session, "fleet/b/x", range(5))
        until(lambda: len(stream.sink.rows) == 208 or not query.isActive, "rows after the restart")
    finally:
        query.stop()

    assert query.exception() is None
    assert len(stream.sink.rows) == 208
