"""What verbs print of samples that others sent."""

from __future__ import annotations

import argparse
import sys
import threading
from io import StringIO

import pytest

from elea.cli.output import Output, safe, say, value_text
from elea.cli.ping import histogram, quantile


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\x9b0m", "\u202e", "\x00", "\ud800"])
def test_nothing_that_steers_a_terminal_is_printed(text: str) -> None:
    assert safe(text).isprintable()


def test_values_are_text_hex_or_cut() -> None:
    assert value_text(b"21.5") == "21.5"
    assert value_text("grün".encode()) == "grün"
    assert value_text(b"a\nb") == "a\\nb"
    assert value_text(b"\x00\x01\x02\x03") == "00 01 02 03  (4 octets)"
    assert value_text(b"\xff" * 40).endswith("ff …  (40 octets)")
    assert value_text(b"x" * 300, width=10) == "xxxxxxxxxx…  (300 octets)"


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    args = argparse.Namespace(json=False, color="never")
    for stream, shown in ((StringIO(), ""), (Terminal(), "\r\x1b[K5 sent")):
        monkeypatch.setattr(sys, "stderr", stream)
        Output(args).progress("5 sent")
        assert stream.getvalue() == shown


def test_histogram_counts_everything_once() -> None:
    assert histogram([5, 5]) == [(5, 5, 2)]
    assert sum(count for _, _, count in histogram(list(range(1, 1000)))) == 999
    assert (quantile([7], 0.99), quantile([1, 2, 3, 4], 0.5)) == (7, 2)


def test_lines_of_several_threads_stay_whole(capfd: pytest.CaptureFixture[str]) -> None:
    def speak(name: str) -> None:
        for number in range(300):
            say(f"{name} {number}")

    threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in "abcd" for number in range(300))
