"""Updates of many keys: remembered with the log, for samples that are older and come later."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.model.timestamp import ntp64_from_ns
from elea.node.storage import wildcardupdates
from elea.node.storage.wildcardupdates import LIFESPAN_NS, WildcardUpdates
from elea.store import DEL, PUT, Log, Record, memory_log, open_log
from tests.unit.node.storage.serving import batch, broker, eventually, samples, values
from tests.unit.node.storage.test_getanswers import put, stamp

BLOCK = elea.CongestionControl.BLOCK
HOME = {"key_expr": "home/**", "volume": "log"}


def update(key: str, number: int, **more: Any) -> Record:
    whole = Record(
        key, b"\x00\xff", number, b"\x01", 0, PUT, 7, b"schema", b"more", b"\x02", 3, 4, once=False, qos=13
    )  # fmt: skip
    return whole._replace(**more)


def take_in(updates: WildcardUpdates, record: Record) -> None:
    assert updates.take_in(record, nullcontext())


def test_updates_are_there_again_in_every_detail(tmp_path: Path) -> None:
    known = [update("a/*", 10), update("a/**", 30, kind=DEL, payload=b""), update("b/$*c", 20, schema=None)]
    with open_log(tmp_path) as log:
        updates = WildcardUpdates(log)
        for one in known:
            take_in(updates, one)
        updates.done("a/*")
    with open_log(tmp_path) as log:
        again = WildcardUpdates(log)

        assert again.late([update("b/xc", 1)]) == [known[2]._replace(key="b/xc")]
        assert again.late([update("a/x", 1), update("a/x", 29), update("a/x", 31)]) == [
            known[1]._replace(key="a/x"), known[1]._replace(key="a/x"),
        ]  # fmt: skip
        assert sorted(again.pending) == ["a/**", "b/$*c"]


def test_the_newest_of_an_expression_replaces_the_older_ones() -> None:
    updates = WildcardUpdates(memory_log())
    take_in(updates, update("a/*", 20))

    assert not updates.take_in(update("a/*", 19), nullcontext())
    take_in(updates, update("a/*", 21, payload=b"new"))
    assert [one.payload for one in updates.late([update("a/x", 1)])] == [b"new"]
    assert len(updates) == 1


@pytest.mark.parametrize(("limit", "value"), [("REMEMBERED", 3), ("REMEMBERED_BYTES", 3 * 211)])
def test_too_many_give_way_the_oldest_first_and_are_counted(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wildcardupdates, limit, value)
    log = memory_log()
    updates = WildcardUpdates(log)
    for number in range(5):
        take_in(updates, update(f"{number}/*", 100 + number, attachment=None, payload=b"payload!"))
    updates.shorten(0)

    assert (len(updates), updates.forgotten) == (3, 2)
    assert sorted(log.notes()) == ["update:2/*", "update:3/*", "update:4/*"]
    assert "forgotten=2" in caplog.text


def test_after_a_day_they_are_forgotten() -> None:
    log = memory_log()
    updates = WildcardUpdates(log)
    take_in(updates, update("old/*", ntp64_from_ns(1_000)))
    take_in(updates, update("new/*", ntp64_from_ns(LIFESPAN_NS)))
    updates.shorten(LIFESPAN_NS + 2_000)

    assert list(log.notes()) == ["update:new/*"]
    assert (len(updates), updates.forgotten) == (1, 0)
    assert not updates.late([update("old/x", 0)])


def test_a_started_broker_knows_the_updates_of_the_one_before(tmp_path: Path) -> None:
    with broker(tmp_path, home=HOME) as made, made.client() as client:
        put(client, "home/a", "x", at=1)
        client.delete("home/*", timestamp=stamp(20), congestion_control=BLOCK)
        assert values(client, "home/**") == []
    with broker(tmp_path, home=HOME) as made, made.client() as client:
        put(client, "home/late", "x", at=19)
        put(client, "home/new", "y", at=21)

        assert values(client, "home/**") == [("home/new", "y")]


def test_rows_of_a_batch_that_are_older_than_an_update_take_its_value(tmp_path: Path) -> None:
    with broker(tmp_path, home=HOME) as made, made.client() as client:
        put(client, "home/c", "z", at=30)
        put(client, "home/*", "update", at=20)
        samples(client, "home/c")
        times = [stamp(at).get_time().timestamp() for at in (19, 21)]
        columns = {"ntp64": [ntp64_from_ns(int(at * 1e9)) for at in times], "stamp_id": [b"\x01"] * 2}
        rows = batch([("home/a", b"old"), ("home/b", b"new")], **columns)
        samples(client, "@store/batch/home/**?src=a1.1.1", payload=rows)

        assert sorted(values(client, "home/**")) == [("home/a", "update"), ("home/b", "new"), ("home/c", "z")]


def interrupted(directory: Path) -> Log:
    """A log whose broker has written an update down, and then was killed."""
    log = open_log(directory / "home")
    log.append([update(f"home/{name}", 10 if name < "c" else 30, qos=5) for name in "abcd"])
    take_in(WildcardUpdates(log), update("home/*", 20, kind=DEL, payload=b""))
    return log


def test_an_update_that_was_interrupted_is_carried_out_by_the_next_broker(tmp_path: Path) -> None:
    with interrupted(tmp_path):
        pass
    with broker(tmp_path, home=HOME) as made:
        storage = made.storage("home")
        eventually(lambda: storage.log.keys == 2, "the update")

        assert [str(one.key_expr) for one in samples(made.session, "home/**")] == ["home/c", "home/d"]
        assert storage.log.end == 6
    with open_log(tmp_path / "home") as log:
        assert not WildcardUpdates(log).pending
