"""Damage is found, named and fenced off; a torn end is cut; nothing is lost in silence and no file is thrown away."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import StoreCorrupt, StoreError
from elea.store import Range, Stored, open_log
from elea.store.files import Handle
from elea.store.frames import BLOCK, seal
from elea.store.recovery import BASE, CATALOGUE, segment_name
from elea.store.segment import header_frame, read_header, scan
from elea.store.verify import verify
from tests.unit.store.samples import filled, sample, stored, without_close

FIRST = segment_name(0)


def damaged_copy(path: Path, copy: Path, name: str, data: bytes) -> Path:
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(path, copy)
    (copy / name).write_bytes(data)
    return copy


def block_ends(path: Path) -> list[int]:
    handle = Handle(path)
    header = read_header(handle)
    found = scan(handle, start=header.size, size=handle.size(), salt=header.salt, first=header.first, bodies=True)
    return [header.size, *(block.end for block in found.blocks)]


# -- ends ------------------------------------------------------------------------------------------------------


def test_log_killed_at_any_octet_of_its_last_records_has_exactly_those_before(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        for number in range(5):
            log.append([sample(number)])
        everything = stored(log)
        killed = without_close(memory_path / "log", memory_path / "killed")
    data = (killed / FIRST).read_bytes()
    ends = block_ends(killed / FIRST)

    for size in [*range(ends[2], ends[4], 23), *range(ends[4], len(data) + 1)]:
        (killed / FIRST).write_bytes(data[:size])
        kept = sum(1 for end in ends[1:] if end <= size)
        with open_log(killed, read_only=True) as log:
            assert (stored(log), log.damage) == (everything[:kept], []), f"cut at {size}"


def test_torn_end_is_cut_and_kept_aside_and_the_log_goes_on(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        for number in range(3):
            log.append([sample(number)])
        everything = stored(log)
        killed = without_close(memory_path / "log", memory_path / "killed")
    data = (killed / FIRST).read_bytes()
    ends = block_ends(killed / FIRST)

    for size in range(ends[1], len(data) + 1, 101):
        copy = damaged_copy(killed, memory_path / "copy", FIRST, data[:size])
        kept = sum(1 for end in ends[1:] if end <= size)
        with open_log(copy) as log:
            assert (stored(log), log.damage) == (everything[:kept], []), f"cut at {size}"
            assert log.append([sample(99)]).first == kept
        with open_log(copy) as log:
            assert stored(log) == [*everything[:kept], Stored(kept, sample(99))]
        torn = [data[ends[kept] : size]] if size > ends[kept] else []
        assert [file.read_bytes() for file in copy.glob("*.torn")] == torn


def test_garbage_behind_the_last_record_is_cut_and_kept_aside(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(0)])
        everything = stored(log)
        killed = without_close(tmp_path / "log", tmp_path / "killed")
    size = (killed / FIRST).stat().st_size
    with (killed / FIRST).open("ab") as file:
        file.write(b"\xff" * 5000)

    with open_log(killed) as log:
        assert stored(log) == everything
        assert (killed / FIRST).stat().st_size == size

    assert (killed / f"{FIRST}.{size}.torn").read_bytes() == b"\xff" * 5000


def test_end_that_was_promised_is_damage_and_its_positions_are_not_given_out_again(tmp_path: Path) -> None:
    everything = filled(tmp_path / "log", [1, 1, 1])
    data = (tmp_path / "log" / FIRST).read_bytes()
    ends = block_ends(tmp_path / "log" / FIRST)
    copy = damaged_copy(tmp_path / "log", tmp_path / "copy", FIRST, data[: ends[2] + 100])

    with open_log(copy) as log:
        assert [(one.segment, one.offset, one.first, one.last) for one in log.damage] == [(FIRST, ends[2], 2, 2)]
        assert log.append([sample(7)]).first == 3
        with pytest.raises(StoreCorrupt, match=r"position 2"):
            stored(log)
        rest = list(log.read(Range(skip_damaged=True)))

    assert [one.position for one in rest] == [0, 1, 3]
    assert rest[:2] == everything[:2]
    assert list(tmp_path.glob("copy/*.torn")) == []


# -- flipped bits ----------------------------------------------------------------------------------------------


def test_every_flipped_bit_of_a_closed_log_is_found_and_only_its_block_is_lost(memory_path: Path) -> None:
    everything = filled(memory_path / "log", [1, 1, 1])
    file = memory_path / "log" / FIRST
    data = bytearray(file.read_bytes())
    ends = block_ends(file)

    # Every octet of the middle block, and a stride through the header and the others.
    for at in [*range(ends[1], ends[2]), *range(0, ends[1], 17), *range(ends[2], len(data), 17)]:
        data[at] ^= 1 << at % 8
        file.write_bytes(data)
        data[at] ^= 1 << at % 8
        with open_log(memory_path / "log", read_only=True) as log:
            found = log.damage
            readable = list(log.read(Range(skip_damaged=True)))
        hit = [number for number in range(3) if ends[number] <= at < ends[number + 1]]
        assert [(one.segment, one.first, one.last) for one in found] == [
            (FIRST, hit[0], hit[0]) if hit else (FIRST, 0, -1)
        ], f"octet {at}"
        assert readable == [one for one in everything if one.position not in hit], f"octet {at}"


def test_log_goes_on_behind_a_damaged_block_and_keeps_the_file(memory_path: Path) -> None:
    everything = filled(memory_path / "log", [1, 1, 1])
    data = (memory_path / "log" / FIRST).read_bytes()

    for at in range(5, len(data), 311):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        copy = damaged_copy(memory_path / "log", memory_path / "copy", FIRST, bytes(flipped))
        with open_log(copy) as log:
            before = log.damage
            readable = list(log.read(Range(skip_damaged=True)))
            assert log.append([sample(9)]).first == 3
        with open_log(copy) as log:
            assert log.damage == before
            assert list(log.read(Range(skip_damaged=True))) == [*readable, Stored(3, sample(9))]
        assert (copy / FIRST).read_bytes() == flipped
        assert len(readable) >= len(everything) - 1


def test_flip_in_a_sealed_segment_is_found_by_reader_and_verify_and_remembered(tmp_path: Path) -> None:
    everything = filled(tmp_path / "log", [4, 4, 4], segment_bytes=1)
    name = segment_name(4)
    data = bytearray((tmp_path / "log" / name).read_bytes())
    data[-3] ^= 1
    (tmp_path / "log" / name).write_bytes(data)

    report = verify(tmp_path / "log")
    with open_log(tmp_path / "log") as log:
        assert log.damage == []  # sealed segments are not read when a log is opened
        with pytest.raises(StoreCorrupt) as caught:
            stored(log)
        assert list(log.read(Range(start=8))) == everything[8:]
        assert list(log.read(Range(skip_damaged=True))) == everything[:4] + everything[8:]
    with open_log(tmp_path / "log") as log:
        remembered = log.damage

    assert not report.sound
    assert report.lost == 4
    assert [(one.segment, one.first, one.last) for one in report.damage] == [(name, 4, 7)]
    assert (caught.value.segment, caught.value.position, caught.value.last) == (name, 4, 7)
    assert [(one.segment, one.offset, one.first, one.last) for one in remembered] == [(name, caught.value.offset, 4, 7)]


def test_payload_that_imitates_a_block_is_not_taken_for_one(tmp_path: Path) -> None:
    with open_log(tmp_path / "other") as other:
        other.append([sample(50)])
        forged = (tmp_path / "other" / FIRST).read_bytes()[block_ends(tmp_path / "other" / FIRST)[0] :]
    with open_log(tmp_path / "log") as log:
        log.append([sample(0, payload=forged * 3)])
        log.append([sample(1)])
    data = bytearray((tmp_path / "log" / FIRST).read_bytes())
    data[block_ends(tmp_path / "log" / FIRST)[0] + 9] ^= 1
    (tmp_path / "log" / FIRST).write_bytes(data)

    with open_log(tmp_path / "log") as log:
        assert [(one.first, one.last) for one in log.damage] == [(0, 0)]
        assert [one.record.key for one in log.read(Range(skip_damaged=True))] == [sample(1).key]


def test_every_flipped_bit_of_the_catalogue_is_found_or_changes_nothing(memory_path: Path) -> None:
    path = memory_path / "log"
    with open_log(path, segment_bytes=1) as log:
        for number in range(3):
            log.append([sample(number)])
        log.move_cursor("spark", 2)
        everything = stored(log)
    data = (path / CATALOGUE).read_bytes()
    found = 0

    for at in range(0, len(data), 61):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        copy = damaged_copy(path, memory_path / "copy", CATALOGUE, bytes(flipped))
        with open_log(copy) as log:
            names = {one.segment for one in log.damage}
            assert stored(log) == everything, f"octet {at}"
            assert log.cursors() == {"spark": 2} or names == {CATALOGUE}, f"octet {at}"
            found += names == {CATALOGUE}
        assert bool(names) == bool(list(copy.glob(f"{CATALOGUE}.*.damaged")))

    assert found > 10


def test_row_taken_out_of_the_catalogue_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path / "log", [1, 1], segment_bytes=1)
    with open_log(tmp_path / "log") as log:
        log.move_cursor("spark", 1)
    database = sqlite3.connect(tmp_path / "log" / CATALOGUE)
    database.execute("DELETE FROM cursors")
    database.commit()
    database.close()

    with open_log(tmp_path / "log") as log:
        assert [one.segment for one in log.damage] == [CATALOGUE]
        assert "cursors are lost" in log.damage[0].why


@pytest.mark.parametrize("at", [0, 9, 40, -1])
def test_flip_in_the_index_is_reported_and_the_index_made_anew(tmp_path: Path, at: int) -> None:
    everything = filled(tmp_path / "log", [20])
    data = bytearray((tmp_path / "log" / "index").read_bytes())
    data[at] ^= 4
    (tmp_path / "log" / "index").write_bytes(data)

    with open_log(tmp_path / "log") as log:
        assert [one.segment for one in log.damage] == ["index"]
        assert list(log.latest_matching("**")) == everything[-5:]


# -- files that are missing, strange or new ----------------------------------------------------------------------


def test_missing_segment_is_reported_with_its_positions(tmp_path: Path) -> None:
    everything = filled(tmp_path / "log", [2, 3, 2], segment_bytes=1)
    (tmp_path / "log" / segment_name(2)).unlink()

    report = verify(tmp_path / "log")
    with open_log(tmp_path / "log") as log:
        assert [(one.segment, one.first, one.last) for one in log.damage] == [(segment_name(2), 2, 4)]
        assert log.end == 7
        assert list(log.read(Range(start=5))) == everything[5:]
        with pytest.raises(StoreCorrupt, match="positions 2 to 4"):
            stored(log)
        with pytest.raises(StoreCorrupt, match="positions 2 to 4"):
            list(log.read(Range(newest_first=True)))

    assert report.lost == 3


def test_missing_newest_segment_is_reported_and_its_positions_stay_lost(tmp_path: Path) -> None:
    filled(tmp_path / "log", [2, 3])
    (tmp_path / "log" / FIRST).unlink()

    with open_log(tmp_path / "log") as log:
        assert [(one.segment, one.first, one.last) for one in log.damage] == [(FIRST, 0, 4)]
        assert log.append([sample(1)]).first == 5


def test_copy_of_a_segment_under_another_name_is_left_alone_and_reported(tmp_path: Path) -> None:
    everything = filled(tmp_path / "log", [2, 2], segment_bytes=1)
    copy = tmp_path / "log" / segment_name(9)
    shutil.copy(tmp_path / "log" / FIRST, copy)

    with open_log(tmp_path / "log") as log:
        assert "position 0" in log.damage[0].why
        assert stored(log) == everything
        assert log.end == 4
    assert copy.exists()


def test_segment_of_another_log_is_reported_and_not_read(tmp_path: Path) -> None:
    filled(tmp_path / "other", [3])
    filled(tmp_path / "log", [3])
    shutil.copy(tmp_path / "other" / FIRST, tmp_path / "log" / FIRST)

    with open_log(tmp_path / "log") as log:
        assert [(one.first, one.last, one.why) for one in log.damage] == [(0, 2, "the file belongs to another log")]
        with pytest.raises(StoreCorrupt):
            stored(log)


def test_empty_segment_of_a_process_that_died_making_it_is_set_aside(tmp_path: Path) -> None:
    everything = filled(tmp_path / "log", [2, 2], segment_bytes=1)
    (tmp_path / "log" / segment_name(4)).write_bytes(b"")

    with open_log(tmp_path / "log") as log:
        assert log.damage == []
        assert stored(log) == everything
        assert log.append([sample(5)]).first == 4


def test_segment_of_a_later_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "log", [1])
    with monkeypatch.context() as patch:
        patch.setattr("elea.store.segment.FORMAT", 2)
        data = (tmp_path / "log" / FIRST).read_bytes()
        old = read_header(Handle(tmp_path / "log" / FIRST))
        (tmp_path / "log" / FIRST).write_bytes(header_frame(old.log, old.salt, 0) + data[old.size :])

    with pytest.raises(StoreError, match="format 2"):
        open_log(tmp_path / "log")


@pytest.mark.parametrize("also_index", [False, True])
def test_catalogue_that_is_missing_is_made_anew_from_the_segments(tmp_path: Path, also_index: bool) -> None:
    everything = filled(tmp_path / "log", [2, 3, 2], segment_bytes=1)
    (tmp_path / "log" / CATALOGUE).unlink()
    if also_index:
        (tmp_path / "log" / "index").unlink()

    with open_log(tmp_path / "log") as log:
        assert [one.segment for one in log.damage] == [CATALOGUE]
        assert stored(log) == everything
        assert log.append([sample(0)]).first == 7


def test_directory_of_unreadable_segments_is_refused_rather_than_called_empty(tmp_path: Path) -> None:
    (tmp_path / FIRST).write_bytes(b"nothing of ours")

    with pytest.raises(StoreError, match="none has a readable header"):
        open_log(tmp_path)


def test_damaged_base_is_reported_and_its_samples_are_not_silently_older_ones(tmp_path: Path) -> None:
    from elea.store import Retention

    with open_log(tmp_path / "log", segment_bytes=1) as log:
        log.append([sample(0, key="old")])
        log.append([sample(1, key="new")])
        log.retain(Retention(samples=1), now_ns=0)
    data = bytearray((tmp_path / "log" / BASE).read_bytes())
    data[-1] ^= 1
    (tmp_path / "log" / BASE).write_bytes(data)

    with open_log(tmp_path / "log") as log:
        assert [one.segment for one in log.damage] == [BASE]
        with pytest.raises(StoreCorrupt):
            log.latest("old")


def test_block_written_wrong_is_found_by_verify_although_its_checksums_are_right(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(0), sample(1)])
        batch = pa.concat_batches(list(log.read_arrow()))
        segment = log.shelf.view.parts[0]
        facts = segment.blocks[0].facts._replace(max_ntp=7)
        parts, _ = seal(batch.serialize(), BLOCK, facts, salt=segment.salt, offset=0)  # type: ignore[attr-defined]
    start = block_ends(tmp_path / "log" / FIRST)[0]
    data = (tmp_path / "log" / FIRST).read_bytes()
    (tmp_path / "log" / FIRST).write_bytes(data[:start] + b"".join(parts))

    report = verify(tmp_path / "log")

    assert [(one.first, one.last) for one in report.damage] == [(0, 1)]


def test_verify_of_a_sound_log_counts_everything_and_says_how_far_it_is(tmp_path: Path) -> None:
    filled(tmp_path / "log", [3, 4], segment_bytes=1)
    seen: list[tuple[int, int]] = []

    report = verify(tmp_path / "log", lambda done, total: seen.append((done, total)))

    assert (report.sound, report.segments, report.blocks, report.samples, report.lost) == (True, 2, 2, 7, 0)
    assert seen[-1][0] == seen[-1][1] == report.octets


def test_damage_is_forgotten_when_it_is_accepted(tmp_path: Path) -> None:
    from elea.store.disk import DiskShelf

    filled(tmp_path / "log", [1])
    (tmp_path / "log" / CATALOGUE).unlink()
    with open_log(tmp_path / "log") as log:
        assert isinstance(log.shelf, DiskShelf)
        assert log.shelf.cursors_lost
        log.shelf.accept_loss()

    with open_log(tmp_path / "log") as log:
        assert log.damage == []
