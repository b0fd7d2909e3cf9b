"""`elea demo` on the command line: what it refuses, and how it tells the accounts."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from elea.cli import main
from elea.cli.demo import _Show
from elea.cli.output import Output
from elea.demo import processes
from elea.demo.judge import judge
from elea.demo.stage import Outcome
from tests.unit.demo.evidences import evidence, outcome


def show(outcome: Outcome, report: Path, *, as_json: bool = False) -> _Show:
    made = _Show(Output(argparse.Namespace(json=as_json, color="never")), report)
    made.outcome(outcome)
    return made


def test_missing_package_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "find_spec", lambda name: None if name == "pyspark" else name)

    assert main(["demo"]) == 2

    said = capsys.readouterr().err
    assert "pyspark" in said
    assert "pip install '.[demo]'" in said


def test_place_that_is_not_empty_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()

    assert main(["demo", "--place", str(tmp_path)]) == 2

    assert "is not empty" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_rate_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--rate", "0"]) == 2
    assert "--rate" in capsys.readouterr().err


def test_good_accounts_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = show(outcome(), tmp_path / "page.html")

    said = capsys.readouterr().out
    assert shown.is_good
    assert "172 samples put, driver <&> killed: 0 lost, 0 duplicated" in said
    assert "first result after 1.2 s, all done after 20.0 s" in said
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_bad_accounts_are_not_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = evidence()
    bad = replace(outcome(), verdict=judge(replace(found, received=found.received[1:])))

    shown = show(bad, tmp_path / "page.html", as_json=True)

    form = json.loads(capsys.readouterr().out)
    assert not shown.is_good
    assert (form["lost"], form["is_good"]) == (1, False)
    assert [one["what"] for one in form["checks"] if one["lost"]] == ["alerts received"]
