"""Tables of a pipeline that keep samples as they are: the same rows, without a way through Spark's rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import elea
from elea.spark.pipeline import runner, specreader
from elea.spark.pipeline.frames import landing_source
from elea.spark.pipeline.spec import Expectation
from tests.interop.storing import StoringBroker
from tests.spark.test_delta import forget_last_commit

FILE = """
[pipeline]
name = "plain"
connect = "{locator}"

[source.samples]
keyexpr = "fleet/*"
format = "json"
schema = "n BIGINT"

[step.same]
sql = "SELECT * FROM samples"

[table.landed]
from = "samples"
path = "tables/landed"

[table.through]
from = "same"
path = "tables/through"
"""


def put(session: elea.Session, numbers: range) -> None:
    session.put_batch([(f"fleet/{number % 3}", b'{"n": %d}' % number) for number in numbers])


def rows(place: Path, table: str) -> list[dict[str, Any]]:
    found = DeltaTable(place / "tables" / table).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["value"]["n"])


def test_samples_as_they_are_land_once(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    file = tmp_path / "plain.toml"
    file.write_text(FILE.format(locator=broker.locator))
    spec = specreader.read(file)
    put(session, range(500))
    first = runner.run(spec, spark, once=True)
    forget_last_commit(tmp_path / "state", "landed")
    put(session, range(500, 800))
    second = runner.run(spec, spark, once=True)
    runner.run(spec, spark, backfill=True)

    told = [{one.name: one for one in report.sinks} for report in (first, second)]
    assert rows(tmp_path, "landed") == rows(tmp_path, "through")
    assert [row["value"]["n"] for row in rows(tmp_path, "landed")] == list(range(800))
    assert [(each["landed"].rows_in, each["landed"].rows_out) for each in told] == [(500, 500), (300, 300)]
    assert told[1]["landed"].repeated == 1
    assert sum(figures.rows for figures in told[0]["landed"].figures) == 500


def test_only_what_nothing_is_done_to_lands(tmp_path: Path) -> None:
    file = tmp_path / "plain.toml"
    file.write_text(FILE.format(locator="tcp/127.0.0.1:7447"))
    spec = specreader.read(file)
    landed, through = spec.tables
    rule = Expectation(name="known", check="value.n > 0", otherwise="drop")
    (source,) = spec.sources

    assert landing_source(spec, landed) is source
    assert landing_source(spec, through) is None
    for other in (
        replace(landed, expect=(rule,)),
        replace(landed, partition_by=("key",)),
        replace(landed, format="parquet"),
        replace(landed, mode="complete"),
    ):
        assert landing_source(spec, other) is None
    assert landing_source(replace(spec, sources=(replace(source, batch=True),)), landed) is None
    assert landing_source(replace(spec, sources=(replace(source, event_time="value.at"),)), landed) is None
