"""Predicates at the doors of a session with stores: gets, reads, history, record batches."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import elea
import elea.aio
from elea.model.errors import InvalidPredicate
from tests.unit.api.stores import broker, client, config, locator_of
from tests.unit.node.storage.serving import eventually

WHERE = "speed > 2 AND name LIKE 'a%'"


@pytest.fixture
def session() -> Iterator[elea.Session]:
    """A client of a router that keeps 20 samples of four keys, a deletion, and one that is no JSON."""
    with broker(fleet="fleet/**") as router, client(router) as opened:
        for number in range(20):
            form = {"speed": number % 7, "name": "abc" if number % 2 else "xyz", "n": number}
            opened.put(f"fleet/{number % 4}", json.dumps(form), encoding="application/json", ack=True)
        opened.put("fleet/bad", b"\xff", ack=True)
        opened.delete("fleet/0", ack=True)
        yield opened


WANTED = [number for number in range(20) if number % 7 > 2 and number % 2]


def numbers(samples: list[elea.Sample]) -> list[int]:
    return [json.loads(sample.payload.to_bytes())["n"] for sample in samples]


def get(session: elea.Session, selector: str, where: str) -> list[elea.Sample]:
    replies = list(session.get(selector, where=where, consolidation=elea.ConsolidationMode.NONE))
    assert [reply.err for reply in replies if reply.err] == []
    return [reply.ok for reply in replies if reply.ok]


def test_get_brings_newest_values_for_which_it_holds(session: elea.Session) -> None:
    newest = {17: 3, 18: 4, 19: 5}  # number and speed of the newest of fleet/1, 2, 3

    found = numbers(get(session, "fleet/*", "speed >= 4"))

    assert sorted(found) == [number for number, speed in newest.items() if speed >= 4]


def test_get_of_history_holds_everything_against_it(session: elea.Session) -> None:
    assert numbers(get(session, "fleet/**?_history", WHERE)) == WANTED
    assert numbers(get(session, "fleet/**?_history;_limit=2", WHERE)) == WANTED[:2]
    assert numbers(get(session, "fleet/**?_history;_limit=2;_order=newest", WHERE)) == WANTED[:-3:-1]
    assert len(get(session, "fleet/**?_history", "kind = 'DELETE'")) == 1


def test_get_with_a_percent_sign_and_a_semicolon(session: elea.Session) -> None:
    session.put("fleet/odd", '{"name": "a;|%b"}', ack=True)

    assert [str(sample.key_expr) for sample in get(session, "fleet/*", "name LIKE '%;|_b'")] == ["fleet/odd"]


def test_get_that_is_no_predicate_is_refused(session: elea.Session) -> None:
    with pytest.raises(InvalidPredicate):
        session.get("fleet/*", where="speed >")
    replies = list(session.get("fleet/*?_where=speed >"))
    assert "InvalidPredicate" in replies[0].err.payload.to_string()


@pytest.mark.parametrize("machine", ["here", "elsewhere"])
def test_read_brings_rows_for_which_it_holds(
    session: elea.Session, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if machine == "elsewhere":
        monkeypatch.setattr("elea.store.inplace.machine", lambda: None)

    def read(**options: object) -> list[int]:
        table = session.read("fleet/**", where=WHERE, **options).read_all()  # type: ignore[arg-type]
        return [json.loads(payload)["n"] for payload in table.column("payload").to_pylist()]

    assert read() == WANTED
    assert read(start=8) == [number for number in WANTED if number >= 8]
    assert read(limit=2) == WANTED[:2]
    assert read(limit=2, newest_first=True) == WANTED[:-3:-1]
    assert read(by_time=True) == WANTED
    assert read(keys=["fleet/1"]) == [number for number in WANTED if number % 4 == 1]
    assert session.read("fleet/**", where="speed = 99").read_all().num_rows == 0
    assert session.read("fleet/**", where="kind = 'DELETE' AND key = 'fleet/0'").read_all().num_rows == 1


def test_reading_says_where_to_go_on(session: elea.Session) -> None:
    reading = session.read("fleet/**", where=WHERE, limit=2)
    reading.read_all()
    assert reading.next == WANTED[1] + 1

    reading = session.read("fleet/**", where=WHERE)
    reading.read_all()
    assert reading.next == 22


def test_many_answers_are_read_to_the_end(session: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.api.rangereader.CHUNK_BYTES", 1)

    for options in ({}, {"newest_first": True}):
        table = session.read("fleet/**", where=WHERE, **options).read_all()  # type: ignore[arg-type]
        assert sorted(json.loads(each)["n"] for each in table.column("payload").to_pylist()) == WANTED


def test_history_begins_with_the_last_for_which_it_holds(session: elea.Session) -> None:
    with session.declare_subscriber("fleet/**", history=3, where=WHERE) as subscriber:
        session.put("fleet/1", '{"speed": 1, "name": "abc", "n": 98}', ack=True)
        session.put("fleet/1", '{"speed": 9, "name": "abc", "n": 99}', ack=True)

        assert numbers([subscriber.recv() for _ in range(4)]) == [*WANTED[-3:], 99]


def test_pull_of_a_log_brings_those_for_which_it_holds(session: elea.Session) -> None:
    with session.declare_subscriber("fleet/**", mode=elea.Pull(), since=0, where=WHERE) as subscriber:
        assert numbers(subscriber.pull()) == WANTED
        assert subscriber.pull() == []


def test_record_batches_have_rows_for_which_it_holds(session: elea.Session) -> None:
    with session.declare_subscriber("live/**", elea.handlers.Arrow(rows=1000, seconds=0.2), where=WHERE) as subscriber:
        for number in range(20):
            session.put("live/1", json.dumps({"speed": number % 7, "name": "abc" if number % 2 else "x", "n": number}))
        batch: pa.RecordBatch = subscriber.recv()

        assert [json.loads(payload)["n"] for payload in batch.column("payload").to_pylist()] == WANTED
        assert subscriber.where is not None
        assert (subscriber.where.passed, subscriber.where.refused) == (len(WANTED), 20 - len(WANTED))


def test_batch_that_is_published_is_held_back_row_by_row() -> None:
    with (
        broker() as router,
        client(router) as robot,
        client(router) as desk,
        desk.declare_subscriber("fleet/**", where="value > 2") as subscriber,
        robot.declare_publisher("fleet/1") as publisher,
    ):
        matched = threading.Event()
        publisher.declare_matching_listener(lambda status: matched.set())
        assert publisher.matching_status.matching or matched.wait(10)

        robot.put_batch([("fleet/1", str(number)) for number in range(6)], durability="volatile")

        assert [subscriber.recv().payload.to_string() for _ in range(3)] == ["3", "4", "5"]
        assert subscriber.where is not None
        assert subscriber.where.refused == 0


def test_acknowledged_puts_are_held_back_by_the_broker(session: elea.Session) -> None:
    with session.declare_subscriber("fleet/**", where="n >= 100") as subscriber:
        for number in range(98, 102):
            session.put("fleet/1", json.dumps({"n": number}), ack=True)

        assert numbers([subscriber.recv(), subscriber.recv()]) == [100, 101]
        assert subscriber.where is not None
        assert subscriber.where.refused == 0


def test_asyncio_twin_has_the_same_doors() -> None:
    async def main(locator: str) -> None:
        settings = config("client", connect__endpoints=[locator])
        async with elea.aio.open(settings) as session:
            for number in range(6):
                await session.put("fleet/1", str(number), ack=True)
            replies = await session.get(
                "fleet/**?_history", where="value > 3", consolidation=elea.ConsolidationMode.NONE
            )
            assert [reply.ok.payload.to_string() async for reply in replies] == ["4", "5"]
            table = await session.read("fleet/**", where="value > 3").read_all()
            assert table.column("payload").to_pylist() == [b"4", b"5"]
            every: list[dict[str, Any]] = [{}, {"since": 0}, {"mode": elea.Pull(), "since": 0}]
            for options in every:
                async with session.declare_subscriber("fleet/**", where="value > 3", **options) as subscriber:
                    if not options:
                        for number in range(6):
                            await session.put("fleet/1", str(number), ack=True)
                    found = await subscriber.pull() if "mode" in options else [await subscriber.recv()]
                    assert found[0].payload.to_string() == "4"
                    assert subscriber.where is not None

    with broker(fleet="fleet/**") as router:
        asyncio.run(main(locator_of(router)))


def test_little_travels_where_little_is_wanted() -> None:
    """One sample in a hundred is wanted: at most 2 % of the bytes that all of them take go over the link."""
    count = 20_000
    with (
        broker() as router,
        client(router) as robot,
        client(router) as desk,
        client(router) as other,
    ):
        few: list[elea.Sample] = []
        everything: list[elea.Sample] = []
        last = threading.Event()
        desk.declare_subscriber("fleet/**", few.append, where="speed >= 99")
        other.declare_subscriber("fleet/**", everything.append)
        other.declare_subscriber("last", lambda sample: last.set())
        eventually(lambda: len(sent(router)) == 3, "the router knows its clients")
        before = sent(router)
        for number in range(count):
            robot.put("fleet/1", json.dumps({"speed": number % 100, "name": f"robot {number}"}), **BLOCK)
        robot.put("last", b"", **BLOCK)
        assert last.wait(60)
        after = sent(router)

    wanted = [one.payload.to_bytes() for one in everything if json.loads(one.payload.to_bytes())["speed"] >= 99]
    assert [one.payload.to_bytes() for one in few] == wanted
    assert len(few) == count // 100
    taken = {node: after[node] - before[node] for node in after}
    assert taken[bytes(desk.zid())] <= 0.02 * taken[bytes(other.zid())]


BLOCK: Any = {"congestion_control": elea.CongestionControl.BLOCK}


def sent(router: elea.Session) -> dict[bytes, int]:
    """Bytes that a router has sent to each neighbour."""
    faces = [connection.face for connection in router._runtime.links.connections if connection.face is not None]
    return {face.subject.node_id: face.counters()["sent_bytes"] for face in faces}
