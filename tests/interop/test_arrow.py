"""The Arrow handler and published batches, between nodes of both libraries over real links."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import zenoh

import elea
import elea.aio
from elea.columnar import compiled
from elea.model.node_id import NodeId
from elea.wire.zenoh1 import messages as m
from tests.interop.inbox import eventually, free_port
from tests.interop.network import configuration

pytestmark = pytest.mark.interop

DEADLINE = 60.0
LIBRARIES: dict[str, Any] = {"E": elea, "Z": zenoh}


def peer(lib: Any, **entries: Any) -> Any:
    return lib.open(configuration(lib, {"mode": "peer", "listen/endpoints": [], **entries}))


@contextlib.contextmanager
def pair(lib: Any) -> Iterator[tuple[Any, Any]]:
    """An Elea session, and one of `lib` that is connected to it."""
    locator = f"tcp/127.0.0.1:{free_port()}"
    with (
        peer(elea, **{"listen/endpoints": [locator]}) as here,
        peer(lib, **{"connect/endpoints": [locator]}) as there,
    ):
        yield here, there


def publisher(session: Any, lib: Any, key: str, **options: Any) -> Any:
    """A publisher that loses nothing and knows of its subscriber."""
    found = session.declare_publisher(key, congestion_control=lib.CongestionControl.BLOCK, **options)
    eventually(lambda: found.matching_status.matching, f"a subscriber of {key} is known", DEADLINE)
    return found


def rows_of(subscriber: Any, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + DEADLINE
    while len(found) < count:
        batch = subscriber.try_recv()
        if batch is None:
            assert time.monotonic() < deadline, f"{len(found)} of {count} rows came"
            time.sleep(0.01)
            continue
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


@pytest.fixture(params=["kernels", "twins"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With Numba and without: what comes out is the same."""
    if request.param == "twins":
        monkeypatch.setattr("elea.columnar.compiled.kernels", lambda: None)
        monkeypatch.setattr("elea.columnar.gather.kernels", lambda: None)
        monkeypatch.setattr("elea.columnar.pushwriter.writer", lambda: None)
    else:
        assert compiled.kernels() is not None
    return request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("letter", ["E", "Z"])
def test_every_sample_is_a_row_in_the_order_it_was_put(letter: str) -> None:
    lib = LIBRARIES[letter]
    with pair(lib) as (here, there):
        handler = elea.handlers.Arrow(rows=1_000, seconds=0.2)
        with here.declare_subscriber("t/**", handler) as subscriber:
            publishers = [publisher(there, lib, f"t/{number}") for number in range(3)]

            for number in range(3_000):
                one = publishers[number % 3]
                if number % 100 == 7:
                    one.put(b"%d" % number, attachment=b"a%d" % number, encoding="text/plain;utf8")
                elif number % 100 == 8:
                    one.delete()
                elif number % 1000 == 9:
                    one.put(bytes(200_000))
                else:
                    one.put(b"%d" % number)
            rows = rows_of(subscriber, 3_000)

            assert subscriber.dropped == 0
    assert [row["key"] for row in rows] == [f"t/{number % 3}" for number in range(3_000)]
    for number, row in enumerate(rows):
        assert row["kind"] == (number % 100 == 8)
        assert row["attachment"] == (b"a%d" % number if number % 100 == 7 else None)
        assert row["schema"] == (b"utf8" if number % 100 == 7 else None)
        assert row["encoding"] == (4 if number % 100 == 7 else 0)
        if number % 1000 == 9:
            assert len(row["payload"]) == 200_000
        elif number % 100 != 8:
            assert row["payload"] == b"%d" % number


def test_timestamps_and_sources_are_those_of_the_sample() -> None:
    locator = f"tcp/127.0.0.1:{free_port()}"
    client = {"mode": "client", "connect/endpoints": [locator]}
    router_config = configuration(zenoh, {"mode": "router", "listen/endpoints": [locator]})
    with (
        zenoh.open(router_config) as router,
        elea.open(configuration(elea, client)) as here,
        elea.open(configuration(elea, client)) as there,
        here.declare_subscriber("t/**", elea.handlers.Arrow(seconds=0.1)) as subscriber,
    ):
        one = publisher(there, elea, "t/1")
        source = elea.SourceInfo(one.id, 77)
        stamp = there.new_timestamp()

        for _ in range(100):
            one.put("by the router")
        one.put("own", timestamp=stamp, source_info=source)
        rows = rows_of(subscriber, 101)

        zid = bytes(there.zid())
        assert {row["stamp_id"] for row in rows[:100]} == {NodeId.parse(str(router.zid())).data}
    assert [row["ntp64"] for row in rows] == [*sorted({row["ntp64"] for row in rows[:100]}), stamp.value.ntp64]
    assert (rows[100]["stamp_id"], rows[100]["source_id"]) == (zid, zid)
    assert (rows[100]["source_eid"], rows[100]["source_sn"]) == (one.id.eid, 77)
    assert rows[0]["source_id"] is None


