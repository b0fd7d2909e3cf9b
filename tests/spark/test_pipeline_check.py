"""What `elea pipeline check` finds with Spark's help, and that what it sees without agrees with Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
from elea.cli import main
from elea.spark.pipeline import ddl, sqltext, starter
from elea.spark.pipeline.check import check
from elea.spark.pipeline.problem import Problem, Wrong
from tests.interop.storing import StoringBroker
from tests.unit.spark.pipeline_mistakes import GOOD, step, table

WATERMARK = GOOD.replace("[table", 'watermark = "10 seconds"\n[table')

# ruff: noqa: E501
# As in tests/unit/spark: a name, the file with `<<<` in the line that is meant, parts of the cause and of the fix.
MISTAKES = [
    ("a misspelt keyword", GOOD + step("SELECT key,\n  kind\nFROM lights WHER kind = 'PUT' -- <<<") + table("step1"), "yntax error", "misspelt"),
    ("a missing comma", GOOD + step("SELECT key\n  kind timestamp AS at -- <<<\nFROM lights") + table("step1"), "yntax error", "comma"),
    ("an unknown column", GOOD + step("SELECT key,\n  brightnes -- <<<\nFROM lights") + table("step1"), "brightnes", ""),
    ("an unknown field", GOOD + step("SELECT key,\n  value.brightnes AS b -- <<<\nFROM lights") + table("step1"), "brightnes", '"brightness"'),
    ("an unknown function", GOOD + step("SELECT\n  uper(key) AS k -- <<<\nFROM lights") + table("step1"), "uper", "functions"),
    ("a column outside of GROUP BY", WATERMARK + step("SELECT key, count(*) AS n -- <<<\nFROM lights GROUP BY window(timestamp, '1 minute')") + table("step1"), "GROUP BY", "any_value"),
    ("types that do not fit", GOOD + step("SELECT key FROM lights\nWHERE value.brightness > array(1) -- <<<") + table("step1"), "ARRAY", "CAST"),
    ("a rule with an unknown column", GOOD + 'expect = [\n  { name = "bright", check = "value.britness > 0" },  # <<<\n]\n', "britness", '"brightness"'),
    ("a rule that is no SQL", GOOD + 'expect = [ { name = "bright", check = "value.brightness > > 0" } ]  # <<<\n', "yntax error", ""),
    ("a rule that is no condition", GOOD + 'expect = [ { name = "bright", check = "value.brightness" } ]  # <<<\n', "not a boolean", "speed > 0"),
    ("an aggregation that is never final", WATERMARK + step("SELECT key, count(*) AS n FROM lights GROUP BY key") + table("step1").replace('"step1"', '"step1"  # <<<'), "ppend", ""),
    ("a partition of an unknown column", GOOD + step("SELECT * FROM lights") + table("step1", 'partition_by = "floor"  # <<<\n'), "no column floor", "columns are"),
    ("a publish without key", GOOD + step("SELECT value.* FROM lights") + '[publish.alerts]\nfrom = "step1"  # <<<\nformat = "json"\n', "no column key", "AS key"),
    ("a publish with columns that no sample has", GOOD + step("SELECT * FROM lights") + '[publish.alerts]\nfrom = "step1"  # <<<\n', "sn", "json"),
    ("event time that is no time", WATERMARK.replace("[table", 'event_time = "array(1)"  # <<<\n[table'), "event_time", ""),
]  # fmt: skip

SCHEMAS = [
    "a INT, b STRING",
    "a: INT, `b c` ARRAY<MAP<STRING, STRUCT<x: DOUBLE, y DECIMAL(10, 2)>>>",
    "struct<a: int>",
    'a INT COMMENT "it\'s", b DATE',
    "a TIMESTAMP_NTZ COMMENT 'when', b DATE, c BINARY, d BYTE, e LONG, f REAL, g NUMERIC",
    "a VARCHAR(3)",
    "a int, a string",
    "a in",
    "a",
    "a INT,",
    "a INT b INT",
    "a ARRAY<INT",
    "a MAP<STRING>",
    "1a INT",
    "a INT NOT NULL",
    "STRUCT<a INT",
]


def found_in(text: str, tmp_path: Path, spark: Any) -> list[Problem]:
    file = tmp_path / "fleet.toml"
    file.write_text(text, encoding="utf-8")
    return check(file, spark=lambda: spark, reach=False)[1]


@pytest.mark.parametrize(("text", "cause", "fix"), [one[1:] for one in MISTAKES], ids=[one[0] for one in MISTAKES])
def test_mistake_that_spark_finds_has_line_cause_and_fix(
    text: str, cause: str, fix: str, tmp_path: Path, spark: Any
) -> None:
    meant = next(at for at, line in enumerate(text.splitlines(), 1) if "<<<" in line)

    errors = [one for one in found_in(text, tmp_path, spark) if not one.is_warning]

    assert [one.line for one in errors] == [meant], errors
    assert cause in errors[0].what
    assert fix in errors[0].fix
    assert "SQLSTATE" not in errors[0].what
    assert "\n" not in errors[0].what


def test_starter_and_page_are_right_for_spark_and_leave_no_views(tmp_path: Path, spark: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    assert found_in(starter.starter("house"), tmp_path, spark) == []
    assert [found_in(example, tmp_path, spark) for example in examples] == [[], [], []]
    assert "lights" not in [one.name for one in spark.catalog.listTables()]


def test_new_pipeline_runs_against_a_broker_with_a_store(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its first lines tell a new user to do it; samples of a minute ago close a window."""
    file, page = tmp_path / "house.toml", tmp_path / "house.html"
    text = starter.starter("house").replace('connect = "tcp/127.0.0.1:7447"', f'connect = "{broker.locator}"')
    file.write_text(text, encoding="utf-8")
    ago = session.new_timestamp().get_time().timestamp() - 60
    session.put_batch(_lights(12, ago), timeout=60)
    session.put_batch([("myhouse/floor/1/room/1/LightStatus", '{"on": true, "brightness": 5}')], timeout=60)

    assert check(file)[1] == []
    status = main(["pipeline", "run", str(file), "--once", "--json", "--report", str(page)])

    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (status, report["event"], report["ended"]) == (0, "report", "done")
    assert {one["name"]: one["rows_out"] for one in report["sinks"]} == {
        "bronze": 13,
        "silver": 12,
        "gold": 3,
        "bright": 2,
    }
    gold = DeltaTable(tmp_path / "tables" / "gold").to_pyarrow_table().to_pylist()
    assert {one["floor"]: one["samples"] for one in gold} == {"0": 4, "1": 4, "2": 4}
    (bad,) = DeltaTable(tmp_path / "tables" / "silver_quarantine").to_pyarrow_table().to_pylist()
    assert bad["brightness"] == 110
    alerts = {str(one.ok.key_expr) for one in session.get("myhouse/alerts/**", timeout=60) if one.ok is not None}
    assert alerts == {"myhouse/alerts/floor/1/room/0", "myhouse/alerts/floor/2/room/1"}
    assert "<svg" in page.read_text(encoding="utf-8")


