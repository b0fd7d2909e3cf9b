"""The cursors of streams: each checkpoint has one of its own, which lies where everything before is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import elea
from elea.spark.options import ReadOptions
from elea.spark.sessions import close_all
from elea.spark.stream import ZenohStreamReader
from tests.interop.storing import StoringBroker
from tests.spark.streaming import Stream, cursors, put

SCHEMA = StructType([StructField("key", StringType()), StructField("payload", BinaryType())])


def positions(session: elea.Session) -> list[int]:
    return sorted(position for found in cursors(session).values() for position in found.values())


def reader(broker: StoringBroker, **more: str) -> ZenohStreamReader:
    options = {"connect": broker.locator, "path": "**", "startingOffsets": "earliest", **more}
    return ZenohStreamReader(ReadOptions.parse(options), SCHEMA)


def test_two_queries_with_the_same_options_do_not_move_each_others_cursor(
    broker: StoringBroker, session: elea.Session
) -> None:
    """Without Spark: what its drivers would do, step by step."""
    put(session, "fleet/x", range(10))
    fast, slow = reader(broker), reader(broker)
    begin, other = fast.initialOffset(), slow.initialOffset()
    before_any_batch = positions(session)
    end = fast.latestOffset(begin, ReadAllAvailable())
    some = slow.latestOffset(other, ReadMaxRows(3))
    fast.partitions(begin, end)
    slow.partitions(other, some)
    while_read = positions(session)
    fast.latestOffset(end, ReadAllAvailable())
    fast_done = positions(session)
    slow.latestOffset(some, ReadMaxRows(3))

    assert before_any_batch == []  # a query that ends here leaves nothing behind
    assert while_read == [0, 0]
    assert fast_done == [0, 10]
    assert positions(session) == [3, 10]

    put(session, "fleet/x", range(10, 15))
    again = reader(broker)  # from the checkpoint of the first
    last = again.latestOffset(end, ReadAllAvailable())
    again.partitions(end, last)
    again.latestOffset(last, ReadAllAvailable())
    assert positions(session) == [3, 15]
    close_all()


def test_first_batch_that_is_read_again_has_the_cursor_of_its_checkpoint(
    broker: StoringBroker, session: elea.Session
) -> None:
    put(session, "fleet/x", range(10))
    first = reader(broker)
    planned = first.latestOffset(first.initialOffset(), ReadAllAvailable())
    first.partitions(first.initialOffset(), planned)

    second = reader(broker)
    second.partitions(second.initialOffset(), planned)  # Spark asks for the beginning once more
    second.latestOffset(planned, ReadAllAvailable())

    assert positions(session) == [10]
    close_all()


def test_checkpoint_from_before_names_goes_on_under_the_name_of_its_options(
    broker: StoringBroker, session: elea.Session
) -> None:
    put(session, "fleet/x", range(10))
    stream = reader(broker)
    offset = {log: {"epoch": one["epoch"], "next": 4} for log, one in stream.initialOffset().items()}

    end = reader(broker).latestOffset(offset, ReadAllAvailable())

    (found,) = [found for found in cursors(session).values() if found]
    assert found == {ReadOptions.parse({"connect": broker.locator, "path": "**"}).cursor: 4}
    assert "cursor" not in str(end)
    close_all()


def test_offset_that_was_copied_does_not_copy_the_cursor(broker: StoringBroker, session: elea.Session) -> None:
    put(session, "fleet/x", range(10))
    first = reader(broker).initialOffset()
    (log,) = first

    second = reader(broker, startingOffsets=json.dumps(first)).initialOffset()

    assert second[log]["next"] == first[log]["next"]
    assert second[log]["cursor"] != first[log]["cursor"]
    close_all()


def test_query_that_begins_tells_which_cursors_hold_the_log(
    broker: StoringBroker, session: elea.Session, caplog: pytest.LogCaptureFixture
) -> None:
    put(session, "fleet/x", range(10))
    first = reader(broker)
    begin = first.initialOffset()
    first.partitions(begin, first.latestOffset(begin, ReadAllAvailable()))

    reader(broker).initialOffset()

    (said,) = [one.getMessage() for one in caplog.records if "retention is held" in one.getMessage()]
    (found,) = [found for found in cursors(session).values() if found]
    assert str(found) in said
    close_all()


def test_cursor_lies_where_a_run_to_the_end_has_ended(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    put(session, "fleet/x", range(10))
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", maxOffsetsPerTrigger="4")

    stream.drain()
    first = positions(session)
    put(session, "fleet/x", range(10, 12))
    stream.drain()

    assert first == [10]
    assert positions(session) == [12]
    assert stream.sink.numbers == list(range(12))