def test_a_batch_comes_when_it_is_full_or_its_time_is_over_or_the_subscriber_ends() -> None:
    with peer(elea) as session:
        subscriber = session.declare_subscriber("t", elea.handlers.Arrow(rows=10, seconds=0.05))
        slow = session.declare_subscriber("t", elea.handlers.Arrow(rows=1_000, seconds=3_600.0))
        for number in range(25):
            session.put("t", b"%d" % number)

        sizes = [subscriber.recv().num_rows for _ in range(3)]
        assert slow.try_recv() is None
        slow.undeclare()
        (last,) = list(slow)

    assert sizes == [10, 10, 5]
    assert last.column("payload").to_pylist() == [b"%d" % number for number in range(25)]


def test_batches_that_wait_for_room_are_there_when_the_subscriber_has_ended() -> None:
    with peer(elea) as session:
        subscriber = session.declare_subscriber("t", elea.handlers.Arrow(rows=10, seconds=3_600.0, capacity=1))
        for number in range(105):
            session.put("t", b"%d" % number)
        eventually(lambda: len(subscriber.handler) == 1, "the channel is full", DEADLINE)

        subscriber.undeclare()
        rows = [row for batch in subscriber for row in batch.to_pylist()]

        assert subscriber.dropped == 0
        assert session._node.scanner is None
    assert [row["payload"] for row in rows] == [b"%d" % number for number in range(105)]


def test_a_function_gets_batches_and_may_end_its_subscriber() -> None:
    with peer(elea) as session:
        found: list[int] = []
        ended: list[bool] = []
        all_put = threading.Event()

        def take(batch: pa.RecordBatch) -> None:
            found.append(batch.num_rows)
            if len(found) == 1:
                assert all_put.wait(DEADLINE)
                subscriber.undeclare()

        callback = elea.handlers.Callback(take, lambda: ended.append(True))
        handler = elea.handlers.Arrow(rows=10, seconds=3_600.0, callback=callback)
        subscriber = session.declare_subscriber("t", handler)
        session.put_batch([("t", b"%d" % number) for number in range(15)], durability="volatile")
        all_put.set()
        eventually(lambda: ended, "it has ended", DEADLINE)

    assert sum(found) == 15
    assert found[0] == 10


def test_large_attachments_fill_a_batch_too() -> None:
    with pair(elea) as (here, there):
        handler = elea.handlers.Arrow(seconds=3_600.0, octets=100_000)
        with here.declare_subscriber("t", handler) as subscriber:
            table = pa.table({"key": ["t"] * 100, "payload": [b""] * 100, "attachment": [bytes(20_000)] * 100})
            publisher(there, elea, "t")
            there.put_batch(table, durability="volatile")

            assert rows_of(subscriber, 50)[0]["attachment"] == bytes(20_000)


def test_samples_of_batches_that_nobody_takes_are_counted_by_the_rule() -> None:
    with peer(elea) as session:
        handler = elea.handlers.Arrow(rows=10, seconds=3_600.0, capacity=2, overflow="drop_oldest")
        with session.declare_subscriber("t", handler) as subscriber:
            for number in range(50):
                session.put("t", b"%d" % number)
            eventually(lambda: subscriber.dropped == 30, "three batches are forgotten", DEADLINE)

            kept = [value for _ in range(2) for value in subscriber.recv().column("payload").to_pylist()]

    assert kept == [b"%d" % number for number in range(30, 50)]


def test_a_publisher_that_blocks_loses_nothing_to_a_slow_taker() -> None:
    """More octets than the mailbox and the channel take together: so the publisher waits."""
    payloads = pa.array([bytes(2_000)] * 500, pa.binary())
    batch = pa.record_batch([pa.array(["t"] * 500), payloads], ["key", "payload"])
    with pair(elea) as (here, there):
        handler = elea.handlers.Arrow(rows=500, seconds=0.1, capacity=1)
        with here.declare_subscriber("t", handler) as subscriber:
            subscriber.handler.patience = DEADLINE
            publisher(there, elea, "t")

            def send() -> None:
                for _ in range(40):
                    there.put_batch(batch, durability="volatile")

            sending = threading.Thread(target=send)
            sending.start()
            eventually(subscriber._box.is_full, "the mailbox is full", DEADLINE)
            found = rows_of(subscriber, 20_000)
            sending.join()

            assert subscriber.dropped == 0
    assert len(found) == 20_000


