"""A broker whose disk is slow, full, failing, damaged or taken: what is acknowledged is there, and the rest goes on.

Which hazard is proven where is told in docs/store.md.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.model.errors import StoreFull, StoreReadOnly
from tests.robust.children import PATIENCE, eventually
from tests.robust.disks import missing_for_disks, small_disk
from tests.robust.served import Served, info, session, values
from tests.robust.visible import run as run_pairs

pytest.importorskip("pyarrow")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "store")
    yield made
    made.child.end()


def volatile_arrives(served: Served) -> bool:
    """Whether samples that nobody keeps still come from one session to another through the broker."""
    arrived = threading.Event()
    with session(served) as near, session(served) as far, far.declare_subscriber("live", lambda _: arrived.set()):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:  # the subscriber may become known a little after the first put
            near.put("live", "x")
            if arrived.wait(0.1):
                return True
    return False


# -- failing -----------------------------------------------------------------------------------------------------------


def test_disk_that_fails_to_sync_is_never_acknowledged_again_until_a_restart(served: Served) -> None:
    with session(served) as writer:
        writer.put("f/1", "a", ack=True)
        (served.switches / "eio").touch()

        with pytest.raises(StoreReadOnly, match="failed to sync"):
            writer.put("f/1", "b", ack=True)
        (served.switches / "eio").unlink()
        with pytest.raises(StoreReadOnly):  # that the disk works again proves nothing about what it was given
            writer.put("f/1", "c", ack=True)
        with pytest.raises(StoreReadOnly):
            writer.put_batch([("f/1", "d")])

        assert info(writer)["state"] == "read-only"
        assert next(iter(writer.get("f/1"))).ok.payload.to_string() == "a"
        assert volatile_arrives(served)
        eventually(lambda: served.has_said("error", "read-only"), "the broker says that it is read-only")
    served.restart()
    with session(served) as writer:
        assert info(writer)["state"] == "open"
        assert writer.put("f/1", "e", ack=True) is not None
        found = values(writer)

    # What the failed sync was for may be there or not; what came after it was refused without being written.
    assert found in ([b"a", b"e"], [b"a", b"b", b"e"])


# -- full --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def full_by_limit(directory: Path) -> Iterator[tuple[Served, Any]]:
    """A broker whose files must not grow further, and what lifts that."""
    served = Served(directory)
    try:
        resource.prlimit(served.child.process.pid, resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        yield served, lambda: resource.prlimit(served.child.process.pid, resource.RLIMIT_FSIZE, unlimited)
    finally:
        served.child.end()


@contextlib.contextmanager
def full_by_size(directory: Path) -> Iterator[tuple[Served, Any]]:
    """A broker on a small disk with something else on it, and what removes that."""
    why = missing_for_disks()
    if why is not None:
        pytest.skip(why)
    directory.mkdir()
    with small_disk(directory, "2m"):
        ballast = directory / "ballast"
        ballast.write_bytes(bytes(1_000_000))
        served = Served(directory / "store")
        try:
            yield served, ballast.unlink
        finally:
            served.child.end()


def fill(writer: elea.Session) -> int:
    """Put until there is no room; how many were acknowledged."""
    for number in range(1000):
        try:
            writer.put("f/1", b"%d:" % number + bytes(20_000), ack=True)
        except StoreFull:
            return number
    raise AssertionError("the disk does not get full")


@pytest.mark.parametrize("full", [full_by_limit, full_by_size])
def test_full_disk_refuses_writers_and_nothing_else_and_goes_on_when_there_is_room(tmp_path: Path, full: Any) -> None:
    with full(tmp_path / "disk") as (served, make_room), session(served) as writer:
        acked = fill(writer)
        with pytest.raises(StoreFull, match="no room"):
            writer.put_batch([("f/1", bytes(20_000))] * 60)

        assert info(writer)["state"] == "full"
        assert len(values(writer)) == acked > 5
        assert volatile_arrives(served)
        eventually(lambda: served.has_said("error", "full"), "the broker says that it is full")
        make_room()
        writer.put("f/1", b"%d:again" % acked, ack=True)
        assert info(writer)["state"] == "open"
        found = values(writer)

        assert [payload.partition(b":")[0] for payload in found] == [b"%d" % number for number in range(acked + 1)]
        served.restart()
    if full is full_by_limit:
        again = Served(tmp_path / "disk")
        with session(again) as reader:
            assert values(reader) == found
        again.child.end()


# -- slow --------------------------------------------------------------------------------------------------------------


def latency(served: Served, count: int) -> float:
    """The median time of a sample that nobody keeps, from one session to another through the broker."""
    arrived = threading.Event()
    found = []
    with session(served) as near, session(served) as far, far.declare_subscriber("live", lambda _: arrived.set()):
        while not arrived.wait(0.1):
            near.put("live", "x")
        for _ in range(count):
            time.sleep(0.005)
            arrived.clear()
            begin = time.perf_counter()
            near.put("live", "x", express=True)
            assert arrived.wait(PATIENCE)
            found.append(time.perf_counter() - begin)
    return statistics.median(found)


def test_slow_disk_holds_up_acknowledgements_but_no_volatile_samples(served: Served) -> None:
    acked: list[float] = []
    stop = threading.Event()

    def write() -> None:
        with session(served) as writer:
            while not stop.is_set():
                begin = time.monotonic()
                writer.put("f/1", str(len(acked)), ack=True, timeout=PATIENCE)
                acked.append(time.monotonic() - begin)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        eventually(lambda: len(acked) > 5, "samples are stored")
        before = latency(served, 100)
        (served.switches / "slow").write_text("0.5")
        eventually(lambda: acked[-1] > 0.4, "the disk is slow")
        during = latency(served, 100)
    finally:
        stop.set()
        thread.join()
    with session(served) as reader:
        facts = info(reader)
        found = values(reader)

    # Twice the base is the figure; the rest is for a machine that has something else to do just then.
    assert during < 2 * before + 0.05, f"{before * 1000:.2f} ms before, {during * 1000:.2f} ms on the slow disk"
    assert found == [b"%d" % number for number in range(len(acked))]
    assert facts["not_kept"] == {}


# -- honest ------------------------------------------------------------------------------------------------------------


def test_every_acknowledged_group_was_synced(served: Served) -> None:
    with session(served) as writer:
        before = info(writer)
        for number in range(40):  # each waits for the one before, so that each is a group of its own
            writer.put("f/1", str(number), ack=True)
        for number in range(10):
            writer.put_batch([("f/2", str(number))])
        after = info(writer)

    assert after["commits"] - before["commits"] >= 40
    assert after["syncs"] - before["syncs"] >= 50


def test_acknowledged_sample_is_seen_at_once_by_another_session() -> None:
    run_pairs(300)
