"""Timestamps of the future and clocks that are wrong: a get after an acknowledgement sees what was acknowledged.

The brokers are processes of their own with their files; their time is set by `tests.robust.faulty`. What is decided for
each way in is told in docs/store.md.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zenoh

import elea
from elea.api.stagedbatch import StagedBatch
from elea.model.timestamp import ntp64_from_ns
from elea.node.storage.wildcardupdates import WildcardUpdates
from elea.store import DEL, Record, Retention, open_log
from tests.robust.children import PATIENCE, config, entries, eventually
from tests.robust.served import KEYS, Served, info, session, values

KEY = "f/k"
FUTURE = "2106-02-07T06:28:00.000000000Z/33"
NTP64 = elea.Timestamp.parse_rfc3339(FUTURE)
END_OF_TIME = (1 << 64) - 1
YEAR = 365 * 24 * 3600.0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "store") as made:
        yield made


@contextlib.contextmanager
def serving(directory: Path, **options: Any) -> Iterator[Served]:
    directory.parent.mkdir(exist_ok=True)
    made = Served(directory, **options)
    try:
        yield made
    finally:
        made.child.end()


def newest(asking: elea.Session, key: str = KEY) -> str | None:
    """What a get brings for a key."""
    found = [reply.ok.payload.to_string() for reply in asking.get(key, timeout=PATIENCE) if reply.ok]
    assert len(found) <= 1
    return found[0] if found else None


def batch_of(value: str, *times: int, key: str = KEY) -> pa.RecordBatch:
    """Samples with times of their own."""
    columns: dict[str, Any] = {"key": [key] * len(times), "payload": [value.encode()] * len(times)}
    columns["ntp64"] = pa.array(times, pa.uint64())
    columns["stamp_id"] = pa.array([b"\x33"] * len(times), pa.binary())
    return pa.record_batch(columns)


def is_writable(asking: elea.Session, key: str = KEY) -> bool:
    """Every way to write a key, and after each acknowledgement a get; fails if one does not see it."""
    asking.put(key, "put", ack=True, timeout=PATIENCE)
    assert newest(asking, key) == "put"
    asking.delete(key, ack=True, timeout=PATIENCE)
    assert newest(asking, key) is None
    asking.put_batch([(key, "older"), (key, "batch")], timeout=PATIENCE)
    assert newest(asking, key) == "batch"
    asking.put(key, "sent", congestion_control=elea.CongestionControl.BLOCK)
    assert newest(asking, key) == "sent"
    asking.delete(f"{key.rpartition('/')[0]}/**", congestion_control=elea.CongestionControl.BLOCK)
    assert newest(asking, key) is None
    staged = StagedBatch(asking, uuid.uuid4(), 0)
    staged.commit("f/**", staged.stage("f/**", [(key, "staged")]))
    assert newest(asking, key) == "staged"
    return True


def stamps(asking: elea.Session) -> list[int]:
    """The times of all samples, in the order of positions."""
    found: list[int] = asking.read(KEYS).read_all().column("ntp64").to_pylist()
    return found


# -- timestamps of the future, from clients


@pytest.mark.parametrize("ntp64", [END_OF_TIME, NTP64.value.ntp64])
def test_a_batch_of_the_future_is_restamped_and_its_sender_told(served: Served, ntp64: int) -> None:
    with session(served) as writer:
        now = ntp64_from_ns(time.time_ns())
        receipt = writer.put_batch(batch_of("future", ntp64, now - (1 << 42), ntp64), timeout=PATIENCE)

        assert (receipt.rows, receipt.restamped) == (3, 2)
        assert info(writer)["restamped"] == 2
        found = stamps(writer)
        assert found[1] == now - (1 << 42)  # the past is as good as the present
        assert now <= found[0] < found[2] < ntp64_from_ns(time.time_ns())
        assert is_writable(writer)
    eventually(lambda: served.has_said("timestamps too far ahead replaced", "restamped"), "the warning")


def test_a_committed_batch_of_the_future_is_restamped(served: Served) -> None:
    with session(served) as writer:
        staged = StagedBatch(writer, uuid.uuid4(), 1)
        told = staged.commit(KEYS, staged.stage(KEYS, batch_of("future", END_OF_TIME)))

        assert (told["rows"], told["restamped"]) == (1, 1)
        assert newest(writer) == "future"
        assert is_writable(writer)


@pytest.mark.parametrize("ack", [True, False])
def test_a_put_of_the_future_is_restamped(served: Served, ack: bool) -> None:
    with session(served) as writer:
        options: dict[str, Any] = {"ack": True, "timeout": PATIENCE} if ack else {}
        block = elea.CongestionControl.BLOCK
        for value in ("one", "two"):  # acknowledged ones go another way from the second on
            receipt = writer.put(KEY, value, timestamp=NTP64, congestion_control=block, **options)
            assert receipt is None or receipt.restamped == 1
            assert newest(writer) == value

        assert max(stamps(writer)) < ntp64_from_ns(time.time_ns())
        assert is_writable(writer)


@pytest.mark.parametrize("kind", ["put", "delete", "delete many"])
def test_a_sample_of_the_future_from_eclipse_zenoh_is_restamped(served: Served, kind: str) -> None:
    made = zenoh.Config()
    for path, value in entries("client", "connect", served.locator).items():
        made.insert_json5(path, json.dumps(value))
    future: Any = {
        "timestamp": zenoh.Timestamp.parse_rfc3339(FUTURE),
        "congestion_control": zenoh.CongestionControl.BLOCK,
    }
    with session(served) as asking, zenoh.open(made) as writer:
        writer.put(KEY, "before", congestion_control=zenoh.CongestionControl.BLOCK)
        eventually(lambda: newest(asking) == "before", "the first sample")
        if kind == "put":
            writer.put(KEY, "future", **future)
            eventually(lambda: newest(asking) == "future", "the sample")
        else:
            writer.delete(KEY if kind == "delete" else KEYS, **future)
            eventually(lambda: newest(asking) is None, "the deletion")

        writer.put(KEY, "after", congestion_control=zenoh.CongestionControl.BLOCK)
        eventually(lambda: newest(asking) == "after", "what was put after it")
        assert is_writable(asking)


def test_a_broker_that_stamps_nothing_does_not_take_the_future_either(tmp_path: Path) -> None:
    manager = {
        "volumes": {"log": {"dir": str(tmp_path / "store")}},
        "storages": {"f": {"key_expr": KEYS, "volume": "log"}},
    }
    made = config("router", "listen", "tcp/127.0.0.1:0", timestamping__enabled=False, plugins__storage_manager=manager)
    with elea.open(made) as router:
        (locator,) = router._runtime.links.locators()
        with elea.open(config("client", "connect", locator)) as writer:
            writer.put(KEY, "future", timestamp=NTP64, congestion_control=elea.CongestionControl.BLOCK)

            assert newest(writer) == "future"
            assert info(writer)["restamped"] == 1
            assert is_writable(writer)


def test_a_late_sample_is_acknowledged_and_history(served: Served) -> None:
    """Its writer gave it a time before that of the newest one: it is stored, and that stays the newest."""
    with session(served) as writer:
        old = elea.Timestamp.parse_rfc3339("2024-07-01T13:51:12.129693000Z/33")
        writer.put(KEY, "now", ack=True, timeout=PATIENCE)
        writer.put(KEY, "then", ack=True, timestamp=old, timeout=PATIENCE)

        assert newest(writer) == "now"
        assert values(writer) == [b"now", b"then"]
        assert newest(writer, f"{KEY}?_as_of=2025-01-01T00:00:00Z") == "then"


def test_what_follows_an_accepted_time_ahead_is_newer(served: Served) -> None:
    """A clock may be ahead by less than the drift; what the broker stamps after such a sample is above it."""
    with session(served) as writer:
        for number in range(20):
            ahead = batch_of(f"ahead {number}", ntp64_from_ns(time.time_ns() + 400_000_000))
            assert writer.put_batch(ahead, timeout=PATIENCE).restamped == 0
            assert newest(writer) == f"ahead {number}"
            writer.put(KEY, f"after {number}", ack=True, timeout=PATIENCE)
            assert newest(writer) == f"after {number}"


# -- clocks that are wrong


@pytest.mark.parametrize("behind", [60.0, 3 * 24 * 3600.0, 10 * YEAR])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_broker_restarted_with_a_clock_behind_is_writable(tmp_path: Path, behind: float, end: signal.Signals) -> None:
    with serving(tmp_path / "store", clock=0) as served:
        with session(served) as writer:
            writer.put(KEY, "before", ack=True, timeout=PATIENCE)
            writer.put("f/other", "before", ack=True, timeout=PATIENCE)
            before = max(stamps(writer))
        for _ in range(2):
            served.set_clock(-behind)
            served.restart(end)
            with session(served) as writer:
                assert newest(writer, "f/other") == "before"
                assert is_writable(writer)
                writer.put("f/other", "before", ack=True, timeout=PATIENCE)

                found = stamps(writer)
                assert found == sorted(found), "stamps of a broker only grow"
                assert found[-1] < before + (120 << 32), "and go on where they were"
        eventually(lambda: served.has_said("clock is behind the store"), "the warning")


@pytest.mark.parametrize("jump", [-120.0, 120.0, -YEAR])
def test_a_running_broker_whose_clock_jumps_is_writable(tmp_path: Path, jump: float) -> None:
    with serving(tmp_path / "store", clock=0) as served, session(served) as writer:
        assert is_writable(writer)
        served.set_clock(jump)
        assert is_writable(writer)
        served.set_clock(0)
        assert is_writable(writer)
        found = stamps(writer)

    assert found == sorted(found)


def test_what_was_stored_across_a_jump_is_the_same_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "store", clock=0) as served:
        with session(served) as writer:
            for number, jump in enumerate((0.0, -3600.0, 120.0, -120.0, 0.0)):
                served.set_clock(jump)
                writer.put(KEY, str(number), ack=True, timeout=PATIENCE)
                writer.put(f"f/{number}", "x", ack=True, timeout=PATIENCE)
        for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
            served.restart(end)
            with session(served) as reader:
                assert newest(reader) == "4"
                assert len(values(reader)) == 10


# -- what older versions have stored


@pytest.fixture(params=["indexed", "not indexed"])
def poisoned(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A directory with a log as an older version left it: with samples of the end of time."""
    now = time.time_ns()
    with open_log(tmp_path / "store" / "f") as log:
        good = Record("f/good", b"good", ntp64_from_ns(now), b"\x01", now)
        log.append([good, good._replace(key=KEY, payload=b"future", ntp64=END_OF_TIME)])
        log.append([good._replace(key="f/gone", payload=b"", ntp64=END_OF_TIME, kind=DEL)])
        if request.param == "indexed":
            for key, position, kind in ((KEY, 1, 0), ("f/gone", 2, DEL)):  # the times as they were written down then
                log._latest._newer[key] = END_OF_TIME << 64 | position << 1 | kind
        else:
            log._checkpointed = log.end
    if request.param == "not indexed":
        assert not (tmp_path / "store" / "f" / "index").exists()
    return tmp_path / "store"


