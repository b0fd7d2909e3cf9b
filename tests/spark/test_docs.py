"""The examples of docs/spark.md and the README, run in their order with a broker that has something to read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import elea
from tests.interop.storing import StoringBroker

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "spark.md"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_examples_of_the_page_run(
    spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path, capsys: Any
) -> None:
    session.put_batch([(f"fleet/{at}", f'{{"speed": {at}.5, "name": "robot"}}') for at in range(6)], timeout=60)
    names: dict[str, Any] = {"__name__": "example", "broker": broker.locator, "place": str(tmp_path), "spark": spark}

    for code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(compile(code, str(PAGE), "exec"), names)

    assert "fleet/5" in capsys.readouterr().out
    assert spark.read.parquet(f"{tmp_path}/fast").count() == 4


def test_example_of_the_readme_runs(spark: Any, broker: StoringBroker, session: elea.Session, tmp_path: Path) -> None:
    [code] = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "example", "broker": broker.locator, "place": str(tmp_path)}

    session.put("fleet/readme", "1", ack=True, timeout=60)

    exec(compile(code, "README.md", "exec"), names)
    names["query"].processAllAvailable()
    names["query"].stop()

    assert DeltaTable(tmp_path / "bronze").to_pyarrow_table().column("key").to_pylist().count("fleet/readme") == 1
