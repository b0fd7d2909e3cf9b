"""Which Java is taken: the machine's if Spark can start with it, else the one from pip behind its shim."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elea.model.errors import ConfigError
from elea.spark import java
from elea.spark.sparksession import cores_of, settings_for

OLD = "#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n"
NEW = "#!/bin/sh\necho 'openjdk version \"21.0.8\" 2025-07-15' >&2\n"
WITHOUT_MODULE = "#!/bin/sh\nfor a; do case $a in --add-modules*) echo 'Module not found' >&2; exit 1;; esac; done\n"


def home(place: Path, text: str) -> Path:
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(text)
    program.chmod(0o755)
    return place


@pytest.mark.parametrize(
    ("text", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "17.0.15" 2025', 17), ("no", 0)]
)
def test_versions_are_read(text: str, version: int) -> None:
    assert java.major(text) == version


def test_a_java_that_does_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = home(tmp_path / "good", NEW)
    monkeypatch.setenv("JAVA_HOME", str(good))

    assert java.ensure() == str(good)


@pytest.mark.parametrize("text", [OLD, WITHOUT_MODULE, None])
def test_one_that_does_not_gives_way_to_that_of_the_path(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad" if text is None else home(tmp_path / "bad", text)
    good = home(tmp_path / "good", NEW)
    monkeypatch.setenv("JAVA_HOME", str(bad))
    monkeypatch.setenv("PATH", f"{good / 'bin'}:{os.environ['PATH']}")

    assert java.ensure() == str(good)
    assert os.environ["JAVA_HOME"] == str(good)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script is no program there")
def test_the_java_of_pip_starts_with_what_spark_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_on_path", lambda: None)

    found = java.ensure()

    assert Path(found).is_relative_to(tmp_path)
    words = [f"{found}/bin/java", "-Dx=a b", java.MODULE, "-version"]
    assert "version" in subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert java.ensure() == found


def test_without_any_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_on_path", lambda: None)
    monkeypatch.setattr(java, "pip_java_home", lambda: None)

    with pytest.raises(ConfigError, match=r"Java 17 or newer.*pip install"):
        java.ensure()


def test_settings_depend_on_where_spark_runs() -> None:
    masters = {"local[3]": 3, "local[2,4]": 2, "local-cluster[2,3,1024]": 6, "spark://x": 2, "sc://x": 2}
    assert {text: cores_of(text) for text in masters} == masters
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    assert manager in settings_for("local[2]", ui=False)
    assert manager not in settings_for("spark://host:7077", ui=False)
    assert settings_for("sc://host", ui=True) == {"spark.sql.session.timeZone": "UTC"}


def test_its_place_is_printed_for_shells(tmp_path: Path) -> None:
    good = home(tmp_path / "good", NEW)

    done = subprocess.run(
        [sys.executable, "-m", "elea.spark.java"],
        capture_output=True, text=True, check=True, env={**os.environ, "JAVA_HOME": str(good)},
    )  # fmt: skip

    assert done.stdout == f"{good}\n"
    assert done.stderr == ""


def test_that_there_is_none_is_told_to_shells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_on_path", lambda: None)
    monkeypatch.setattr(java, "pip_java_home", lambda: None)

    assert java.main() == 1
    assert capsys.readouterr() == (
        "",
        "JAVA_HOME: Spark needs Java 17 or newer and none was found; "
        "install a JDK and set JAVA_HOME to it, or run in a clone of Elea: pip install '.[spark]'\n",
    )
