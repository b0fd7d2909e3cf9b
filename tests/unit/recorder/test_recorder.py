"""The recorder: what comes is in the file, and what is not is counted."""

from __future__ import annotations

import errno
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.model.errors import CaptureFull, NotStored
from elea.recorder import Recorder, Rotation, open_capture
from elea.recorder import recorder as recording
from elea.recorder.appendfile import AppendFile
from elea.recorder.rotation import CaptureFiles
from tests.unit.api.stores import broker, client
from tests.unit.recorder.samples import FORMATS, batch_of, row, table_of
from tests.unit.recorder.sessions import alone, eventually


def read(*paths: Path) -> list[dict[str, Any]]:
    return table_of(batch for path in paths for batch in open_capture(path)).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("suffix", FORMATS)
def test_everything_of_a_sample_is_recorded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    with alone() as session:
        stamp = session.new_timestamp()
        with Recorder(session, "home/**", path, flush=0.01) as recorder:
            session.put(
                "home/1/temp",
                b'{"t": 21.5}',
                encoding="application/json;Temp",
                attachment=b"more",
                timestamp=stamp,
                priority=elea.Priority.REAL_TIME,
                congestion_control=elea.CongestionControl.BLOCK,
                express=True,
            )
            session.delete("home/1/temp")
            session.put("office/1/temp", b"not asked for")
            eventually(lambda: recorder.figures().samples == 2, "both are written")
            figures = recorder.figures()

    put, deletion = read(path)
    assert (figures.dropped, figures.lag, figures.files) == (0, 0.0, 1)
    assert (put["key"], put["payload"], put["kind"]) == ("home/1/temp", b'{"t": 21.5}', 0)
    assert (put["ntp64"], put["stamp_id"]) == (stamp.value.ntp64, stamp.value.id.data)
    assert (put["schema"], put["attachment"], put["qos"]) == (b"Temp", b"more", 1 | 8 | 16)
    assert (deletion["kind"], deletion["payload"]) == (1, b"")
    assert put["arrival"] <= deletion["arrival"]


def test_only_samples_for_which_the_predicate_holds_are_recorded(tmp_path: Path) -> None:
    with (
        alone() as session,
        Recorder(session, "home/**", tmp_path / "a.mcap", where="speed > 2", flush=0.01) as recorder,
    ):
        for speed in range(5):
            session.put("home/1", f'{{"speed": {speed}}}')
        eventually(lambda: recorder.figures().samples == 2, "two are written")

    assert [each["payload"] for each in read(tmp_path / "a.mcap")] == [b'{"speed": 3}', b'{"speed": 4}']


def test_what_came_last_is_written_when_it_ends(tmp_path: Path) -> None:
    with alone() as session:
        recorder = Recorder(session, "home/**", tmp_path / "a.mcap", flush=3600.0)
        session.put("home/1", "now")
        figures = recorder.close()

    assert figures.samples == 1
    assert len(read(tmp_path / "a.mcap")) == 1


def test_there_is_no_writing_over_a_capture_unless_asked_to(tmp_path: Path) -> None:
    (tmp_path / "a.mcap").write_bytes(b"precious")

    with alone() as session:
        with pytest.raises(FileExistsError):
            Recorder(session, "home/**", tmp_path / "a.mcap")
        Recorder(session, "home/**", tmp_path / "a.mcap", overwrite=True).close()

    assert read(tmp_path / "a.mcap") == []


@pytest.mark.parametrize(("start", "first"), [({"history": 2}, 3), ({"since": 0}, 0)])
def test_recording_may_begin_with_what_a_broker_has_kept(tmp_path: Path, start: dict[str, Any], first: int) -> None:
    with broker(log="home/**") as router, client(router) as session:
        for number in range(5):
            session.put("home/1", f"{number}", durability="transient", ack=True)
        with Recorder(session, "home/**", tmp_path / "a.mcap", flush=0.01, **start) as recorder:
            eventually(lambda: recorder.figures().samples == 5 - first, "what was kept is recorded")
            session.put("home/1", "5", attachment=b"x", durability="transient", ack=True)
            eventually(lambda: recorder.figures().samples == 6 - first, "what comes is recorded")

    found = read(tmp_path / "a.mcap")
    assert [each["payload"] for each in found] == [b"%d" % number for number in range(first, 6)]
    assert found[-1]["attachment"] == b"x"
    assert all(each["stamp_id"] for each in found)


def test_recording_of_what_nobody_keeps_tells_so(tmp_path: Path) -> None:
    with broker() as router, client(router) as session, pytest.raises(NotStored):
        Recorder(session, "home/**", tmp_path / "a.mcap", history=1)

    assert not (tmp_path / "a.mcap").exists()


