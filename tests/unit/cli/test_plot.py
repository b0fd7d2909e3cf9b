"""`elea plot`: captures and live samples, in the terminal and into files."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import start_broker
from tests.unit.cli.test_capture import client, publisher
from tests.unit.recorder.samples import batch_of, row, written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [row(n, key=f"home/{n % 2}/temp", payload=b'{"t": %d, "name": "x"}' % (n % 7)) for n in range(100)]
    return written(tmp_path / "a.mcap", [batch_of(rows)])[0]


def test_capture_is_drawn_in_the_terminal(elea: Elea, path: Path) -> None:
    result = elea("plot", str(path), "--field", "t", "--width", "60", "--height", "8")

    assert result.status == 0
    assert result.lines[0].startswith("t of a.mcap, from 2023-11-14T22:13:20Z")
    assert len(result.lines) == 1 + 8 + 1 + 1
    assert result.lines[-1] == "━ home/0/temp  ━ home/1/temp"
    assert "⠀" < max("".join(result.lines[1:9])) <= "⣿"
    assert "\x1b" not in result.out


def test_values_are_told_in_json(elea: Elea, path: Path) -> None:
    result = elea("plot", str(path), "--field", "t", "--key", "home/1/*", "--where", "t > 4", "--json")

    (form,) = map(json.loads, result.lines)
    assert (form["key"], form["field"]) == ("home/1/temp", "t")
    assert form["values"] == [float(n % 7) for n in range(1, 100, 2) if n % 7 > 4]
    assert len(form["times"]) == len(form["values"])


def test_page_and_picture_are_written(elea: Elea, path: Path, tmp_path: Path) -> None:
    page = elea("plot", str(path), "--field", "t", "-o", str(tmp_path / "t.html"))
    picture = elea("plot", str(path), "--field", "t", "-o", str(tmp_path / "t.png"))

    assert (page.status, picture.status) == (0, 0)
    assert page.out == f"drawn  100 values to {tmp_path / 't.html'}\n"
    text = (tmp_path / "t.html").read_text()
    assert text.count("<polyline") == 2
    assert "http" not in text
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_what_cannot_be_drawn_is_told(elea: Elea, path: Path, tmp_path: Path) -> None:
    name = elea("plot", str(path), "--field", "name")
    bad = elea("plot", str(path), "--field", "t >")
    pdf = elea("plot", str(path), "-o", "a.pdf")
    nothing = elea("plot", str(tmp_path / "b.mcap"))
    neither = elea("plot", "a//b")

    assert [each.status for each in (name, bad, pdf, nothing, neither)] == [1, 2, 2, 1, 2]
    assert "no number called name in" in name.err
    assert "0 values, 100 that are no numbers, 0 samples that cannot be read" in name.err
    assert "'t >' is no field such as speed or pos.x" in bad.err
    assert "a.pdf ends with neither .png nor .html" in pdf.err


def test_cut_capture_is_drawn_and_told(elea: Elea, path: Path) -> None:
    os.truncate(path, path.stat().st_size - 300)

    result = elea("plot", str(path), "--field", "t")

    assert result.status == 0
    assert "ends before it is whole" in result.err


@pytest.fixture
def broker() -> Iterator[str]:
    running, locator = start_broker()
    with running:
        yield locator


def test_samples_are_drawn_as_they_come(elea: Elea, broker: str) -> None:
    enough = threading.Event()

    def put() -> None:
        with client(broker) as session:
            samples = publisher(session)
            while not enough.wait(0.02):
                samples.put('{"t": 21.5}', encoding="application/json")

    other = threading.Thread(target=put)
    other.start()
    try:
        result = elea("plot", "home/**", "--field", "t", "-n", "10", "--json", "-e", broker)
    finally:
        enough.set()
        other.join()

    assert result.status == 0
    (form,) = map(json.loads, result.lines)
    assert form["key"] == "home/1"
    assert len(form["values"]) >= 10
    assert set(form["values"]) == {21.5}
