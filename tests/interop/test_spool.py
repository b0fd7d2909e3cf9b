"""The spool with eclipse-zenoh's router: positions that last, a runner that is killed, history, and one writer."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zenoh

import elea
from elea.model.errors import StoreError, StoreInUse
from elea.spark.spool import Spool, Spooler, read_spool
from elea.store import SCHEMA, Range, open_log
from tests.interop.inbox import eventually, free_port
from tests.interop.network import configuration

pytestmark = pytest.mark.interop

DEADLINE = 60.0
RUNNER = """
import json, sys, elea
from elea.spark.spool import Spool, Spooler
from tests.interop.network import configuration
directory, locator = sys.argv[1:]
spool = Spool(directory)
with elea.open(configuration(elea, {"mode": "client", "connect/endpoints": [locator]})) as session:
    spooler = Spooler(spool, session, ["t/**"], seconds=0.02)
    for line in sys.stdin:
        epoch, end = spool.head()
        print(json.dumps({"epoch": epoch, "end": end, "dropped": spooler.dropped}), flush=True)
"""


@pytest.fixture
def locator() -> Iterator[str]:
    """Of a running router."""
    found = f"tcp/127.0.0.1:{free_port()}"
    with zenoh.open(configuration(zenoh, {"mode": "router", "listen/endpoints": [found]})):
        yield found


def client(lib: Any, locator: str) -> Any:
    return lib.open(configuration(lib, {"mode": "client", "connect/endpoints": [locator]}))


def publisher(session: Any, key: str) -> Any:
    found = session.declare_publisher(key, congestion_control=zenoh.CongestionControl.BLOCK)
    eventually(lambda: found.matching_status.matching, "the spool is known", DEADLINE)
    return found


class Runner:
    """A process that spools."""

    def __init__(self, directory: Path, locator: str) -> None:
        command = [sys.executable, "-c", RUNNER, str(directory), locator]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.state()

    def state(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.communicate()


def has_grown(runner: Runner, end: int) -> bool:
    return bool(runner.state()["end"] > end)


def has_reached(spool: Spool, end: int) -> bool:
    return spool.head()[1] >= end


@contextlib.contextmanager
def spooling(directory: Path, locator: str, exprs: list[str], **options: Any) -> Iterator[tuple[Spool, Spooler, Any]]:
    with Spool(directory) as spool, client(elea, locator) as session:
        spooler = Spooler(spool, session, exprs, seconds=0.02, **options)
        try:
            yield spool, spooler, session
        finally:
            spooler.close()


def payloads(batches: Iterator[pa.RecordBatch]) -> list[bytes]:
    return [value for batch in batches for value in batch.column("payload").to_pylist()]


def test_killed_runner_keeps_what_it_told_of_and_goes_on_in_the_same_epoch(tmp_path: Path, locator: str) -> None:
    told: list[dict[str, Any]] = []
    seen: list[bytes] = []
    with client(zenoh, locator) as session:
        for life in range(3):
            runner = Runner(tmp_path, locator)
            one = publisher(session, "t/1")
            before = 0 if not told else told[-1]["end"]
            for number in range(400):
                one.put(b"%d.%d" % (life, number))
            eventually(partial(has_grown, runner, before + 100), "it spools", DEADLINE)
            told.append(runner.state())
            seen = payloads(read_spool(tmp_path, told[-1]["epoch"], 0, told[-1]["end"]))
            runner.end(signal.SIGKILL)
            one.undeclare()

            kept = payloads(read_spool(tmp_path, told[-1]["epoch"], 0, told[-1]["end"]))
            assert kept == seen, "what was told is what is there"

    assert len({state["epoch"] for state in told}) == 1
    assert [state["dropped"] for state in told] == [0, 0, 0]
    with Spool(tmp_path) as spool:
        assert spool.head()[0] == told[0]["epoch"]
        everything = payloads(spool.read(0, spool.head()[1]))
    assert everything[: len(seen)] == seen
    assert len(set(everything)) == len(everything), "nothing is there twice"
    for life in range(3):
        numbers = [int(value.split(b".")[1]) for value in everything if value.startswith(b"%d." % life)]
        assert numbers == list(range(len(numbers))), "in order, and without a gap"


def test_samples_are_spooled_once_with_all_they_have(tmp_path: Path, locator: str) -> None:
    with (
        spooling(tmp_path, locator, ["t/*", "t/**"]) as (spool, spooler, _),
        client(zenoh, locator) as session,
    ):
        one = publisher(session, "t/1")
        one.put("a", encoding="text/plain", attachment=b"x")
        one.delete()
        session.put("t/deep/er", "b")
        eventually(lambda: spooler.spooled == 3, "three samples", DEADLINE)
        epoch, end = spool.head()

        (batch,) = [pa.Table.from_batches(read_spool(tmp_path, epoch, 0, end)).combine_chunks()]

        assert (end, spooler.dropped, spooler.refused) == (3, 0, 0)
    assert batch.schema == SCHEMA
    rows = {row["position"]: row for row in batch.to_pylist()}
    assert sorted((row["key"], row["kind"]) for row in rows.values()) == [("t/1", 0), ("t/1", 1), ("t/deep/er", 0)]
    put = next(row for row in rows.values() if row["payload"] == b"a")
    assert (put["attachment"], put["encoding"], put["once"]) == (b"x", 4, False)


def test_samples_without_a_timestamp_are_given_one(tmp_path: Path) -> None:
    config = configuration(elea, {"mode": "peer", "listen/endpoints": []})
    with Spool(tmp_path) as spool, elea.open(config) as session:
        spooler = Spooler(spool, session, ["t/**"], seconds=0.01)
        session.put("t/1", "no stamp")
        session.put("t/2", "stamp", timestamp=session.new_timestamp())
        session.put("t/3", "none either")
        session.delete("t/**")
        spooler.close()

        (batch,) = spool.read(0, spool.head()[1])
        assert (spooler.spooled, spooler.refused, spooler.dropped) == (3, 1, 1)
        assert set(batch.column("stamp_id").to_pylist()) == {bytes(session.zid())}
    assert len(set(batch.column("ntp64").to_pylist())) == 3


def test_history_comes_first_and_once(tmp_path: Path, locator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.spark.spool.OVERLAP", 3_600.0)  # however slow this machine is
    with client(zenoh, locator) as session:
        stamp = session.new_timestamp()
        answer = lambda query: query.reply("t/1", "old", timestamp=stamp)  # noqa: E731
        with session.declare_queryable("t/**", answer):
            for life in range(2):
                with spooling(tmp_path, locator, ["t/**"], history=True) as (spool, spooler, _):
                    session.put("t/1", "old", timestamp=stamp)
                    session.put("t/1", b"new %d" % life)
                    wanted = 2 if life == 0 else 3
                    eventually(partial(has_reached, spool, wanted), "history and a live one", DEADLINE)
                    assert spooler.dropped == 0
                assert spooler.repeated == (1 if life == 0 else 2)
    with open_log(tmp_path, read_only=True) as log:
        found = [stored.record.payload for stored in log.read()]
    assert found == [b"old", b"new 0", b"new 1"]


def test_one_directory_has_one_writer(tmp_path: Path) -> None:
    with Spool(tmp_path), pytest.raises(StoreInUse):
        Spool(tmp_path)


def test_what_is_committed_is_removed_and_what_is_not_stays(tmp_path: Path) -> None:
    config = configuration(elea, {"mode": "peer", "listen/endpoints": []})
    with Spool(tmp_path) as spool, elea.open(config) as session:
        spooler = Spooler(spool, session, ["t"], seconds=0.01)
        for number in range(100):
            session.put("t", b"%d" % number)
        spooler.close()
        assert spool.head()[1] == 100

        spool.commit(60)

        assert payloads(spool.read(60, 100)) == [b"%d" % number for number in range(60, 100)]
        spool.commit(100)
        assert spool.log.first == 100
        assert spool.head()[1] == 100
    with Spool(tmp_path) as spool:
        assert spool.head()[1] == 100


def test_a_range_of_another_spool_is_refused(tmp_path: Path) -> None:
    with Spool(tmp_path), pytest.raises(StoreError, match="epoch"):
        list(read_spool(tmp_path, "00ff", 0, 1))


def test_a_disk_that_fails_is_told_and_its_samples_are_counted(tmp_path: Path) -> None:
    config = configuration(elea, {"mode": "peer", "listen/endpoints": []})
    spool = Spool(tmp_path)
    with elea.open(config) as session:
        spooler = Spooler(spool, session, ["t"], seconds=0.01)
        spool.log.close()  # from now on it takes nothing
        session.put("t", "x")
        eventually(lambda: spooler.lost == 1, "it is counted", DEADLINE)

        assert spooler.dropped == 1
        with pytest.raises(StoreError):
            spool.head()
        spooler.close()


def test_a_range_is_read_beside_the_writer(tmp_path: Path) -> None:
    config = configuration(elea, {"mode": "peer", "listen/endpoints": []})
    with Spool(tmp_path) as spool, elea.open(config) as session:
        spooler = Spooler(spool, session, ["t"], rows=10, seconds=0.01)
        for number in range(35):
            session.put("t", b"%d" % number)
        spooler.close()
        epoch, end = spool.head()

        assert payloads(read_spool(tmp_path, epoch, 7, 29)) == [b"%d" % number for number in range(7, 29)]
        assert payloads(spool.log.read_arrow(Range())) == [b"%d" % number for number in range(end)]
