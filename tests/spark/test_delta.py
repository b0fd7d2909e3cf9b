"""Streams into Delta tables: every row once, and what was torn is seen by nobody."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.dataset
import pytest
from deltalake import DeltaTable, write_deltalake

import elea.spark
from elea.model.errors import ConfigError, TableConflict
from elea.spark import delta

ROWS = 1000


@pytest.fixture
def place(spark: Any, tmp_path: Path) -> Path:
    """Three files of numbers, one a micro-batch."""
    for index in range(3):
        frame = spark.range(index * ROWS, (index + 1) * ROWS, 1, 2)
        frame.selectExpr(
            "id", "timestamp_micros(id) AS at", "cast(id AS string) AS text", "encode('x', 'UTF-8') AS octets"
        ).write.parquet(str(tmp_path / "in" / f"part={index}"))  # fmt: skip
    return tmp_path


def stream(spark: Any, place: Path) -> Any:
    source = spark.readStream.schema("id bigint, at timestamp, text string, octets binary")
    return source.option("maxFilesPerTrigger", 2).parquet(str(place / "in" / "part=*"))


def drain(spark: Any, place: Path, function: Any, checkpoint: str = "checkpoint") -> Any:
    writer = stream(spark, place).writeStream.foreachBatch(function).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(place / checkpoint)).start()
    query.awaitTermination(120)
    return query


def forget_last_commit(place: Path, checkpoint: str = "checkpoint") -> int:
    """As if the driver had died between the table's commit and Spark's."""
    commits = place / checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last


def ids(table: Path) -> Counter[int]:
    return Counter(DeltaTable(table).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def test_batch_that_comes_again_is_left_out_and_torn_files_are_not_seen(spark: Any, place: Path) -> None:
    table = place / "table"
    query = delta.write(
        stream(spark, place), table, checkpoint=place / "checkpoint", name="bronze", trigger={"availableNow": True}
    )
    query.awaitTermination(120)
    forget_last_commit(place)
    writer = delta.writer(table, name="bronze")
    drain(spark, place, writer)
    written = sorted(table.glob("*.parquet"))
    (table / "part-torn.snappy.parquet").write_bytes(written[0].read_bytes()[:-100])
    (table / "part-orphan.snappy.parquet").write_bytes(written[0].read_bytes())

    once = Counter(range(3 * ROWS))
    assert writer.counts.repeated == 1
    assert writer.counts.batches == 0
    assert ids(table) == once
    assert Counter(DeltaTable(table).to_pandas()["id"].tolist()) == once
    assert Counter(polars.scan_delta(str(table)).collect()["id"].to_list()) == once
    relation = DeltaTable(table).to_pyarrow_dataset()
    told: Any = duckdb.sql("select count(*), count(distinct id), sum(id) from relation")
    assert told.fetchall()[0] == (
        3 * ROWS, 3 * ROWS, sum(range(3 * ROWS)),
    )  # fmt: skip
    assert "lag" in str(elea.spark.progress(query))

    # Statistics say where rows are, exactly: a filter on each kind finds them.
    found = relation.to_table(filter=pyarrow.dataset.field("id") == 1234)
    assert found.column("text").to_pylist() == ["1234"]
    assert found.column("at").to_pylist()[0].microsecond == 1234
    actions = DeltaTable(table).get_add_actions(flatten=True)
    assert "min.id" in actions.schema.names
    assert "max.at" in actions.schema.names

    def naive(rows: Any, batch: int) -> None:
        write_deltalake(place / "naive", rows.toArrow(), mode="append")

    drain(spark, place, naive, "naive-checkpoint")  # control: the same without the number of the batch
    forget_last_commit(place, "naive-checkpoint")
    drain(spark, place, naive, "naive-checkpoint")
    assert max(ids(place / "naive").values()) == 2


def test_table_is_refused_to_another_query_of_the_name_and_to_other_columns(spark: Any, place: Path) -> None:
    table = place / "table"
    drain(spark, place, delta.writer(table))

    with pytest.raises(
        Exception, match="another query has written it under the name 'elea'; bring back the checkpoint"
    ):
        drain(spark, place, delta.writer(table), "other")
    drain(spark, place, delta.writer(table, name="second"), "second")
    drain(spark, place, delta.writer(table, adopt=True), "third")

    assert ids(table) == Counter(dict.fromkeys(range(3 * ROWS), 3))
    wrong = spark.range(3).selectExpr("id AS text", "id", "id AS extra")
    with pytest.raises(ConfigError) as refused:
        delta.writer(table, query_id="q", name="wrong")(wrong, 0)
    assert "column extra is not in the table; column at is not in the rows" in str(refused.value)
    assert "column text is string in the table and long in the rows" in str(refused.value)
    with pytest.raises(ConfigError, match="nobody can write tables to ftp"):
        delta.writer("ftp://bucket/table")


def test_columns_are_added_and_numbers_widened_and_the_rest_is_refused(spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "table"
    before = spark.range(3).selectExpr("id AS n", "CAST(id AS INT) AS i", "named_struct('a', id) AS s", "'x' AS p")
    after = spark.range(3, 6).selectExpr(
        "CAST(id AS INT) AS n", "CAST(id AS INT) AS i", "named_struct('a', CAST(id AS INT), 'b', id * 2) AS s",
        "'y' AS p", "CAST(id AS DOUBLE) AS more",
    )  # fmt: skip

    def put(rows: Any, batch: int, **options: Any) -> None:
        delta.writer(table, query_id="q", partition_by="p", **options)(rows, batch)

    put(before, 0)
    with pytest.raises(ConfigError, match=r"column s.b is not in the table; column more is not .* evolve=True adds"):
        put(after, 1)
    put(after, 1, evolve=True)
    put(after, 1, evolve=True)

    assert sorted(DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda row: row["n"]) == [
        *({"n": n, "i": n, "s": {"a": n, "b": None}, "p": "x", "more": None} for n in range(3)),
        *({"n": n, "i": n, "s": {"a": n, "b": n * 2}, "p": "y", "more": float(n)} for n in range(3, 6)),
    ]
    for n, i, struct, said in (
        ("n", "id", "named_struct('a', id, 'b', id)", "column i is integer in the table and long in the rows"),
        ("n", "1", "named_struct('a', id)", "column s.b is not in the rows"),
        ("N", "1", "named_struct('a', id, 'b', id)", "column N is written n in the table"),
        ("n", "1", "'no'", "column s is struct in the table and string"),
    ):
        wrong = spark.range(1).selectExpr(f"id AS {n}", f"{i} AS i", f"{struct} AS s", "'x' AS p", "1.0D AS more")
        with pytest.raises(ConfigError, match=said):
            put(wrong, 2, evolve=True)
    with pytest.raises(ConfigError, match="it is partitioned by p"):
        delta.writer(table, query_id="q")(after, 3)


def test_partitions_have_directories_and_compactions_sort(spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "table"
    made = delta.writer(table, query_id="q", partition_by=["p"], cluster_by=["n"], compact_every=2)
    rows = spark.range(0, 400_000, 1, 2).selectExpr("(id * 7919) % 400000 AS n", "IF(id % 2 = 0, 'even', NULL) AS p")
    for batch in range(3):
        made(rows, batch)

    files = {Path(one).parent.name for one in DeltaTable(table).file_uris()}
    assert files == {"p=even", "p=__HIVE_DEFAULT_PARTITION__"}
    assert made.counts.compactions == 1
    assert ids_of(table) == Counter(dict.fromkeys(range(400_000), 3))
    with pytest.raises(ConfigError, match=r"cluster_by z of table .*: there is no such column"):
        delta.writer(table, query_id="q", partition_by=["p"], cluster_by=["z"])(rows, 3)
    with pytest.raises(ConfigError, match=r"cluster_by p of table .*: the table is partitioned by it"):
        delta.writer(table, query_id="q", partition_by=["p"], cluster_by=["p"])(rows, 3)


def ids_of(table: Path) -> Counter[int]:
    return Counter(DeltaTable(table).to_pyarrow_table(columns=["n"]).column("n").to_pylist())


def test_zombie_driver_is_refused_and_large_batches_are_written_by_executors(spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "table"
    large = spark.range(0, 800_000, 1, 2)
    mine, zombie = (delta.writer(table, query_id="q", compact_every=2) for _ in range(2))
    mine(large, 0)

    class Late:
        """Looks at the table, and then is overtaken."""

        def __init__(self) -> None:
            self.sparkSession = spark
            self.schema = large.schema

        def mapInArrow(self, *args: Any) -> Any:  # noqa: N802
            mine(large, 1)
            return large.mapInArrow(*args)

    with pytest.raises(TableConflict, match=r"batch 1 was not committed .* has committed batch 1 meanwhile"):
        zombie(Late(), 1)  # type: ignore[arg-type]
    files = len(DeltaTable(table).file_uris())
    mine(large.limit(10), 2)
    mine(large, 1)

    assert files == 4
    assert ids(table) == Counter(range(800_000)) + Counter(range(800_000)) + Counter(range(10))
    assert mine.counts.compactions == 1
    assert len(DeltaTable(table).file_uris()) == 1
    assert mine.counts.repeated == 1
    assert DeltaTable(table).metadata().configuration["delta.logRetentionDuration"] == "interval 7 days"