def test_keys_that_an_older_version_let_be_poisoned_are_writable_again(poisoned: Path) -> None:
    with serving(poisoned) as served:
        for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            with session(served) as writer:
                assert newest(writer, "f/good") == "good"
                assert newest(writer) in ("future", "kept")
                now = ntp64_from_ns(time.time_ns())
                assert is_writable(writer, "f/gone")
                writer.put("f/good", "good", ack=True, timeout=PATIENCE)
                writer.put(KEY, "kept", ack=True, timeout=PATIENCE)
                assert newest(writer) == "kept"
                assert newest(writer, f"{KEY}?_as_of=now()") == "kept"
                assert stamps(writer)[-1] < now + (60 << 32), "the clock has not followed it"
            served.restart(end)


def test_a_deletion_of_many_keys_at_the_end_of_time_does_not_delete_for_ever(tmp_path: Path) -> None:
    now = time.time_ns()
    with open_log(tmp_path / "store" / "f") as log:
        update = Record(KEYS, b"", END_OF_TIME, b"\x33", now, DEL)
        assert WildcardUpdates(log).take_in(update, contextlib.nullcontext())

    with serving(tmp_path / "store") as served, session(served) as writer:
        assert is_writable(writer)


def test_retention_by_age_goes_by_arrival(tmp_path: Path) -> None:
    now = time.time_ns()
    with open_log(tmp_path / "log") as log:
        future = Record(KEY, b"x", END_OF_TIME, b"\x33", now)
        log.append([future])
        log.append([future._replace(payload=b"y", ntp64=ntp64_from_ns(now), arrival_ns=now + 10**9)])

        log.retain(Retention(age_ns=10**9), now + 5 * 10**9)

        assert log.first == 2
        assert [one.record.payload for one in log.latest_matching(KEYS)] == [b"y"]


