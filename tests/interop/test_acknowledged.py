"""Acknowledged samples through a broker that is a process of its own, and that is killed while it works."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea import aio

pytest.importorskip("pyarrow")
zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

PATIENCE = 120.0
"""Seconds for what should take a few, on a machine that is busy."""

KILLS = 3
KEY = "fleet/**"


class Broker:
    """`elea broker` with a store, at the same place each time it is started."""

    def __init__(self, directory: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.locator = f"tcp/127.0.0.1:{free.getsockname()[1]}"
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "elea", "broker", "--store", str(self._directory), "--persist", KEY]
        command += ["--listen", self.locator, "--no-multicast-scouting", "--quiet"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the broker has said nothing"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A running one."""
    made = Broker(tmp_path / "store")
    made.start()
    try:
        yield made
    finally:
        made.kill()


def config(lib: Any, broker: Broker) -> Any:
    made = lib.Config()
    entries = {
        "mode": "client",
        "scouting/multicast/enabled": False,
        "connect/endpoints": [broker.locator],
        "connect/retry": {"period_init_ms": 50, "period_max_ms": 200, "period_increase_factor": 2},
    }
    for path, value in entries.items():
        made.insert_json5(path, json.dumps(value))
    return made


@contextlib.contextmanager
def session(broker: Broker) -> Iterator[elea.Session]:
    with elea.open(config(elea, broker)) as made:
        yield made


def test_put_waits_for_a_broker_that_comes_back(broker: Broker) -> None:
    with session(broker) as writer:
        first = writer.put("fleet/1", "a", ack=True)
        broker.kill()
        restarting = threading.Timer(0.5, broker.start)
        restarting.start()
        second = writer.put("fleet/1", "b", ack=True, timeout=PATIENCE)
        restarting.join()

        assert first is not None
        assert second is not None
        assert (first.position, second.position) == (0, 1)
        assert second.epoch == first.epoch
        assert writer.read(KEY).read_all().column("payload").to_pylist() == [b"a", b"b"]


def test_nothing_is_lost_doubled_or_out_of_order_when_the_broker_is_killed(broker: Broker) -> None:
    """Four writers of each kind there is; what was acknowledged is there, once, and in the order of its writer."""
    acknowledged: dict[str, list[int]] = {name: [] for name in ("thread", "publisher", "batch", "aio")}
    stop = threading.Event()
    failed: list[BaseException] = []

    def put(writer: elea.Session) -> None:
        for number in numbers("thread"):
            writer.put("fleet/thread", str(number), ack=True, timeout=PATIENCE)
            acknowledged["thread"].append(number)

    def publish(writer: elea.Session) -> None:
        with writer.declare_publisher("fleet/publisher", durability="persistent") as publisher:
            for number in numbers("publisher"):
                publisher.put(str(number), ack=True, timeout=PATIENCE)
                acknowledged["publisher"].append(number)

    def put_batches(writer: elea.Session) -> None:
        for number in numbers("batch"):
            part = range(number * 10, number * 10 + 10)
            writer.put_batch([("fleet/batch", str(each)) for each in part], timeout=PATIENCE)
            acknowledged["batch"] += part

    def put_in_loop(writer: elea.Session) -> None:
        async def main() -> None:
            async with aio.open(config(aio, broker)) as own:
                for number in numbers("aio"):
                    part = range(number * 8, number * 8 + 8)
                    await asyncio.gather(
                        *(own.put(f"fleet/aio/{each}", str(each), ack=True, timeout=PATIENCE) for each in part)
                    )
                    acknowledged["aio"] += part

        asyncio.run(main())

    def numbers(name: str) -> Iterator[int]:
        number = 0
        while not stop.is_set():
            yield number
            number += 1

    def guarded(work: Any, writer: elea.Session) -> None:
        try:
            work(writer)
        except BaseException as error:  # noqa: BLE001 - looked at below
            failed.append(error)

    with session(broker) as writer:
        works = (put, publish, put_batches, put_in_loop)
        threads = [threading.Thread(target=guarded, args=(work, writer), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            progress(acknowledged, failed)
            broker.kill()
            broker.start()
        progress(acknowledged, failed)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)

        assert failed == []
        assert not any(thread.is_alive() for thread in threads)
        table = writer.read(KEY).read_all()

    assert table.column("position").to_pylist() == list(range(table.num_rows))
    stored: dict[str, list[int]] = {name: [] for name in acknowledged}
    for key, payload in zip(table.column("key").to_pylist(), table.column("payload").to_pylist(), strict=True):
        stored[key.split("/")[1]].append(int(payload))
    assert sorted(stored.pop("aio")) == acknowledged.pop("aio")  # eight at a time, in no order among themselves
    assert stored == acknowledged


def progress(acknowledged: dict[str, list[int]], failed: list[BaseException]) -> None:
    """Wait until every writer has got on."""
    wanted = {name: len(numbers) + 20 for name, numbers in acknowledged.items()}
    ended = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if failed or all(len(acknowledged[name]) >= count for name, count in wanted.items()):
            return
        ended.wait(0.02)
    raise AssertionError(f"writers have stopped: { ({name: len(n) for name, n in acknowledged.items()}) }")


def test_eclipse_zenoh_sees_what_was_acknowledged(broker: Broker) -> None:
    with zenoh.open(config(zenoh, broker)) as other, session(broker) as writer:
        with other.declare_subscriber(KEY) as subscriber:
            # The broker hears of the subscriber on another link, so perhaps a little later than of the first put.
            for _ in range(int(PATIENCE / 0.05)):
                writer.put("fleet/ready", "x", ack=True)
                if wait_for(subscriber, 0.05):
                    break
            writer.put("fleet/1", "a", ack=True, encoding="text/plain", attachment="more")
            while str((sample := subscriber.recv()).key_expr) == "fleet/ready":
                pass
            batch = writer.put_batch([("fleet/2", "b"), ("fleet/3", "c")])
            rest = [subscriber.recv(), subscriber.recv()]
        replies = {str(reply.ok.key_expr): reply.ok.payload.to_string() for reply in other.get("fleet/*")}

    assert (str(sample.key_expr), sample.payload.to_string()) == ("fleet/1", "a")
    assert (str(sample.encoding), sample.attachment.to_string()) == ("text/plain", "more")
    assert str(sample.source_info.source_id.zid) == str(writer.zid())
    assert sample.timestamp is not None
    assert batch.rows == 2
    assert [(str(each.key_expr), each.payload.to_string()) for each in rest] == [("fleet/2", "b"), ("fleet/3", "c")]
    assert replies == {"fleet/ready": "x", "fleet/1": "a", "fleet/2": "b", "fleet/3": "c"}


def wait_for(subscriber: Any, seconds: float) -> bool:
    """Whether a sample comes."""
    for _ in range(10):
        if subscriber.try_recv() is not None:
            return True
        threading.Event().wait(seconds / 10)
    return False
