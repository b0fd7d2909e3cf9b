"""A batch that is read again after a crash: from the same place, held against retention; what is gone is counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import elea
import elea.spark
from elea.spark.options import ReadOptions
from elea.spark.stream import ZenohStreamReader
from elea.store import Record, Retention, open_log
from tests.interop.storing import StoringBroker
from tests.spark.streaming import PATIENCE, Stream, cursors, put, until


def test_a_first_batch_that_fails_comes_again_although_the_log_has_grown(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    """Spark asks for the beginning again, and `latest` is another place by then."""
    put(session, "fleet/x", range(10))
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", startingOffsets="latest", sourceId="mine")
    stream.sink.fail_at = 0
    query = stream.start().start()
    until(lambda: any("mine" in found for found in cursors(session).values()), "the query has begun")
    put(session, "fleet/x", range(10, 15))
    with pytest.raises(Exception, match="the sink fails"):
        query.awaitTermination(PATIENCE)
    stream.sink.fail_at = None
    put(session, "fleet/x", range(15, 20))

    stream.drain()

    assert stream.sink.repeated == 1
    assert stream.sink.numbers == list(range(10, 20))


def test_what_is_trimmed_between_plan_and_tasks_of_a_batch_is_counted_too(
    spark: Any, broker: StoringBroker, tmp_path: Path
) -> None:
    """A driver has planned a batch and died; retention passed the cursor; the tasks of the same batch find it gone."""
    (directory,) = [path for path in (tmp_path / "store").iterdir() if path.name.startswith("all")]
    # Ranges of their own: one is gone as a whole, one in part, the others are whole.
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", minPartitions="4")
    bounds: list[int] = []

    def fail(frame: Any, number: int) -> None:
        raise RuntimeError("the driver dies")

    def append(numbers: range) -> None:
        with open_log(directory, segment_bytes=4096) as log:
            for number in numbers:
                log.append([Record("fleet/x", str(number).encode(), number << 32, b"\1", number)])

    def trim() -> None:
        append(range(200, 210))
        with open_log(directory) as log:
            for name in list(log.cursors()):
                log.drop_cursor(name)
            log.retain(Retention(samples=130), 10**18)
            bounds.append(log.first)

    def start(change: Callable[[], object]) -> None:
        broker.stop()
        change()
        broker.restart()

    remember, stream.sink = stream.sink, fail  # type: ignore[assignment]
    start(lambda: append(range(200)))
    with pytest.raises(Exception, match="the driver dies"):
        stream.drain()
    stream.sink = remember
    start(trim)
    (first,) = bounds
    assert 50 < first < 100

    with pytest.raises(Exception, match=r"(?s)DataLost.*failOnDataLoss=false"):
        stream.drain()
    query = stream.drain(failOnDataLoss="false")

    (place,) = json.loads(query.lastProgress["sources"][0]["endOffset"]).values()
    assert stream.sink.numbers == list(range(first, 210))
    assert place["lost"] == {"trimmed": first}
    assert f"trimmed {first}" in str(elea.spark.progress(query))


def test_a_first_batch_that_is_read_again_is_held_against_retention(
    broker: StoringBroker, session: elea.Session
) -> None:
    """Without Spark: what its driver would do, step by step."""
    schema = StructType([StructField("key", StringType()), StructField("payload", BinaryType())])

    def reader() -> ZenohStreamReader:
        options = {"connect": broker.locator, "path": "**", "startingOffsets": "latest", "sourceId": "mine"}
        return ZenohStreamReader(ReadOptions.parse(options), schema)

    def held() -> list[int]:
        return [found["mine"] for found in cursors(session).values() if "mine" in found]

    put(session, "fleet/x", range(10))
    first = reader()
    start = first.initialOffset()
    put(session, "fleet/x", range(10, 15))
    planned = first.latestOffset(start, ReadAllAvailable())
    put(session, "fleet/x", range(15, 20))

    second = reader()
    other = second.initialOffset()
    pieces = second.partitions(other, planned)
    while_read = held()
    batches = [batch for piece in pieces for batch in second.read(piece)]
    second.commit(planned)
    done = held()
    second.stop()

    assert other != start
    assert sorted(int(one) for batch in batches for one in batch.column("payload").to_pylist()) == [*range(10, 15)]
    assert (while_read, done) == ([10], [15])
