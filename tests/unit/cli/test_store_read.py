"""`elea store read` from a broker over real sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elea.cli import store_read
from tests.unit.cli.conftest import Elea
from tests.unit.node.storage.serving import Broker, broker

HOME = {"key_expr": "home/**", "volume": "log"}
SAMPLES = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("log"), home=HOME) as one:
        for number in range(SAMPLES):
            one.session.put(f"home/{number % 3}", f"v{number}", ack=True, encoding="text/plain")
        one.session.delete("home/0", ack=True)
        yield one


def positions(out: str) -> list[int]:
    return [json.loads(line)["position"] for line in out.splitlines()]


def test_samples_are_printed_with_their_positions(elea: Elea, made: Broker) -> None:
    lines = elea("store", "read", made.locator, "home/*")
    forms = elea("store", "read", made.locator, "home/*", "--json")

    assert (lines.status, forms.status) == (0, 0)
    assert len(lines.lines) == SAMPLES + 1
    assert lines.lines[1].split()[0] == "1"
    assert "home/1" in lines.lines[1]
    assert "v1" in lines.lines[1]
    first, *_, last = map(json.loads, forms.lines)
    assert (first["position"], first["key"], first["value"], first["encoding"]) == (0, "home/0", "v0", "text/plain")
    assert (last["position"], last["kind"]) == (SAMPLES, "delete")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from", "10"), [10, 11, 12]),
        (("--from", "2", "--to", "5"), [2, 3, 4]),
        (("--limit", "2", "--newest"), [12, 11]),
        (("--time", "[now(-1h)..]", "-n", "3"), [0, 1, 2]),
    ],
)
def test_part_of_it(elea: Elea, made: Broker, options: tuple[str, ...], expected: list[int]) -> None:
    assert positions(elea("store", "read", made.locator, "home/**", "--json", *options).out) == expected


def test_keys_are_chosen(elea: Elea, made: Broker) -> None:
    assert positions(elea("store", "read", made.locator, "home/2", "--json").out) == [2, 5, 8, 11]


def test_files(elea: Elea, made: Broker, tmp_path: Path) -> None:
    arrow, parquet = tmp_path / "some.arrows", tmp_path / "some.parquet"

    told = elea("store", "read", made.locator, "home/**", "--arrow", str(arrow), "--json")
    said = elea("store", "read", made.locator, "home/**", "--parquet", str(parquet), "--from", "3")

    form = json.loads(told.out)
    assert (form["samples"], form["log"], form["next"], form["end"]) == (13, "home", 13, 13)
    assert "10 samples of log home" in said.out
    assert pa.ipc.open_stream(arrow.read_bytes()).read_all().column("position").to_pylist() == list(range(13))
    assert pq.read_table(parquet).column("payload").to_pylist()[0] == b"v3"
    assert sorted(os.listdir(tmp_path)) == ["some.arrows", "some.parquet"]


def test_an_empty_range_is_a_file_without_rows_and_a_negative_answer(elea: Elea, made: Broker, tmp_path: Path) -> None:
    file = tmp_path / "none.parquet"

    printed = elea("store", "read", made.locator, "home/9")
    written = elea("store", "read", made.locator, "home/9", "--parquet", str(file))

    assert (printed.status, printed.out) == (1, "")
    assert written.status == 0
    assert pq.read_table(file).num_rows == 0


def test_standard_output_is_nothing_but_the_stream(made: Broker) -> None:
    command = [sys.executable, "-m", "elea", "store", "read", made.locator, "home/**", "--arrow", "-"]

    ended = subprocess.run(command, capture_output=True, timeout=120)

    assert pa.ipc.open_stream(ended.stdout).read_all().num_rows == 13
    assert ended.stderr == b""


def test_what_was_not_read_to_its_end_leaves_no_file(
    elea: Elea, made: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise OSError(28, "No space left on device", "some.arrows")

    monkeypatch.setattr(store_read, "_progress", broken)
    result = elea("store", "read", made.locator, "home/**", "--arrow", str(tmp_path / "some.arrows"))

    assert result.status == 1
    assert "No space left" in result.err
    assert not os.listdir(tmp_path)


def test_mistakes_are_told_what_to_do(elea: Elea, made: Broker, tmp_path: Path) -> None:
    file = str(tmp_path / "f")
    cases = {
        ("tcp/127.0.0.1:1", "home/**"): (3, ""),
        ("nonsense", "home/**"): (2, "tcp/"),
        (made.locator,): (2, "home/**"),
        (made.locator, "a//b"): (2, "elea store read"),
        (made.locator, "elsewhere/**"): (1, ""),
        (made.locator, "home/**", "--time", "yesterday"): (2, "--time"),
        (made.locator, "home/**", "--arrow", file, "--parquet", file): (2, "one of them"),
        (made.locator, "home/**", "--parquet", str(tmp_path / "no" / "f")): (1, "another FILE"),
    }
    for words, (status, hint) in cases.items():
        result = elea("store", "read", *words, "--timeout", "2")
        assert (result.status, result.out) == (status, ""), (words, result)
        assert hint in result.err, (words, result)
