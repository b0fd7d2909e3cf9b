"""Full and failing disks: a typed error, a named state, and nothing lost that was acknowledged."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.model.errors import StoreError, StoreFull, StoreReadOnly
from elea.store import Log, State, Sync, open_log
from elea.store.disk import POISONED, DiskShelf
from elea.store.recovery import segment_name
from tests.unit.store.faults import FailingFiles
from tests.unit.store.samples import sample, stored


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


# -- full ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 8, 500, 3000])
def test_full_disk_refuses_and_the_log_goes_on_when_there_is_room(
    memory_path: Path, files: FailingFiles, room: int
) -> None:
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        before = stored(log)
        size = (memory_path / segment_name(0)).stat().st_size

        files.room = room
        with pytest.raises(StoreFull, match="nothing was stored"):
            log.append([sample(number) for number in range(1, 50)])

        assert log.state is State.FULL
        assert stored(log) == before
        assert log.latest(sample(1).key) is None
        assert (memory_path / segment_name(0)).stat().st_size == size
        files.room = None
        assert log.append([sample(1)]).first == 1
        assert log.state.value == "open"
    with open_log(memory_path) as log:
        assert ([one.record for one in stored(log)], log.damage) == ([sample(0), sample(1)], [])


@pytest.mark.parametrize("room", [0, 100])
def test_full_disk_while_a_segment_is_made_refuses_and_leaves_nothing_behind(
    memory_path: Path, files: FailingFiles, room: int
) -> None:
    with open_log(memory_path, files=files, segment_bytes=1) as log:
        log.append([sample(0)])
        files.room = room
        with pytest.raises(StoreFull):
            log.append([sample(1)])
        assert not (memory_path / segment_name(1)).exists()
        files.room = None

        assert log.append([sample(2)]).first == 1


def test_numbers_of_samples_that_were_refused_are_not_remembered(memory_path: Path, files: FailingFiles) -> None:
    numbered = sample(1, source=(b"w", 0, 1))
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        files.room = 10
        with pytest.raises(StoreFull):
            log.append([numbered])
        files.room = None

        assert log.append([numbered]).positions() == [1]


def test_full_disk_that_cannot_be_cut_back_makes_the_log_read_only(memory_path: Path, files: FailingFiles) -> None:
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        files.room, files.truncate_error = 100, errno.EIO

        with pytest.raises(StoreReadOnly, match="cannot be cut"):
            log.append([sample(1)])

        assert log.state is State.READ_ONLY


def test_full_disk_stops_upkeep_and_harms_nothing(memory_path: Path, files: FailingFiles) -> None:
    with open_log(memory_path, files=files, segment_bytes=1 << 20) as log:
        for number in range(40):
            log.append([sample(number)])
        log.shelf.roll()
        before = stored(log)
        files.room = 64

        with pytest.raises(StoreFull):
            log.compact()
        with pytest.raises(StoreFull):
            log.checkpoint()

        assert stored(log) == before
        assert list(memory_path.glob("*.new")) == []
        files.room = None
        assert log.compact() == 1
        assert stored(log) == before


PROGRAM = """
import resource, sys
from elea.model.errors import StoreFull
from elea.store import open_log
from tests.unit.store.samples import sample

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
with open_log(sys.argv[1]) as log:
    stored = 0
    try:
        for number in range(100_000):
            log.append([sample(number, payload=bytes(5000))])
            stored += 1
    except StoreFull:
        print("full", stored, log.state.value, len(list(log.read())))
