"""Blocks read where they lie: exactly those that would be sent, and nothing from a file that is not what was said."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elea.store import Log, Range, memory_log, open_log
from elea.store.frames import BLOCK, bare, read_head, seal
from elea.store.inplace import Place, Places, machine
from elea.store.segment import Segment
from tests.unit.store.samples import sample

ROWS = 3000


def filled(log: Log) -> None:
    """Two large blocks, and small ones before, between and behind."""
    for first, rows in ((0, 3), (3, ROWS), (3 + ROWS, 2), (5 + ROWS, ROWS), (5 + 2 * ROWS, 1)):
        log.append([sample(number) for number in range(first, first + rows)])


def answer(log: Log, wanted: Range | None = None) -> tuple[list[pa.RecordBatch], list[list[Any]]]:
    """What is sent, and what is told."""
    sent: list[pa.RecordBatch] = []
    told: list[list[Any]] = []
    for message, _ in log.read_messages(wanted, in_place=True):
        if isinstance(message, Place):
            told.append([len(sent), *message])
        else:
            sent.append(pa.ipc.read_record_batch(pa.py_buffer(message), log_schema()))
    return sent, told


def loaded(sent: list[pa.RecordBatch], told: list[list[Any]]) -> list[pa.RecordBatch] | None:
    """The batches of an answer; None if one cannot be read."""
    places = Places()
    found = places.among(sent, told)
    batches = [places.load(one) if isinstance(one, Place) else one for one in found or ()]
    return None if found is None or None in batches else batches


def log_schema() -> pa.Schema:
    from elea.store import SCHEMA

    return SCHEMA


@pytest.mark.parametrize(
    "wanted", [Range(), Range(start=1, end=ROWS), Range(start=2, end=ROWS + 10), Range(start=ROWS)]
)
def test_samples_in_place_are_those_of_a_read(tmp_path: Path, wanted: Range) -> None:
    with open_log(tmp_path / "log") as log:
        filled(log)
        sent, told = answer(log, wanted)
        expected = pa.Table.from_batches(list(log.read_arrow(wanted)))

        batches = loaded(sent, told)

    assert batches is not None
    assert pa.Table.from_batches(batches).combine_chunks() == expected.combine_chunks()
    assert sum(batch.num_rows for batch in sent) < expected.num_rows or not told
    assert len(told) == {None: 2, 1: 0, 2: 1, ROWS: 1}[wanted.start]


def test_log_in_memory_has_no_places() -> None:
    log = memory_log()
    filled(log)

    sent, told = answer(log)

    assert told == []
    assert sum(batch.num_rows for batch in sent) == log.end


def test_block_whose_octets_changed_is_not_taken(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        filled(log)
        sent, told = answer(log)
    _, path, _, _, offset, size, _ = told[1]
    data = bytearray(Path(path).read_bytes())
    for at in (offset, offset + 100, offset + size // 2, offset + size - 1):
        with open(path, "r+b") as file:  # the same file, or it would be another
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))
        assert loaded(sent, told) is None, at
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(bytes([data[at]]))
    assert loaded(sent, told) is not None


def test_place_that_is_not_as_told_is_not_taken(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        filled(log)
        sent, told = answer(log)
    before, path, device, inode, offset, size, first = told[0]
    os.mkfifo(tmp_path / "pipe")
    pipe = os.stat(tmp_path / "pipe")
    copy = tmp_path / "copy"
    copy.write_bytes(Path(path).read_bytes())
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(100_000))
    wrong: list[list[Any]] = [
        [before, str(tmp_path / "nothing"), device, inode, offset, size, first],
        [before, str(copy), device, inode, offset, size, first],
        [before, str(tmp_path / "pipe"), pipe.st_dev, pipe.st_ino, offset, size, first],
        [before, str(plain), plain.stat().st_dev, plain.stat().st_ino, 0, 1000, first],
        [before, path, device, inode, offset, size + (1 << 40), first],
        [before, path, device, inode, offset, 1 << 70, first],
        [before, path, device, inode, offset + 8, size, first],
        [before, path, device, inode, -1, size, first],
        [before, path, device, inode, offset, 0, first],
        [before, path, device, inode, str(offset), size, first],
        [before, "\0", device, inode, offset, size, first],
        [before, None, device, inode, offset, size, first],
        [len(sent) + 1, path, device, inode, offset, size, first],
        [-1, path, device, inode, offset, size, first],
        [before, path, device, inode, offset, size, first + 1],
        [before, path, device, inode, offset, size, -1],
        [before, path, device, inode, offset, size, None],
        [before, path, device, inode, offset, size],
        [before, path],
        [],
    ]

    for one in wrong:
        assert loaded(sent, [one]) is None, one


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_reader_keeps_one_file_open(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", segment_bytes=100_000) as log:
        filled(log)
        _, told = answer(log)
    assert len({path for _, path, *_ in told}) == 2

    places = Places()
    for _, *place in told * 3:
        assert places.load(Place(*place)) is not None
    assert len(open_below(tmp_path)) == 1
    del places
    assert open_below(tmp_path) == []


def open_below(directory: Path) -> list[str]:
    """The files there that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # others come and go
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [path for path in found if path.startswith(str(directory))]


def test_processes_of_a_machine_agree_on_its_name() -> None:
    program = "from elea.store.inplace import machine; print(machine())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert other.stdout.strip() == str(machine())


@pytest.mark.parametrize(("mode", "read"), [(0o640, "believed"), (0o660, "judged"), (0o646, "judged")])
def test_only_what_nobody_else_can_write_is_believed(tmp_path: Path, mode: int, read: str) -> None:
    """A block with a true checksum and wrong offsets, as another user of this machine would make it."""
    with open_log(tmp_path / "log") as log:
        log.append([sample(number, payload=b"x" * 2_000) for number in range(ROWS)])
        _, ((_, *told),) = answer(log)
        segment = log.shelf.view.parts[0]
    assert isinstance(segment, Segment)
    salt = segment.salt
    place = Place(*told)
    path = Path(place.path)
    data = bytearray(path.read_bytes())
    block = read_head(bytes(data), offset=place.offset, magic=BLOCK, salt=salt, at=place.offset)
    message = bytearray(bare(bytes(data[place.offset : place.offset + place.size])))
    body = len(message) - block.body
    wrong = message.index((2_000).to_bytes(4, "little") + (4_000).to_bytes(4, "little"), body)
    message[wrong : wrong + 4] = (1 << 29).to_bytes(4, "little")
    parts, again = seal(bytes(message), BLOCK, block.facts, salt=salt, offset=place.offset)
    path.write_bytes(bytes(data[: place.offset]) + b"".join(parts) + bytes(data[place.offset + place.size :]))
    path.chmod(mode)

    found = Places().load(place._replace(inode=path.stat().st_ino))

    assert again.size == place.size
    assert ("judged" if found is None else "believed") == read
