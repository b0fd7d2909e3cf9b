"""The matrix beside Spark's Kafka connector (docs/spark.md): its tests exist, and cells that no other test has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import elea
from tests.interop.storing import StoringBroker

ROOT = Path(__file__).parents[2]


def test_every_row_of_the_matrix_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    part = page.partition("## Beside Spark's Kafka connector")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and "format(" not in line]
    named = re.findall(r"\| `(test_\w+)` \|$", part, re.MULTILINE)
    texts = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("tests/spark", "tests/unit/spark")
        for file in (ROOT / folder).glob("test_*.py")
    )

    assert len(named) == len(rows) >= 15
    assert [name for name in named if f"def {name}(" not in texts] == []


def test_triggers_and_limits_are_those_of_other_sources(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    session.put_batch([(f"fleet/{n}", str(n)) for n in range(25)], timeout=60)
    batches: dict[str, list[int]] = {}

    def start(name: str, trigger: dict[str, Any], **options: str) -> Any:
        reader = spark.readStream.format("zenoh").option("connect", broker.locator).options(**options)
        found = batches.setdefault(name, [])
        rows = reader.option("startingOffsets", "earliest").schema("offset bigint").load("fleet/**")
        writer = rows.writeStream.foreachBatch(lambda batch, _: found.append(batch.count()))
        return writer.option("checkpointLocation", str(tmp_path / name)).trigger(**trigger).start()

    start("now", {"availableNow": True}, maxOffsetsPerTrigger="10").awaitTermination(120)
    start("once", {"once": True}, maxOffsetsPerTrigger="10").awaitTermination(120)
    timed = start("timed", {"processingTime": "100 milliseconds"}, maxOffsetsPerTrigger="20")
    timed.processAllAvailable()
    timed.stop()

    assert batches["now"] == [10, 10, 5]
    assert sum(batches["once"]) == 25  # all of it: a limit does not hold for `once`, as with Kafka
    assert [count for count in batches["timed"] if count] == [20, 5]
    endless = spark.readStream.format("zenoh").option("connect", broker.locator).load("fleet/**").writeStream
    endless = endless.format("noop").option("checkpointLocation", str(tmp_path / "continuous"))
    with pytest.raises(Exception, match=r"(?i)continuous"):
        endless.trigger(continuous="1 second").start().awaitTermination(60)


def test_schema_of_one_column_reads_and_counts_without_the_others(
    spark: Any, broker: StoringBroker, session: elea.Session
) -> None:
    session.put_batch([(f"fleet/{n}", str(n)) for n in range(25)], timeout=60)
    narrow = spark.read.format("zenoh").option("connect", broker.locator).schema("offset bigint").load("fleet/**")

    assert narrow.columns == ["offset"]
    assert narrow.count() == 25
