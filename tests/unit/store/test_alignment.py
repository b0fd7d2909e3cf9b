"""Alignment of two logs: what is brought, what it keeps, and what becomes of interruptions, damage and lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import StoreReplaced
from elea.model.limits import STORE_SOURCE_RUNS
from elea.store import DEL, Log, Range, Record, Retention, alignment, memory_log, open_log
from elea.store.alignment import Aligned, Near, align
from elea.store.columns import fields_of, from_fields
from elea.store.digest import Digest
from elea.store.scope import LEAF, Scope, scope_of
from tests.unit.store.samples import SECOND, sample

SECOND_NS = 10**9
ALL = Scope()


class Side:
    """A log and its digest."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = memory_log() if log is None else log
        self.digest = Digest(self.log)

    def near(self) -> Near:
        return Near(self.log, self.digest)

    def align(self, far: alignment.Far, scope: Scope = ALL, until: int = 1 << 64) -> Aligned:
        return align(
            self.log, self.digest, far, scope, lambda records: self.log.append(records, sift=False), until=until
        )

    def records(self) -> list[Record]:
        return [one.record for one in self.log.read()]


def test_everything_is_brought_in_the_order_of_time_behind_what_is_there() -> None:
    one, two = Side(), Side()
    one.log.append([sample(7)])
    two.log.append([sample(3), sample(1), sample(2, kind=DEL)])

    aligned = one.align(two.near())

    assert (aligned.missing, aligned.brought) == (3, 3)
    assert one.records() == [sample(7), sample(1), sample(2, kind=DEL), sample(3)]
    assert one.align(two.near()) == Aligned(1, 0, 0)
    two.align(one.near())
    assert two.records() == [sample(3), sample(1), sample(2, kind=DEL), sample(7)]
    assert one.align(two.near()) == two.align(one.near()) == Aligned(0, 0, 0)


def test_deletion_that_is_newer_counts_however_late_it_is_brought() -> None:
    one, two = Side(), Side()
    one.log.append([sample(1, key="k")])
    two.log.append([sample(2, key="k", kind=DEL)])

    one.align(two.near())
    two.align(one.near())

    for side in (one, two):
        assert side.log.latest("k") is None
        assert side.log.latest("k", deleted=True) is not None


def test_retry_of_a_sample_that_was_brought_is_known() -> None:
    one, two = Side(), Side()
    numbered = sample(1, source=(b"\x07", 3, 40))
    two.log.append([numbered])
    one.align(two.near())

    receipt = one.log.append([numbered._replace(ntp64=numbered.ntp64 + SECOND)])

    assert (receipt.rows, receipt.repeated) == (0, {0: 0})
    assert one.records() == [numbered]


def test_numbers_that_count_as_known_are_brought_all_the_same() -> None:
    one, two = Side(), Side()
    source = b"\x07"
    two.log.append([sample(n, source=(source, 1, n)) for n in range(10)])
    for n in range(20, 20 + 4 * STORE_SOURCE_RUNS, 2):  # each a run of its own: those before count as stored
        one.log.append([sample(n, source=(source, 1, n))])
    assert one.log.append([sample(5, source=(source, 1, 5))]).rows == 0

    aligned = one.align(two.near())

    assert aligned.brought == 10
    assert {record.source_sn for record in one.records()} >= set(range(10))


def test_same_number_stored_at_both_under_different_times_ends_up_the_same_at_both() -> None:
    one, two = Side(), Side()
    first = sample(1, key="k", source=(b"\x07", 1, 1))
    retried = sample(2, key="k", node=b"\x02", source=(b"\x07", 1, 1))
    one.log.append([first])
    two.log.append([retried])

    one.align(two.near())
    two.align(one.near())

    assert sorted(one.records()) == sorted(two.records()) == sorted([first, retried])
    assert one.align(two.near()).differences == two.align(one.near()).differences == 0


@pytest.mark.parametrize("same_time", [False, True])
def test_many_samples_are_looked_for_and_fetched_in_parts(monkeypatch: pytest.MonkeyPatch, same_time: bool) -> None:
    monkeypatch.setattr(alignment, "STORE_ALIGN_ROWS", 50)
    monkeypatch.setattr(alignment, "ROWS_AT_ONCE", 7)
    listed: list[int] = []
    fetched: list[int] = []

    class Counting(Near):
        def listing(self, level: int, bucket: int, part: int, parts: int, scope: Scope) -> alignment.Listing:
            found = super().listing(level, bucket, part, parts, scope)
            listed.append(found.table.num_rows)
            return found

        def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
            fetched.append(len(positions))
            return super().rows(epoch, positions, octets)

    one, two = Side(), Side()
    time = 5 if same_time else None  # a deletion of many keys has one timestamp
    two.log.append([sample(n, key=f"k/{n}", time=time) for n in range(1000)])
    one.log.append(two.records()[:300])

    aligned = one.align(Counting(two.log, two.digest))

    assert (aligned.missing, aligned.brought) == (700, 700)
    assert sorted(one.records()) == sorted(two.records())
    assert max(listed) <= 100
    assert max(fetched) == 7


def test_large_samples_are_fetched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "STORE_ALIGN_BYTES", 2500)
    one, two = Side(), Side()
    two.log.append([sample(n, payload=b"x" * size) for n, size in enumerate((1000, 900, 5000, 10, 10))])
    asked: list[tuple[int, int]] = []

    class Counting(Near):
        def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
            asked.append((len(positions), octets))
            return super().rows(epoch, positions, octets)

    one.align(Counting(two.log, two.digest))

    assert [count for count, _ in asked] == [2, 1, 2]
    assert all(octets <= 2500 for count, octets in asked if count > 1)
    assert one.records() == two.records()


