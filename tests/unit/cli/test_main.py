"""The command as a whole: usage, colours, start-up, output that nobody reads."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elea.cli import VERBS
from elea.cli.style import STATUS, Style
from tests.unit.cli.conftest import Elea


def test_no_verb_prints_help(elea: Elea) -> None:
    result = elea()

    assert (result.status, result.err) == (0, "")
    assert result.out == elea("--help").out


def test_version(elea: Elea) -> None:
    assert elea("--version").out == f"elea {importlib.metadata.version('elea')}\n"
    assert elea("--version").status == 0


def test_help_lists_the_verbs(elea: Elea) -> None:
    result = elea("--help")

    assert result.status == 0
    assert all(verb in result.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_json_and_color(elea: Elea, verb: str) -> None:
    result = elea(verb, "--help")

    assert result.status == 0
    assert "--json" in result.out
    assert "--color" in result.out


def test_mistyped_verb_gets_a_suggestion(elea: Elea) -> None:
    assert elea("borker") == (2, "", "elea: there is no verb 'borker'\ntry: elea broker\n")
    assert elea("frobnicate") == (2, "", "elea: there is no verb 'frobnicate'\ntry: elea --help\n")


def test_wrong_usage_is_one_line_and_what_to_try(elea: Elea) -> None:
    result = elea("put", "a/b")

    assert result.status == 2
    assert result.err == "elea put: the following arguments are required: VALUE\ntry: elea put --help\n"


@pytest.mark.parametrize(
    ("words", "name", "status"),
    [
        (("put", "--json"), "usage", 2),
        (("borker", "--json"), "usage", 2),
        (("key", "a//b", "--json"), "usage", 2),
        (("check-config", "/does/not/exist", "--json"), "usage", 2),
        (("get", "a", "-e", "tcp/127.0.0.1:1", "--json"), "unreachable", 3),
        (("store", "info", "/does/not/exist", "--json"), "no", 1),
    ],
)
def test_every_error_is_one_json_object(elea: Elea, words: tuple[str, ...], name: str, status: int) -> None:
    result = elea(*words)

    (line,) = result.err.splitlines()
    told = json.loads(line)
    assert result.status == status
    assert (told["error"], told["status"]) == (name, status)
    assert told["problem"]
    assert told["hint"]


def test_exit_codes_are_in_the_help_and_in_the_guide(elea: Elea) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")

    for code, (name, meaning) in STATUS.items():
        assert f"{code} {meaning}" in " ".join(elea("--help").out.split())
        assert f"| {code} | {name} | {meaning} |" in guide


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_every_verb_and_option(elea: Elea, shell: str) -> None:
    script = elea("completion", shell).out

    assert all(verb in script for verb in VERBS)
    assert "retain-age" in script
    assert "best-matching" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["elea", "bro"], ["broker"]),
        (["elea", "store", "ver"], ["verify"]),
        (["elea", "get", "--targ"], ["--target"]),
        (["elea", "get", "--target", "all-"], ["all-complete"]),
    ],
    ids=["verb", "first word", "option", "value"],
)
def test_bash_completes(elea: Elea, words: list[str], found: list[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _elea 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )

    done = subprocess.run(
        ["bash", "-c", f"{elea('completion', 'bash').out}\n{program}"], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == found


def test_colours_follow_the_choice_the_terminal_and_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Style.for_stream(Terminal()).on
    assert not Style.for_stream(io.StringIO()).on
    assert Style.for_stream(io.StringIO(), "always").on
    assert not Style.for_stream(Terminal(), "never").on
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Style.for_stream(Terminal()).on


def test_paint_leaves_text_alone_when_off() -> None:
    assert Style(on=False).paint("x", "red") == "x"
    assert Style(on=True).paint("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"


def test_reader_that_leaves_early_is_no_error() -> None:
    line = "0x00\n" * 50_000
    command = [sys.executable, "-m", "elea", "decode", "--dialect", "zenoh2018", "--unit", "vle", "--json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            process.stdin.write(line.encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        errors = process.stderr.read()

    assert errors == b""
    assert process.returncode == 0


def test_interrupt_ends_quietly(elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("elea.cli.info.run", interrupt)

    assert elea("info") == (130, "", "elea info: interrupted\n")
    assert json.loads(elea("info", "--json").err)["status"] == 130


def test_info_prints_facts(elea: Elea) -> None:
    result = elea("info", "--json")

    facts = json.loads(result.out)
    assert result.status == 0
    assert facts["decoders"] in ("compiled", "interpreted")
    assert facts["python"].startswith("3.")
    assert set(facts["dialects"]) == {"zenoh1", "zenoh2018", "xrce2017"}
    assert all(isinstance(present, bool) for present in facts["extras"].values())
    assert "decoders" in elea("info").out
