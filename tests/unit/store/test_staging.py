"""Staged batches: what is decided on stays so through any crash, and what is not is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

import elea.store.staging as staging_module
from elea.model.errors import StoreError, StoreFenced, StoreFull
from elea.model.limits import STORE_STAGED_SECONDS
from elea.store.files import Files
from elea.store.staging import Mark, Staging

W = "b0.0"


class Crash(Exception):
    """The process ends here."""


class Crashing(Files):
    """Ends at the n-th named point."""

    def __init__(self, at: int) -> None:
        self._left = at

    def reach(self, point: str) -> None:
        if self._left == 0:
            raise Crash(point)
        self._left -= 1


def work(staging: Staging, number: int) -> None:
    """A batch from its first piece to its end."""
    staging.stage(W, number, "one", b"1", 0.0)
    staging.stage(W, number, "two", b"2", 0.0)
    staging.stage(W, number, "spare", b"3", 0.0)
    staging.decide(W, number, {"pieces": ["two", "one"], "qos": 5})
    staging.finish(W, number, 10 * number, 2)


@pytest.mark.parametrize("at", range(10))
def test_crash_at_any_point_leaves_a_batch_undecided_or_to_be_finished_or_done(tmp_path: Path, at: int) -> None:
    work(Staging(tmp_path), 0)
    with pytest.raises(Crash):
        work(Staging(tmp_path, Crashing(at)), 1)

    found = Staging(tmp_path)
    mark = found.committed(W, 1)
    if mark is not None:
        assert mark == Mark(1, 10, 2)
        assert found.decided == []
        assert found.octets == 0
    elif found.decided:
        assert found.decided == [(W, 1, {"pieces": ["two", "one"], "qos": 5})]
        assert [found.load(W, 1, piece) for piece in ("two", "one")] == [b"2", b"1"]
        with pytest.raises(StoreFenced):
            found.committed(W, 0)
    else:
        assert found.committed(W, 0) == Mark(0, 0, 2)
        work(found, 1)
        assert found.committed(W, 1) == Mark(1, 10, 2)
    assert not list(tmp_path.glob("*.new"))


def test_every_crash_was_looked_at(tmp_path: Path) -> None:
    work(Staging(tmp_path, Crashing(10)), 0)


@pytest.mark.parametrize("kept", [True, False])
def test_older_numbers_are_fenced_and_other_writers_are_not(tmp_path: Path, kept: bool) -> None:
    staging = Staging(tmp_path if kept else None)
    work(staging, 7)

    with pytest.raises(StoreFenced) as refused:
        staging.committed(W, 6)

    assert (refused.value.number, refused.value.last) == (6, 7)
    assert staging.committed(W, 8) is None
    assert staging.committed("b0.1", 0) is None
    assert staging.octets == 0


def test_pieces_that_nobody_commits_are_forgotten_in_time(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.stage(W, 0, "old", b"1234", 0.0)
    staging.stage(W, 1, "decided", b"1234", 0.0)
    staging.decide(W, 1, {"pieces": ["decided"]})

    staging.stage(W, 2, "new", b"12", STORE_STAGED_SECONDS + 1.0)

    assert staging.octets == 6
    assert staging.load(W, 1, "decided") == b"1234"
    with pytest.raises(StoreError, match=r"piece old of batch 0 of writer b0.0 is not staged"):
        staging.load(W, 0, "old")
    staging.drop(W, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b0.0.1.commit", "b0.0.1.decided"]


def test_too_much_is_refused_and_nothing_of_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_module, "STORE_STAGED_BYTES", 10)
    staging = Staging(tmp_path)
    staging.stage(W, 0, "a", b"x" * 10, 0.0)

    with pytest.raises(StoreFull, match="10 octets are staged and not committed, the limit is 10"):
        staging.stage(W, 0, "b", b"x", 0.0)

    assert staging.octets == 10


def test_longest_silent_writer_is_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_module, "STORE_WRITERS", 2)
    staging = Staging(tmp_path)
    for writer, number in (("a.0", 5), ("b.0", 5), ("a.0", 6), ("c.0", 5)):
        staging.finish(writer, number, None, 0)

    again = Staging(tmp_path)

    assert again.writers == 2
    assert again.committed("b.0", 0) is None
    assert again.committed("a.0", 6) == Mark(6, None, 0)


def test_damage_is_named_and_stops_only_its_writer(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    work(staging, 0)
    staging.finish("c.0", 3, None, 0)
    staging.stage(W, 1, "piece", b"12345", 0.0)
    for name in ("b0.0.last", "b0.0.1.piece"):
        whole = bytearray((tmp_path / name).read_bytes())
        whole[-1] ^= 1
        (tmp_path / name).write_bytes(whole)

    found = Staging(tmp_path)

    with pytest.raises(StoreError, match=r"b0.0.last is damaged: its checksum is wrong; move it away"):
        found.committed(W, 1)
    with pytest.raises(StoreError, match=r"b0.0.1.piece is damaged"):
        found.decide(W, 1, {"pieces": ["piece"]})
    assert found.committed("c.0", 3) == Mark(3, None, 0)


@pytest.mark.parametrize("name", ["", "a/b", "commit", "x" * 65, "A", "a.b"])
def test_names_that_could_be_something_else_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="is no name of a piece"):
        Staging(tmp_path).stage(W, 0, name, b"", 0.0)


@pytest.mark.parametrize("kept", [True, False])
def test_staged_pieces_are_gone_after_an_abort(tmp_path: Path, kept: bool) -> None:
    staging = Staging(tmp_path if kept else None)
    staging.stage(W, 3, "a", b"1234", 0.0)
    staging.stage(W, 3, "b", b"12", 0.0)
    staging.stage(W, 4, "other", b"1", 0.0)

    staging.drop(W, 3)

    assert staging.octets == 1
    with pytest.raises(StoreError, match="piece a of batch 3"):
        staging.load(W, 3, "a")
    assert staging.load(W, 4, "other") == b"1"
    assert staging.committed(W, 3) is None
    if kept:
        assert [path.name for path in tmp_path.iterdir()] == ["b0.0.4.other"]
