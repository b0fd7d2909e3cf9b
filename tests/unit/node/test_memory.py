"""Sessions on one machine share memory for large payloads, and nobody notices."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.io.sharedmemory import SharedOut, has_memory
from elea.node.admin import metrics
from elea.node.connection import Connection
from elea.node.zenoh1.machine import Zenoh1Machine
from tests.unit.api.logkeeper import config, wait_until

pytestmark = pytest.mark.skipif(not has_memory(), reason="the system has no memory to hand over")

BLOCK = elea.CongestionControl.BLOCK
TCP = "tcp/127.0.0.1:0"


@contextmanager
def pair(locator: str = TCP, roles: tuple[str, str] = ("peer", "peer"), **entries: Any) -> Iterator[Any]:
    """Two sessions with one link."""
    with (
        elea.open(config(roles[0], listen__endpoints=[locator], **entries)) as far,
        elea.open(config(roles[1], connect__endpoints=far._runtime.links.locators(), **entries)) as near,
    ):
        yield near, far


def memory_of(session: elea.Session) -> SharedOut | None:
    return memory_of_link(next(iter(session._runtime.links.connections)))


def memory_of_link(connection: Connection) -> SharedOut | None:
    assert isinstance(connection.machine, Zenoh1Machine)
    return connection.machine.memory


def laid(session: elea.Session) -> int:
    memory = memory_of(session)
    return 0 if memory is None else memory.payloads


def exchange(near: elea.Session, far: elea.Session, payloads: list[bytes], **options: Any) -> list[bytes]:
    """What arrives at `far` of what `near` puts."""
    came: list[bytes] = []
    subscriber = far.declare_subscriber("large", lambda sample: came.append(sample.payload.to_bytes()))
    publisher = near.declare_publisher("large", congestion_control=BLOCK, **options)
    wait_until(lambda: publisher.matching_status.matching, "a subscriber")
    for payload in payloads:
        publisher.put(payload)
    wait_until(lambda: len(came) >= len(payloads), "all payloads")
    publisher.undeclare()
    subscriber.undeclare()
    return came


def share(near: elea.Session, far: elea.Session) -> None:
    """Let the first large payloads go, which offer the memory."""
    wait_until(lambda: bool(exchange(near, far, [bytes(65_536)]) and laid(near)), "shared memory")


def payloads(count: int, *sizes: int) -> list[bytes]:
    chance = random.Random(1)
    return [b"%d:" % number + chance.randbytes(chance.choice(sizes)) for number in range(count)]


def test_large_payloads_are_laid_in_memory() -> None:
    with pair() as (near, far):
        share(near, far)
        before, sent = laid(near), payloads(200, 65_536)

        assert exchange(near, far, sent) == sent

        assert laid(near) > before + 100
        assert laid(far) == 0
        text = metrics(near._node, near._runtime.links)
        assert "elea_link_memory_payloads_total{" in text


@pytest.mark.parametrize("sizes", [(0, 100, 20_000), (15_000, 16_384, 65_536), (300_000, 3_000_000), (9_000_000,)])
@pytest.mark.parametrize("express", [False, True])
def test_order_and_octets_are_the_same_whichever_way_they_go(sizes: tuple[int, ...], express: bool) -> None:
    count = 600 if max(sizes) < 100_000 else 30
    with pair() as (near, far):
        share(near, far)
        before, sent = laid(near), payloads(count, *sizes)
        assert exchange(near, far, sent, express=express) == sent
        assert laid(near) > before


def test_both_directions_and_several_threads(tmp_path: Path) -> None:
    with pair() as (near, far):
        heard: dict[bytes, list[int]] = {}

        def hear(sample: elea.Sample) -> None:
            name, number = sample.payload.to_bytes()[:20].split(b":")[:2]
            heard.setdefault(name, []).append(int(number))

        keeps = [session.declare_subscriber("all/**", hear) for session in (near, far)]

        def speak(session: elea.Session, name: str) -> None:
            chance = random.Random(name)
            publisher = session.declare_publisher(
                f"all/{name}", congestion_control=BLOCK, allowed_destination=elea.Locality.REMOTE,
                priority=chance.choice(list(elea.Priority)),
            )  # fmt: skip
            wait_until(lambda: publisher.matching_status.matching, "a subscriber")
            for number in range(150):
                publisher.put(f"{name}:{number}:".encode() + bytes(chance.choice((0, 1_000, 30_000, 200_000))))

        names = [f"s{number}" for number in range(6)]
        threads = [threading.Thread(target=speak, args=((near, far)[i % 2], name)) for i, name in enumerate(names)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        wait_until(lambda: sum(map(len, heard.values())) == 6 * 150, "everything")
        assert heard == {name.encode(): list(range(150)) for name in names}
        assert laid(near) > 0
        assert laid(far) > 0
        assert len(keeps) == 2


def test_through_a_router_and_in_replies() -> None:
    with elea.open(config("router", listen__endpoints=[TCP])) as router:
        connect = {"connect__endpoints": router._runtime.links.locators()}
        with elea.open(config("client", **connect)) as near, elea.open(config("client", **connect)) as far:
            sent = payloads(100, 65_536, 400_000)
            assert exchange(near, far, sent) == sent
            answer = random.randbytes(1_000_000)
            queryable = far.declare_queryable(
                "ask", lambda query: query.reply("ask", answer + query.payload.to_bytes())
            )
            querier = near.declare_querier("ask")
            wait_until(lambda: querier.matching_status.matching, "a queryable")
            for _ in range(5):
                replies = list(querier.get(payload=answer[:50_000]))
                assert [reply.ok.payload.to_bytes() for reply in replies if reply.ok] == [answer + answer[:50_000]]
            queryable.undeclare()
            assert laid(near) > 0
            assert laid(far) > 0
            laying = [memory_of_link(one) for one in router._runtime.links.connections]
            assert all(memory is not None and memory.payloads > 0 for memory in laying)


def test_over_unix_sockets(tmp_path: Path) -> None:
    with pair(f"unixsock-stream/{tmp_path}/link") as (near, far):
        share(near, far)
        sent = payloads(50, 65_536)
        assert exchange(near, far, sent) == sent


@pytest.mark.parametrize(
    "entries",
    [
        {"transport__shared_memory__enabled": False},
        {"transport__shared_memory__transport_optimization": {"enabled": False}},
        {"transport__shared_memory__transport_optimization": {"message_size_threshold": 1_000_000}},
        {"transport__shared_memory__transport_optimization": {"pool_size": 1_000_000}},
        {"transport__unicast__compression__enabled": True},
        {"transport__unicast": {"lowlatency": True, "qos": {"enabled": False}}},
    ],
)
def test_where_it_is_not_used(entries: dict[str, Any]) -> None:
    with pair(**entries) as (near, far):
        sent = payloads(20, 40_000)
        assert exchange(near, far, sent) == sent
        assert laid(near) == 0


def test_a_reader_that_is_held_up_gets_everything_later() -> None:
    with pair() as (near, far):
        gate, came = threading.Event(), list[bytes]()

        def slow(sample: elea.Sample) -> None:
            gate.wait(60)
            came.append(sample.payload.to_bytes())

        subscriber = far.declare_subscriber("large", slow)
        publisher = near.declare_publisher("large", congestion_control=BLOCK)
        wait_until(lambda: publisher.matching_status.matching, "a subscriber")
        sent = payloads(300, 65_536)

        def put_all() -> None:
            for payload in sent:
                publisher.put(payload)

        writer = threading.Thread(target=put_all)
        writer.start()
        gate.wait(0.2)
        gate.set()
        writer.join()
        wait_until(lambda: len(came) == len(sent), "all payloads")
        assert came == sent
        subscriber.undeclare()


def test_what_a_killed_writer_has_sent_arrives() -> None:
    code = (
        "import elea, sys, os\n"
        "c = elea.Config.from_json5(sys.argv[1])\n"
        "s = elea.open(c); p = s.declare_publisher('large', congestion_control=elea.CongestionControl.BLOCK)\n"
        "while not p.matching_status.matching: pass\n"
        "for n in range(200): p.put(b'%d:' % n + bytes(65536))\n"
        "m = next(iter(s._runtime.links.connections)); m.session.outbox.flush(60)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with elea.open(config("router", listen__endpoints=[TCP])) as far:
        came: list[int] = []
        subscriber = far.declare_subscriber(
            "large", lambda sample: came.append(int(sample.payload.to_bytes().split(b":")[0]))
        )
        entries = '{mode: "client", connect: {endpoints: ["%s"]}, scouting: {multicast: {enabled: false}}}'
        subprocess.run(
            [sys.executable, "-c", code, entries % far._runtime.links.locators()[0]], check=False, timeout=120
        )
        wait_until(lambda: len(came) == 200, "all that was sent")
        assert came == list(range(200))
        subscriber.undeclare()


def held() -> tuple[int, int]:
    """Open files of this process, and memories that it has mapped: other tests may have left some to the collector."""
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), maps.read().count("memfd:elea")


def test_sessions_leave_nothing_behind() -> None:
    def once() -> None:
        with pair() as (near, far):
            sent = payloads(3, 65_536)
            assert exchange(near, far, sent) == sent

    once()
    gc.collect()
    before = held()
    gc.disable()
    try:
        for _ in range(10):
            once()
        wait_until(lambda: all(map(int.__le__, held(), before)), "files and memories to be given back")
    finally:
        gc.enable()
