"""`elea check-config`: every problem with its line, and what to write instead."""

from __future__ import annotations

import json

import pytest

from elea.cli.check_config import lines_of, problems_in
from tests.unit.cli.conftest import Elea

BAD = b"""{
  // a comment with "mode": 1
  mode: 'clint',
  connect: { endpoint: ["tcp/a:1"] },
  listen: {
    endpoints: [
      "tcp/127.0.0.1:7447",
      5,
    ],
  },
}
"""


def test_valid_configuration(elea: Elea) -> None:
    assert elea("check-config", "-", stdin=b"{mode: 'router'}").out == "-  valid\n"
    assert json.loads(elea("check-config", "-", "--json", stdin=b"{}").out) == {"file": "-", "valid": True}


def test_entries_without_effect_are_told(elea: Elea) -> None:
    text = b"{transport: {link: {tx: {threads: 4}}}}"

    assert elea("check-config", "-", stdin=text).lines[0] == (
        "-  transport/link/tx/threads  has no effect here: one loop serves all links"
    )
    told = json.loads(elea("check-config", "-", "--json", stdin=text).out)
    assert told["without_effect"] == {"transport/link/tx/threads": "one loop serves all links"}


def test_every_problem_is_told_with_its_line(elea: Elea) -> None:
    result = elea("check-config", "-", "--json", stdin=BAD)

    found = [json.loads(line) for line in result.lines]
    assert result.status == 1
    assert [(form["line"], form["path"]) for form in found] == [
        (3, "mode"),
        (4, "connect/endpoint"),
        (8, "listen/endpoints[1]"),
    ]
    assert found[1]["hint"] == "did you mean 'endpoints'?"
    assert json.loads(result.err) == {
        "error": "no", "status": 1, "problem": "elea check-config: -: 3 problems", "hint": "did you mean 'client'?",
    }  # fmt: skip


def test_human_output_names_file_line_path_and_hint(elea: Elea, tmp_path: object) -> None:
    file = f"{tmp_path}/bad.json5"
    with open(file, "wb") as stream:
        stream.write(BAD)
    result = elea("check-config", file)

    assert result.status == 1
    assert result.lines[0] == f'{file}:3  mode  \'clint\' is not one of "router", "peer", "client"'
    assert result.lines[1] == "  did you mean 'client'?"


def test_text_that_is_no_json5_is_told_with_line_and_column() -> None:
    (problem,) = problems_in("{\n  mode:\n}")

    assert (problem.line, problem.path) == (3, "column 1")


def test_locators_that_cannot_work_are_problems() -> None:
    (problem,) = problems_in("{\nconnect: {endpoints: ['tcp/nowhere']}}")

    assert (problem.line, problem.path) == (2, "connect/endpoints[0]")
    assert "no port" in problem.problem


def test_toml_is_checked_too(elea: Elea, tmp_path: object) -> None:
    file = f"{tmp_path}/bad.toml"
    with open(file, "w") as stream:
        stream.write("mode = 'clint'\n[scouting]\ntimeout = 'x'\n")

    found = [json.loads(line) for line in elea("check-config", "--json", file).lines]
    assert [form["path"] for form in found] == ["mode", "scouting/timeout"]
    assert problems_in("a = \n", ".toml")[0].line == 1


@pytest.mark.parametrize("name", ["/does/not/exist.json5", "/"])
def test_file_that_cannot_be_read_is_wrong_usage(elea: Elea, name: str) -> None:
    assert elea("check-config", name).status == 2


def test_control_characters_of_a_file_do_not_reach_the_terminal(elea: Elea) -> None:
    result = elea("check-config", "-", stdin=b"{mode: '\\x1b[2J', '\\x1b]0;x': 1}")

    assert result.status == 1
    assert "\x1b" not in result.out + result.err


def test_lines_follow_nesting_lists_and_quotes() -> None:
    text = "{'a': {\n\"b\": [{c: 1},\n{c: 2}]},\n d: /* x:\n*/ 'a: b'}"

    assert lines_of(text) == {"a": 1, "a/b": 2, "a/b[0]": 2, "a/b[0]/c": 2, "a/b[1]": 3, "a/b[1]/c": 3, "d": 4}