def test_round_that_is_cut_off_keeps_what_it_brought_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "ROWS_AT_ONCE", 10)
    one, two = Side(), Side()
    two.log.append([sample(n) for n in range(100)])

    class Breaking(Near):
        left = 4

        def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
            self.left -= 1
            if not self.left:
                raise ConnectionError
            return super().rows(epoch, positions, octets)

    with pytest.raises(ConnectionError):
        one.align(Breaking(two.log, two.digest))
    assert one.records() == [sample(n) for n in range(30)]

    assert one.align(two.near()).brought == 70
    assert one.records() == two.records()


def test_samples_that_may_still_be_on_their_way_are_left_for_later() -> None:
    one, two = Side(), Side()
    two.log.append([sample(1), sample(2)])

    assert one.align(two.near(), until=sample(2).ntp64).brought == 1
    assert one.align(two.near()).brought == 1


def test_what_was_not_asked_for_is_not_taken() -> None:
    one, two = Side(), Side()
    two.log.append([sample(1), sample(2)])

    class Lying(Near):
        def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
            yield from_fields(fields_of([sample(2), sample(9), sample(1)._replace(key="other")]), 0)

    aligned = one.align(Lying(two.log, two.digest))

    assert (aligned.missing, aligned.brought) == (2, 1)
    assert one.records() == [sample(2)]


def test_positions_of_a_log_that_was_replaced_are_refused() -> None:
    side = Side()
    side.log.append([sample(1)])

    with pytest.raises(StoreReplaced):
        list(side.near().rows("another", [0], 0))


def test_samples_lost_to_damage_are_brought_back_by_the_other_log(tmp_path: Path) -> None:
    with open_log(tmp_path / "a") as log:
        log.append([sample(n) for n in range(5)])
        log.append([sample(n) for n in range(5, 10)])
    segment = next((tmp_path / "a").glob("0*.arrows"))
    data = bytearray(segment.read_bytes())
    at = data.index(b"value 1value 2")
    data[at] ^= 1
    segment.write_bytes(data)
    two = Side()
    two.log.append([sample(n) for n in range(10)])

    with open_log(tmp_path / "a") as log:
        one = Side(log)
        aligned = one.align(two.near())

        assert aligned.brought == 5
        left = [found.record for found in log.read(Range(skip_damaged=True))]
        assert sorted(left) == sorted(two.records())
        assert one.align(two.near()) == Aligned(0, 0, 0)


# -- retention ---------------------------------------------------------------------------------------------------------


def trimmed(path: Path, start: int, stop: int, left: int) -> Log:
    """A log with a segment for each sample, of 300 s each, trimmed to the last ones."""
    log = open_log(path, segment_bytes=1)
    for n in range(start, stop):
        log.append([late(n)])
    log.retain(Retention(samples=left), now_ns=stop * 300 * SECOND_NS)
    return log


def late(number: int, **fields: object) -> Record:
    """Number n is stamped, and arrives, 300 n seconds after 1970."""
    made = sample(number, key=f"k/{number % 3}", time=number * 300)
    return made._replace(arrival_ns=number * 300 * SECOND_NS, **fields)  # type: ignore[arg-type]


def test_what_retention_let_go_is_not_brought_back(tmp_path: Path) -> None:
    with trimmed(tmp_path, 0, 10, 4) as log:
        one, two = Side(log), Side()
        two.log.append([late(n) for n in range(10)])
        now_ns = 10 * 300 * SECOND_NS

        assert one.align(two.near(), scope_of(log, now_ns)) == Aligned(0, 0, 0)
        assert log.first == 6


def test_newest_sample_of_a_key_is_brought_however_old_and_older_ones_are_not(tmp_path: Path) -> None:
    with trimmed(tmp_path, 10, 20, 2) as log:
        one, two = Side(log), Side()
        static = [late(1, key="static"), late(2, key="static")]
        two.log.append([*static, late(3, key="k/0", payload=b"older than ours")])

        assert one.align(two.near(), scope_of(log, 20 * 300 * SECOND_NS)).brought == 1

        found = log.latest("static")
        assert found is not None
        assert found.record == static[1]


def test_deletions_of_yesterday_are_not_asked_for_once_the_log_was_trimmed(tmp_path: Path) -> None:
    day = 24 * 12  # in steps of 300 s
    with trimmed(tmp_path, day * 2, day * 2 + 4, 1) as log:
        one, two = Side(log), Side()
        two.log.append([late(day // 2, key="old", kind=DEL), late(day * 2, key="new", kind=DEL)])

        assert one.align(two.near(), scope_of(log, (day * 2 + 4) * 300 * SECOND_NS)).brought == 1

        assert log.latest("old", deleted=True) is None
        assert log.latest("new", deleted=True) is not None


def test_scope_begins_where_the_log_or_its_age_does(tmp_path: Path) -> None:
    now_ns = 100 * 300 * SECOND_NS
    side = Side()
    side.log.append([late(1)])

    assert scope_of(side.log, now_ns).floor == 0
    aged = scope_of(side.log, now_ns, age_ns=3000 * SECOND_NS).floor
    assert 27_000 * SECOND <= aged <= (27_000 + 256) * SECOND
    assert aged % (1 << LEAF) == 0
    with trimmed(tmp_path, 10, 20, 2) as log:
        assert 18 * 300 * SECOND < scope_of(log, now_ns).floor <= (18 * 300 + 257) * SECOND
