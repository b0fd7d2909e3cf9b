"""The pipeline file of the demo: good, and with the numbers that the accounts rely on."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from elea.demo.evidence import TABLES
from elea.demo.judge import WATERMARK_SECONDS, WINDOW_SECONDS
from elea.demo.stage import LOCATOR_OF_FILE
from elea.demo.world import HOT
from elea.spark.pipeline.specreader import read


def test_accounts_and_pipeline_agree(tmp_path: Path) -> None:
    text = files("elea.demo").joinpath("demo.toml").read_text(encoding="utf-8")
    file = tmp_path / "demo.toml"
    file.write_text(text)

    spec = read(file)

    assert text.count(LOCATOR_OF_FILE) == 1
    paths = {table.name: str(Path(table.path).relative_to(tmp_path)) for table in spec.tables}
    quarantine = next(table.quarantine for table in spec.tables if table.name == "silver_robots")
    assert quarantine is not None
    assert {**paths, "quarantine": str(Path(quarantine).relative_to(tmp_path))} == TABLES
    steps = {step.name: step.sql for step in spec.steps}
    assert f"window(timestamp, '{WINDOW_SECONDS} seconds')" in steps["floors"]
    assert f"temperature > {HOT:g}" in steps["hot_robots"]
    (lights,) = (source for source in spec.sources if source.name == "lights")
    assert lights.watermark is not None
    assert lights.watermark.seconds == WATERMARK_SECONDS
