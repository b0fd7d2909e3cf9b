"""The asyncio twin between real sessions of one process."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import elea
from elea import aio
from elea.aio.inbox import Overflow
from elea.api.apierrors import ChannelClosed
from elea.model.errors import EleaError, OperationTimeout
from tests.unit.aio.nodes import config, eventually, linked

Test = Callable[[aio.Session, aio.Session], Coroutine[Any, Any, None]]


def between(test: Test) -> Callable[[], None]:
    """A test of two linked sessions."""

    async def main() -> None:
        async with asyncio.timeout(20), linked() as (a, b):
            await test(a, b)

    def run() -> None:
        asyncio.run(main())

    run.__name__ = test.__name__
    return run


@between
async def test_samples_arrive(a: aio.Session, b: aio.Session) -> None:
    async with b.declare_subscriber("home/**") as subscriber, a.declare_publisher("home/temp") as publisher:
        await eventually(lambda: publisher.matching_status.matching)
        await publisher.put("21.5", attachment="x")
        await a.put("home/light", b"on", encoding="text/plain")
        await a.delete("home/light")
        await publisher.delete()

        samples = [await subscriber.recv(timeout=5) for _ in range(4)]
        assert [str(sample.key_expr) for sample in samples] == ["home/temp", "home/light", "home/light", "home/temp"]
        assert [sample.kind for sample in samples[2:]] == [aio.SampleKind.DELETE] * 2
        assert samples[0].attachment is not None
        assert subscriber.try_recv() is None
        assert str(subscriber.key_expr) == "home/**"


@between
async def test_ten_thousand_samples_arrive_in_order(a: aio.Session, b: aio.Session) -> None:
    count, got = 10_000, []
    async with b.declare_subscriber("many") as subscriber, a.declare_publisher("many") as publisher:
        await eventually(lambda: publisher.matching_status.matching)

        async def put() -> None:
            for number in range(count):
                await publisher.put(str(number))

        task = asyncio.create_task(put())
        async for sample in subscriber:
            got.append(int(sample.payload.to_string()))
            if len(got) == count:
                break
        await task
        assert got == list(range(count))
        assert subscriber._inbox.handovers < count / 4


@pytest.mark.parametrize("overflow", ["block", "drop_oldest", "drop_newest"])
def test_slow_consumer_loses_by_its_rule(overflow: Overflow) -> None:
    async def test(a: aio.Session, b: aio.Session) -> None:
        count = 100
        async with (
            b.declare_subscriber("slow", capacity=10, overflow=overflow) as subscriber,
            a.declare_publisher("slow") as publisher,
        ):
            await eventually(lambda: publisher.matching_status.matching)
            for number in range(count):
                await publisher.put(str(number))
            if overflow != "block":
                await eventually(lambda: subscriber.dropped == count - 10)
            kept = {"block": range(count), "drop_oldest": range(90, 100), "drop_newest": range(10)}[overflow]
            got = [int((await subscriber.recv(timeout=5)).payload.to_string()) for _ in kept]
            assert got == list(kept)
            assert subscriber.dropped == count - len(kept)

    between(test)()


@between
async def test_function_gets_samples_in_the_loop(a: aio.Session, b: aio.Session) -> None:
    got: list[tuple[str, int]] = []

    async def received(sample: Any) -> None:
        await asyncio.sleep(0)
        got.append((sample.payload.to_string(), threading.get_ident()))

    async with b.declare_subscriber("called", received) as subscriber, a.declare_publisher("called") as publisher:
        await eventually(lambda: publisher.matching_status.matching)
        for number in range(3):
            await publisher.put(str(number))
        await eventually(lambda: len(got) == 3)
        with pytest.raises(TypeError, match="function"):
            await subscriber.recv()
    assert got == [(str(number), threading.get_ident()) for number in range(3)]


@between
async def test_queries_are_answered(a: aio.Session, b: aio.Session) -> None:
    async def answer(query: aio.Query) -> None:
        await query.reply(query.key_expr, f"{query.parameters}")

    async def answer_all(queryable: aio.Queryable) -> None:
        async for query in queryable:
            async with query:
                await query.reply("ask/iterated", "1")
                await query.reply_err("no more")

    async with (
        b.declare_queryable("ask/called", answer),
        b.declare_queryable("ask/iterated") as iterated,
        a.declare_querier("ask/called") as querier,
    ):
        task = asyncio.create_task(answer_all(iterated))
        await eventually(lambda: querier.matching_status.matching)
        replies = [reply async for reply in await a.get("ask/called?x=1")]
        assert [reply.ok.payload.to_string() for reply in replies] == ["x=1"]
        async with await querier.get(parameters="y=2") as more:
            assert (await more.recv(timeout=5)).ok.payload.to_string() == "y=2"
        replies = [reply async for reply in await a.get("ask/iterated")]
        assert sorted(reply.ok is None for reply in replies) == [False, True]
        called: list[Any] = []
        assert await a.get("ask/called", called.append) is None
        await eventually(lambda: called)
    await asyncio.wait({task})


@between
async def test_a_query_kept_by_its_function_stays_open(a: aio.Session, b: aio.Session) -> None:
    kept: list[aio.Query] = []
    async with b.declare_queryable("keep", kept.append), a.declare_querier("keep") as querier:
        await eventually(lambda: querier.matching_status.matching)
        replies = await a.get("keep")
        await eventually(lambda: kept)
        with pytest.raises(OperationTimeout):
            await replies.recv(timeout=0.1)
        await kept[0].reply("keep", "late")
        await kept[0].drop()
        assert [reply.ok.payload.to_string() async for reply in replies] == ["late"]


@between
async def test_a_query_ends_with_the_task_that_asked(a: aio.Session, b: aio.Session) -> None:
    kept: list[aio.Query] = []
    own = a._inner._node.local

    async def ask() -> None:
        async for _ in await a.get("hang", timeout=60):
            pass

    async with b.declare_queryable("hang", kept.append), a.declare_querier("hang") as querier:
        await eventually(lambda: querier.matching_status.matching)
        task = asyncio.create_task(ask())
        await eventually(lambda: kept)
        assert len(own._asking) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not own._asking

        replies = await a.get("hang", timeout=60)
        assert len(own._asking) == 1
        del replies
        gc.collect()
        await eventually(lambda: not own._asking)

        token = aio.CancellationToken()
        replies = await a.get("hang", timeout=60, cancellation_token=token)
        token.cancel()
        with pytest.raises(ChannelClosed):
            await replies.recv(timeout=5)


@between
async def test_liveliness_is_seen(a: aio.Session, b: aio.Session) -> None:
    async with b.liveliness().declare_subscriber("alive/**") as subscriber:
        async with a.liveliness().declare_token("alive/a"):
            assert (await subscriber.recv(timeout=5)).kind == aio.SampleKind.PUT
            replies = [reply async for reply in await b.liveliness().get("alive/**")]
            assert [str(reply.ok.key_expr) for reply in replies] == ["alive/a"]
        assert (await subscriber.recv(timeout=5)).kind == aio.SampleKind.DELETE


@between
async def test_matching_and_neighbours_are_told(a: aio.Session, b: aio.Session) -> None:
    async with a.declare_publisher("match") as publisher, publisher.declare_matching_listener() as listener:
        async with b.declare_subscriber("match"):
            assert (await listener.recv(timeout=5)).matching
        assert not (await listener.recv(timeout=5)).matching
    async with b.info.declare_transport_events_listener(history=True) as events:
        assert (await events.recv(timeout=5)).transport.zid == a.zid()
    async with b.info.declare_link_events_listener(history=True) as links:
        assert (await links.recv(timeout=5)).link == b.info.links()[0]
        await a.close()
        assert (await links.recv(timeout=5)).kind == aio.SampleKind.DELETE
    assert b.info.routers_zid() == []
    assert b.info.dropped()["full"] == 0


def test_a_put_that_would_wait_is_made_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(a: aio.Session, b: aio.Session) -> None:
        makers: list[int] = []

        def made(*args: Any, **options: Any) -> None:
            makers.append(threading.get_ident())

        async with a.declare_publisher("full") as publisher:
            monkeypatch.setattr(publisher._inner, "put", made)
            monkeypatch.setattr(a._inner, "put", made)
            await publisher.put("x")
            await a.put("full", "x")
            assert makers == [threading.get_ident()] * 2
            monkeypatch.setattr(publisher, "_full", lambda: True)
            monkeypatch.setattr(a, "_full", lambda key_expr, **options: True)
            await publisher.put("x")
            await a.put("full", "x")
            assert threading.get_ident() not in makers[2:]
            assert len(makers) == 4

    between(test)()


@between
async def test_a_full_link_is_noticed(a: aio.Session, b: aio.Session) -> None:
    async with b.declare_subscriber("big"), a.declare_publisher("big") as publisher:
        await eventually(lambda: publisher.matching_status.matching)
        assert not publisher._full()
        (connection,) = a._inner._runtime.links.connections
        outbox = connection.machine.outbox
        assert outbox is not None
        outbox._bound = 0
        assert publisher._full()
        outbox._bound = 1 << 20


def test_closing_ends_what_was_declared() -> None:
    async def main() -> None:
        session = await aio.open(config("peer"))
        subscriber = await session.declare_subscriber("x")
        waiting = asyncio.create_task(subscriber.recv())
        await asyncio.sleep(0)
        await session.close()
        with pytest.raises(ChannelClosed):
            await waiting
        assert [sample async for sample in subscriber] == []
        assert session.is_closed()
        with pytest.raises(elea.ZError):
            await subscriber.undeclare()
        with pytest.raises(elea.ZError):
            await session.put("x", "y")
        await session.close()

    asyncio.run(main())


def test_a_session_that_cannot_be_opened_says_why() -> None:
    async def main() -> None:
        await aio.open(config("client", connect__endpoints=["tcp/127.0.0.1:1"]))

    with pytest.raises(EleaError, match=r"127\.0\.0\.1:1"):
        asyncio.run(main())


@between
async def test_closing_does_not_wait_for_a_consumer_that_takes_nothing(a: aio.Session, b: aio.Session) -> None:
    async def answer(query: aio.Query) -> None:
        for number in range(20):
            await query.reply(f"stuck/{number}", "x")

    await b.declare_subscriber("stuck/**", capacity=1)
    await b.declare_queryable("stuck/**", answer)
    async with a.declare_publisher("stuck/x") as publisher, a.declare_querier("stuck/**") as querier:
        await eventually(lambda: publisher.matching_status.matching and querier.matching_status.matching)
        for _ in range(20):
            await publisher.put("x")
        async with await querier.get(capacity=1) as replies:
            await replies.recv(timeout=5)
        started = time.monotonic()
        await b.close()
        await a.close()
        assert time.monotonic() - started < 3


TWINS = [
    (elea.Session, aio.Session),
    (elea.Publisher, aio.Publisher),
    (elea.Subscriber, aio.Subscriber),
    (elea.Queryable, aio.Queryable),
    (elea.Querier, aio.Querier),
    (elea.Query, aio.Query),
    (elea.Liveliness, aio.Liveliness),
    (elea.LivelinessToken, aio.LivelinessToken),
    (elea.MatchingListener, aio.MatchingListener),
    (elea.SessionInfo, aio.SessionInfo),
    (elea.TransportEventsListener, aio.TransportEventsListener),
    (elea.LinkEventsListener, aio.LinkEventsListener),
]


@pytest.mark.parametrize(("threaded", "twin"), TWINS, ids=lambda cls: cls.__module__)
def test_the_twin_has_the_same_names(threaded: type, twin: type) -> None:
    names = {name for name in dir(threaded) if not name.startswith("_")}

    assert names - set(dir(twin)) == set()


def test_puts_have_the_same_parameters() -> None:
    for name in ("put", "delete"):
        for threaded, twin in TWINS[:2]:
            assert inspect.signature(getattr(threaded, name)) == inspect.signature(getattr(twin, name))
    assert aio.Config is elea.Config
