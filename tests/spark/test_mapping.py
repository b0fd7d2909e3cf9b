"""Batches for Python: Spark's own until it is known that rows are small, then those that cost it less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from elea.spark.arrowmap import BYTES, ROWS, ArrowMap

RESULT = "rows bigint"
SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


def lengths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"rows": pa.array([batch.num_rows], pa.int64())})


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows <= ROWS:
            raise MemoryError("OutOfMemory, says this test")
        yield pa.record_batch({"rows": pa.array([batch.num_rows], pa.int64())})


def test_small_rows_come_in_small_batches_and_settings_are_as_before(spark: Any) -> None:
    frame = spark.range(0, 12_000, 1, 1)
    default = int(spark.conf.get(SETTING))
    run = ArrowMap()

    first = [row.rows for row in run(frame, lengths, RESULT)]
    run.note(rows=10, octets=1000)
    small = [row.rows for row in run(frame, lengths, RESULT)]
    run.note(rows=1, octets=BYTES)
    large = [row.rows for row in run(frame, lengths, RESULT)]

    assert first == large == [default, 12_000 - default]
    assert small == [ROWS, ROWS, ROWS]
    assert int(spark.conf.get(SETTING)) == default


def test_batch_that_is_too_large_is_done_again_with_limits(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    frame = spark.range(0, 9000, 1, 1)
    run = ArrowMap()
    run.note(rows=10, octets=1000)

    found = [row.rows for row in run(frame, failing, RESULT)]

    assert found == [9000]
    assert "batch done again" in caplog.text


def test_other_errors_are_told(spark: Any) -> None:
    run = ArrowMap()
    run.note(rows=10, octets=1000)

    with pytest.raises(Exception, match="nothing"):
        run(spark.range(1).selectExpr("assert_true(id > 5, 'nothing')"), lengths, RESULT)
