"""A pipeline from a file: its tables equal what pandas makes of the log, after crashes, restarts and a backfill."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

import elea
from elea.model.errors import ConfigError, ExpectationFailed, PipelineBusy, PipelineFailed
from elea.spark import delta
from elea.spark.pipeline import report, runner, specreader
from elea.spark.pipeline.spec import Expectation, Table
from elea.spark.pipeline.tables import TableWriter
from tests.interop.storing import StoringBroker
from tests.spark import house

ROOMS = 8
SECONDS = 480
SEED = 9
"""Gives every table rows, in every part of the test."""


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died between the table's commit and Spark's."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def test_tables_equal_pandas_over_the_log_after_crash_restart_and_backfill(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    house.put(session, house.rooms(ROOMS))
    as_of = datetime.now(UTC).isoformat(timespec="milliseconds")
    file = tmp_path / "hour.toml"
    limit = 'options = { maxOffsetsPerTrigger = "150" }'
    file.write_text(house.FILE.format(locator=broker.locator, as_of=as_of, limit=limit))
    spec = specreader.read(file)
    samples = house.simulated(ROOMS, SECONDS, seed=SEED)
    first, second = len(samples) // 2, len(samples) * 4 // 5
    gold = tmp_path / "tables" / "gold"
    lines: list[str] = []

    # Half of it; then a driver that has died after the commits of table and broker, and more.
    house.put(session, samples[:first])
    runner.run(spec, spark, once=True, progress=lambda one: lines.append(str(one)))
    half = house.differences(tmp_path, session)
    for name in ("bronze", "alerts_back"):
        forget_last_commit(tmp_path / "state" / name)
    house.put(session, samples[first:second])
    done = runner.run(spec, spark, once=True)
    more = house.differences(tmp_path, session)

    assert_equal(half)
    assert_equal(more)
    assert more["gold"]["wanted"] > half["gold"]["wanted"] > 20
    assert min(one["wanted"] for one in more.values()) > 0
    assert any(line.startswith("gold: batch ") and "lag" in line for line in lines)
    check_report(done)
    check_readers(tmp_path, more)

    # All of it anew, as one new version; and the next run goes on from there.
    version = DeltaTable(gold).version()
    rebuilt = runner.run(spec, spark, backfill=True)
    anew = house.differences(tmp_path, session)
    after = DeltaTable(gold).version()
    house.put(session, samples[second:])
    runner.run(spec, spark, once=True)
    whole = house.differences(tmp_path, session)

    assert rebuilt.backfill
    assert anew == more
    assert_equal(whole)
    assert whole["gold"]["wanted"] > more["gold"]["wanted"]
    assert after == version + 1
    assert DeltaTable(gold, version=version).to_pyarrow_table().num_rows == more["gold"]["found"]
    assert not list((tmp_path / "tables").glob("*_backfill*"))


def assert_equal(told: dict[str, dict[str, int]]) -> None:
    assert {name: (one["missing"], one["extra"]) for name, one in told.items()} == dict.fromkeys(told, (0, 0)), told


def check_report(done: report.Report) -> None:
    """Figures of every sink, and a page with plots that fetches nothing."""
    bronze = next(one for one in done.sinks if one.name == "bronze")
    assert done.ended == "done"
    assert bronze.repeated == 1
    assert bronze.rows_in > bronze.rows_out + bronze.quarantined + bronze.dropped > 0  # one batch came again
    assert bronze.rules["known brightness"] >= bronze.quarantined > 0
    assert bronze.batches > 1
    assert json.loads(json.dumps(done.form()))["sinks"][0]["name"] == "bronze"
    page = report.html(done)
    assert page.count("<svg") >= 3 * len(done.sinks)
    assert "http" not in page.replace(bronze.where, "")


def check_readers(place: Path, told: dict[str, dict[str, int]]) -> None:
    """DuckDB, Polars and pandas see the same rows, whatever torn files lie about."""
    gold, bronze = place / "tables" / "gold", place / "tables" / "bronze"
    for table in (gold, bronze):
        written = sorted(table.rglob("*.parquet"))[0]
        written.with_name("part-torn.snappy.parquet").write_bytes(written.read_bytes()[:-50])
    asked: Any = duckdb.from_arrow
    counted = asked(DeltaTable(gold).to_pyarrow_dataset()).aggregate("count(*), sum(reports)").fetchall()[0]
    frame = polars.scan_delta(str(gold)).collect()
    table = DeltaTable(gold).to_pandas()
    assert counted[0] == len(frame) == len(table) == told["gold"]["found"]
    assert counted[1] == frame["reports"].sum() == table["reports"].sum()
    assert set(frame["floor"]) == set(table["floor"]) == {"0", "1", "2", "3"}
    assert len(polars.scan_delta(str(bronze)).collect()) == told["bronze"]["found"]
    history = DeltaTable(bronze).history()
    assert any("known brightness" in str(one.get("elea.broken_rules")) for one in history)


SMALL = """
[pipeline]
name = "small"
connect = "{locator}"
trigger = "available now"

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "n BIGINT"