def test_a_callback_on_the_same_key_gets_every_sample_too() -> None:
    with pair(elea) as (here, there):
        samples: list[bytes] = []
        with (
            here.declare_subscriber("t", elea.handlers.Arrow(seconds=0.1)) as subscriber,
            here.declare_subscriber("t", lambda sample: samples.append(sample.payload.to_bytes())),
        ):
            one = publisher(there, elea, "t")
            for number in range(2_000):
                one.put(b"%d" % number)
            rows = rows_of(subscriber, 2_000)
            eventually(lambda: len(samples) == 2_000, "all samples came", DEADLINE)

    assert [row["payload"] for row in rows] == samples == [b"%d" % number for number in range(2_000)]


def test_a_number_that_gets_another_meaning_means_that() -> None:
    messages = bytes.fromhex("5d f4 03 01 01 78") * 400  # PUT of `x` to number 500
    with pair(elea) as (here, there), here.declare_subscriber("t/**", elea.handlers.Arrow(seconds=0.1)) as subscriber:
        publisher(there, elea, "t/known")
        (connection,) = there._runtime.links.connections
        found = []
        for key in ("t/a", "t/b"):
            connection.face.say(m.Declare(m.DeclareKeyExpr(500, 0, key), qos=8))
            connection.face.outbox.put(11, (messages, b""), len(messages), False, 400)
            found += rows_of(subscriber, 400)
            connection.face.say(m.Declare(m.UndeclareKeyExpr(500), qos=8))

    assert [row["key"] for row in found] == ["t/a"] * 400 + ["t/b"] * 400


def test_a_namespace_is_taken_off() -> None:
    config = configuration(elea, {"mode": "peer", "listen/endpoints": [], "namespace": "fleet/7"})
    with (
        elea.open(config) as session,
        session.declare_subscriber("t/*", elea.handlers.Arrow(seconds=0.05)) as subscriber,
    ):
        session.put("t/1", "x")

        assert [row["key"] for row in rows_of(subscriber, 1)] == ["t/1"]


def test_batches_in_a_loop() -> None:
    async def run() -> tuple[list[int], int]:
        config = configuration(elea, {"mode": "peer", "listen/endpoints": []})
        async with elea.aio.open(config) as session:
            handler = elea.handlers.Arrow(rows=10, seconds=0.05)
            async with session.declare_subscriber("t", handler) as subscriber:
                await session.put_batch([("t", b"%d" % number) for number in range(25)], durability="volatile")
                found: list[Any] = [await subscriber.recv(timeout=DEADLINE) for _ in range(3)]
                return [batch.num_rows for batch in found], subscriber.dropped

    assert asyncio.run(run()) == ([10, 10, 5], 0)


def test_only_live_samples_come_as_batches() -> None:
    with peer(elea) as session, pytest.raises(ValueError, match="live samples"):
        session.declare_subscriber("t", elea.handlers.Arrow(), mode=elea.Periodic(1.0, 0.5))


@pytest.mark.usefixtures("way")
def test_a_published_batch_is_what_eclipse_zenoh_gets() -> None:
    count = 3_000
    table = pa.table(
        {
            "key": [f"t/{number % 5}" for number in range(count)],
            "payload": pa.array([b"%d" % number if number != 50 else bytes(100_000) for number in range(count)]),
            "kind": pa.array([number % 50 == 3 for number in range(count)]).cast(pa.uint8()),
            "encoding": pa.array([4 if number % 2 else 0 for number in range(count)], pa.uint32()),
            "attachment": pa.array([b"a%d" % number if number % 3 == 0 else None for number in range(count)]),
        }
    )
    with pair(zenoh) as (here, there):
        found: list[Any] = []
        with there.declare_subscriber("t/**", found.append):
            publisher(here, elea, "t/1")

            assert here.put_batch(table, durability="volatile") is None
            eventually(lambda: len(found) >= count, "all samples came", DEADLINE)

    assert len(found) == count
    for sample, row in zip(found, table.to_pylist(), strict=True):
        deleted = row["kind"] == 1
        assert str(sample.key_expr) == row["key"]
        assert sample.kind == (zenoh.SampleKind.DELETE if deleted else zenoh.SampleKind.PUT)
        assert sample.payload.to_bytes() == (b"" if deleted else row["payload"])
        assert (None if sample.attachment is None else sample.attachment.to_bytes()) == row["attachment"]
        if not deleted:
            assert str(sample.encoding) == ("text/plain" if row["encoding"] else "zenoh/bytes")