# -- other brokers, and files


def test_a_broker_with_a_fast_clock_does_not_take_another_along(tmp_path: Path) -> None:
    with serving(tmp_path / "fast" / "store", clock=3600) as fast, session(fast) as there:
        there.put(KEY, "fast", ack=True, timeout=PATIENCE)
        with aligned(tmp_path / "store", fast.locator) as (here, facts):
            eventually(lambda: facts()["ahead"] == 1, "the sample that waits for its time")
            now = ntp64_from_ns(time.time_ns())

            assert newest(here) is None
            assert is_writable(here)
            assert facts()["aligned"] == 0
            assert max(stamps(here)) < now + (60 << 32)


def test_a_broker_with_a_clock_a_little_ahead_is_followed(tmp_path: Path) -> None:
    with serving(tmp_path / "fast" / "store", clock=3) as fast, session(fast) as there:
        there.put(KEY, "fast", ack=True, timeout=PATIENCE)
        with aligned(tmp_path / "store", fast.locator) as (here, facts):
            eventually(lambda: newest(here) == "fast", "the sample, when its time has come")

            eventually(lambda: facts()["ahead"] == 0, "nobody waits any more")
            assert is_writable(here)


@contextlib.contextmanager
def aligned(directory: Path, locator: str) -> Iterator[tuple[elea.Session, Callable[[], dict[str, Any]]]]:
    """A session with a broker that is aligned with another, and what it tells of that."""
    replication = {"peers": [locator], "interval": 0.2, "propagation_delay": 0}
    storage = {"key_expr": KEYS, "volume": "log", "replication": replication}
    manager = {"volumes": {"log": {"dir": str(directory)}}, "storages": {"f": storage}}
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0", plugins__storage_manager=manager)) as router:
        (here,) = router._runtime.links.locators()
        with elea.open(config("client", "connect", here)) as asking:
            yield asking, lambda: info(asking)["alignment"][0]


