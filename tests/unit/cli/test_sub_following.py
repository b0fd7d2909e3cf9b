"""`elea sub` with what a broker has kept: --history, --since, --cursor; and --pull."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from elea.cli import main
from elea.cli.sub import since
from elea.model.timestamp import ns_from_ntp64
from tests.unit.api.logkeeper import LogKeeper
from tests.unit.cli.conftest import Elea


@pytest.fixture
def keeper() -> Iterator[LogKeeper]:
    made = LogKeeper()
    made.put("0", "1", "2", "3", "4")
    yield made
    made.close()


def values(out: str) -> list[str]:
    return [json.loads(line)["value"] for line in out.splitlines()]


def test_history_prints_the_last_samples(elea: Elea, keeper: LogKeeper) -> None:
    result = elea("sub", "k/**", "--history", "2", "-n", "2", "--json", "-e", keeper.locator)

    assert (result.status, values(result.out)) == (0, ["3", "4"])


def test_since_a_position_or_a_time(elea: Elea, keeper: LogKeeper) -> None:
    time = datetime.fromtimestamp(ns_from_ntp64(keeper.clock) / 1e9 - 1.5, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    position = elea("sub", "k/**", "--since", "1", "-n", "2", "--json", "-e", keeper.locator)
    instant = elea("sub", "k/**", "--since", time, "-n", "2", "--json", "-e", keeper.locator)

    assert (values(position.out), values(instant.out)) == (["1", "2"], ["3", "4"])


def test_a_cursor_goes_on_behind_what_was_printed(elea: Elea, keeper: LogKeeper) -> None:
    words = ("sub", "k/**", "--cursor", "c", "--json", "-e", keeper.locator)

    first = elea(*words, "--since", "0", "-n", "2")
    second = elea(*words, "-n", "3")

    assert (values(first.out), values(second.out)) == (["0", "1"], ["2", "3", "4"])
    assert keeper.log.cursor("c") == 5


def test_a_key_that_nobody_keeps_ends_with_what_to_do(elea: Elea, keeper: LogKeeper) -> None:
    result = elea("sub", "other/**", "--history", "1", "-e", keeper.locator)

    assert result.status == 1
    assert "--persist" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("k/a", "k/b", "--history", "1"),
        ("k/a", "--history", "1", "--since", "0"),
        ("k/a", "--since", "yesterday"),
        ("k/a", "--history", "0"),
    ],
)
def test_options_that_do_not_fit_are_refused(elea: Elea, keeper: LogKeeper, words: tuple[str, ...]) -> None:
    try:
        status = elea("sub", *words, "-e", keeper.locator).status
    except SystemExit as end:  # argparse leaves by itself
        status = int(str(end.code))

    assert status == 2


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("0", 0),
        ("12", 12),
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("2024-01-31T12:00:00Z", datetime(2024, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_ways_to_say_since_when(text: str, when: object) -> None:
    assert since(text) == when


def test_pull_prints_what_has_come_when_a_line_is_entered(
    keeper: LogKeeper, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Typing:
        """Each line is entered after a sample has been put."""

        def readline(self) -> str:
            keeper.session.put("k/live", "x")
            return "\n"

    monkeypatch.setattr("sys.stdin", Typing())

    status = main(["sub", "k/live", "--pull", "-n", "2", "--json", "-e", keeper.locator])

    assert (status, values(capsys.readouterr().out)) == (0, ["x", "x"])


def test_pull_with_a_cursor_prints_what_was_kept_and_goes_on_there(
    keeper: LogKeeper, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Typing:
        """One line is entered."""

        def __init__(self) -> None:
            self.left = 1

        def readline(self) -> str:
            self.left -= 1
            return "\n" if self.left >= 0 else ""

    words = ["sub", "k/pulled", "--pull", "--json", "-e", keeper.locator, "--cursor", "reader"]
    found = []
    for start, puts in ((["--since", "0"], ["0", "1"]), ([], ["2"])):
        keeper.put(*puts, key="k/pulled", live=False)
        monkeypatch.setattr("sys.stdin", Typing())
        assert main([*words, *start]) == 0
        found.append(values(capsys.readouterr().out))

    assert found == [["0", "1"], ["2"]]
    assert keeper.log.cursor("reader") == keeper.log.end
