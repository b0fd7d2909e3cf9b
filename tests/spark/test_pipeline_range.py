"""Backfills of a range of time: its rows are computed anew, all others stay, and nothing is there twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
from elea.model.errors import ConfigError, PipelineChanged
from elea.spark.pipeline import runner, specreader
from elea.spark.pipeline.rangebackfill import Range
from elea.store import Record, Retention, open_log
from tests.interop.storing import StoringBroker
from tests.spark.clusters import forget_last_commit

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
TO_NTP = 1 << 32

FILE = """
[pipeline]
name = "ranges"
connect = "{locator}"
trigger = "available now"

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "n BIGINT, at TIMESTAMP"
event_time = "value.at"
watermark = "1 second"

[step.scaled]
sql = "SELECT key, value.n * {factor} AS n, timestamp, event_time FROM numbers WHERE value.n >= 0"

[table.scaled]
from = "scaled"
path = "tables/scaled"
partition_by = "key"
expect = [ {{ name = "small", check = "n < 50000" }} ]
"""

OTHERS = """
[step.counted]
sql = "SELECT window.start AS timestamp, count(*) AS n FROM scaled GROUP BY window(event_time, '1 hour')"

[table.counts]
from = "counted"
path = "tables/counts"

[table.raw]
from = "numbers"
path = "tables/raw"
"""


def hours(first: int, last: int, by: str | None = None) -> Range:
    """From one hour of the day to another."""
    begin, end = (BEGIN + timedelta(hours=one) for one in (first, last))
    return Range.parse(begin.isoformat(), end.isoformat(), by)


def record(hour: int, n: int) -> Record:
    """A sample of an hour, which says in its payload that it is of the hour before."""
    at = (BEGIN + timedelta(hours=hour - 1)).isoformat()
    stamp = int((BEGIN + timedelta(hours=hour)).timestamp()) * TO_NTP
    return Record(f"numbers/{n % 2}", json.dumps({"n": n, "at": at}).encode(), stamp, b"\1", n)


class Project:
    """A pipeline and its log, filled while the broker does not run, since its samples are of another day."""

    def __init__(self, spark: Any, broker: StoringBroker, place: Path) -> None:
        self.text = FILE
        self._spark = spark
        self._broker = broker
        self._place = place
        self._log = next(path for path in (place / "store").iterdir() if path.name.startswith("all"))

    def fill(self, *records: Record) -> None:
        self._broker.stop()
        with open_log(self._log, segment_bytes=4096) as log:
            for one in records:
                log.append([one])
        self._broker.restart()

    def trim(self, samples: int) -> None:
        self._broker.stop()
        with open_log(self._log) as log:
            for name in list(log.cursors()):
                log.drop_cursor(name)
            log.retain(Retention(samples=samples), 10**18)
            assert log.first > 0
        self._broker.restart()

    def run(self, factor: int = 1, **more: Any) -> Any:
        file = self._place / "ranges.toml"
        file.write_text(self.text.format(locator=self._broker.locator, factor=factor))
        return runner.run(specreader.read(file), self._spark, **more)

    def numbers(self, table: str) -> list[int]:
        found = pa.table(DeltaTable(self._place / "tables" / table).scan(["n"]))
        return sorted(found["n"].to_pylist())


@pytest.fixture
def project(spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path) -> Project:
    session.close()
    return Project(spark, broker, tmp_path)


def test_rows_of_a_range_are_computed_anew_and_those_behind_the_checkpoint_are_left_to_the_next_run(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project.fill(*(record(n // 4, n) for n in range(40)))
    project.run()
    forget_last_commit(tmp_path / "state" / "scaled")  # the table has a batch of which Spark does not know
    # Late ones of the range, which no run has seen: the backfill must leave them to the next.
    project.fill(record(3, 100), record(4, 101))
    with pytest.raises(PipelineChanged):
        project.run(10_000, backfill=True, tables=["scaled"], times=hours(3, 5))

    told = project.run(10_000, backfill=True, tables=["scaled"], times=hours(3, 5), accept_change=True)

    assert "the whole log is read" not in caplog.text
    outside = [n for n in range(40) if not 12 <= n < 20]
    assert told.ended == "done"
    assert [(one.name, one.rows_out, one.quarantined) for one in told.sinks] == [("scaled", 0, 8)]
    assert project.numbers("scaled") == outside
    assert project.numbers("scaled_quarantine") == [n * 10_000 for n in range(12, 20)]
    assert DeltaTable(tmp_path / "tables" / "scaled").history(1)[0]["elea.backfill"].startswith("2026-03-01T03:00:00")
    assert not list((tmp_path / "tables").glob("*_range*"))

    project.run(2, backfill=True, tables=["scaled"], times=hours(4, 5), accept_change=True)
    project.run(2)

    assert project.numbers("scaled") == sorted([*outside, *(2 * n for n in range(16, 20)), 200, 202])
    assert project.numbers("scaled_quarantine") == [n * 10_000 for n in range(12, 16)]


def test_a_column_that_is_not_the_time_of_samples_is_looked_for_in_the_whole_log(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project.fill(*(record(n // 4, n) for n in range(24)))
    project.run()

    project.run(2, backfill=True, tables=["scaled"], times=hours(2, 3, by="event_time"), accept_change=True)

    # Of the hour before, as payloads say: stamped from three to four.
    assert project.numbers("scaled") == sorted(2 * n if 12 <= n < 16 else n for n in range(24))
    assert "the whole log is read: table=scaled column=event_time" in caplog.text


def test_what_cannot_be_computed_by_itself_is_refused_with_the_fix(project: Project, tmp_path: Path) -> None:
    project.text += OTHERS
    with pytest.raises(ConfigError, match="range of table raw: nothing has been computed so far"):
        project.run(backfill=True, tables=["raw"], times=hours(0, 1))
    project.fill(*(record(n // 4, n) for n in range(100)))
    project.run()

    for table, by, problem in (
        ("counts", None, "it is computed over several samples"),
        ("scaled", "at", "it has no column of times called at"),
        ("scaled", "n", "it has no column of times called n"),
    ):
        with pytest.raises(ConfigError, match=f"range of table {table}: {problem}"):
            project.run(backfill=True, tables=[table], times=hours(0, 1, by))

    project.trim(40)
    with pytest.raises(ConfigError, match="retention has removed samples that may be of this time"):
        project.run(backfill=True, tables=["raw"], times=hours(0, 2))
    kept = DeltaTable(tmp_path / "tables" / "raw").to_pyarrow_table().num_rows
    project.run(backfill=True, tables=["raw"], times=hours(22, 24))  # is all there
    same = DeltaTable(tmp_path / "tables" / "raw").to_pyarrow_table().num_rows
    project.run(backfill=True, tables=["raw"], times=hours(0, 2), accept_loss=True)

    assert (kept, same) == (100, 100)
    assert DeltaTable(tmp_path / "tables" / "raw").to_pyarrow_table().num_rows == 92
