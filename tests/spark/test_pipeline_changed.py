"""A pipeline whose file has changed since its tables were computed: no table gets rows of two definitions unnoticed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
from elea.model.errors import PipelineChanged
from elea.spark.pipeline import runner, specreader
from elea.spark.pipeline.definitions import FILE as DEFINITION
from elea.spark.pipeline.report import Report
from tests.interop.storing import StoringBroker

FILE = """
[pipeline]
name = "changed"
connect = "{locator}"
trigger = "{trigger}"

[source.numbers]
keyexpr = "numbers"
format = "json"
schema = "at TIMESTAMP, n BIGINT"
event_time = "value.at"
watermark = "1 second"

[step.windows]
sql = '''
SELECT window.start AS start, count(*) AS n  -- {comment}
FROM numbers GROUP BY window(event_time, '{length}')
'''

[table.raw]
from = "numbers"
path = "tables/raw"

[table.gold]
from = "windows"
path = "tables/gold"
"""
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def test_window_of_another_length_is_refused_until_a_backfill(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    def run(length: str, comment: str = "all", trigger: str = "1 second", **more: Any) -> Report:
        file = tmp_path / "changed.toml"
        file.write_text(FILE.format(locator=broker.locator, length=length, comment=comment, trigger=trigger))
        return runner.run(specreader.read(file), spark, once=True, **more)

    def put(minutes: range) -> None:
        """Six samples a minute."""
        times = (BEGIN + timedelta(minutes=minute, seconds=10 * n) for minute in minutes for n in range(6))
        session.put_batch(
            [("numbers", json.dumps({"at": at.isoformat(), "n": 1})) for at in times], timeout=60
        )  # fmt: skip

    def counts() -> list[int]:
        return sorted(DeltaTable(tmp_path / "tables" / "gold").to_pyarrow_table().column("n").to_pylist())

    put(range(5))
    run("1 minute")
    put(range(5, 9))
    with pytest.raises(PipelineChanged) as refused:
        run("2 minutes")
    before = counts()
    run("1 minute", comment="another", trigger="1 hour")
    goes_on = counts()

    assert refused.value.changed == {"table gold": ("step windows (sql)",)}
    assert before == [6] * 4
    assert goes_on == [6] * 8

    run("2 minutes", backfill=True)
    put(range(9, 13))
    done = run("2 minutes")

    assert counts() == [12] * 6
    assert done.notes == ()
    assert DeltaTable(tmp_path / "tables" / "raw").to_pyarrow_table().num_rows == 13 * 6

    (tmp_path / "state" / "gold" / DEFINITION).unlink()  # as of before there were any
    adopted = run("2 minutes")
    assert [note.split(":")[0] for note in adopted.notes] == ["table gold"]
    assert "note: table gold: its checkpoint is older" in "\n".join(adopted.lines())


ADDED = """
[pipeline]
name = "added"
connect = "{locator}"

[source.numbers]
keyexpr = "numbers"
format = "json"
schema = "n BIGINT{field}"
{metadata}

[step.doubled]
sql = "SELECT n * 2 AS twice{column} FROM parsed"

[step.parsed]
sql = "SELECT value.n AS n{inner} FROM numbers"

[table.raw]
from = "numbers"
path = "tables/raw"

[table.doubled]
from = "doubled"
path = "tables/doubled"

[table.newest]
from = "doubled"
path = "tables/newest"
mode = "merge"
keys = "twice"
"""


def test_columns_that_are_added_need_no_backfill_and_other_changes_are_refused(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    def run(field: str = "", column: str = "", inner: str = "", metadata: str = "", **more: Any) -> Report:
        values = {"field": field, "column": column, "inner": inner, "metadata": metadata, "locator": broker.locator}
        (tmp_path / "added.toml").write_text(ADDED.format(**values))
        return runner.run(specreader.read(tmp_path / "added.toml"), spark, once=True, **more)

    def rows(table: str) -> list[dict[str, Any]]:
        return sorted(pa.table(DeltaTable(tmp_path / "tables" / table).scan()).to_pylist(), key=str)

    session.put("numbers", '{"n": 1, "text": "a"}', ack=True)
    run()
    session.put("numbers", '{"n": 2, "text": "b"}', ack=True)
    report = run(", text STRING", ", text AS said", ", value.text", "metadata = true")
    again = run(", text STRING", ", text AS said", ", value.text", "metadata = true")

    assert rows("doubled") == [{"twice": 2, "said": None}, {"twice": 4, "said": "b"}]
    assert rows("newest") == rows("doubled")
    assert [(row["value"], row["offset"]) for row in sorted(rows("raw"), key=lambda row: row["value"]["n"])] == [
        ({"n": 1, "text": None}, None), ({"n": 2, "text": "b"}, 1),
    ]  # fmt: skip
    assert report.notes[1] == (
        "table doubled gets columns: source numbers (metadata, text STRING), step parsed (value . text), "
        "step doubled (text AS said); rows of before have null there"
    )
    assert again.notes == ()
    for changed in (
        {"field": "", "column": "", "inner": ""},  # columns are gone
        {"field": ", text INT", "column": ", text AS said", "inner": ", value.text"},
        {"field": ", text STRING", "column": ", upper(text) AS said", "inner": ", value.text"},
        {"field": ", text STRING", "column": ", text AS said, explode(split(text, '')) AS c", "inner": ", value.text"},
    ):
        with pytest.raises(PipelineChanged, match="doubled"):
            run(**changed)
    run(", text STRING", ", text AS said", ", value.text", backfill=True)
    assert rows("doubled") == [{"twice": 2, "said": "a"}, {"twice": 4, "said": "b"}]
