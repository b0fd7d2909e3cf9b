"""Killed at any moment or cut off from power, a log has every acknowledged sample once, in order, and no other."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from elea.store import Range, Retention, Sync, open_log
from elea.store.recovery import CATALOGUE
from tests.unit.store.faults import ForgetfulFiles
from tests.unit.store.samples import sample
from tests.unit.store.writer import SEGMENT_BYTES, WRITERS, Ledger

POINTS = (
    "written",
    "synced",
    "roll-before-catalogue",
    "roll-after-catalogue",
    "segment-written",
    "segment-synced",
    "replace-written",
    "replace-renamed",
    "trim-base-written",
    "trim-catalogue-written",
)


class Server:
    """The process that forks writers."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.unit.store.writer"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, path: Path, **job: Any) -> int | None:
        """Run one writer to its end; the signal that ended it."""
        ledger = path.with_name("ledger")
        numbers = next_numbers(path, Ledger(ledger))
        asked = {"path": str(path), "ledger": str(ledger), "numbers": numbers, "point": None, "count": 0, "after_ms": 0}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({**asked, "rounds": 10_000, "trim": False, **job}), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert answer["signal"] is not None or answer["status"] == 0
        ended: int | None = answer["signal"]
        return ended


def next_numbers(path: Path, ledger: Ledger) -> list[int]:
    """A writer that comes back goes on with what it does not know to be stored; it may be there all the same."""
    return ledger.acked if path.exists() else [0] * WRITERS


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(60) == 0
    assert server.process.stdout is not None
    server.process.stdout.close()


def check(path: Path) -> None:
    """The judge: lost, phantom, double, out of order, or not dense."""
    ledger = Ledger(path.with_name("ledger"))
    with open_log(path, segment_bytes=SEGMENT_BYTES) as log:
        assert log.damage == []
        found: dict[int, list[int]] = {writer: [] for writer in range(WRITERS)}
        positions = []
        for position, record in log.read():
            assert record.source_eid is not None
            found[record.source_eid].append(int(record.payload))
            positions.append(position)
        assert positions == list(range(log.first, log.end))
        for writer, numbers in found.items():
            if numbers:
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), f"writer {writer}"
                assert numbers[0] == 0 or log.first > 0
            newest = log.latest(f"writer/{writer}")
            last = -1 if newest is None else int(newest.record.payload)
            assert ledger.acked[writer] - 1 <= last <= ledger.tried[writer] - 1
            assert not numbers or numbers[-1] == last


def test_writers_killed_at_random_moments_lose_nothing(server: Server, tmp_path: Path) -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    choose = Random(seed)

    for number in range(25):
        # Every other writer is let alone until something is acknowledged; the others may die while they open the log.
        when = {"after_ms": choose.randrange(1, 80), "after_ack": number % 2 == 0}
        ended = server.run(tmp_path / "log", seed=choose.random(), trim=number > 12, **when)
        assert ended == signal.SIGKILL
        check(tmp_path / "log")

    assert sum(Ledger(tmp_path / "ledger").acked) > 0


@pytest.mark.parametrize("point", POINTS)
def test_writers_killed_at_a_named_point_lose_nothing(server: Server, tmp_path: Path, point: str) -> None:
    for count in (1, 2, 5):
        ended = server.run(tmp_path / "log", seed=count, point=point, count=count, trim="trim" in point)
        assert ended == signal.SIGKILL, f"{point} was not reached {count} times"
        check(tmp_path / "log")


def test_second_process_is_refused_and_told_who_has_the_log(server: Server, tmp_path: Path) -> None:
    from elea.model.errors import StoreInUse

    with open_log(tmp_path / "log") as log:
        log.append([sample(0)])
        program = "import sys; from elea.store import open_log; open_log(sys.argv[1])"
        second = subprocess.run([sys.executable, "-c", program, str(tmp_path / "log")], capture_output=True, text=True)
        with pytest.raises(StoreInUse, match="process"):
            open_log(tmp_path / "log")
        with open_log(tmp_path / "log", read_only=True) as reader:
            assert len(list(reader.read())) == 1

    assert "StoreInUse" in second.stderr
    with open_log(tmp_path / "log") as log:
        assert log.end == 1


