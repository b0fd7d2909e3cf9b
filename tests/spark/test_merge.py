"""Tables by key: in a pipeline and with `delta.write`, over restarts, late rows, deletions, backfills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
from elea.model.errors import PipelineFailed, TableConflict
from elea.spark import delta
from elea.spark.pipeline import runner, specreader
from elea.spark.pipeline.report import Report
from elea.spark.pipeline.tables import merge_writer
from tests.interop.storing import StoringBroker
from tests.spark.test_delta import forget_last_commit

FILE = """
[pipeline]
name = "merged"
connect = "{locator}"

[source.robots]
keyexpr = "fleet/*"
format = "json"
schema = "at BIGINT, speed BIGINT"
metadata = true
options = {{ maxOffsetsPerTrigger = 7 }}

[step.states]
sql = '''
SELECT key AS robot, coalesce(value.at, CAST(CAST(attachment AS STRING) AS BIGINT)) AS at, offset, value.speed, kind
FROM robots
'''

[step.counts]
sql = "SELECT key AS robot, count(*) AS n FROM robots GROUP BY key"

[table.now]
from = "states"
path = "tables/now"
mode = "merge"
keys = "robot"
sequence_by = ["at", "offset"]
deletes = "kind = 'DELETE'"
partition_by = "kind"
cluster_by = "robot"
expect = [ {{ name = "slow", check = "speed < 1000" }} ]

[table.history]
from = "states"
path = "tables/history"
mode = "merge"
keys = ["robot"]
sequence_by = ["at", "offset"]
deletes = "kind = 'DELETE'"
scd = 2

[table.counts]
from = "counts"
path = "tables/counts"
mode = "merge"
keys = "robot"
"""


class Fleet:
    """Puts states, and knows what the tables must have."""

    def __init__(self, session: elea.Session) -> None:
        self._session = session
        self.events: list[tuple[str, int, int, int | None]] = []

    def put(self, robot: str, at: int, speed: int | None) -> None:
        key = f"fleet/{robot}"
        if speed is None:
            self._session.delete(key, attachment=str(at), ack=True)
        else:
            self._session.put(key, json.dumps({"at": at, "speed": speed}), ack=True)
        self.events.append((key, at, len(self.events), speed))

    def history(self) -> list[tuple[str, int, int | None, int | None, bool]]:
        found = []
        for robot in {event[0] for event in self.events}:
            line = sorted(event[1:] for event in self.events if event[0] == robot)
            ends = [*(at for at, _, _ in line[1:]), None]
            for (at, _, speed), end in zip(line, ends, strict=True):
                if speed is not None:
                    found.append((robot, at, end, speed, end is None))
        return sorted(found, key=str)

    def now(self, limit: int = 1000) -> list[tuple[str, int, int | None]]:
        good = [event for event in self.events if event[3] is None or event[3] < limit]
        last = {robot: max(event[1:] for event in good if event[0] == robot) for robot in {one[0] for one in good}}
        return sorted((robot, at, speed) for robot, (at, _, speed) in last.items() if speed is not None)


def rows_of(table: Path, *columns: str) -> list[tuple[Any, ...]]:
    read = pa.table(DeltaTable(table).scan(list(columns)))
    return sorted(zip(*(read[name].to_pylist() for name in columns), strict=True), key=str)


def test_pipeline_merges_late_rows_and_deletions_and_a_backfill_gives_the_same(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    (tmp_path / "merged.toml").write_text(FILE.format(locator=broker.locator))
    fleet = Fleet(session)
    tables = tmp_path / "tables"

    def run(**more: Any) -> Report:
        return runner.run(specreader.read(tmp_path / "merged.toml"), spark, once=True, **more)

    def look() -> None:
        assert rows_of(tables / "now", "robot", "at", "speed") == sorted(fleet.now(), key=str)
        assert rows_of(tables / "history", "robot", "valid_from", "valid_to", "speed", "is_current") == fleet.history()
        counted = {robot: sum(one[0] == robot for one in fleet.events) for robot in {one[0] for one in fleet.events}}
        assert dict(rows_of(tables / "counts", "robot", "n")) == counted

    for at in range(9):
        fleet.put("abc"[at % 3], 10 * at, at)
    fleet.put("b", 200, None)
    fleet.put("c", 65, 7777)  # too fast for one of the tables, and late
    first = run()
    look()
    fleet.put("b", 150, 15)  # before its deletion: it stays deleted
    fleet.put("a", 5, 5)  # late
    fleet.put("d", 9, None)
    fleet.put("d", 8, 8)
    fleet.put("d", 10, 10)
    run()
    look()
    version = DeltaTable(tables / "now").version()
    for name in ("now", "history", "counts"):
        forget_last_commit(tmp_path / "state", name)
    again = run()
    look()
    assert DeltaTable(tables / "now").version() == version
    assert again.sinks[0].repeated == 1
    run(backfill=True)
    look()
    fleet.put("b", 300, 30)
    fleet.put("c", 1, None)
    run()
    look()

    assert first.sinks[0].merged["inserted"] == 3
    assert first.sinks[0].quarantined == 1
    assert rows_of(tables / "now_quarantine", "robot", "speed") == [("fleet/c", 7777)]
    assert DeltaTable(tables / "now").metadata().partition_columns == ["kind"]


def test_merge_without_order_ends_the_run_where_two_rows_of_a_key_meet(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    text = FILE.format(locator=broker.locator).replace('sequence_by = ["at", "offset"]\ndeletes', "deletes", 1)
    (tmp_path / "merged.toml").write_text(text)
    fleet = Fleet(session)
    fleet.put("a", 1, 1)
    fleet.put("a", 2, 2)

    with pytest.raises(PipelineFailed, match="2 rows of a batch have 1 keys"):
        runner.run(specreader.read(tmp_path / "merged.toml"), spark, once=True)


def test_stream_is_merged_by_delta_write_and_a_zombie_is_refused(spark: Any, tmp_path: Path) -> None:
    for index in range(3):
        frame = spark.range(index * 50, (index + 1) * 50, 1, 2).selectExpr("id % 20 AS k", "id AS n", "id % 3 = 0 AS d")
        frame.write.parquet(str(tmp_path / "in" / f"part={index}"))
    stream = spark.readStream.schema("k bigint, n bigint, d boolean").option("maxFilesPerTrigger", 2)

    def drain() -> None:
        query = delta.write(
            stream.parquet(str(tmp_path / "in" / "part=*")), tmp_path / "table", checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True}, mode="merge", keys=["k"], sequence_by=["n"], deletes="d", name="keyed",
        )  # fmt: skip
        query.awaitTermination(120)

    drain()
    forget_last_commit(tmp_path)
    drain()

    alive = sorted((n % 20, n) for n in range(130, 150) if n % 3)
    assert rows_of(tmp_path / "table", "k", "n") == sorted(alive, key=str)
    mine, zombie = (merge_writer(tmp_path / "zombie", keys=["id"]) for _ in range(2))
    rows = spark.range(5)
    mine.write(rows, "q", 0)

    class Late:
        """Looks at the table, and then is overtaken."""

        columns = rows.columns
        schema = rows.schema
        sparkSession = spark  # noqa: N815

        def mapInArrow(self, *args: Any) -> Any:  # noqa: N802
            mine.write(spark.range(5, 9), "q", 1)
            return rows.mapInArrow(*args)

    with pytest.raises(TableConflict, match="batch 1 was not committed"):
        zombie.write(Late(), "q", 1)  # type: ignore[arg-type]
    assert len(rows_of(tmp_path / "zombie", "id")) == 9
