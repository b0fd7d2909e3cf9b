"""What a storage does when the disk is slow, full or broken, and at its end."""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.model.errors import StoreInUse, StoreReadOnly
from elea.node.storage import storage as module
from elea.node.storage.settings import StorageSettings, name_of
from elea.node.storage.storage import Storage
from elea.node.storage.upkeep import Upkeep
from elea.store import State, commit, open_log
from tests.unit.node.storage.serving import Broker, broker, eventually, failure, manager, samples, told, values
from tests.unit.store.faults import FailingFiles

BLOCK, DROP = elea.CongestionControl.BLOCK, elea.CongestionControl.DROP
HOME = {"home": {"key_expr": "home/**", "volume": "log", "complete": True}}


class Gate:
    """A disk that stands still until told."""

    def __init__(self, storage: Storage) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        shelf: Any = storage.log.shelf
        self._write = shelf.write
        shelf.write = self._wait

    def _wait(self, blocks: Any) -> None:
        self.reached.set()
        assert self.open.wait(60)
        self._write(blocks)


@contextlib.contextmanager
def stopped(made: Broker, name: str = "home") -> Iterator[Gate]:
    gate = Gate(made.storage(name))
    try:
        yield gate
    finally:
        gate.open.set()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> FailingFiles:
    """The disk of every log that is opened."""
    files = FailingFiles()
    plain = open_log
    monkeypatch.setattr(module, "open_log", lambda path, **options: plain(path, files=files, **options))
    return files


def test_slow_disk_stops_no_volatile_traffic(tmp_path: Path) -> None:
    with broker(tmp_path, **HOME) as made, made.client() as a, made.client() as b, stopped(made) as gate:
        with b.declare_subscriber("**") as subscriber:
            samples(b, "home/none")
            a.put("home/x", "kept", congestion_control=BLOCK)
            assert gate.reached.wait(30)
            for number in range(100):
                a.put("volatile/x", str(number), congestion_control=BLOCK)
                a.put("home/x", str(number), congestion_control=BLOCK)
            seen = [subscriber.recv().payload.to_string() for _ in range(201)]
        assert made.storage("home").log.end == 0
        gate.open.set()
        assert values(a, "home/x") == [("home/x", "99")]

    assert seen == ["kept", *(str(number) for number in range(100) for _ in range(2))]


def test_samples_that_find_no_room_are_counted_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commit.Committer.__init__, "__kwdefaults__", {"pending_bytes": 20_000})
    with broker(tmp_path, **HOME) as made, made.client() as a, stopped(made) as gate:
        storage = made.storage("home")
        a.put("home/x", "first", congestion_control=BLOCK)
        assert gate.reached.wait(30)
        with caplog.at_level(logging.ERROR, "elea.node"):
            for _ in range(300):
                a.put("home/x", "x" * 800, congestion_control=DROP)
            eventually(lambda: storage.not_kept["slow"], "samples that are not kept")
        gate.open.set()
        storage.wait_settled()
        eventually(lambda: storage.kept + storage.not_kept["slow"] == 301, "all samples are accounted for")
        info = told(a, f"@store/info/{made.session.zid()}/home")

    assert info["kept"] == info["end"] >= 2
    assert info["not_kept"] == {"slow": 301 - info["kept"]}
    assert any("samples not kept: storage=home" in record.getMessage() for record in caplog.records)


def test_samples_sent_with_block_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit.Committer.__init__, "__kwdefaults__", {"pending_bytes": 20_000})
    monkeypatch.setattr(module, "BLOCKED_SECONDS", 60.0)
    with broker(tmp_path, **HOME) as made, made.client() as a, made.client() as b, stopped(made) as gate:
        storage = made.storage("home")
        sender = threading.Thread(target=lambda: _put_many(a, "home/x", 300))
        sender.start()
        assert gate.reached.wait(30)
        assert told(b, f"@store/info/{made.session.zid()}/home")["kept"] == 0  # others are served meanwhile
        gate.open.set()
        sender.join(60)
        eventually(lambda: storage.kept == 300, "everything is kept")
        assert storage.not_kept == {}


def _put_many(session: Any, key: str, count: int) -> None:
    for number in range(count):
        session.put(key, f"{number}".ljust(800), congestion_control=BLOCK)


def test_full_disk_refuses_and_recovers(tmp_path: Path, failing: FailingFiles) -> None:
    with broker(tmp_path, **HOME) as made, made.client() as session:
        told(session, "@store/put/home/x?src=a1.1.1", payload="before")
        failing.room = 0
        refused = failure(session, "@store/put/home/x?src=a1.1.2", payload="during")
        session.put("home/x", "plain", congestion_control=BLOCK)
        eventually(lambda: made.storage("home").not_kept["full"] == 1, "a sample that found no room")
        state = told(session, f"@store/info/{made.session.zid()}/home")["state"]
        seen = values(session, "home/x")
        failing.room = None
        told(session, "@store/put/home/x?src=a1.1.2", payload="after")
        recovered = made.storage("home").log.state

        assert (refused["error"], state, seen) == ("StoreFull", "full", [("home/x", "before")])
        assert recovered is State.OPEN
        assert values(session, "home/x") == [("home/x", "after")]


