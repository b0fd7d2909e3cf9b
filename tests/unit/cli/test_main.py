"""The command as a whole: usage, colours, start-up, output that nobody reads."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from elea.cli import VERBS
from elea.cli.style import Style
from tests.unit.cli.conftest import Elea


def test_no_verb_is_wrong_usage(elea: Elea) -> None:
    result = elea()

    assert (result.status, result.out) == (2, "")
    assert "VERB" in result.err


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


def test_unknown_verb_is_wrong_usage(elea: Elea) -> None:
    assert elea("frobnicate").status == 2


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

    assert elea("info") == (130, "", "")


def test_info_prints_facts(elea: Elea) -> None:
    import json

    result = elea("info", "--json")

    facts = json.loads(result.out)
    assert result.status == 0
    assert facts["decoders"] in ("compiled", "interpreted")
    assert facts["python"].startswith("3.")
    assert set(facts["dialects"]) == {"zenoh1", "zenoh2018", "xrce2017"}
    assert all(isinstance(present, bool) for present in facts["extras"].values())
    assert "decoders" in elea("info").out