def _lights(count: int, at: float) -> pa.Table:
    """Lights of three floors within a second, brighter and brighter, up to 110 %."""
    second = int(at) // 10 * 10 + 1
    return pa.table(
        {
            "key": [f"myhouse/floor/{one % 3}/room/{one % 2}/LightStatus" for one in range(count)],
            "payload": pa.array([f'{{"on": true, "brightness": {one * 10}}}'.encode() for one in range(count)]),
            "ntp64": pa.array([(second << 32) + one for one in range(count)], pa.uint64()),
            "stamp_id": pa.array([b"\x33"] * count),
        }
    )


def test_columns_seen_without_spark_are_those_of_spark(spark: Any) -> None:
    for sql in (
        "SELECT id, id AS n, id m, `id` AS `x y` FROM range(3)",
        "SELECT DISTINCT t.id, window.start FROM (SELECT id, window(timestamp '2026-01-01', '1 day') AS window FROM range(1)) t",
        "WITH t AS (SELECT 1 AS a) SELECT a FROM t UNION ALL SELECT 2",
    ):
        assert list(sqltext.statement(sql).columns or ()) == spark.sql(sql).columns


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_is_right_without_spark_if_it_is_with_spark(schema: str, spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    from elea.model.errors import ConfigError
    from elea.spark.payload import struct_of

    try:
        fields = [name for name in ddl.fields_of(schema) if "." not in name]
    except Wrong:
        fields = []
    try:
        wanted = [field.name for field in struct_of(StructType.fromDDL(schema))]
    except (PySparkException, ConfigError):
        wanted = []

    assert fields == wanted
