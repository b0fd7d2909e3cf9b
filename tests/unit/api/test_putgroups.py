"""Acknowledged puts that travel together: each keeps its own outcome, whatever happens to the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import elea
from elea import aio
from elea.api.putgroups import Kept
from elea.model.errors import OperationTimeout, SessionClosed, StoreFull
from elea.node.storage.putsrequest import PutsRequests
from elea.wire.puts import read_puts
from tests.unit.api.stores import Scripted
from tests.unit.api.test_storing_aio import PATIENCE, rows, with_store

pytest.importorskip("pyarrow")


def teaching(query: elea.Query) -> None:
    """An acknowledgement of a store that takes groups."""
    answer = {"log": "fake", "epoch": "e", "keys": "home/**", "position": 7, "repeated": False}
    query.reply(query.key_expr, json.dumps(answer), encoding="application/json")


def grouped(query: elea.Query, **changes: object) -> None:
    """The same for a group."""
    assert query.payload is not None
    count = len(read_puts(query.payload.to_bytes()))
    answer = {"log": "fake", "epoch": "e", "positions": list(range(count)), "repeated": [], "refused": {}, **changes}
    query.reply(query.key_expr, json.dumps(answer), encoding="application/json")


def services(store: Scripted) -> list[str]:
    """What was asked of a store, in its order."""
    return [key.split("/")[1] for key, _ in store.asked]


async def put_at_once(session: aio.Session, *keys: str, **options: Any) -> list[Any]:
    options = {"timeout": PATIENCE, **options}
    puts = (session.put(key, key, ack=True, **options) for key in keys)
    found: list[Any] = await asyncio.gather(*puts, return_exceptions=True)
    return found


# -- a broker ---------------------------------------------------------------------------------------------------------


@with_store(home="home/**")
async def test_what_is_put_in_one_turn_is_one_request(router: elea.Session, session: aio.Session) -> None:
    sizes: list[int] = []
    whole = PutsRequests.group

    def counted(self: PutsRequests, *about: Any) -> Any:
        found = whole(self, *about)
        sizes.append(len(found.places))
        return found

    PutsRequests.group = counted  # type: ignore[method-assign, assignment]
    try:
        await session.put("home/first", "x", ack=True)
        receipts = await put_at_once(session, *(f"home/{n}" for n in range(200)))
    finally:
        PutsRequests.group = whole  # type: ignore[method-assign]

    assert sizes == [200]
    assert [receipt.position for receipt in receipts] == list(range(1, 201))
    found = await rows(session)
    assert [row["key"] for row in found] == ["home/first", *(f"home/{n}" for n in range(200))]
    assert [row["source_sn"] for row in found] == list(range(201))
    assert not session._inner._storing.numbers._open


@with_store(home="home/**")
async def test_a_sample_is_stored_the_same_alone_and_in_a_group(router: elea.Session, session: aio.Session) -> None:
    stamp = router.new_timestamp()
    info = elea.SourceInfo(elea.EntityGlobalId(router.zid(), 3), 9)
    many: list[Callable[[], Any]] = [
        lambda: session.put("home/1", b"\0\1", ack=True, encoding="application/json;x", attachment="more"),
        lambda: session.put("home/2", "b", ack=True, timestamp=stamp, durability="transient"),
        lambda: session.delete("home/3", ack=True, attachment=b"", timestamp=stamp),
        lambda: session.put("home/4", "", ack=True, priority=elea.Priority.DATA_HIGH, express=True),
    ]
    alone = [await make() for make in many]
    await session.delete("home/5", ack=True, durability="transient")
    session._inner._storing.kept.learn("home/0", None, "home/**")
    together = await asyncio.gather(*(make() for make in many))
    numbered = [await session.put("home/6", "a", ack=True, source_info=info) for _ in range(2)]

    found = {row.pop("position"): row for row in await rows(session)}
    for one, other in zip(alone, together, strict=True):
        first, second = found[one.position], found[other.position]
        for row in (first, second):
            row.pop("source_sn")
            if row["key"] not in ("home/2", "home/3"):
                row.pop("ntp64")
        assert first == second
    assert [(receipt.position, receipt.repeated) for receipt in numbered if receipt] == [(9, 0), (9, 1)]
    assert found[9]["source_sn"] == 9


@with_store(one="home/1/**", all="home/**")
async def test_a_key_of_another_log_goes_there(router: elea.Session, session: aio.Session) -> None:
    await session.put("home/2", "x", ack=True)
    receipts = await put_at_once(session, "home/2", "home/1/a", "home/3", "home/1/b")
    again = await put_at_once(session, "home/1/a", "home/1/c", "home/2")

    assert [receipt.log for receipt in receipts] == ["all", "one", "all", "one"]
    assert [receipt.log for receipt in again] == ["one", "one", "all"]
    assert [receipt.repeated for receipt in receipts + again] == [0] * 7
    storages = router._runtime.storages
    assert storages is not None
    kept = {storage.name: [stored.record.key for stored in storage.log.read()] for storage in storages.all}
    assert sorted(kept["one"]) == ["home/1/a", "home/1/a", "home/1/b", "home/1/c"]


@with_store(home="home/**")
async def test_subscribers_get_each_sample_once_and_in_order(router: elea.Session, session: aio.Session) -> None:
    heard: list[str] = []
    with router.declare_subscriber("home/**", lambda sample: heard.append(str(sample.key_expr))):
        await session.put("home/first", "x", ack=True)
        await put_at_once(session, *(f"home/{n}" for n in range(50)))
        info = elea.SourceInfo(elea.EntityGlobalId(router.zid(), 3), 9)
        twice = (session.put("home/twice", "a", ack=True, source_info=info) for _ in range(2))
        receipts = await asyncio.gather(*twice)
        await session.put("home/last", "x", ack=True)

    assert [receipt.repeated for receipt in receipts if receipt] == [0, 1]
    assert heard == ["home/first", *(f"home/{n}" for n in range(50)), "home/twice", "home/last"]


@with_store(home="home/**")
async def test_older_samples_do_not_undo_a_deletion_of_many_keys(router: elea.Session, session: aio.Session) -> None:
    await session.put("home/first", "x", ack=True)
    stamps = [router.new_timestamp() for _ in range(3)]
    await session.delete("home/*", timestamp=stamps[2])
    await session.put("home/ready", "x", ack=True)  # behind the deletion on the same link
    old = (session.put(f"home/{n}", "a", ack=True, timestamp=stamps[n]) for n in range(2))
    receipts = await asyncio.gather(*old, session.put("home/2", "b", ack=True))

    found = {row["position"]: (row["key"], row["kind"]) for row in await rows(session)}
    assert [found[receipt.position] for receipt in receipts if receipt] == [("home/0", 0), ("home/1", 0), ("home/2", 0)]
    assert [str(reply.ok.key_expr) for reply in router.get("home/*") if reply.ok] == ["home/ready", "home/2"]


@with_store(home="home/**")
async def test_more_than_one_request_holds_goes_in_several(router: elea.Session, session: aio.Session) -> None:
    await session.put("home/first", "x", ack=True)
    large = bytes(600_000)
    receipts = await asyncio.gather(*(session.put(f"home/{n}", large, ack=True, timeout=PATIENCE) for n in range(6)))

    assert [receipt.position for receipt in receipts if receipt] == [1, 2, 3, 4, 5, 6]


# -- a store that does what a test wants ------------------------------------------------------------------------------


@with_store()
async def test_one_cancelled_put_leaves_the_others(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, teaching, lambda query: store.keep(query), grouped)
    await session.put("home/0", "x", ack=True)
    store.came.clear()
    tasks = [asyncio.create_task(session.put(f"home/{n}", "a", ack=True, timeout=PATIENCE)) for n in range(3)]
    await asyncio.to_thread(store.came.wait, PATIENCE)
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    assert len(session._inner._storing.calls) == 1
    grouped(store.kept[0])
    store.kept.clear()  # dropping it ends the query
    receipts = await asyncio.gather(tasks[0], tasks[2])

    assert [receipt.position for receipt in receipts if receipt] == [0, 2]
    assert not session._inner._storing.numbers._open


@with_store()
async def test_a_group_nobody_waits_for_is_forgotten(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, teaching, lambda query: store.keep(query))
    await session.put("home/0", "x", ack=True)
    store.came.clear()
    tasks = [asyncio.create_task(session.put(f"home/{n}", "a", ack=True, timeout=PATIENCE)) for n in range(3)]
    await asyncio.to_thread(store.came.wait, PATIENCE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert not session._inner._node.local._asking
    assert not session._inner._storing.numbers._open


@with_store()
async def test_samples_of_a_group_that_was_cut_off_are_sent_one_by_one(
    router: elea.Session, session: aio.Session
) -> None:
    store = Scripted(router, teaching, Scripted.silent, teaching)
    await session.put("home/0", "x", ack=True)
    receipts = await put_at_once(session, "home/1", "home/2")

    assert services(store) == ["put", "puts", "put", "put"]
    numbers = [parameters.split(".")[2] for _, parameters in store.asked if parameters.startswith("src")]
    assert numbers == ["0", "1", "2"]
    assert [receipt.position for receipt in receipts] == [7, 7]


@with_store()
async def test_a_busy_store_gets_the_group_once_more(router: elea.Session, session: aio.Session) -> None:
    payloads: list[bytes] = []

    def remember(query: elea.Query) -> None:
        assert query.payload is not None
        payloads.append(query.payload.to_bytes())
        if len(payloads) < 3:
            Scripted.failing(error="Congested", text="too much waits")(query)
        else:
            grouped(query, repeated=[1])

    store = Scripted(router, teaching, remember)
    await session.put("home/0", "x", ack=True)
    receipts = await put_at_once(session, "home/1", "home/2")

    assert services(store) == ["put", "puts", "puts", "puts"]
    assert payloads[0] == payloads[1] == payloads[2]
    assert [(receipt.position, receipt.repeated) for receipt in receipts] == [(0, 0), (1, 1)]


@with_store()
async def test_a_cancelled_put_is_not_sent_again(router: elea.Session, session: aio.Session) -> None:
    sent: list[list[bytes]] = []
    first = asyncio.Event()
    loop = asyncio.get_running_loop()

    def remember(query: elea.Query) -> None:
        assert query.payload is not None
        sent.append([key for key, *_ in read_puts(query.payload.to_bytes())])
        if len(sent) == 1:
            store.keep(query)
            loop.call_soon_threadsafe(first.set)
        else:
            grouped(query)

    store = Scripted(router, teaching, remember)
    await session.put("home/0", "x", ack=True)
    tasks = [asyncio.create_task(session.put(f"home/{n}", "a", ack=True, timeout=PATIENCE)) for n in range(3)]
    await first.wait()
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    Scripted.failing(error="Congested", text="too much waits")(store.kept[0])
    store.kept.clear()
    receipts = await asyncio.gather(tasks[0], tasks[2])

    assert sent == [[b"home/0", b"home/1", b"home/2"], [b"home/0", b"home/2"]]
    assert [receipt.position for receipt in receipts if receipt] == [0, 1]


@with_store()
async def test_an_error_of_the_store_is_raised_in_each(router: elea.Session, session: aio.Session) -> None:
    Scripted(router, teaching, Scripted.failing(error="StoreFull", text="no room"))
    await session.put("home/0", "x", ack=True)
    one, other = await put_at_once(session, "home/1", "home/2")

    assert isinstance(one, StoreFull)
    assert isinstance(other, StoreFull)
    assert one is not other
    assert str(one) == "no room"


@with_store()
async def test_a_refused_sample_does_not_fail_the_others(router: elea.Session, session: aio.Session) -> None:
    refused = {"1": {"error": "StoreFull", "text": "no room for it"}}
    Scripted(router, teaching, lambda query: grouped(query, positions=[4, None, 5], refused=refused))
    await session.put("home/0", "x", ack=True)
    one, other, third = await put_at_once(session, "home/1", "home/2", "home/3")

    assert (one.position, third.position) == (4, 5)
    assert isinstance(other, StoreFull)


@with_store()
async def test_a_store_that_does_not_know_the_form_gets_no_more_groups(
    router: elea.Session, session: aio.Session
) -> None:
    store = Scripted(router, teaching, Scripted.failing(error="Malformed", text="version"), teaching)
    await session.put("home/0", "x", ack=True)
    await put_at_once(session, "home/1", "home/2")
    await put_at_once(session, "home/1", "home/2")

    assert services(store) == ["put", "puts", "put", "put", "put", "put"]


@with_store()
async def test_answers_that_make_no_sense_are_an_error(router: elea.Session, session: aio.Session) -> None:
    Scripted(router, teaching, lambda query: grouped(query, positions=[1]), teaching)
    await session.put("home/0", "x", ack=True)
    one, other = await put_at_once(session, "home/1", "home/2")

    assert "answers for 1 samples" in str(one)
    assert "answers for 1 samples" in str(other)


@with_store()
async def test_each_put_has_a_time_of_its_own(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, teaching, lambda query: store.keep(query))
    await session.put("home/0", "x", ack=True)
    patient = asyncio.create_task(session.put("home/1", "a", ack=True, timeout=PATIENCE))
    await asyncio.sleep(0)
    with pytest.raises(OperationTimeout, match=r"home/2 within 0\.1 s"):
        await session.put("home/2", "a", ack=True, timeout=0.1)

    assert not patient.done()
    assert services(store) == ["put", "puts", "puts"]
    grouped(store.kept[0])
    store.kept.clear()
    receipt = await patient
    assert receipt is not None


@with_store()
async def test_closing_the_session_ends_a_group(router: elea.Session, session: aio.Session) -> None:
    store = Scripted(router, teaching, lambda query: store.keep(query))
    await session.put("home/1", "x", ack=True)
    store.came.clear()
    tasks = [asyncio.create_task(session.put("home/1", "a", ack=True, timeout=PATIENCE)) for _ in range(3)]
    await asyncio.to_thread(store.came.wait, PATIENCE)
    await session.close()

    assert all(isinstance(error, SessionClosed) for error in await asyncio.gather(*tasks, return_exceptions=True))
    with pytest.raises(SessionClosed):
        await session.put("home/1", "a", ack=True)


# -- what is known ----------------------------------------------------------------------------------------------------


def test_smaller_logs_are_found_before_those_that_include_them() -> None:
    kept = Kept()
    kept.learn("a", None, "**")
    kept.learn("home/1/x", None, "home/1/**")
    kept.learn("home/2", None, "home/**")

    assert [kept.find(key, None) for key in ("home/1/y", "home/3", "b")] == ["home/1/**", "home/**", "**"]
    assert kept.find("home/3", "persistent") is None
    kept.refuse("home/**")
    kept.learn("home/2", None, "home/**")
    assert kept.find("home/3", None) == "**"


@pytest.mark.parametrize("said", [None, 7, "", "/home", "home//1", "other/**"])
def test_what_a_store_says_of_its_keys_is_looked_at(said: object) -> None:
    kept = Kept()
    kept.learn("home/1", None, said)

    assert kept.find("home/1", None) is None


@with_store(home="home/**")
async def test_a_put_with_a_destination_travels_alone_and_only_there(
    router: elea.Session, session: aio.Session
) -> None:
    """Also of a key that is known to be kept: those to anybody go as a group, those to somebody do not join it."""
    sizes: list[int] = []
    whole = PutsRequests.group

    def counted(self: PutsRequests, *about: Any) -> Any:
        found = whole(self, *about)
        sizes.append(len(found.places))
        return found

    await session.put("home/first", "x", ack=True)
    PutsRequests.group = counted  # type: ignore[method-assign, assignment]
    try:
        here = session.put("home/here", "x", ack=True, timeout=0.5, allowed_destination=elea.Locality.SESSION_LOCAL)
        there = session.put("home/there", "x", ack=True, timeout=PATIENCE, allowed_destination=elea.Locality.REMOTE)
        anywhere = put_at_once(session, "home/1", "home/2")
        lost, kept, others = await asyncio.gather(here, there, anywhere, return_exceptions=True)
    finally:
        PutsRequests.group = whole  # type: ignore[method-assign]

    assert sizes == [2]
    assert isinstance(lost, elea.ZError)  # the session itself keeps nothing
    assert isinstance(kept, elea.Receipt)
    assert isinstance(others, list)
    assert {row["key"] for row in await rows(session)} == {"home/first", "home/there", "home/1", "home/2"}