class PowerCuts(ForgetfulFiles):
    """Cuts the power at every point that is reached, on a copy each time, and looks what is left."""

    def __init__(self, path: Path, random: Random) -> None:
        super().__init__()
        self.path = path
        self.random = random
        self.acked = 0
        self.trimmed = 0
        self.points: set[str] = set()
        self.cuts = 0

    def reach(self, point: str) -> None:
        self.points.add(point)
        if self.random.random() < 0.5:
            return
        copy = self.path.with_name("cut")
        self.power_cut(copy, self.random)
        shutil.copy(self.path / CATALOGUE, copy / CATALOGUE)
        self.cuts += 1
        with open_log(copy, segment_bytes=SEGMENT_BYTES) as log:
            assert log.damage == [], point
            found = [int(record.payload) for _, record in log.read(Range())]
            assert found == list(range(log.first, log.end)), point
            assert log.end >= self.acked, point
            newest = log.latest("k")
            assert (newest is None and not log.end) or (newest is not None and newest.position == log.end - 1), point
        shutil.rmtree(copy)


def test_power_cut_at_any_point_leaves_everything_acknowledged(memory_path: Path) -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    random = Random(seed)
    path = memory_path / "log"
    open_log(path).close()
    files = PowerCuts(path, random)
    with open_log(path, segment_bytes=SEGMENT_BYTES, files=files) as log:
        for turn in range(120):
            size = random.choice([1, 3, 40])
            first = log.end
            log.append([sample(n, key="k", payload=b"%d" % n) for n in range(first, first + size)])
            files.acked = log.end
            if turn % 20 == 19:
                log.checkpoint()
                log.compact()
                log.retain(Retention(samples=200), now_ns=0)

    assert files.points >= set(POINTS)
    assert files.cuts > 50


def test_power_cut_forgets_a_name_that_was_not_synced(memory_path: Path) -> None:
    """That the file system of these tests does forget: else nothing is shown by what survives it."""
    files = ForgetfulFiles()
    (memory_path / "there").mkdir()
    handle = files.open(memory_path / "there" / "new", create=True)
    files.write(handle, [b"x"], 0)
    files.sync(handle)
    left = set()
    for seed in range(20):
        files.power_cut(memory_path / f"cut{seed}", Random(seed))
        left.add((memory_path / f"cut{seed}" / "new").exists())
    assert left == {True, False}

    files.sync_directory(memory_path / "there")
    for seed in range(20, 40):
        files.power_cut(memory_path / f"cut{seed}", Random(seed))
        assert (memory_path / f"cut{seed}" / "new").read_bytes() == b"x"


@pytest.mark.parametrize("step", ["checkpoint", "roll", "close"])
def test_power_cut_of_a_relaxed_log_leaves_what_was_there_at_a_step_that_syncs(memory_path: Path, step: str) -> None:
    path = memory_path / "log"
    open_log(path).close()
    files = ForgetfulFiles()
    log = open_log(path, sync=Sync.RELAXED, segment_bytes=SEGMENT_BYTES, files=files)
    log.append([sample(n, key="k", payload=b"%d" % n) for n in range(30)])
    {"checkpoint": log.checkpoint, "roll": log.shelf.roll, "close": log.close}[step]()
    if step != "close":
        log.append([sample(n, key="k", payload=b"%d" % n) for n in range(30, 35)])  # these may go

    for seed in range(20):
        copy = memory_path / f"cut{seed}"
        files.power_cut(copy, Random(seed))
        shutil.copy(path / CATALOGUE, copy / CATALOGUE)
        with open_log(copy, segment_bytes=SEGMENT_BYTES) as cut:
            assert cut.damage == [], seed
            assert [int(record.payload) for _, record in cut.read(Range())] == list(range(cut.end)), seed
            assert cut.end >= 30, seed
            assert (cut.epoch == log.epoch) is (step == "close")  # what may have gone is told by another epoch
    if step != "close":
        log.close()


def test_reader_undoes_a_change_of_the_catalogue_in_which_its_writer_died(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(0)])
        log.move_cursor("spark", 1)
    database = sqlite3.connect(tmp_path / "log" / CATALOGUE, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")  # so that pages are written before the change is complete
    database.execute("BEGIN")
    database.execute("DELETE FROM cursors")
    database.executemany("INSERT INTO cursors VALUES (?, ?, 0)", [(f"{n:099}", n) for n in range(2000)])
    shutil.copytree(tmp_path / "log", tmp_path / "killed")
    database.execute("ROLLBACK")
    database.close()
    assert (tmp_path / "killed" / f"{CATALOGUE}-journal").stat().st_size > 0

    for read_only in (True, False):
        with open_log(tmp_path / "killed", read_only=read_only) as log:
            assert (log.cursors(), log.damage) == ({"spark": 1}, [])
