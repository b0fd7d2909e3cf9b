"""The same from a loop: many acknowledged puts in flight, without a thread each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import elea
from elea import aio
from elea.api import rangereader, samplenumbers
from elea.model.errors import InvalidKeyExpr, SessionClosed, StoreFull
from tests.unit.api.stores import Scripted, broker, config, locator_of

pa = pytest.importorskip("pyarrow")

PATIENCE = 60.0

Test = Callable[[elea.Session, aio.Session], Coroutine[Any, Any, None]]


def with_store(**storages: str) -> Callable[[Test], Callable[[], None]]:
    """A test of a router with these storages, and a client of it."""

    def make(test: Test) -> Callable[[], None]:
        async def main() -> None:
            with broker(**storages) as router:
                made = config("client", connect__endpoints=[locator_of(router)])
                async with asyncio.timeout(PATIENCE), aio.open(made) as session:
                    await test(router, session)

        def run() -> None:
            asyncio.run(main())

        run.__name__ = test.__name__
        return run

    return make


async def rows(session: aio.Session, **options: Any) -> list[dict[str, Any]]:
    table = await session.read("home/**", **options).read_all()
    found: list[dict[str, Any]] = table.drop_columns(["arrival"]).to_pylist()
    return found


@with_store(home="home/**")
async def test_many_puts_are_acknowledged_each_by_its_own_receipt(router: elea.Session, session: aio.Session) -> None:
    threads = threading.active_count()
    receipts = await asyncio.gather(*(session.put(f"home/{n}", str(n), ack=True) for n in range(500)))

    found = {row["position"]: row["key"] for row in await rows(session)}
    assert [found[receipt.position] for receipt in receipts if receipt] == [f"home/{n}" for n in range(500)]
    # Those of the store and of its link, whatever the number of puts.
    assert threading.active_count() < threads + 50


@with_store(home="home/**")
async def test_more_puts_than_the_window_take_turns(router: elea.Session, session: aio.Session) -> None:
    before, samplenumbers.WINDOW = samplenumbers.WINDOW, 4  # type: ignore[misc]
    try:
        receipts = await asyncio.gather(*(session.put(f"home/{n}", str(n), ack=True) for n in range(100)))
    finally:
        samplenumbers.WINDOW = before  # type: ignore[misc]

    assert {receipt.position for receipt in receipts if receipt} == set(range(100))


@with_store(home="home/**")
async def test_every_verb(router: elea.Session, session: aio.Session) -> None:
    assert await session.put("home/1", "a", durability="transient") is None
    deleted = await session.delete("home/1", ack=True)
    async with session.declare_publisher("home/2", durability="transient", encoding="text/plain") as publisher:
        put = await publisher.put("b", ack=True)
        gone = await publisher.delete(ack=True, attachment="x")
    batch = await session.put_batch([("home/3", "c"), ("home/4", "d")], durability=None)

    assert not session._inner._storing.numbers._open
    assert deleted is not None
    assert put is not None
    assert gone is not None
    assert [deleted.position, put.position, gone.position, batch.position] == [1, 2, 3, 4]
    found = await rows(session)
    assert [(row["kind"], row["payload"]) for row in found] == [
        (0, b"a"), (1, b""), (0, b"b"), (1, b""), (0, b"c"), (0, b"d"),
    ]  # fmt: skip
    assert found[2]["encoding"] == elea.Encoding.TEXT_PLAIN.id


@with_store(home="home/**")
async def test_reading_and_cursor(router: elea.Session, session: aio.Session) -> None:
    for block in range(5):
        await session.put_batch([(f"home/{block}/{n}", "a") for n in range(10)], durability=None)
    before, rangereader.CHUNK_BYTES = rangereader.CHUNK_BYTES, 1  # type: ignore[misc]
    try:
        async with session.read("home/**", start=5) as reader:
            assert (reader.log, reader.next) == (None, None)
            positions = [at async for batch in reader for at in batch.column("position").to_pylist()]
    finally:
        rangereader.CHUNK_BYTES = before  # type: ignore[misc]
    assert positions == list(range(5, 50))
    assert (reader.log, reader.next, reader.end, reader.first) == ("home", 50, 50, 0)
    assert reader.epoch is not None
    assert reader.schema is not None

    cursor = session.cursor("home/**", "me")
    assert cursor.name == "me"
    assert await cursor.position() is None
    await cursor.move(7)
    assert await cursor.position() == 7
    await cursor.drop()
    assert (await cursor.facts())["position"] is None


@with_store()
async def test_a_cancelled_put_is_forgotten(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, lambda query: store.keep(query))
    task = asyncio.create_task(session.put("home/1", "a", ack=True, timeout=PATIENCE))
    await asyncio.to_thread(store.came.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert session._inner._storing.calls == set()
    assert not session._inner._node.local._asking
    numbers = session._inner._storing.numbers
    assert not numbers._open


@with_store()
async def test_errors_and_repetition(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, Scripted.silent, Scripted.stored, Scripted.failing(error="StoreFull", text="no room"))

    receipt = await session.put("home/1", "a", ack=True, timeout=PATIENCE)
    with pytest.raises(StoreFull, match="no room"):
        await session.put("home/1", "b", ack=True)
    with pytest.raises(InvalidKeyExpr):
        await session.put("home/*", "b", ack=True)
    with pytest.raises(ValueError, match="volatile"):
        await session.put("home/1", "b", ack=True, durability="volatile")

    assert receipt is not None
    assert receipt.position == 7
    assert store.asked[0] == store.asked[1]


@with_store()
async def test_closing_the_session_ends_the_waits(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, lambda query: store.keep(query))
    tasks = [asyncio.create_task(session.put("home/1", "a", ack=True, timeout=PATIENCE)) for _ in range(3)]
    await asyncio.to_thread(store.came.wait, PATIENCE)
    await session.close()

    assert all(isinstance(error, SessionClosed) for error in await asyncio.gather(*tasks, return_exceptions=True))
    with pytest.raises(SessionClosed):
        await session.put("home/1", "a", ack=True)
