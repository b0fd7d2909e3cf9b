"""Acknowledged puts, batches, range reads and cursors of a client, over a real link to a router that keeps samples."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.api import batches, rangereader, samplenumbers, storecall
from elea.api.identity import EntityGlobalId, SourceInfo
from elea.api.samplenumbers import Numbers
from elea.model.errors import (
    InvalidKeyExpr,
    NotStored,
    OperationTimeout,
    SessionClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
)
from tests.unit.api.stores import Scripted, broker, client

pa = pytest.importorskip("pyarrow")

PATIENCE = 60.0
"""Seconds for what should take milliseconds."""


@pytest.fixture
def session() -> Iterator[elea.Session]:
    """A client of a router that keeps home/**."""
    with broker(home="home/**") as router, client(router) as made:
        yield made


@pytest.fixture
def ends() -> Iterator[tuple[elea.Session, elea.Session]]:
    """A router that keeps nothing, for scripted stores, and a client of it."""
    with broker() as router, client(router) as made:
        yield router, made


def rows(session: elea.Session, key: str = "home/**", **options: Any) -> list[dict[str, Any]]:
    # Without `arrival`, which has nanoseconds, as no datetime has.
    found: list[dict[str, Any]] = session.read(key, **options).read_all().drop_columns(["arrival"]).to_pylist()
    return found


# -- single samples ---------------------------------------------------------------------------------------------------


def test_put_returns_where_the_sample_is(session: elea.Session) -> None:
    first = session.put("home/1", "21.5", ack=True)
    second = session.put("home/2", "20", ack=True, durability="transient")

    assert first is not None
    assert second is not None
    assert (first.log, first.position, first.rows, first.repeated) == ("home", 0, 1, 0)
    assert second.position == 1
    assert first.epoch == second.epoch


def test_everything_of_a_sample_is_stored(session: elea.Session) -> None:
    stamp = session.new_timestamp()
    options: dict[str, Any] = {"encoding": "text/plain", "attachment": b"more", "timestamp": stamp}
    session.put("home/1", "21.5", ack=True, priority=elea.Priority.DATA_HIGH, express=True, **options)

    [row] = rows(session)
    assert (row["key"], row["payload"], row["kind"]) == ("home/1", b"21.5", 0)
    assert (row["encoding"], row["attachment"]) == (elea.Encoding.TEXT_PLAIN.id, b"more")
    assert (row["ntp64"], row["stamp_id"]) == (stamp.value.ntp64, stamp.value.id.data)
    assert (row["source_id"], row["source_eid"], row["source_sn"]) == (bytes(session.zid()), 1, 0)
    assert elea.model.qos.Qos.from_raw(row["qos"]).priority is elea.Priority.DATA_HIGH


def test_delete_is_acknowledged(session: elea.Session) -> None:
    session.put("home/1", "21.5", ack=True)
    receipt = session.delete("home/1", ack=True, attachment="why")

    assert receipt is not None
    assert receipt.position == 1
    assert [row["kind"] for row in rows(session)] == [0, 1]
    assert not list(session.get("home/1"))


def test_live_subscribers_get_what_is_put_with_a_receipt(session: elea.Session) -> None:
    with session.declare_subscriber("home/**") as subscriber:
        session.put("home/1", "21.5", ack=True, encoding="text/plain")

        sample = subscriber.recv()
    assert (str(sample.key_expr), sample.payload.to_string(), str(sample.encoding)) == ("home/1", "21.5", "text/plain")
    assert sample.source_info.source_id.zid == session.zid()


def test_the_same_source_number_is_stored_once(session: elea.Session) -> None:
    source = SourceInfo(EntityGlobalId(session.zid(), 77), 5)
    first = session.put("home/1", "a", ack=True, source_info=source)
    again = session.put("home/1", "a", ack=True, source_info=source)

    assert first is not None
    assert again is not None
    assert (again.position, again.repeated) == (first.position, 1)
    assert len(rows(session)) == 1


def test_a_node_that_comes_back_under_its_id_does_not_repeat_its_numbers() -> None:
    receipts = []
    with broker(home="home/**") as router:
        for _ in range(2):
            with client(router, id="1234") as session:
                receipts.append(session.put("home/1", "a", ack=True))

    assert [receipt.repeated for receipt in receipts if receipt is not None] == [0, 0]


@pytest.mark.parametrize(("durability", "ack"), [("volatile", True), ("for ever", False), ("for ever", True)])
def test_durabilities_that_cannot_be_are_refused(session: elea.Session, durability: Any, ack: bool) -> None:
    with pytest.raises(ValueError, match=durability.split()[0]):
        session.put("home/1", "a", durability=durability, ack=ack)
    with pytest.raises(ValueError, match=durability.split()[0]):
        session.delete("home/1", durability=durability, ack=ack)


def test_a_volatile_put_is_a_plain_one(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    store = Scripted(router, Scripted.silent)
    with router.declare_subscriber("home/**") as subscriber:
        assert session.put("home/1", "a", durability="volatile") is None
        assert subscriber.recv().payload.to_string() == "a"
    assert store.asked == []


def test_wildcards_are_not_acknowledged(session: elea.Session) -> None:
    with pytest.raises(InvalidKeyExpr, match="single keys"):
        session.put("home/*", "a", ack=True)
    session.put("home/1", "a", ack=True)  # the number of the refused one is not missed


def test_nobody_keeps_the_key(ends: tuple[elea.Session, elea.Session], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storecall, "SILENCE", 0.05)
    _, session = ends

    with pytest.raises(NotStored, match="no broker keeps home/1; start one with --persist") as caught:
        session.put("home/1", "a", ack=True, timeout=PATIENCE)
    assert caught.value.key == "home/1"
    with pytest.raises(NotStored):
        session.read("home/**", timeout=PATIENCE).read_all()


def test_put_is_tried_again_with_the_same_number(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    congested = Scripted.failing(error="Congested", text="too much waits")
    store = Scripted(router, Scripted.silent, congested, Scripted.stored)

    receipt = session.put("home/1", "a", ack=True, durability="persistent", timeout=PATIENCE)

    assert receipt is not None
    assert receipt.position == 7
    assert store.asked == [("@store/put/home/1", f"src={session.zid()}.1.0;durability=persistent")] * 3


def test_who_was_acknowledged_before_tries_longer(
    ends: tuple[elea.Session, elea.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storecall, "SILENCE", 0.0)
    router, session = ends
    Scripted(router, Scripted.stored, Scripted.silent, Scripted.silent, Scripted.stored)

    session.put("home/1", "a", ack=True)
    assert session.put("home/1", "b", ack=True, timeout=PATIENCE) is not None


@pytest.mark.parametrize(
    ("form", "kind", "attributes"),
    [
        ({"error": "StoreFull", "text": "no room"}, StoreFull, {}),
        (
            {"error": "StoreCorrupt", "text": "bad", "segment": "0.arrows", "position": 3, "last": 9, "_x": 1},
            StoreCorrupt,
            {"segment": "0.arrows", "position": 3, "last": 9},
        ),
        ({"error": "SystemExit", "text": "no class of ours"}, StoreError, {}),
        ({"error": "annotations", "text": "no class at all"}, StoreError, {}),
        ({"text": "nameless"}, StoreError, {}),
    ],
)
def test_errors_of_the_store_are_raised_again(
    ends: tuple[elea.Session, elea.Session], form: dict[str, Any], kind: type[Exception], attributes: dict[str, Any]
) -> None:
    router, session = ends
    Scripted(router, Scripted.failing(**form))

    with pytest.raises(kind, match=form["text"]) as caught:
        session.put("home/1", "a", ack=True)
    assert type(caught.value) is kind
    assert {name: getattr(caught.value, name) for name in attributes} == attributes
    assert not hasattr(caught.value, "_x")


@pytest.mark.parametrize(
    ("payload", "kind"),
    [(b"Timeout", OperationTimeout), (b"limit reached", StoreError), (b"[1]", StoreError), (b"[" * 5_000, StoreError)],
)
def test_errors_of_others_on_the_way(
    ends: tuple[elea.Session, elea.Session], payload: bytes, kind: type[Exception]
) -> None:
    router, session = ends
    Scripted(router, lambda query: query.reply_err(payload))

    with pytest.raises(kind):
        session.put("home/1", "a", ack=True)


@pytest.mark.parametrize("payload", ["no json", "[1]", "[" * 5_000, '{"log": "x"}'])
def test_answers_that_say_nothing_are_refused(ends: tuple[elea.Session, elea.Session], payload: str) -> None:
    router, session = ends
    Scripted(router, lambda query: query.reply(query.key_expr, payload, encoding="application/json"))

    with pytest.raises(StoreError, match="answer"):
        session.put("home/1", "a", ack=True)


def test_a_store_that_does_not_answer_in_time(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    store = Scripted(router, lambda query: store.keep(query))

    with pytest.raises(OperationTimeout):
        session.put("home/1", "a", ack=True, timeout=0.2)


def test_closing_the_session_ends_the_wait(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    store = Scripted(router, lambda query: store.keep(query))
    caught: list[BaseException] = []

    def put() -> None:
        try:
            session.put("home/1", "a", ack=True, timeout=PATIENCE * 10)
        except BaseException as error:  # noqa: BLE001 - looked at below
            caught.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    assert store.came.wait(PATIENCE)
    session.close()
    thread.join(PATIENCE)

    assert not thread.is_alive()
    assert isinstance(caught[0], SessionClosed)
    with pytest.raises(SessionClosed):
        session.put("home/1", "a", ack=True)


def test_put_without_ack_is_stored_too(session: elea.Session) -> None:
    assert session.put("home/1", "a", durability="transient") is None
    session.put("home/1", "b", ack=True)  # behind it on the same link

    assert [row["payload"] for row in rows(session)] == [b"a", b"b"]


def test_put_without_ack_that_fails_is_counted(
    ends: tuple[elea.Session, elea.Session], caplog: pytest.LogCaptureFixture
) -> None:
    router, session = ends
    Scripted(router, Scripted.failing(error="StoreFull", text="no room"))

    with caplog.at_level(logging.WARNING, "elea.api"):
        session.put("home/1", "a", durability="persistent")
        until = time.monotonic() + PATIENCE
        while "sample not stored" not in caplog.text and time.monotonic() < until:
            time.sleep(0.01)

    assert session._storing.failed == 1
    assert "sample not stored: key=home/1 problem=no room failed=1" in caplog.text


def test_publisher_with_a_durability(session: elea.Session) -> None:
    with session.declare_publisher("home/1", durability="transient", encoding="text/plain") as publisher:
        first = publisher.put("a", ack=True)
        assert publisher.put("b", encoding="application/json") is None
        last = publisher.delete(ack=True)
        entity = publisher.id.eid

    assert first is not None
    assert last is not None
    assert (first.position, last.position) == (0, 2)
    found = rows(session)
    assert [row["source_eid"] for row in found] == [entity] * 3
    assert [row["source_sn"] for row in found] == [0, 1, 2]
    assert found[0]["encoding"] == elea.Encoding.TEXT_PLAIN.id
    assert found[1]["encoding"] == elea.Encoding.APPLICATION_JSON.id
    with pytest.raises(SessionClosed):
        publisher.put("c", ack=True)


def test_publisher_without_a_durability_is_acknowledged_by_nobody(session: elea.Session) -> None:
    with session.declare_publisher("home/1") as publisher:
        with pytest.raises(ValueError, match="durability"):
            publisher.delete(ack=True)
        with pytest.raises(TypeError):
            publisher.put("a", ack=True)


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_numbers_stay_within_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplenumbers, "WINDOW", 3)
    numbers = Numbers(1, lambda: 9)
    taken = [numbers.take() for _ in range(4)]
    assert [each and each[1:] for each in taken] == [(1, 0), (1, 1), (1, 2), None]

    numbers.release(1)
    assert numbers.take() is None  # the oldest is open still
    numbers.release(0)
    assert [numbers.take(10), numbers.take(), numbers.take()] == [(3, 1, 3), (4, 1, 13), None]


def test_who_waits_for_a_number_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplenumbers, "WINDOW", 2)
    numbers = Numbers(1, lambda: 9)
    serials = [numbers.wait()[0], numbers.wait()[0]]
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(numbers.wait()[2])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for serial in serials:
        numbers.release(serial)
    for thread in threads:
        thread.join(PATIENCE)

    assert sorted(got) == [2, 3]


def test_numbers_that_are_used_up_go_on_with_another_entity() -> None:
    numbers = Numbers(1, iter([5, 6]).__next__)
    numbers.take((1 << 32) - 1)

    assert numbers.take(2) == (1, 5, 0)
    assert numbers.take((1 << 32) - 2) == (2, 5, 2)
    assert numbers.take() == (3, 6, 0)


# -- batches ----------------------------------------------------------------------------------------------------------


def test_pairs_are_stored_in_their_order(session: elea.Session) -> None:
    receipt = session.put_batch([("home/1", "a"), ("home/2", b"b"), ("home/1/x", "c")], durability="transient")

    assert (receipt.log, receipt.position, receipt.rows, receipt.repeated) == ("home", 0, 3, 0)
    found = rows(session)
    assert [(row["key"], row["payload"]) for row in found] == [("home/1", b"a"), ("home/2", b"b"), ("home/1/x", b"c")]
    assert [row["source_sn"] for row in found] == [0, 1, 2]


def test_columns_are_stored_in_pieces(session: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PIECE_ROWS", 7)
    stamp = session.new_timestamp().value
    table = pa.table(
        {
            "key": pa.chunked_array([[f"home/{number}" for number in range(50)]] * 2),
            "payload": [str(number) for number in range(100)],
            "kind": pa.array([0, 1] * 50, pa.int64()),
            "encoding": [51] * 100,
            "attachment": [b"x", None] * 50,
            "ntp64": [stamp.ntp64 + number for number in range(100)],
            "stamp_id": [stamp.id.data] * 100,
        }
    )
    receipt = session.put_batch(table, "home/**", durability=None)

    found = rows(session)
    assert (receipt.position, receipt.rows) == (0, 100)
    assert [row["key"] for row in found] == [f"home/{number}" for number in range(50)] * 2
    assert [row["payload"] for row in found] == [str(number).encode() for number in range(100)]
    assert [row["kind"] for row in found] == [0, 1] * 50
    assert [row["attachment"] for row in found] == [b"x", None] * 50
    assert [row["ntp64"] for row in found] == [stamp.ntp64 + number for number in range(100)]


def test_what_was_read_can_be_put_again(session: elea.Session) -> None:
    session.put_batch([("home/1", "a"), ("home/2", "b")], durability=None)
    session.put_batch(session.read("home/**").read_all(), durability=None)

    assert [row["payload"] for row in rows(session)] == [b"a", b"b", b"a", b"b"]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"key": ["a"]}, "no column 'payload'"),
        ({"key": ["a"], "payload": [b"x"], "color": [1]}, "column 'color'"),
        ({"key": ["a"], "payload": [b"x"], "ntp64": [1]}, "no column 'stamp_id'"),
        ({"key": ["a", None], "payload": [b"x", b"y"]}, "nulls"),
        ({"key": ["a"], "payload": [b"x"], "kind": ["put"]}, "does not fit"),
    ],
)
def test_batches_that_are_no_samples_are_refused(session: elea.Session, columns: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        session.put_batch(pa.table(columns))


def test_a_batch_without_samples_has_no_receipt(session: elea.Session) -> None:
    with pytest.raises(ValueError, match="without samples"):
        session.put_batch([])


def test_an_error_says_how_much_was_stored(
    ends: tuple[elea.Session, elea.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PIECE_ROWS", 2)
    router, session = ends
    answer = '{"log": "fake", "epoch": "e", "first": 0, "rows": 2, "repeated": 0}'

    def stored(query: elea.Query) -> None:
        query.reply(query.key_expr, answer, encoding="application/json")

    Scripted(router, stored, stored, Scripted.failing(error="StoreFull", text="no room"))

    with pytest.raises(StoreFull) as caught:
        session.put_batch([(f"home/{number}", "a") for number in range(9)])
    assert caught.value.__notes__ == ["4 samples of the batch had been acknowledged before"]


def test_rows_that_no_store_took_are_missed(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    answer = '{"log": "fake", "epoch": "e", "first": 0, "rows": 1, "repeated": 1}'
    Scripted(router, lambda query: query.reply(query.key_expr, answer, encoding="application/json"))

    assert session.put_batch([("home/1", "a"), ("home/2", "b")]).repeated == 1
    with pytest.raises(NotStored):
        session.put_batch([("home/1", "a"), ("home/2", "b"), ("home/3", "c")])


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["a/b", "a/b"], "a/b"),
        (["a/b", "a/c"], "a/**"),
        (["a/b", "a/b/c"], "a/b/**"),
        (["a/bc", "a/b"], "a/**"),
        (["a", "b"], "**"),
    ],
)
def test_a_batch_goes_to_what_its_keys_have_in_common(keys: list[str], wanted: str) -> None:
    [piece] = batches.pieces_of([(key, b"") for key in keys], None)

    assert piece.key == wanted


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(session: elea.Session) -> elea.Session:
    """With 100 samples of ten keys, in ten blocks."""
    for block in range(10):
        session.put_batch([(f"home/{key}", f"{block}.{key}") for key in range(10)], durability=None)
    return session


def test_reading_says_where_it_ended(filled: elea.Session) -> None:
    reader = filled.read("home/**", start=5, end=50)
    positions = [position for batch in reader for position in batch.column("position").to_pylist()]

    assert positions == list(range(5, 50))
    assert (reader.log, reader.first, reader.next, reader.end) == ("home", 0, 50, 100)
    assert reader.epoch is not None


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, list(range(100))),
        ({"start": 90}, list(range(90, 100))),
        ({"end": 3}, [0, 1, 2]),
        ({"limit": 4}, [0, 1, 2, 3]),
        ({"limit": 4, "start": 7}, [7, 8, 9, 10]),
        ({"newest_first": True}, list(range(99, -1, -1))),
        ({"newest_first": True, "limit": 25}, list(range(99, 74, -1))),
        ({"newest_first": True, "start": 10, "end": 20}, list(range(19, 9, -1))),
        ({"by_time": True, "limit": 3}, [0, 1, 2]),
        ({"time": "[now(-1h)..]"}, list(range(100))),
        ({"time": "[..now(-1h)]"}, []),
        ({"start": 100}, []),
    ],
)
@pytest.mark.parametrize("chunk", [1, 4000, 1 << 30])
def test_ranges(
    filled: elea.Session, options: dict[str, Any], wanted: list[int], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rangereader, "CHUNK_BYTES", chunk)

    assert [row["position"] for row in rows(filled, **options)] == wanted


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_range_comes_in_answers_of_bounded_size(session: elea.Session, newest_first: bool) -> None:
    for number in range(24):
        session.put(f"home/{number}", bytes(1 << 20), ack=True)

    reader = session.read("home/**", newest_first=newest_first)
    answers = []
    while reader.fetch():
        answers.append([at for batch in iter(reader.ready, None) for at in batch.column("position").to_pylist()])

    positions = [position for answer in answers for position in answer]
    assert positions == sorted(range(24), reverse=newest_first)
    assert len(answers) > 1
    assert max(map(len, answers)) <= 16  # an answer of 8 MB, and what the store hands out together


def test_some_keys_only(filled: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rangereader, "CHUNK_BYTES", 1)

    assert [row["position"] for row in rows(filled, "home/3")] == list(range(3, 100, 10))


def test_what_comes_while_reading_belongs_to_the_next_one(
    filled: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rangereader, "CHUNK_BYTES", 1)
    reader = filled.read("home/**")
    first = next(reader)
    filled.put("home/new", "a", ack=True)
    others = list(reader)

    assert first.num_rows + sum(batch.num_rows for batch in others) == 100
    assert reader.next == 100
    assert filled.read("home/**", start=reader.next).read_all().num_rows == 1


def log_stream(rows: int) -> bytes:
    """So many samples as a store sends them."""
    from elea.store import memory_log
    from tests.unit.store.samples import sample

    with memory_log() as log:
        log.append([sample(number) for number in range(rows)])
        return b"".join(log.read_ipc())


def test_a_slow_reader_has_one_answer_ahead(ends: tuple[elea.Session, elea.Session]) -> None:
    """However much there is: the next answer is asked for when the one before has come and been taken."""
    router, session = ends
    stream = log_stream(2)

    def answer(query: elea.Query) -> None:
        start = int(query.parameters.get("from") or 0)
        query.reply(query.key_expr, stream[:50])
        query.reply(query.key_expr, stream[50:])
        form = f'{{"log":"l","epoch":"e","first":0,"next":{start + 2},"end":1000000,"more":true}}'
        query.reply(query.key_expr, form, encoding="application/json")

    store = Scripted(router, answer)
    reader = session.read("home/**")
    next(reader)
    next(reader)
    until = time.monotonic() + PATIENCE
    while len(store.asked) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)  # nothing more is to come

    asked = [parameters.split(";")[1:] for _, parameters in store.asked]
    assert [[one for one in names if one.startswith(("from", "to"))] for names in asked] == [
        [],
        ["from=2", "to=1000000"],
        ["from=4", "to=1000000"],
    ]
    reader.close()
    assert list(reader) == []


def test_a_cut_off_answer_is_asked_for_again(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    stream = log_stream(2)

    def cut(query: elea.Query) -> None:
        query.reply(query.key_expr, stream[:50])

    def whole(query: elea.Query) -> None:
        query.reply(query.key_expr, stream)
        form = '{"log":"l","epoch":"e","first":0,"next":3,"end":3}'
        query.reply(query.key_expr, form, encoding="application/json")

    Scripted(router, cut, cut, whole)

    assert session.read("home/**", timeout=PATIENCE).read_all().column("position").to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ('{"log":"l","epoch":"f","first":0,"next":9,"end":9}', "in its place"),
        ('{"log":"l","epoch":"e","first":0,"next":2,"end":9,"more":true}', "again and again"),
        ('{"log":"l","epoch":"e","first":0}', "has no 'next'"),
    ],
)
def test_readings_that_make_no_sense_end(ends: tuple[elea.Session, elea.Session], second: str, problem: str) -> None:
    router, session = ends

    def answering(form: str) -> Any:
        return lambda query: query.reply(query.key_expr, form, encoding="application/json")

    Scripted(router, answering('{"log":"l","epoch":"e","first":0,"next":2,"end":9,"more":true}'), answering(second))

    with pytest.raises(StoreError, match=problem):
        list(session.read("home/**"))


def test_two_logs_are_not_read_as_one(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends
    form = '{"log":"l","epoch":"e","first":0,"next":2,"end":9}'

    def twice(query: elea.Query) -> None:
        query.reply(query.key_expr, form, encoding="application/json")
        query.reply(query.key_expr, form, encoding="application/json")

    Scripted(router, twice)

    with pytest.raises(StoreError, match="several logs"):
        list(session.read("home/**"))


def test_a_broken_stream_is_an_error_of_the_store(ends: tuple[elea.Session, elea.Session]) -> None:
    router, session = ends

    def broken(query: elea.Query) -> None:
        query.reply(query.key_expr, b"no arrow")
        form = '{"log":"l","epoch":"e","first":0,"next":2,"end":9}'
        query.reply(query.key_expr, form, encoding="application/json")

    Scripted(router, broken)

    with pytest.raises(StoreError, match="the answer of a store is refused"):
        list(session.read("home/**"))


@pytest.mark.parametrize("options", [{"start": -1}, {"end": "x"}, {"limit": 1.5}, {"start": True}])
def test_positions_are_whole_numbers(session: elea.Session, options: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        session.read("home/**", **options)


# -- cursors ----------------------------------------------------------------------------------------------------------


def test_cursor_is_remembered_by_the_store(filled: elea.Session) -> None:
    cursor = filled.cursor("home/**", "report")
    assert cursor.position is None

    cursor.move(42)
    assert filled.cursor("home/**", "report").position == 42
    assert filled.cursor("home/**", "other").position is None
    assert cursor.facts()["end"] == 100
    assert (cursor.name, repr(cursor)) == ("report", "Cursor('home/**', 'report')")

    cursor.drop()
    assert cursor.position is None


@pytest.mark.parametrize("name", ["", "a;b"])
def test_cursors_have_names_that_can_be_asked_for(session: elea.Session, name: str) -> None:
    with pytest.raises(ValueError, match="name of a cursor"):
        session.cursor("home/**", name)


# -- without pyarrow --------------------------------------------------------------------------------------------------


def test_a_client_that_puts_does_not_load_pyarrow() -> None:
    program = (
        "import sys, elea, elea.aio; elea.Session, elea.Reading, elea.Cursor, elea.Receipt; "
        "import elea.api.storeclient; print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_without_pyarrow_it_says_what_to_install(session: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(StoreError, match=r"pip install '\.\[broker\]'"):
        session.put_batch([("home/1", "a")])
    with pytest.raises(StoreError, match=r"pip install '\.\[broker\]'"):
        session.read("home/**")
