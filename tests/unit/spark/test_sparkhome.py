"""The home of Spark: everything of the package but the archive that makes its Python processes slow to start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from elea.spark.sparkhome import remove_scratch, spark_home, sweep_scratch, took_scratch


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "pyspark"
    for name in ("bin", "jars", "python"):
        (made / name).mkdir(parents=True)
    (made / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return made


def test_home_has_everything_but_the_archive(package: Path) -> None:
    home = spark_home(package)

    assert (home / "bin" / "spark-submit").exists()
    assert (home / "jars").exists()
    assert not (home / "python").exists()
    assert spark_home(package) == home != package


def test_home_is_made_again_where_the_package_has_more_than_it(package: Path) -> None:
    home = spark_home(package)
    (package / "conf").mkdir()

    assert spark_home(package) == home
    assert (home / "conf").exists()


def test_other_python_gets_the_archive(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable + "-other")

    assert spark_home(package) == package


def test_place_that_cannot_be_written_is_done_without(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "symlink_to", refuse)

    assert spark_home(package) == package


def test_directories_of_clusters_are_removed_when_nobody_uses_them(tmp_path: Path) -> None:
    work = tmp_path / "work"
    mine, killed, old, new = (work / f"app-{number}" for number in range(4))
    for place in (mine, killed, old, new):
        (place / "0").mkdir(parents=True)
    took_scratch(tmp_path, mine.name)
    (work / f"{killed.name}.driver").write_text("999999999")  # no process has such a number
    os.utime(old, (0, 0))

    sweep_scratch(tmp_path)
    swept = sorted(path.name for path in work.iterdir())
    remove_scratch(tmp_path, mine.name)

    assert swept == ["app-0", "app-0.driver", "app-3"]
    assert [path.name for path in work.iterdir()] == ["app-3"]
