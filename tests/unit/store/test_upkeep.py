"""Retention, compaction and checkpoints: what goes, what stays, and that nobody notices otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import StoreTrimmed
from elea.store import DEL, Log, Range, Retention, memory_log, open_log
from elea.store.index import Index
from elea.store.recovery import BASE, CATALOGUE
from tests.unit.store.samples import BEGIN, sample, stored

SECOND_NS = 10**9


def log_of_segments(path: Path, count: int, **options: int) -> Log:
    """A log with a segment for each of `count` samples, one a second, each of a key of its own."""
    log = open_log(path, segment_bytes=1, **options)  # type: ignore[arg-type]
    for number in range(count):
        log.append([sample(number, key=f"k/{number}")])
    return log


# -- retention -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (Retention(), 10),
        (Retention(samples=4), 4),
        (Retention(samples=0), 1),
        (Retention(age_ns=3 * SECOND_NS), 4),
        (Retention(age_ns=0), 1),
        (Retention(samples=8, age_ns=2 * SECOND_NS), 3),
    ],
)
def test_retention_leaves_what_the_policy_says(memory_path: Path, policy: Retention, left: int) -> None:
    with log_of_segments(memory_path, 10) as log:
        trimmed = log.retain(policy, now_ns=(BEGIN + 9) * SECOND_NS)

        assert log.end - log.first == left
        assert (trimmed.first, trimmed.samples, trimmed.kept) == (10 - left, 10 - left, 10 - left)
        assert [one.position for one in log.read()] == list(range(10 - left, 10))


def test_retention_by_octets_keeps_the_newest_segments(memory_path: Path) -> None:
    with log_of_segments(memory_path, 10) as log:
        size = log.shelf.sizes()[0][2]

        log.retain(Retention(octets=3 * size + size // 2), now_ns=0)

        assert 2 <= log.end - log.first <= 3
        log.retain(Retention(octets=0), now_ns=0)
        assert log.end - log.first == 1
        assert len(list(memory_path.glob("0*.arrows"))) == 1


def test_all_samples_may_be_too_old(memory_path: Path) -> None:
    with log_of_segments(memory_path, 3) as log:
        log.retain(Retention(age_ns=SECOND_NS), now_ns=(BEGIN + 100) * SECOND_NS)

        assert (log.first, log.end, stored(log)) == (3, 3, [])
        assert len(list(log.latest_matching("**"))) == 3
        assert log.append([sample(9)]).first == 3
    with open_log(memory_path) as log:
        assert [one.position for one in log.read()] == [3]
        assert log.damage == []


def test_newest_sample_of_a_key_outlives_its_segment_and_a_restart(memory_path: Path) -> None:
    with open_log(memory_path, segment_bytes=1) as log:
        for number, key in enumerate(["old", "busy", "busy", "gone", "busy", "busy"]):
            log.append([sample(number, key=key)])
        log.append([sample(6, key="gone", kind=DEL)])
        log.retain(Retention(samples=2), now_ns=0)
        log.append([sample(7, key="busy")])
        log.retain(Retention(samples=1), now_ns=0)
    for index in (True, False):
        if not index:
            (memory_path / "index").unlink()
        with open_log(memory_path) as log:
            assert [(one.record.key, one.position) for one in log.latest_matching("**")] == [("old", 0), ("busy", 7)]
            assert log.latest("gone") is None
            assert log.latest("gone", deleted=True) is not None
            assert [one.record.key for one in log.as_of("**", time_ns=2**31 * SECOND_NS)] == ["old", "busy"]
            assert log.first == 7


def test_deletion_is_remembered_for_its_time_and_then_forgotten(memory_path: Path) -> None:
    day = 86_400
    with open_log(memory_path, segment_bytes=1) as log:
        log.append([sample(0, key="k", time=10, kind=DEL)])
        log.append([sample(1, key="other", time=11)])
        log.append([sample(2, key="other", time=12)])
        log.retain(Retention(samples=2), now_ns=20 * SECOND_NS)
        assert log.latest("k", deleted=True) is not None

        log.retain(Retention(samples=1), now_ns=(11 + day) * SECOND_NS)

        assert log.latest("k", deleted=True) is None


def test_retention_waits_for_the_slowest_cursor_unless_told(memory_path: Path) -> None:
    with log_of_segments(memory_path, 10) as log:
        log.move_cursor("fast", 9)
        log.move_cursor("slow", 3)

        held = log.retain(Retention(samples=1), now_ns=0)
        assert (held.first, held.held_by) == (3, "slow")
        log.move_cursor("slow", 8)
        assert log.retain(Retention(samples=1), now_ns=0).first == 8

        forced = log.retain(Retention(samples=1), now_ns=0, past_cursors=True)

        assert (forced.first, forced.held_by) == (9, None)
        assert log.cursors() == {"fast": 9, "slow": 8}


def test_retention_waits_when_cursors_were_lost_with_the_catalogue(memory_path: Path) -> None:
    with log_of_segments(memory_path, 5) as log:
        log.move_cursor("spark", 1)
    (memory_path / CATALOGUE).unlink()
    with open_log(memory_path) as log:
        held = log.retain(Retention(samples=1), now_ns=0)

        assert held.samples == 0
        assert held.held_by is not None
        assert "lost" in held.held_by
        assert log.retain(Retention(samples=1), now_ns=0, past_cursors=True).first == 4


def test_reader_that_began_before_goes_on_while_segments_are_removed(memory_path: Path) -> None:
    with log_of_segments(memory_path, 6) as log:
        everything = stored(log)
        reader = log.read()
        first = next(reader)

        log.retain(Retention(samples=1), now_ns=0)

        assert [first, *reader] == everything


def test_memory_is_given_back_by_retention() -> None:
    with memory_log() as log:
        for number in range(60):
            log.append([sample(number, key=f"k/{number % 3}", payload=bytes(1 << 20))])

        log.retain(Retention(samples=5), now_ns=0)

        assert log.end - log.first < 20
        assert len(log.shelf.view.parts) <= 3
        assert [one.position for one in log.latest_matching("**")] == [57, 58, 59]


# -- compaction and checkpoints --------------------------------------------------------------------------------


def test_compaction_joins_small_blocks_and_changes_nothing_else(memory_path: Path) -> None:
    with open_log(memory_path) as log:
        for number in range(300):
            log.append([sample(number, source=(b"w", 0, number))])
        log.shelf.roll()
        log.append([sample(300)])
        before, size = stored(log), log.shelf.sizes()[0][2]
        reader = log.read()
        first = next(reader)

        assert log.compact() == 1

        assert log.compact() == 0
        assert [len(part.blocks) for part in log.shelf.view.parts] == [1, 1]
        assert log.shelf.sizes()[0][2] < size / 5
        assert stored(log) == before == [first, *reader]
        assert log.latest(sample(4).key) == before[299]
    with open_log(memory_path) as log:
        assert (stored(log), log.damage) == (before, [])
        assert log.append([before[7].record]).positions() == [7]


def test_segment_with_damage_is_not_compacted(memory_path: Path) -> None:
    with open_log(memory_path) as log:
        for number in range(20):
            log.append([sample(number)])
        middle = log.shelf.view.parts[0].blocks[9]
        log.shelf.roll()
    (segment,) = memory_path.glob("0*.arrows")
    data = bytearray(segment.read_bytes())
    data[middle.offset + 20] ^= 1  # type: ignore[attr-defined]
    segment.write_bytes(data)

    with open_log(memory_path) as log:
        assert log.compact() == 0
        assert len(list(log.read(Range(skip_damaged=True)))) == 19

    assert segment.read_bytes() == data


def test_opening_reads_only_what_came_after_the_checkpoint(memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_log(memory_path, segment_bytes=1) as log:
        for number in range(30):
            log.append([sample(number)])
    taken: list[int] = []
    take_in = Index.take_in

    def counted(index: Index, batch: pa.RecordBatch) -> None:
        taken.append(batch.num_rows)
        take_in(index, batch)

    monkeypatch.setattr(Index, "take_in", counted)

    open_log(memory_path).close()
    assert sum(taken) == 0
    (memory_path / "index").unlink()
    open_log(memory_path).close()

    assert sum(taken) == 30


def test_leftovers_of_a_replacement_that_never_was_are_removed(memory_path: Path) -> None:
    with open_log(memory_path) as log:
        log.append([sample(0)])
    (memory_path / f"{BASE}.new").write_bytes(b"half")

    open_log(memory_path).close()

    assert not (memory_path / f"{BASE}.new").exists()


def test_log_with_more_segments_than_files_may_be_open_is_read_and_trimmed(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.store.files.FILES_OPEN", 2)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with log_of_segments(memory_path, 12) as log:
        everything = stored(log)
        reader = log.read()
        next(reader)
        assert [one.position for one in everything] == list(range(12))
        if before:
            assert len(os.listdir("/proc/self/fd")) < before + 9  # two segments, the active one, catalogue, lock, …

        log.retain(Retention(samples=1), now_ns=0)

        with pytest.raises(StoreTrimmed):
            list(reader)
        assert len(list(log.latest_matching("**"))) == 12


def test_compaction_holds_some_blocks_in_memory_and_not_the_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment of 40 MB in 400 blocks: the most that lies in memory at once is a fraction of it."""
    with open_log(tmp_path / "log") as log:
        for number in range(400):
            log.append([sample(number, payload=os.urandom(100_000))])
        log.shelf.roll()
        held: list[int] = []
        real = os.pwritev

        def watched(*arguments: object) -> int:
            held.append(pa.total_allocated_bytes())
            return real(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "pwritev", watched)
        before = pa.total_allocated_bytes()
        assert log.compact() == 1

        assert max(held) - before < 30_000_000
        assert len(stored(log)) == 400
