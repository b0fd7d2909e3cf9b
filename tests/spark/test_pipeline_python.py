"""Functions of Python in pipelines: steps, functions of SQL, batches; schedules, metrics, backfills of one table."""

from __future__ import annotations

import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import elea
from elea.model.errors import ConfigError, PipelineChanged
from elea.spark.pipeline import check, runner, specreader
from elea.spark.pipeline.report import Report
from tests.interop.inbox import free_port
from tests.interop.storing import StoringBroker
from tests.spark.test_delta import forget_last_commit

FILE = """
[pipeline]
name = "functions"
connect = "{locator}"
{head}

[source.numbers]
keyexpr = "numbers/*"
format = "json"
schema = "n BIGINT"

[function.halved]
python = "{module}:halved"
returns = "DOUBLE"

[step.even]
python = "{module}:even"
from = "numbers"

[step.halves]
sql = "SELECT key, n, halved(n) AS half, word FROM even"

[table.halves]
from = "halves"
path = "tables/halves"

[table.raw]
from = "numbers"
path = "tables/raw"

[foreach.told]
from = "even"
python = "{module}:told"
"""
CODE = """
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, udf


def halved(n):
    return None if n is None else n / 2


@udf("string")
def word(n):
    return "x" * n


def even(numbers: DataFrame) -> DataFrame:
    return numbers.select("key", col("value.n").alias("n")).where("n % {divisor} = 0").withColumn("word", word("n"))


def told(batch, number):
    with Path({place!r}).open("a") as file:
        file.write(f"{{number}} {{sorted(row.n for row in batch.collect())}}\\n")
"""


class Project:
    """A file and its module; a name of its own for each test, for a process imports a name once."""

    def __init__(self, spark: Any, broker: StoringBroker, place: Path, module: str) -> None:
        self._spark = spark
        self._locator = broker.locator
        self._module = module
        self.place = place

    def write(self, divisor: int = 2, head: str = "") -> Path:
        code = CODE.format(divisor=divisor, place=str(self.place / "told"))
        (self.place / f"{self._module}.py").write_text(code)
        file = self.place / "functions.toml"
        file.write_text(FILE.format(locator=self._locator, module=self._module, head=head))
        return file

    def run(self, divisor: int = 2, head: str = "", once: bool = True, **more: Any) -> Report:
        return runner.run(specreader.read(self.write(divisor, head)), self._spark, once=once, **more)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        found = pa.table(DeltaTable(self.place / "tables" / table).scan(list(columns)))
        return sorted(zip(*(found[name].to_pylist() for name in columns), strict=True))


def put(session: elea.Session, *numbers: int) -> None:
    session.put_batch([(f"numbers/{n % 3}", f'{{"n": {n}}}') for n in numbers], timeout=60)


def test_functions_make_steps_and_get_batches_and_their_change_is_refused(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    project = Project(spark, broker, tmp_path, "functions_of_steps")
    spec, problems = check.check(project.write(), spark=lambda: spark)
    put(session, 1, 2, 3, 4)
    report = project.run()
    forget_last_commit(tmp_path / "state", "told")
    put(session, 5, 6)
    project.run()

    assert problems == []
    assert spec is not None
    assert project.rows("halves", "n", "half", "word") == [(2, 1.0, "xx"), (4, 2.0, "xxxx"), (6, 3.0, "xxxxxx")]
    # At least once: the batch of which Spark did not know comes again, with its number.
    assert (tmp_path / "told").read_text().splitlines() == ["0 [2, 4]", "0 [2, 4]", "1 [6]"]
    assert [(one.name, one.kind, one.rows_in) for one in report.sinks][2] == ("told", "foreach", 2)
    with pytest.raises(PipelineChanged, match=r"table halves: step even \(code\)"):
        project.run(3)


def test_one_table_is_computed_anew_and_the_others_stay(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    project = Project(spark, broker, tmp_path, "functions_of_tables")
    put(session, 1, 2, 3, 4, 6)
    project.run()
    version = DeltaTable(tmp_path / "tables" / "raw").version()
    with pytest.raises(ConfigError, match="table halfs: there is no such table"):
        project.run(backfill=True, tables=["halfs"])
    project.run(3, backfill=True, tables=["halves"])
    again = project.run(3)
    put(session, 9)
    project.run(3)

    assert project.rows("halves", "n") == [(3,), (6,), (9,)]
    assert DeltaTable(tmp_path / "tables" / "raw").version() == version + 1
    assert len(project.rows("raw", "key")) == 6
    assert again.notes == (
        "foreach told: what is done from now on has another definition: step even (code), foreach told (code)",
    )


def test_runs_follow_each_other_and_figures_are_served(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path
) -> None:
    project = Project(spark, broker, tmp_path, "functions_of_runs")
    port = free_port()
    reports: list[Report] = []
    pages: list[str] = []
    stop = threading.Event()
    put(session, 2)

    def finished(report: Report) -> None:
        reports.append(report)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            pages.append(answer.read().decode())
        put(session, 2 + 2 * len(reports))
        if len(reports) == 2:
            stop.set()

    begun = time.monotonic()
    project.run(
        head='every = "3 seconds"', once=False, stop=stop, finished=finished, metrics=f"127.0.0.1:{port}"
    )  # fmt: skip

    assert time.monotonic() - begun >= 6
    assert [one.ended for one in reports] == ["done", "done"]
    assert project.rows("halves", "n")[:2] == [(2,), (4,)]
    assert 'elea_pipeline_rows_out_total{pipeline="functions",sink="halves",kind="table"} 1' in pages[0]