"""


def test_real_limit_on_file_sizes_is_a_full_disk(memory_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(memory_path)], capture_output=True, text=True, timeout=300
    )

    word, count, state, readable = ended.stdout.split()
    assert (word, state, readable) == ("full", "full", count)
    with open_log(memory_path) as log:
        assert log.end == int(count) > 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(log: Log) -> None:
    for number in range(100_000):
        log.append([sample(number, payload=bytes(3000))])


def test_real_full_disk_is_survived_and_resumed(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with open_log(small_disk / "log") as log:
        with pytest.raises(StoreFull):
            fill(log)
        acked = log.end
        assert len(stored(log)) == acked > 10
        ballast.unlink()

        log.append([sample(7)])

        assert log.end == acked + 1
    with open_log(small_disk / "log") as log:
        assert (log.end, log.damage) == (acked + 1, [])


# -- failing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["sync_error", "write_error"])
def test_failing_disk_makes_the_log_read_only_until_it_is_opened_again(
    memory_path: Path, files: FailingFiles, what: str
) -> None:
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        before = stored(log)
        setattr(files, what, errno.EIO)

        with pytest.raises(StoreReadOnly, match="the disk failed"):
            log.append([sample(1)])
        setattr(files, what, None)
        with pytest.raises(StoreReadOnly, match="open the store again"):
            log.append([sample(2)])

        assert log.state is State.READ_ONLY
        assert log.end == 1
        assert stored(log) == before
        assert log.latest(sample(1).key) is None
        with pytest.raises(StoreReadOnly):
            log.move_cursor("spark", 1)
    with open_log(memory_path) as log:
        assert log.state is State.OPEN
        assert stored(log)[:1] == before
        assert log.damage == []


def test_segment_is_written_anew_after_a_sync_failed(memory_path: Path, files: FailingFiles) -> None:
    """After a failed sync the system holds octets for good that the disk has not: only a new file is to be trusted."""
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        files.sync_error = errno.EIO
        with pytest.raises(StoreReadOnly):
            log.append([sample(1)])
        files.sync_error = None
    (memory_path / POISONED).write_text("as the store leaves it if it still can")
    inode = (memory_path / segment_name(0)).stat().st_ino

    with open_log(memory_path) as log:
        assert stored(log)[0].record == sample(0)

    assert (memory_path / segment_name(0)).stat().st_ino != inode
    assert not (memory_path / POISONED).exists()


def test_marker_of_a_failed_sync_is_written_when_it_can_be(memory_path: Path, files: FailingFiles) -> None:
    class OneFailure(FailingFiles):
        def sync(self, handle: object) -> None:
            error, self.sync_error = self.sync_error, None
            if error is not None:
                raise OSError(error, os.strerror(error))

    once = OneFailure()
    with open_log(memory_path, files=once) as log:
        log.append([sample(0)])
        once.sync_error = errno.EIO
        with pytest.raises(StoreReadOnly):
            log.append([sample(1)])

    assert "failed to sync" in (memory_path / POISONED).read_text()


def test_every_acknowledged_group_was_synced(memory_path: Path, files: FailingFiles) -> None:
    with open_log(memory_path, files=files) as log:
        log.append([sample(0)])
        before = files.syncs

        for number in range(1, 21):
            log.append([sample(number)])

        assert files.syncs - before == 20


def test_relaxed_log_syncs_only_when_told_and_gets_a_new_epoch_after_a_crash(
    memory_path: Path, files: FailingFiles
) -> None:
    from tests.unit.store.samples import without_close

    with open_log(memory_path / "log", files=files, sync=Sync.RELAXED) as log:
        log.append([sample(0)])
        before = files.syncs
        for number in range(1, 21):
            log.append([sample(number)])
        assert files.syncs == before
        log.sync()
        assert files.syncs == before + 1
        epoch = log.epoch
        crashed = without_close(memory_path / "log", memory_path / "crashed")
    with open_log(memory_path / "log") as log:
        assert log.epoch == epoch

    with open_log(crashed) as log:
        assert log.epoch != epoch
        assert log.end == 21


def test_log_that_is_not_there_is_not_made_by_readers(memory_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        open_log(memory_path / "nothing", read_only=True)
    with pytest.raises(StoreError, match="no store"):
        open_log(memory_path, read_only=True)
    with pytest.raises(StoreError, match="no store"):
        open_log(memory_path / "nothing", create=False)

    assert not (memory_path / "nothing").exists()


def test_file_in_place_of_the_directory_is_an_error_of_the_store(memory_path: Path) -> None:
    (memory_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot open"):
        open_log(memory_path / "file")


def test_reader_changes_no_octet_beside_a_writer(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        log.append([sample(0)])
        segment = memory_path / "log" / segment_name(0)
        with segment.open("ab") as file:
            file.write(b"half a frame")
        before = {file.name: file.read_bytes() for file in (memory_path / "log").iterdir()}

        with open_log(memory_path / "log", read_only=True) as reader:
            assert len(stored(reader)) == 1
            with pytest.raises(StoreReadOnly, match="opened for reading"):
                reader.append([sample(1)])

        assert {file.name: file.read_bytes() for file in (memory_path / "log").iterdir()} == before
        assert log.append([sample(1)]).first == 1


class FailingCommit:
    """A database whose next COMMIT fails, as on a full disk."""

    def __init__(self, inner: object) -> None:
        self._inner = inner
        self.fails = True

    def execute(self, text: str, *parameters: object) -> object:
        if text == "COMMIT" and self.fails:
            self.fails = False
            raise sqlite3.OperationalError("disk I/O error")
        return self._inner.execute(text, *parameters)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_failed_commit_of_the_catalogue_changes_nothing_and_the_next_one_counts(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        log.append([sample(0), sample(1)])
        log.move_cursor("one", 1)
        assert isinstance(log.shelf, DiskShelf)
        catalogue = log.shelf._catalogue
        catalogue._db = FailingCommit(catalogue._db)  # type: ignore[assignment]

        with pytest.raises(StoreError):
            log.move_cursor("two", 2)
        assert log.cursors() == {"one": 1}
        log.move_cursor("three", 0)

    with open_log(memory_path / "log") as again:  # its sum is right: the catalogue is not taken for damaged
        assert again.damage == []
        assert again.cursors() == {"one": 1, "three": 0}
