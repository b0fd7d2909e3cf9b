"""Tables in an object store: every way into them, restarts, two writers, kills of the driver, a backfill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
import elea.spark
from elea.model.errors import ConfigError, TableConflict
from elea.spark import delta
from elea.spark.pipeline import runner, specreader
from tests.interop.storing import StoringBroker
from tests.robust.children import eventually
from tests.spark.objectstore import object_store
from tests.spark.test_delta import forget_last_commit

FILE = """
[pipeline]
name = "remote"
connect = "{locator}"
trigger = "200 ms"

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "n BIGINT"
metadata = true
options = {{ maxOffsetsPerTrigger = 200 }}

[step.parsed]
sql = "SELECT key, value.n, offset, kind FROM numbers"

[table.raw]
from = "numbers"
path = "{place}/raw"

[table.parsed]
from = "parsed"
path = "{place}/parsed"
partition_by = "key"
expect = [ {{ name = "small", check = "n < 350" }} ]

[table.newest]
from = "parsed"
path = "{place}/newest"
mode = "merge"
keys = "key"
sequence_by = "offset"
deletes = "kind = 'DELETE'"
"""
NUMBERS = 400
LARGEST = 350


@pytest.fixture(scope="module")
def lake() -> Iterator[str]:
    with object_store() as found:
        yield found


def rows(place: str, *columns: str) -> list[tuple[Any, ...]]:
    found = pa.table(DeltaTable(place).scan(list(columns)))
    return sorted(zip(*(found[name].to_pylist() for name in columns), strict=True))


def run_driver(file: Path) -> subprocess.Popen[bytes]:
    with (file.parent / "driver.log").open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "elea", "pipeline", "run", str(file), "--master", "local[2]"],
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=out,
        )  # fmt: skip


def version(place: str) -> int:
    return DeltaTable(place).version() if DeltaTable.is_deltatable(place) else -1


def test_pipeline_writes_to_an_object_store_once_while_its_driver_is_killed(
    lake: str, spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    place = f"{lake}/kills"
    file = tmp_path / "remote.toml"
    file.write_text(FILE.format(locator=broker.locator, place=place))

    # Two batches: the driver is killed when the table has the first. More kills: tests.spark.machines.
    session.put_batch([(f"numbers/{n % 7}", json.dumps({"n": n})) for n in range(NUMBERS)], timeout=60)
    driver = run_driver(file)
    eventually(lambda: version(f"{place}/newest") > 0 or driver.poll() is not None, "a commit", 180.0)
    assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-2000:]
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    session.delete("numbers/3", ack=True)
    spec = specreader.read(file)
    runner.run(spec, spark, once=True)

    def look() -> None:
        everything = [(f"numbers/{n % 7}", n) for n in range(NUMBERS)]
        small = [one for one in everything if one[1] < LARGEST]
        assert len(rows(f"{place}/raw", "key")) == NUMBERS + 1
        assert Counter(rows(f"{place}/parsed", "key", "n")) == Counter(small)
        newest = {key: n for key, n in everything if key != "numbers/3"}
        assert rows(f"{place}/newest", "key", "n") == sorted(newest.items())
        assert rows(f"{place}/newest_deleted", "key") == [("numbers/3",)]

    look()
    runner.run(spec, spark, backfill=True)
    look()
    assert DeltaTable(f"{place}/raw").history(1)[0]["elea.backfill"]
    assert not DeltaTable.is_deltatable(f"{place}/raw_backfill")
    found = pa.table(DeltaTable(f"{place}/parsed_quarantine").scan(["n"]))["n"].to_pylist()
    assert sorted(n for n in found if n is not None) == list(range(LARGEST, NUMBERS))
    assert found.count(None) == 1  # the deletion has no number


def test_two_writers_of_a_batch_do_not_both_win_and_a_batch_that_comes_again_is_left_out(lake: str, spark: Any) -> None:
    place = f"{lake}/two"
    large = spark.range(0, 400_000, 1, 2).selectExpr("id", "id % 2 AS half")
    mine, other = (delta.writer(place, query_id="q", partition_by="half", compact_every=2) for _ in range(2))
    mine(large, 0)

    class Late:
        """Looks at the table, and then is overtaken."""

        sparkSession = spark  # noqa: N815
        schema = large.schema

        def mapInArrow(self, *args: Any) -> Any:  # noqa: N802
            mine(large.limit(10), 1)
            return large.mapInArrow(*args)

    with pytest.raises(TableConflict, match="batch 1 was not committed"):
        other(Late(), 1)  # type: ignore[arg-type]
    other(large.limit(10), 1)
    mine(large.limit(5), 2)

    assert Counter(one for (one,) in rows(place, "id")).total() == 400_015
    assert (other.counts.repeated, mine.counts.compactions) == (1, 1)


def test_samples_are_ingested_into_an_object_store_over_a_restart(
    lake: str, spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    place = f"{lake}/landed"

    def drain() -> None:
        elea.spark.ingest(
            spark, "numbers/*", place, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True},
            options={"connect": broker.locator, "startingOffsets": "earliest"}, columns=["key", "payload"],
        ).awaitTermination(120)  # fmt: skip

    session.put_batch([(f"numbers/{n % 3}", f"{n}") for n in range(50)], timeout=60)
    drain()
    forget_last_commit(tmp_path)
    drain()

    assert sorted(int(payload) for _, payload in rows(place, "key", "payload")) == list(range(50))


def test_places_that_nobody_can_write_to_are_refused() -> None:
    for place in ("ftp://host/table", "s3:///table"):
        with pytest.raises(ConfigError, match="nobody can write tables to"):
            delta.writer(place)
