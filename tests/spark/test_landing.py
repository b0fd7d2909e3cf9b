"""`elea.spark.ingest`: the same table as `delta.write` makes, each sample once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
import elea.spark
from elea.spark import delta
from tests.interop.storing import StoringBroker
from tests.spark.test_delta import forget_last_commit

ROWS = 60_000
"""More than tasks send to the driver: they write files."""

NOW = {"availableNow": True}


def fill(session: elea.Session, start: int, rows: int) -> None:
    numbers = range(start, start + rows)
    keys = [f"fleet/{number % 9}" for number in numbers]
    payloads = [b'{"n": %d, "text": "%s"}' % (number, b"x" * 60) for number in numbers]
    session.put_batch(pa.record_batch({"key": keys, "payload": payloads}))


def rows_of(table: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().sort_by("offset").to_pylist()
    return rows


def test_ingested_table_is_that_of_a_stream_and_a_batch_that_comes_again_is_left_out(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    options = {
        "connect": broker.locator, "startingOffsets": "earliest", "includeMetadata": "true",
        "payloadFormat": "json", "payloadSchema": "n bigint", "maxOffsetsPerTrigger": str(ROWS),
    }  # fmt: skip
    landed, written = tmp_path / "landed", tmp_path / "written"

    def drain() -> Any:
        query = elea.spark.ingest(
            spark, "fleet/**", landed, checkpoint=tmp_path / "checkpoint", options=options, trigger=NOW
        )
        query.awaitTermination(120)
        return query

    fill(session, 0, ROWS)
    session.put("fleet/bad", b"{", ack=True)
    session.delete("fleet/0", ack=True)
    first = drain()
    again = forget_last_commit(tmp_path, "checkpoint")
    files = set(DeltaTable(landed).file_uris())
    drain()
    repeated = set(DeltaTable(landed).file_uris())
    fill(session, ROWS, 5)
    drain()
    stream = spark.readStream.format("zenoh").options(**options, sourceId="other").load("fleet/**")
    delta.write(stream, written, checkpoint=tmp_path / "other", trigger=NOW).awaitTermination(120)

    rows = rows_of(landed)
    assert rows == rows_of(written)
    assert [row["value"] and row["value"]["n"] for row in rows] == [*range(ROWS), None, None, *range(ROWS, ROWS + 5)]
    assert [row["_corrupt"] for row in rows if row["_corrupt"] is not None] == [b"{"]
    assert DeltaTable(landed).schema() == DeltaTable(written).schema()
    assert again == 1
    assert repeated == files
    assert sum(one.rows for one in elea.spark.progress(first).figures) == ROWS + 2
    assert "landed" in json.loads(first.recentProgress[0].json)["observedMetrics"]


def test_chosen_columns_and_statistics_that_readers_use(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    fill(session, 0, ROWS)
    query = elea.spark.ingest(
        spark, "fleet/1", tmp_path / "table", checkpoint=tmp_path / "checkpoint", trigger=NOW, name="one",
        options={"connect": broker.locator, "startingOffsets": "earliest"}, columns=["key", "payload"],
    )  # fmt: skip
    query.awaitTermination(120)

    table = DeltaTable(tmp_path / "table")
    found = table.to_pyarrow_table()
    assert found.schema.names == ["key", "payload"]
    assert set(found.column("key").to_pylist()) == {"fleet/1"}
    assert found.num_rows == len([number for number in range(ROWS) if number % 9 == 1])
    assert query.name == "one"
    told = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert {(one["min.key"], one["max.key"]) for one in told} == {("fleet/1", "fleet/1")}


SPEED = json.dumps({"type": "struct", "fields": [{"name": "speed", "type": "long", "nullable": True, "metadata": {}}]})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("", "option landingSchema: it is the JSON of a schema"),
        ("{}", "option landingSchema: it is the JSON of a schema"),
        (SPEED, "column speed: there is no such column"),
    ],
)
def test_wrong_use_of_the_option_is_told(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path, schema: str, problem: str
) -> None:
    fill(session, 0, 1)
    source = spark.readStream.format("zenoh").options(connect=broker.locator, startingOffsets="earliest")
    source = source.option("landing", str(tmp_path / "table")).option("landingSchema", schema)
    writer = source.load("fleet/**").writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(**NOW).start()
    with pytest.raises(Exception, match=problem):
        query.awaitTermination(120)


def test_batch_cannot_land(spark: Any, broker: StoringBroker, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"option landing: it is for spark\.readStream"):
        spark.read.format("zenoh").options(connect=broker.locator, landing=str(tmp_path)).load("fleet/**").count()


def test_partitioned_table_is_ingested_once(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    options = {"connect": broker.locator, "startingOffsets": "earliest", "includeMetadata": "true"}

    def drain() -> None:
        query = elea.spark.ingest(
            spark, "fleet/**", tmp_path / "landed", checkpoint=tmp_path / "checkpoint", options=options, trigger=NOW,
            columns=["key", "offset", "kind"], partition_by="key", cluster_by="offset",
        )  # fmt: skip
        query.awaitTermination(120)

    fill(session, 0, 100)
    drain()
    forget_last_commit(tmp_path, "checkpoint")
    drain()
    fill(session, 100, 20)
    drain()

    rows = rows_of(tmp_path / "landed")
    assert [row["offset"] for row in rows] == list(range(120))
    assert [row["key"] for row in rows] == [f"fleet/{n % 9}" for n in range(120)]
    assert len({Path(one).parent.name for one in DeltaTable(tmp_path / "landed").file_uris()}) == 9