def test_failed_sync_leaves_the_storage_readable(
    tmp_path: Path, failing: FailingFiles, caplog: pytest.LogCaptureFixture
) -> None:
    with broker(tmp_path, **HOME) as made, made.client() as session:
        told(session, "@store/put/home/x?src=a1.1.1", payload="before")
        failing.sync_error = errno.EIO
        refused = [
            failure(session, f"@store/put/home/x?src=a1.1.{number}", payload="lost")["error"] for number in (2, 3)
        ]
        failing.sync_error = None
        upkeep = Upkeep(made.storages.all, lambda: 0)
        upkeep._states[made.storage("home")] = State.OPEN
        with caplog.at_level(logging.ERROR, "elea.node"):
            upkeep.look(made.storage("home"), thorough=True)

        assert refused == ["StoreReadOnly", "StoreReadOnly"]
        assert values(session, "home/x") == [("home/x", "before")]
        assert told(session, f"@store/info/{made.session.zid()}/home")["state"] == "read-only"
        assert "storage changed: storage=home state=read-only before=open" in caplog.text


def test_fault_in_a_commit_is_told_and_the_next_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with broker(tmp_path, **HOME) as made, made.client() as session:
        shelf: Any = made.storage("home").log.shelf
        plain = shelf.write
        monkeypatch.setattr(shelf, "write", lambda blocks: 1 // 0)
        refused = failure(session, "@store/put/home/x?src=a1.1.1", payload="x")
        monkeypatch.setattr(shelf, "write", plain)
        told(session, "@store/put/home/x?src=a1.1.1", payload="x")

        assert refused["error"] == "StoreError"
        assert values(session, "home/x") == [("home/x", "x")]
    assert "commit failed" in caplog.text


def test_everything_that_came_is_committed_and_acknowledged_at_the_end(tmp_path: Path) -> None:
    answers: list[elea.Reply] = []
    with broker(tmp_path, **HOME) as made, made.client() as session, stopped(made) as gate:
        storage = made.storage("home")
        for number in range(10):
            session.get(f"@store/put/home/{number}?src=a1.1.{number}", answers.append, payload="x")
        eventually(lambda: storage._submitted == 10 and gate.reached.is_set(), "puts under way")
        ending = threading.Thread(target=made.session.close)
        ending.start()
        gate.open.set()
        ending.join(60)
        eventually(lambda: len(answers) == 10, "acknowledgements")
    assert all(reply.ok is not None for reply in answers)
    assert storage.log.state is State.CLOSED
    with pytest.raises(StoreReadOnly):
        storage.submit([], 0, wait=0.0)


def test_second_broker_on_a_directory_is_refused_and_leaves_nothing_open(tmp_path: Path) -> None:
    second = broker(tmp_path, other=HOME["home"], **HOME)
    with broker(tmp_path, **HOME), pytest.raises(StoreInUse, match="process"), second:
        pass
    with broker(tmp_path, other=HOME["home"], **HOME) as made:
        assert [storage.name for storage in made.storages.all] == ["other", "home", "default"]


def test_retention_and_checkpoints_are_the_upkeeps(tmp_path: Path) -> None:
    home = {"home": {**HOME["home"], "retain": {"age": 1, "past_cursors": True}}}
    with broker(tmp_path, **home) as made, made.client() as session:
        storage = made.storage("home")
        told(session, "@store/put/home/x?src=a1.1.1", payload="old")
        told(session, "@store/put/home/x?src=a1.1.2", payload="new")
        later = made.session._node.loop.wall_ns() + 10**10
        Upkeep([storage], lambda: later).look(storage, thorough=True)

        assert storage.log.first == 2
        assert values(session, "home/x") == [("home/x", "new")]
        assert failure(session, "@store/read/home/**?from=0")["error"] == "StoreTrimmed"
        told(session, "@store/put/home/x?src=a1.1.3", payload="newer")
        upkeep = Upkeep([storage], lambda: later)
        upkeep.look(storage, thorough=True)
        assert (tmp_path / "home" / "index").exists()


def test_names_of_storages_are_safe_and_distinct() -> None:
    names = [name_of(key) for key in ("a/b", "a-b", "a/*", "a/**", "a/any", "é/ü", "../x", "a" * 500)]

    assert len(set(names)) == len(names)
    assert all(name.isascii() and not set(name) & set("/*. ") and len(name) < 100 for name in names)


def test_memory_needs_no_directory() -> None:
    assert StorageSettings("a", "a/**", None).durability == "transient"
    assert manager() == {"storage_manager": {"volumes": {}, "storages": {}}}
