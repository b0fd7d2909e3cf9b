"""`Query`: what it says, how it is answered, and that it ends exactly once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

from elea.api.apierrors import QueryDropped, ReplyRefused
from elea.api.apitimestamp import NTP64, Timestamp
from elea.api.query import Query
from elea.api.queryoptions import ReplyKeyExpr
from elea.api.sample import Sample
from elea.api.zbytes import ZBytes
from elea.model.encoding import Encoding
from elea.model.errors import EleaError, InvalidKeyExpr
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Priority, SampleKind


class Answers:
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.errors: list[tuple[bytes, Encoding]] = []
        self.finished = 0

    def reply(self, sample: Sample) -> None:
        self.samples.append(sample)

    def error(self, payload: bytes, encoding: Encoding) -> None:
        self.errors.append((payload, encoding))

    def finish(self) -> None:
        self.finished += 1

    def abandoned(self) -> None:
        self.finished += 1


def query(answers: Answers, key: str = "q/a", parameters: str = "") -> Query:
    return Query(KeyExpr(key), parameters, answers)


def test_a_query_says_what_was_asked() -> None:
    asked = Query(KeyExpr("q/*"), "x=1;y", Answers(), payload=b"p", encoding=Encoding.TEXT_PLAIN, attachment=b"a")

    assert (str(asked.selector), str(asked.key_expr), str(asked.parameters)) == ("q/*?x=1;y", "q/*", "x=1;y")
    assert (asked.payload, asked.encoding, asked.attachment) == (ZBytes(b"p"), Encoding.TEXT_PLAIN, ZBytes(b"a"))
    assert (asked.source_info, asked.timestamp_stack) == (None, None)
    assert asked.accepts_replies() is ReplyKeyExpr.MATCHING_QUERY
    assert str(asked) == 'Query { selector: "q/*?x=1;y" }'
    assert repr(asked) == "Query('q/*?x=1;y')"


def test_a_plain_query_has_no_payload() -> None:
    asked = query(Answers())

    assert (asked.payload, asked.encoding, asked.attachment) == (None, None, None)


def test_replies_go_to_the_responder() -> None:
    answers = Answers()
    stamp = Timestamp(NTP64(1, 0), b"1")

    with query(answers) as asked:
        asked.reply("q/a", "value", encoding="text/plain", attachment="note", timestamp=stamp, express=True)
        asked.reply_del("q/a", attachment=b"gone")
        asked.reply_err("bad", encoding=Encoding.TEXT_JSON)

    put, deleted = answers.samples
    assert (put.kind, put.payload, put.attachment) == (SampleKind.PUT, ZBytes("value"), ZBytes("note"))
    assert put.encoding == "text/plain"
    assert (put.timestamp, put.express, put.congestion_control) == (stamp, True, CongestionControl.BLOCK)
    assert (deleted.kind, deleted.payload, deleted.attachment) == (SampleKind.DELETE, ZBytes(), ZBytes(b"gone"))
    assert answers.errors == [(b"bad", Encoding.TEXT_JSON)]
    assert answers.finished == 1


def test_a_reply_must_be_on_a_key_asked_for() -> None:
    answers = Answers()
    asked = query(answers, "q/*")

    with pytest.raises(ReplyRefused) as caught:
        asked.reply("other", "x")

    assert (caught.value.key_expr, caught.value.query) == ("other", "q/*")
    asked.reply("q/1", "x")
    asked.reply(KeyExpr("q/**"), "x")
    with pytest.raises(InvalidKeyExpr):
        asked.reply("q//", "x")
    assert len(answers.samples) == 2


def test_a_query_may_accept_any_key() -> None:
    answers = Answers()
    asked = query(answers, parameters="_anyke")

    asked.reply("other", "x")

    assert asked.accepts_replies() is ReplyKeyExpr.ANY
    assert answers.samples[0].key_expr == "other"


@pytest.mark.parametrize("payload", [5, None, [1]])
def test_a_reply_is_bytes_or_text(payload: str) -> None:
    with pytest.raises(TypeError):
        query(Answers()).reply("q/a", payload)


def test_a_timestamp_is_one() -> None:
    with pytest.raises(TypeError):
        query(Answers()).reply("q/a", "x", timestamp=5)  # type: ignore[arg-type]


def test_quality_of_replies_is_ignored_with_a_warning() -> None:
    answers = Answers()
    asked = query(answers)

    with pytest.warns(DeprecationWarning, match="congestion_control in Query.reply "):
        asked.reply("q/a", "x", congestion_control=CongestionControl.DROP)
    with pytest.warns(DeprecationWarning, match="priority in Query.reply_del "):
        asked.reply_del("q/a", priority=Priority.REAL_TIME)

    assert [sample.priority for sample in answers.samples] == [Priority.DATA, Priority.DATA]


USES: list[Callable[[Query], object]] = [
    lambda asked: asked.key_expr,
    lambda asked: asked.selector,
    lambda asked: asked.parameters,
    lambda asked: asked.payload,
    lambda asked: asked.accepts_replies(),
    lambda asked: asked.reply("q/a", "x"),
    lambda asked: asked.reply_del("q/a"),
    lambda asked: asked.reply_err("x"),
    lambda asked: asked.__enter__(),
    str,
]


@pytest.mark.parametrize("use", USES)
def test_a_dropped_query_answers_nothing(use: Callable[[Query], object]) -> None:
    asked = query(Answers())
    asked.drop()

    with pytest.raises(QueryDropped):
        use(asked)
    assert issubclass(QueryDropped, EleaError)
    assert repr(asked) == "Query(dropped)"


def test_a_query_ends_once_however_often_it_is_dropped() -> None:
    answers = Answers()
    asked = query(answers)

    with asked:
        asked.drop()
        asked.drop()
    del asked
    gc.collect()

    assert answers.finished == 1


def test_a_forgotten_query_ends_with_its_last_reference() -> None:
    answers = Answers()

    query(answers)
    cycle: list[object] = [query(answers)]
    cycle.append(cycle)
    del cycle
    gc.collect()

    assert answers.finished == 2


def test_threads_that_drop_at_once_end_it_once() -> None:
    answers = Answers()
    queries = [query(answers) for _ in range(200)]
    barrier = threading.Barrier(4)

    def drop_all() -> None:
        barrier.wait()
        for asked in queries:
            asked.drop()

    threads = [threading.Thread(target=drop_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers.finished == 200
