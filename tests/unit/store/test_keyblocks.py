"""Which blocks have a key: the same samples as by looking at all of them, without looking at all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from elea.model.errors import StoreCorrupt
from elea.store import Log, Range, open_log
from elea.store.keyblocks import KeyBlocks
from elea.store.logreads import Reader
from elea.store.segment import Segment
from tests.unit.store.samples import sample

KEYS = [f"home/{number % 7}" for number in range(100)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = open_log(tmp_path / "log", segment_bytes=40_000)
    for number, key in enumerate(KEYS):
        made.append([sample(number, key=key)])
    return made


def positions(log: Log, **wanted: object) -> list[int]:
    return [stored.position for stored in log.read(Range(**wanted))]  # type: ignore[arg-type]


def expected(key: str) -> list[int]:
    return [position for position, its_key in enumerate(KEYS) if its_key == key]


def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first positions of the blocks that are read from now on."""
    seen: list[int] = []
    real = Segment.load

    def load(self: Segment, block: object) -> object:
        seen.append(block.facts.first)  # type: ignore[attr-defined]
        return real(self, block)  # type: ignore[arg-type]

    monkeypatch.setattr(Segment, "load", load)
    return seen


def test_history_of_a_key_reads_only_its_blocks_while_the_log_grows(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(log.shelf.view.parts) > 2
    seen = loads(monkeypatch)

    assert positions(log, keys="home/3") == expected("home/3")
    assert sorted(seen) == expected("home/3")
    log.append([sample(100, key="home/3")])
    assert positions(log, keys="home/3", newest_first=True, limit=2) == [100, expected("home/3")[-1]]
    assert positions(log, keys="home/none") == []


def test_after_a_restart_all_blocks_are_read_once(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.close()
    with open_log(tmp_path / "log") as again:
        seen = loads(monkeypatch)
        assert positions(again, keys="home/3") == expected("home/3")
        assert len(seen) == len(KEYS) + len(expected("home/3"))

        seen.clear()
        again.append([sample(100, key="home/3")])
        assert positions(again, keys="home/3") == [*expected("home/3"), 100]
        assert len(seen) == len(expected("home/3")) + 1


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(("start", "end"), [(0, 100), (3, 99), (10, 11), (50, 50), (17, 60)])
def test_ranges_of_a_key_are_those_of_all_samples(log: Log, start: int, end: int, newest_first: bool) -> None:
    found = positions(log, keys="home/3", start=start, end=end, newest_first=newest_first)

    chosen = [position for position in expected("home/3") if start <= position < end]
    assert found == (chosen[::-1] if newest_first else chosen)


def test_compacted_segments_are_asked_too(log: Log) -> None:
    assert positions(log, keys="home/3") == expected("home/3")

    assert log.compact() > 0

    assert positions(log, keys="home/3") == expected("home/3")


def test_damage_is_met_although_the_key_is_elsewhere(log: Log, tmp_path: Path) -> None:
    assert positions(log, keys="home/3") == expected("home/3")
    log.close()
    segment = min((tmp_path / "log").glob("0*.arrows"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    with open_log(tmp_path / "log") as again:
        with pytest.raises(StoreCorrupt):
            positions(again, keys="home/3")
        left = positions(again, keys="home/3", skip_damaged=True)
        assert set(left) <= set(expected("home/3"))
        assert len(left) >= len(expected("home/3")) - 1


def test_memory_of_the_keys_is_bounded(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.store.logreads.STORE_KEYED_BYTES", 200)
    reader: Reader = log._reader

    assert positions(log, keys="home/3") == expected("home/3")

    assert sum(reader._keyed.values()) <= 200 + max(reader._keyed.values())
    assert positions(log, keys="home/4") == expected("home/4")


def test_order_does_not_change_what_is_found() -> None:
    keyed = KeyBlocks()
    for number in range(1000):
        keyed.add([f"k{number % 10}", "all"], gap=number == 500)
    keyed.add(None, gap=False)

    before = keyed.find("k3"), keyed.find("all"), keyed.find("none")
    keyed.settle()

    assert (keyed.find("k3"), keyed.find("all"), keyed.find("none")) == before
    assert before == ([*range(3, 1000, 10), 1000], list(range(1001)), [1000])
    assert (keyed.gaps, keyed.octets) == ([500], 16_000)