class SlowDisk:
    """A disk that takes nothing for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.works = threading.Event()
        write = AppendFile.append

        def append(file: AppendFile, data: bytes) -> None:
            assert self.works.wait(60.0)
            write(file, data)

        self._begin = partial(monkeypatch.setattr, AppendFile, "append", append)

    def stall(self) -> None:
        self.works.clear()
        self._begin()


def test_recorder_that_falls_behind_drops_the_oldest_and_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "BATCH", 10_000)
    disk = SlowDisk(monkeypatch)
    with alone() as session:
        recorder = Recorder(session, "home/**", tmp_path / "a.mcap", buffer=50_000, flush=0.01)
        disk.stall()
        for number in range(100):
            session.put(f"home/{number}", bytes(10_000))
        eventually(lambda: recorder.figures().dropped >= 90, "most are dropped")
        behind = recorder.figures()
        disk.works.set()
        figures = recorder.close()

    found = read(tmp_path / "a.mcap")
    assert behind.lag > 0
    assert figures.samples + figures.dropped == 100
    assert figures.samples == len(found) <= 10
    assert found[-1]["key"] == "home/99"
    assert open_capture(tmp_path / "a.mcap").facts == {}
    capture = open_capture(tmp_path / "a.mcap")
    list(capture)
    assert capture.facts["dropped"] == str(figures.dropped)


def test_recorder_that_may_hold_up_who_sends_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "BATCH", 10_000)
    disk = SlowDisk(monkeypatch)
    with alone() as session:
        recorder = Recorder(session, "home/**", tmp_path / "a.mcap", buffer=20_000, flush=0.01, overflow="block")
        disk.stall()
        timer = threading.Timer(0.3, disk.works.set)
        timer.start()
        for number in range(100):
            session.put(f"home/{number}", bytes(10_000), congestion_control=elea.CongestionControl.BLOCK)
        figures = recorder.close()
        timer.join()

    assert (figures.samples, figures.dropped) == (100, 0)
    assert len(read(tmp_path / "a.mcap")) == 100


# -- disks that are full -----------------------------------------------------------------------------------------------


class FullDisk:
    """Writing with so many bytes left; the last one that fits is cut off, as the system does it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room = room
        write = os.write

        def limited(fd: int, data: bytes) -> int:
            if self.room <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            count = write(fd, data[: self.room])
            self.room -= count
            return count

        monkeypatch.setattr("elea.recorder.appendfile.write", limited)


def is_written(recorder: Recorder, count: int) -> bool:
    return recorder.problem is not None or recorder.figures().samples > count


@pytest.mark.parametrize("suffix", FORMATS)
def test_full_disk_is_an_error_and_what_was_written_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    payloads = [os.urandom(1000) for _ in range(100)]
    with alone() as session:
        recorder = Recorder(session, "home/**", tmp_path / f"a{suffix}", flush=0.001)
        FullDisk(monkeypatch, 50_000)
        for count, payload in enumerate(payloads):
            session.put("home/1", payload)
            eventually(partial(is_written, recorder, count), "it is written")
        eventually(lambda: recorder.problem, "the disk is full")
        with pytest.raises(CaptureFull, match=r"no room on disk for more of .*, \d+ bytes, can be read") as caught:
            recorder.close()
        figures = recorder.figures()

    path = tmp_path / ("a.parquet.arrows" if suffix == ".parquet" else f"a{suffix}")
    found = read(path)
    assert caught.value.size <= path.stat().st_size <= 50_000
    assert [each["payload"] for each in found] == payloads[: figures.samples]
    assert 20 < figures.samples < 60
    assert figures.dropped > 0


def test_piece_that_does_not_fit_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AppendFile(tmp_path / "a")
    disk = FullDisk(monkeypatch, 15)
    file.append(b"0123456789")
    with pytest.raises(CaptureFull) as caught:
        file.append(b"0123456789")
    disk.room = 100
    file.append(b"abc")
    file.close()

    assert caught.value.size == 10
    assert (tmp_path / "a").read_bytes() == b"0123456789abc"


# -- several files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_another_file_begins_by_size_and_by_time(tmp_path: Path, suffix: str) -> None:
    files = CaptureFiles(tmp_path / f"a{suffix}", {}, Rotation(max_bytes=100_000, max_seconds=60.0), now=0.0)
    batches = [batch_of([row(n, payload=os.urandom(1000)) for n in range(20)]) for _ in range(20)]
    for at, batch in enumerate(batches[:10]):
        files.write(batch, float(at))
    by_size = len(files.paths)
    for at, batch in enumerate(batches[10:]):
        files.write(batch, 10.0 + 61.0 * at)
    files.finish({})

    assert by_size == 2
    assert [path.name for path in files.paths] == [f"a-{n:04}{suffix}" for n in range(1, len(files.paths) + 1)]
    assert len(files.paths) == 12
    assert table_of(each for path in files.paths for each in open_capture(path)).equals(table_of(batches))
    assert sorted(tmp_path.iterdir()) == sorted(files.paths)
