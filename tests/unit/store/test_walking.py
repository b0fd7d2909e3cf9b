"""The newest samples of very many keys, read bit by bit while others write, compact and remove."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.model.errors import StoreCorrupt
from elea.store import DEL, Log, Range, Record, Retention, logreads, memory_log, open_log
from elea.store import log as log_module
from tests.unit.store.samples import sample

KEYS = 40


def record(number: int, *, time: int, kind: int = 0, octets: int = 10) -> Record:
    return Record(f"k/{number}", b"" if kind else bytes([time]) * octets, time << 32, b"\x01", time * 10**9, kind)


@pytest.fixture(params=["disk", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    with open_log(tmp_path, segment_bytes=4096) if request.param == "disk" else memory_log() as made:
        for number in range(KEYS):
            made.append([record(number, time=1)])
            if not number % 4:
                made.shelf.roll()
        yield made


def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_KEYS_AT_ONCE", 8)


def test_a_walk_gives_what_was_newest_when_it_began(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_once(monkeypatch)
    walk = log.latest_matching("k/*")
    first = [next(walk) for _ in range(3)]
    log.append([record(number, time=2) for number in range(0, KEYS, 2)])
    log.append([record(1, time=3, kind=DEL), record(KEYS, time=3)])
    log.compact()
    rest = list(walk)

    found = [*first, *rest]
    assert [one.position for one in found] == list(range(KEYS))
    assert {one.record.payload for one in found} == {b"\x01" * 10}


def test_a_walk_that_retention_overtakes_still_gives_every_key(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_once(monkeypatch)
    walk = log.latest_matching("k/*")
    found = [next(walk) for _ in range(10)]
    log.shelf.roll()
    log.append([record(number, time=2) for number in range(20, KEYS) if number % 3])
    log.append([record(39, time=3, kind=DEL)])
    log.shelf.roll()
    assert log.retain(Retention(samples=1), 0).samples >= KEYS
    found += walk

    newest: dict[str, bytes] = {}
    for one in found:
        newest[one.record.key] = max(newest.get(one.record.key, b""), one.record.payload)
    expected = {f"k/{n}": (b"\x02" if n >= 20 and n % 3 else b"\x01") * 10 for n in range(KEYS - 1)}
    assert newest == {**expected, **({"k/39": newest["k/39"]} if "k/39" in newest else {})}


def test_damage_on_the_way_is_not_taken_for_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_once(monkeypatch)
    with open_log(tmp_path, segment_bytes=4096) as log:
        for number in range(20):
            log.append([record(number, time=1)])
        walk = log.latest_matching()
        next(walk)
        file = sorted(tmp_path.glob("*.arrows"))[-2]
        data = bytearray(file.read_bytes())
        data[-20] ^= 1
        file.write_bytes(data)
        log._reader.forget()

        with pytest.raises(StoreCorrupt):
            list(walk)


@pytest.mark.parametrize(("newest_first", "limit"), [(False, None), (True, None), (False, 5), (True, 5), (True, 0)])
def test_order_and_limit(log: Log, newest_first: bool, limit: int | None) -> None:
    log.append([record(3, time=2)])
    order = [number for number in range(KEYS) if number != 3] + [3]
    expected = (order[::-1] if newest_first else order)[:limit]

    for found in (
        log.latest_matching("**", newest_first=newest_first, limit=limit),
        log.as_of("**", newest_first=newest_first, limit=limit),
    ):
        assert [one.record.key for one in found] == [f"k/{number}" for number in expected]


def test_large_samples_are_fetched_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logreads, "_OCTETS_AT_ONCE", 10_000)
    log = memory_log()
    log.append([record(number, time=1, octets=3_000) for number in range(50)])
    batches = list(log.latest_arrow())

    assert max(batch.num_rows for batch in batches) <= 5
    assert [key for batch in batches for key in batch.column("key").to_pylist()] == [f"k/{n}" for n in range(50)]
    by_time = list(log.read_arrow(Range(by_time=True)))
    assert max(batch.num_rows for batch in by_time) <= 5
    assert sum(batch.num_rows for batch in by_time) == 50


def test_blocks_that_are_kept_are_bounded_in_octets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logreads, "STORE_CACHED_BYTES", 20_000)
    with open_log(tmp_path) as log:
        for number in range(20):
            log.append([record(number, time=1, octets=5_000)])
        everything = list(log.latest_matching())
        again = [log.latest(f"k/{number}") for number in range(20)]
        kept = log._reader._cache

        assert everything == again
        assert 1 <= len(kept) <= 4
        assert log._reader._cached_octets == sum(batch.nbytes for batch in kept.values()) <= 20_000
        log._reader.forget()
        assert (len(kept), log._reader._cached_octets) == (0, 0)


def test_verbatim_chunks_are_not_among_all_keys() -> None:
    log = memory_log()
    log.append([sample(1, key=key) for key in ("a", "@a", "a/@b", "a@/b", "a/b@", "a/@b/c")])

    assert [one.record.key for one in log.latest_matching("**")] == ["a", "a@/b", "a/b@"]