@pytest.mark.parametrize("form", ["arrow", "json"])
def test_import_refuses_the_future_unless_it_is_told_to_restamp(tmp_path: Path, form: str) -> None:
    now = time.time_ns()
    good = Record("f/good", b"good", ntp64_from_ns(now - 10**18), b"\x01", now - 10**18)
    with open_log(tmp_path / "from") as log:
        log.append([good, good._replace(key=KEY, payload=b"future", ntp64=END_OF_TIME)])
    elea_store("export", tmp_path / "from", tmp_path / "file", "--format", form)

    refused = elea_store("import", tmp_path / "store" / "f", tmp_path / "file", "--format", form, status=4)
    done = elea_store("import", tmp_path / "store" / "f", tmp_path / "file", "--format", form, "--restamp", "--json")

    assert f"'{KEY}' is stamped" in refused.stderr
    assert "the limit is 0.5 s" in refused.stderr
    assert "--restamp" in refused.stderr
    assert json.loads(done.stdout) == {"imported": 2, "end": 2, "restamped": 1}
    with serving(tmp_path / "store") as served, session(served) as writer:
        assert newest(writer) == "future"
        assert stamps(writer)[0] == good.ntp64
        assert is_writable(writer)


def elea_store(action: str, *words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "elea", "store", action, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done
