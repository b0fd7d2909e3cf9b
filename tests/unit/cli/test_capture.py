"""`elea capture`: killed, interrupted, on a full disk, and too slow."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.recorder import open_capture
from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker
from tests.unit.recorder.sessions import PATIENCE, eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    running, locator = start_broker()
    with running:
        yield locator


def client(locator: str) -> Any:
    return elea.open(
        elea.Config.from_json5(
            f"{{mode: 'client', connect: {{endpoints: ['{locator}']}}, scouting: {{multicast: {{enabled: false}}}}}}"
        )
    )


def recording(locator: str, path: Path, *words: str) -> Running:
    """`elea capture` that has subscribed."""
    found = Running("capture", "home/**", "-o", str(path), "-e", locator, *words)
    eventually(path.exists, "there is a file")
    return found


def publisher(session: Any) -> Any:
    """A publisher whose samples the recorder gets."""
    found = session.declare_publisher("home/1", congestion_control=elea.CongestionControl.BLOCK)
    eventually(lambda: found.matching_status.matching, "somebody subscribes")
    return found


def payloads(path: Path) -> list[bytes]:
    return [payload for batch in open_capture(path) for payload in batch.column("payload").to_pylist()]


def test_killed_recorder_leaves_what_it_has_written(broker: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with recording(broker, path, "--json", "--flush", "0.05") as running, client(broker) as session:
        samples = publisher(session)
        for number in range(100):
            samples.put(f"{number}")
        running.form_where(lambda form: form["samples"] == 100, PATIENCE)
        running.stop(signal.SIGKILL)

    capture = open_capture(path)
    assert [payload for batch in capture for payload in batch.column("payload").to_pylist()] == [
        b"%d" % number for number in range(100)
    ]
    assert capture.is_cut


def test_ctrl_c_ends_it_in_good_order_with_one_line(broker: str, tmp_path: Path) -> None:
    with recording(broker, tmp_path / "a.mcap") as running, client(broker) as session:
        publisher(session).put("last words")
        session.close()
        eventually(lambda: payloads(tmp_path / "a.mcap"), "it is written")

        assert running.stop(wait=PATIENCE) == 0

    (line,) = running.rest()
    assert line.startswith("recorded  1 samples")
    assert "0 dropped" in line
    capture = open_capture(tmp_path / "a.mcap")
    assert [batch.column("payload").to_pylist() for batch in capture] == [[b"last words"]]
    assert not capture.is_cut


def test_recorder_that_is_too_slow_says_so_and_fails_if_it_is_strict(broker: str, tmp_path: Path) -> None:
    pipe = tmp_path / "a.mcap"
    os.mkfifo(pipe)
    words = ("--overwrite", "--strict", "--json", "--buffer", "1MB", "--flush", "0.01", "--compression", "none")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with recording(broker, pipe, *words) as running, client(broker) as session:
        samples = publisher(session)
        for _ in range(200):
            samples.put(bytes(100_000))
        form = running.form_where(lambda form: form["dropped"] > 0, PATIENCE)
        drained = threading.Thread(target=drain, args=(reader,))
        drained.start()
        status = running.stop(wait=PATIENCE)
        drained.join()

    assert form["lag"] > 0
    assert status == 5
    assert '"status": 5' in running.wait_for_error("samples came and are not in the capture")


def drain(fd: int) -> None:
    os.set_blocking(fd, True)
    while os.read(fd, 1 << 20):
        pass
    os.close(fd)


def has_gone_on(process: subprocess.Popen[str], path: Path, size: int) -> bool:
    return process.poll() is not None or path.stat().st_size > size


def test_full_disk_ends_it_and_leaves_a_capture(broker: str, tmp_path: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    path = tmp_path / "a.mcap"
    words = ["capture", "home/**", "-o", str(path), "-e", broker, "--flush", "0.01"]
    process = subprocess.Popen(
        [sys.executable, "-m", "elea", *words], preexec_fn=small_files, stderr=subprocess.PIPE, text=True
    )
    with client(broker) as session:
        samples = publisher(session)
        eventually(path.exists, "there is a file")
        sent: list[bytes] = []
        while process.poll() is None:
            size = path.stat().st_size
            sent.append(os.urandom(9000))
            samples.put(sent[-1])
            eventually(partial(has_gone_on, process, path, size), "it is written")
        _, errors = process.communicate(timeout=PATIENCE)

    found = payloads(path)
    assert process.returncode == 5
    assert "no room on disk for more of" in errors
    assert 5 < len(found) < 12
    assert found == sent[: len(found)]


def test_wrong_names_and_files_that_are_there_are_refused(broker: str, tmp_path: Path, elea: Elea) -> None:
    (tmp_path / "a.mcap").write_bytes(b"")

    bag = elea("capture", "home/**", "-o", "a.bag", "-e", broker)
    there = elea("capture", "home/**", "-o", str(tmp_path / "a.mcap"), "-e", broker)
    nowhere = elea("capture", "home/**", "-o", str(tmp_path / "no" / "a.mcap"), "-e", broker)

    assert (bag.status, there.status, nowhere.status) == (2, 2, 1)
    assert "ends with none of .mcap, .parquet, .arrows" in bag.err
    assert there.err.splitlines()[-1] == "try: --overwrite, or another -o"
    assert "No such file or directory" in nowhere.err
    assert (tmp_path / "a.mcap").read_bytes() == b""


def test_ends_by_itself_after_a_time_or_a_number_of_samples(broker: str, tmp_path: Path, elea: Elea) -> None:
    after = elea("capture", "home/**", "-o", str(tmp_path / "a.mcap"), "-e", broker, "--for", "0.1s", "--json")

    assert after.status == 0
    assert '"samples": 0' in after.lines[-1]
    assert payloads(tmp_path / "a.mcap") == []


@pytest.mark.parametrize("option", ["--max-size=big", "--max-size=0", "--max-time=soon", "--flush=-1s"])
def test_sizes_and_times_that_make_no_sense_are_refused(elea: Elea, option: str) -> None:
    result = elea("capture", "home/**", "-o", "a.mcap", option)

    assert result.status == 2
    assert f"{option.partition('=')[2]!r} is no" in result.err