[table.files]
from = "numbers"
path = "files"
format = "parquet"
expect = [ {{ name = "small", check = "value.n < {most}", otherwise = "{otherwise}" }} ]
"""


def test_rule_that_ends_the_run_keeps_the_batch_out_and_parquet_has_every_batch_once(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    def spec(most: int, otherwise: str) -> Any:
        file = tmp_path / "small.toml"
        file.write_text(SMALL.format(locator=broker.locator, most=most, otherwise=otherwise))
        return specreader.read(file)

    def files() -> list[int]:
        found: Any = duckdb.sql(f"select value.n from '{tmp_path / 'files'}/*.parquet' order by 1")
        return [row[0] for row in found.fetchall()]

    session.put_batch([(f"numbers/{n}", json.dumps({"n": n})) for n in range(100)])
    with pytest.raises(PipelineFailed) as failed:
        runner.run(spec(90, "fail"), spark)
    assert "10 broke 'small'" in str(failed.value)
    assert failed.value.sink == "files"
    told: Any = failed.value.report
    assert told.ended == "failed"
    assert not list((tmp_path / "files").glob("*"))

    runner.run(spec(95, "drop"), spark)
    forget_last_commit(tmp_path / "state" / "files")
    again = runner.run(spec(95, "drop"), spark)
    session.put_batch([(f"numbers/{n}", json.dumps({"n": n - 1000})) for n in range(1000, 1005)])
    runner.run(spec(95, "drop"), spark)

    assert again.sinks[0].dropped == 5
    assert files() == sorted([*range(95), *range(5)])
    with pytest.raises(ConfigError, match="a table of parquet has no versions to put a backfill in"):
        runner.run(spec(95, "drop"), spark, backfill=True)
    with runner._lock(spec(95, "drop")), pytest.raises(PipelineBusy, match="pipeline small runs already"):
        runner.run(spec(95, "drop"), spark)


def test_crash_behind_the_tables_commit_loses_neither_rows_nor_time(spark: Any, tmp_path: Path) -> None:
    """The last batch with rows is in the table, and Spark does not know: its watermark must move on all the same."""
    minute = "timestamp_seconds(id * 10) AS at, id"
    for index in range(4):
        rows = spark.range(index * 30, (index + 1) * 30, 1, 1).selectExpr(*minute.split(", "))
        rows.write.parquet(str(tmp_path / "in" / f"part={index}"))
        os.utime(tmp_path / "in" / f"part={index}", (index, index))
    table = Table(
        name="gold",
        reads="minutes",
        path=tmp_path / "gold",
        expect=(Expectation(name="even minutes", check="minute(start) % 2 = 0"),),
    )
    crash_at: set[int] = set()

    def after(batch_id: int) -> None:
        if batch_id in crash_at:
            crash_at.clear()
            raise RuntimeError("crash")

    def drain(name: str, write: Any, mode: str = "append") -> None:
        stream = spark.readStream.schema("at TIMESTAMP, id BIGINT").option("maxFilesPerTrigger", 1)
        rows = stream.parquet(str(tmp_path / "in" / "part=*")).withWatermark("at", "10 seconds")
        rows.createOrReplaceTempView("seconds")
        minutes = spark.sql("SELECT window.start AS start, count(*) AS n FROM seconds GROUP BY window(at, '1 minute')")
        started = minutes.writeStream.foreachBatch(write).outputMode(mode).trigger(availableNow=True)
        started.option("checkpointLocation", str(tmp_path / f"state-{name}")).start().awaitTermination(300)

    def plainly(rows: Any, batch_id: int) -> None:
        plain(rows, batch_id)
        after(batch_id)

    writer = TableWriter(table, "crash", after=after)
    plain = delta.writer(tmp_path / "plain")
    whole = replace(table, name="all", path=tmp_path / "all", mode="complete", expect=())
    for name, write in (("gold", writer), ("plain", plainly)):
        crash_at.add(3)
        with pytest.raises(StreamingQueryException, match="crash"):
            drain(name, write)
        drain(name, write)
    drain("all", TableWriter(whole, "crash"), "complete")

    good = DeltaTable(tmp_path / "gold").to_pyarrow_table()
    aside = DeltaTable(tmp_path / "gold_quarantine").to_pyarrow_table()
    assert sorted(one.minute for one in good.column("start").to_pylist()) == list(range(0, 19, 2))
    assert sorted(one.minute for one in aside.column("start").to_pylist()) == list(range(1, 19, 2))
    assert set(aside.column("broken_rules").to_pylist()[0]) == {"even minutes"}
    assert (writer.counts.repeated, plain.counts.repeated) == (1, 1)
    assert DeltaTable(tmp_path / "plain").to_pyarrow_table().column("n").to_pylist() == [6] * 19
    assert DeltaTable(tmp_path / "all").to_pyarrow_table().column("n").to_pylist() == [6] * 20


def test_row_that_breaks_several_rules_goes_where_the_strictest_of_them_says(spark: Any, tmp_path: Path) -> None:
    """`fail` before `quarantine` before `drop`, in whatever order they stand; every broken rule counts the row."""
    drop = Expectation(name="not two", check="id % 2 <> 0", otherwise="drop")
    aside = Expectation(name="not three", check="id % 3 <> 0", otherwise="quarantine")
    fail = Expectation(name="not eleven", check="id % 11 <> 0", otherwise="fail")
    rows = spark.range(1, 11)
    for place, rules in (("1", (drop, aside, fail)), ("2", (fail, aside, drop))):
        table = Table(name="numbers", reads="numbers", path=tmp_path / place, expect=rules)
        writer = TableWriter(table, "several")

        writer.write(rows, "a-query", 0)

        good = DeltaTable(tmp_path / place).to_pyarrow_table()
        kept = DeltaTable(tmp_path / f"{place}_quarantine").to_pyarrow_table().to_pylist()
        assert sorted(good.column("id").to_pylist()) == [1, 5, 7]
        assert sorted((one["id"], sorted(one["broken_rules"])) for one in kept) == [
            (3, ["not three"]), (6, ["not three", "not two"]), (9, ["not three"]),
        ]  # fmt: skip
        assert (writer.counts.quarantined, writer.counts.dropped) == (3, 4)
        assert writer.counts.rules == {"not two": 5, "not three": 3}
        with pytest.raises(ExpectationFailed, match="not eleven"):
            writer.write(spark.range(66, 67), "a-query", 1)  # it breaks all three
