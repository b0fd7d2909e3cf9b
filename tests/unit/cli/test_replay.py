"""`elea replay`, against a real broker on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker
from tests.unit.recorder.samples import NOON, batch_of, row, written
from tests.unit.recorder.sessions import PATIENCE

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    running, locator = start_broker()
    with running:
        yield locator


def test_replay_puts_a_capture_and_tells_how_much(elea: Elea, broker: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n) for n in range(10)])])
    with Running("sub", "home/**", "-n", "4", "-e", broker) as sub:
        sub.wait_for_error("subscribed")
        result = elea("replay", str(path), "--pace", "max", "--where", "speed > 5", "-e", broker)
        lines = [sub.line() for _ in range(4)]

    assert result.status == 0
    assert result.out == "replayed  4 samples, 6 passed over\n"
    assert [line.split()[-1] for line in lines] == [f"{n}}}" for n in (6, 7, 8, 9)]


def test_replay_in_json_is_one_object_at_the_end(elea: Elea, broker: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.parquet", [batch_of([row(n) for n in range(10)])])

    result = elea("replay", str(path), "--pace", "max", "--json", "-e", broker)

    assert json.loads(result.lines[-1]) == {"event": "done", "sent": 10, "passed_over": 0, "dropped": 0}


def test_replay_of_a_cut_file_says_so(elea: Elea, broker: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n)]) for n in range(3)])
    os.truncate(path, path.stat().st_size - 300)

    result = elea("replay", str(path), "--pace", "max", "-e", broker)

    assert result.status == 0
    assert "replayed  3 samples" in result.out
    assert "ends before it is whole" in result.err


def test_replay_of_what_is_none_fails_before_it_connects(elea: Elea, tmp_path: Path) -> None:
    (tmp_path / "a.mcap").write_bytes(b"no capture")

    nothing = elea("replay", str(tmp_path / "b.mcap"), "-e", "tcp/127.0.0.1:1")
    broken = elea("replay", str(tmp_path / "a.mcap"), "-e", "tcp/127.0.0.1:1")
    pace = elea("replay", str(tmp_path / "a.mcap"), "--pace", "quick")

    assert (nothing.status, broken.status, pace.status) == (1, 5, 2)
    assert "b.mcap: No such file or directory" in nothing.err
    assert "it does not begin as an MCAP file does" in broken.err
    assert "'quick' is no factor such as 1, 0.5 or 10, nor max" in pace.err


def test_ctrl_c_ends_a_replay_with_one_line(broker: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(0), row(1, arrival=NOON + 3600 * SECOND)])])
    with Running("replay", str(path), "--json", "-e", broker) as running:
        running.form_where(lambda form: form["sent"] == 1, PATIENCE)

        assert running.stop(signal.SIGINT, PATIENCE) == 130

    assert running.error_line() == ('{"error": "interrupted", "status": 130, "problem": "elea replay: interrupted"}')
