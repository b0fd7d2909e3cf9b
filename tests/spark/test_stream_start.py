"""`startingTimestamp` finds the first position of a stream, and says nothing about what comes behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import elea
from tests.interop.storing import StoringBroker
from tests.spark.streaming import Stream


def put_at(session: elea.Session, numbers: range, at: datetime) -> None:
    """Numbers whose stamps say when they were made, not when they came."""
    for number in numbers:
        stamp = elea.Timestamp(at + timedelta(milliseconds=number), b"\x07")
        session.put("fleet/x", str(number), timestamp=stamp, ack=True, timeout=60)


def test_samples_with_older_stamps_are_read_behind_the_first_position(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    old = start - timedelta(days=3)
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", startingTimestamp=start.isoformat())
    put_at(session, range(5), old)
    put_at(session, range(5, 8), start)
    put_at(session, range(8, 10), old)  # in the first batch, behind its first position

    stream.drain()
    put_at(session, range(10, 15), old)
    put_at(session, range(15, 17), start)
    stream.drain()

    assert stream.sink.numbers == list(range(5, 17))


def test_everything_of_a_stop_longer_than_the_start_reaches_back_is_read(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    """`now(-…)` is another time when the query is started again; the checkpoint is not."""
    stream = Stream(spark, broker.locator, tmp_path / "checkpoint", startingTimestamp="now(-1h)")
    now = datetime.now(UTC)
    put_at(session, range(3), now - timedelta(hours=2))
    put_at(session, range(3, 6), now)

    stream.drain()
    put_at(session, range(6, 9), now)  # they come while nobody reads
    stream.drain(startingTimestamp="now(1h)")  # as if hours had passed

    assert stream.sink.numbers == list(range(3, 9))
