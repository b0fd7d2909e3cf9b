"""The index: a checkpoint that is asked before it is loaded gives what the plain definition does."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from elea.store import Range, Retention, open_log
from elea.store.latest import Latest, position_of
from tests.unit.store.samples import newest, sample, stored, without_close
from tests.unit.store.test_damage import FIRST, block_ends

KEYS = [f"room/{number}/temp" for number in range(40)]


def frozen(entries: dict[str, int]) -> pa.RecordBatch:
    columns = [
        list(entries),
        [one >> 64 for one in entries.values()],
        [one & (1 << 64) - 1 for one in entries.values()],
    ]
    schema = pa.schema([("key", pa.string()), ("ntp64", pa.uint64()), ("place", pa.int64())])
    return pa.record_batch(columns, schema=schema)


def note(latest: Latest, rows: list[tuple[str, int, int]], first: int) -> None:
    keys, times, kinds = ([row[index] for row in rows] for index in range(3))
    latest.note(keys, times, kinds, range(first, first + len(rows)))  # type: ignore[arg-type]


def test_checkpoint_and_later_samples_together_are_what_all_samples_are() -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    chance = Random(seed)
    ids = [bytes([chance.randrange(3)]) for _ in range(600)]

    for _ in range(20):
        rows = [(chance.choice(KEYS), chance.randrange(30), chance.randrange(2)) for _ in range(600)]
        cut = chance.randrange(600)
        plain, half, both = Latest(ids.__getitem__), Latest(ids.__getitem__), Latest(ids.__getitem__)
        note(plain, rows, 0)
        note(half, rows[:cut], 0)
        both.freeze(frozen(half.entries))
        note(both, rows[cut:], cut)

        assert {key: both.get(key) for key in KEYS if both.get(key) is not None} == plain.entries
        assert both.get("room/none") is None
        assert both.entries == plain.entries


def test_keys_are_found_while_the_checkpoint_is_loaded_and_samples_come() -> None:
    count = 60_000
    latest = Latest(lambda position: b"")
    latest.freeze(frozen({f"k/{number}": 5 << 64 | number << 1 for number in range(count)}))
    wrong: list[object] = []

    def look() -> None:
        for number in range(0, count, 997):
            entry = latest.get(f"k/{number}")
            if entry is None or entry >> 64 not in (5, 6):
                wrong.append((number, entry))

    threads = [threading.Thread(target=look) for _ in range(2)] + [threading.Thread(target=latest.load)]
    for thread in threads:
        thread.start()
    for number in range(0, count, 7):
        latest.note([f"k/{number}"], [6], [0], [count + number])
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(latest.entries) == count
    assert all(latest.entries[f"k/{number}"] >> 64 == (6 if number % 7 == 0 else 5) for number in range(count))


def test_log_answers_for_its_keys_before_and_after_the_index_is_loaded(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(number) for number in range(50)])
        log.checkpoint()
        log.append([sample(60, key="room/0/temp"), sample(10, key="room/1/temp"), sample(1, key="late")])
        everything = stored(log)
        assert log.fresh == 3
        killed = without_close(tmp_path / "log", tmp_path / "killed")

    with open_log(killed) as log:
        wanted = newest(everything)
        assert log.fresh == 3
        assert {key: log.latest(key) for key in wanted} == wanted
        log.load_index()
        assert {key: log.latest(key) for key in wanted} == wanted
        assert {one.record.key: one for one in log.latest_matching("**")} == wanted


def test_deletion_that_retention_forgot_does_not_come_back_with_an_older_checkpoint(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", segment_bytes=1) as log:
        log.append([sample(0, key="gone", kind=1), sample(1, key="kept", kind=1), sample(2, key="there")])
        log.append([sample(3, key="there")])
        log.checkpoint()
        entries = dict(log._latest.entries)
        late = sample(9, key="there")
        log.retain(Retention(samples=1, tombstone_ns=0), now_ns=(1_000_000 + 1) * 10**9)
        log.append([late])
        killed = without_close(tmp_path / "log", tmp_path / "killed")

    assert position_of(entries["gone"]) == 0
    with open_log(killed) as log:
        assert log.latest("gone", deleted=True) is None
        assert log.latest("kept", deleted=True) is not None


@pytest.mark.parametrize("damaged", [False, True])
def test_numbers_are_found_where_they_are_although_others_between_them_are_lost(tmp_path: Path, damaged: bool) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(n, source=(b"a", 1, n)) for n in range(3)])
        log.append([sample(n, source=(b"b", 1, n)) for n in range(2)])
        log.append([sample(n, source=(b"a", 1, n)) for n in range(3, 6)])
    (tmp_path / "log" / "index").unlink()
    file = tmp_path / "log" / FIRST
    data = bytearray(file.read_bytes())
    data[block_ends(file)[1] + 30] ^= damaged
    file.write_bytes(data)

    with open_log(tmp_path / "log") as log:
        assert bool(log.damage) == damaged
        assert len(list(log.read(Range(skip_damaged=True)))) == (6 if damaged else 8)
        again = log.append([sample(n, source=(b"a", 1, n)) for n in range(6)])

    assert again.positions() == [0, 1, 2, 5, 6, 7]
