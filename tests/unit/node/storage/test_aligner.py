"""Storages of two brokers over real sockets: who brings what to whom, what is seen of it, and what goes wrong."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.node.storage.aligner_answers import packed, unpacked
from tests.interop.inbox import free_port
from tests.robust.aligning import Severable
from tests.robust.cutting import Cuttable
from tests.unit.node.storage.serving import Broker, broker, eventually, failure, manager, samples, table, told, values

HISTORY = "home/**?_history"


def aligned(locator: str, **more: Any) -> dict[str, Any]:
    """A storage that is aligned with the broker at a locator."""
    replication = {"peers": [locator], "interval": 0.2, "propagation_delay": 0, **more}
    return {"key_expr": "home/**", "volume": "memory", "complete": True, "replication": replication}


PLAIN = {"key_expr": "home/**", "volume": "memory", "complete": True}


@contextlib.contextmanager
def pair() -> Iterator[tuple[Broker, Broker]]:
    """A broker that is aligned with another, and that one."""
    with contextlib.ExitStack() as stack:
        two = stack.enter_context(broker(home=PLAIN))
        one = stack.enter_context(broker(home=aligned(two.locator)))
        yield one, two


@contextlib.contextmanager
def at(port: int, **storages: Any) -> Iterator[Broker]:
    """A broker at a port."""
    made = Broker(manager(**storages), listen=f"tcp/127.0.0.1:{port}")
    try:
        yield made
    finally:
        made.session.close()


def facts(one: Broker) -> dict[str, Any]:
    (found,) = told(one.session, "@store/info/*/home")["alignment"]
    assert isinstance(found, dict)
    return found


def test_broker_brings_what_the_other_has_stored_deletions_and_history_too() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        there.put("home/a", "1", ack=True)
        there.put("home/a", "2", ack=True, encoding="text/plain", attachment=b"note")
        there.put("home/b", "3", ack=True)
        there.delete("home/b", ack=True)

        eventually(lambda: len(values(here, HISTORY)) == 4, "all samples have been brought")

        assert values(here, "home/**") == [("home/a", "2")]
        assert values(here, HISTORY) == values(there, HISTORY)
        mine, theirs = (samples(session, "home/a") for session in (here, there))
        assert mine[0].timestamp == theirs[0].timestamp
        assert (str(mine[0].encoding), mine[0].attachment.to_bytes()) == ("text/plain", b"note")  # type: ignore[union-attr]


def test_samples_are_kept_as_they_were_but_for_position_and_arrival() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        here.put("home/mine", "0", ack=True)
        there.put_batch([("home/a", "1"), ("home/b", "2")], "home/*", durability="transient")

        eventually(lambda: len(values(here, HISTORY)) == 3, "all samples have been brought")

        mine, theirs = (table(session, "@store/read/home/**")[0] for session in (here, there))
        assert [row.pop("position") for row in mine] == [0, 1, 2]
        assert [row.pop("position") for row in theirs] == [0, 1]
        assert mine[1:] == theirs
        arrivals = [stored.record.arrival_ns for stored in one.storage("home").log.read()]
        # When it came here: what retention goes by never goes back.
        assert arrivals == sorted(arrivals)
        assert arrivals[1] > max(stored.record.arrival_ns for stored in two.storage("home").log.read())


def test_nothing_that_is_brought_is_published() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        heard: list[str] = []
        with here.declare_subscriber("home/**", lambda sample: heard.append(sample.payload.to_string())):
            there.put("home/a", "old", ack=True)
            eventually(lambda: values(here, "home/a"), "the sample has been brought")
            here.put("home/a", "new", ack=True)
            eventually(lambda: heard, "something is heard")

        assert heard == ["new"]


def test_followers_and_cursors_get_what_is_brought() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        here.put("home/a", "first", ack=True)
        with here.declare_subscriber("home/**", since=0, cursor="reader") as subscriber:
            assert subscriber.recv().payload.to_string() == "first"
            there.put("home/a", "second", ack=True)

            sample = subscriber.recv()

            assert (sample.payload.to_string(), sample.position) == ("second", 1)


def test_retry_at_the_other_broker_is_stored_once() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        put = "@store/put/home/a?src=a1.1.7"
        told(there, put, payload=b"x")
        eventually(lambda: values(here, "home/a"), "the sample has been brought")

        again = told(here, put, payload=b"x")

        assert (again["repeated"], again["position"]) == (True, 0)
        assert len(values(here, HISTORY)) == 1


def test_sample_that_was_stored_at_both_before_they_met_is_brought_like_any_other() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        put = "@store/put/home/a?src=a1.1.7"
        told(here, put, payload=b"x")
        told(there, put, payload=b"x")

        eventually(lambda: len(values(here, HISTORY)) == 2, "it has been brought, under its other timestamp")

        before = facts(one)["rounds"]
        eventually(lambda: facts(one)["rounds"] > before + 2, "some more rounds")
        assert len(values(here, HISTORY)) == 2


def test_what_is_put_here_after_something_was_brought_is_newer() -> None:
    with pair() as (one, two), two.client() as there, one.client() as here:
        ahead = there.new_timestamp().value.ntp64 + (1 << 30)  # as much as a clock may be: 250 ms
        told(there, f"@store/put/home/a?src=a1.1.1;time={ahead:x}.a1", payload=b"theirs")
        eventually(lambda: values(here, "home/a"), "the sample has been brought")

        here.put("home/a", "ours", ack=True)

        assert values(here, "home/a") == [("home/a", "ours")]


def test_deletion_of_many_keys_counts_for_older_samples_that_are_brought_later() -> None:
    with contextlib.ExitStack() as stack:
        port = free_port()
        link = Severable(port)
        stack.callback(link.close)
        link.sever()
        one = stack.enter_context(broker(home=aligned(link.locator)))
        two = stack.enter_context(at(port, home=aligned(one.locator)))
        here, there = stack.enter_context(one.client()), stack.enter_context(two.client())
        there.put("home/a", "old", ack=True)
        here.delete("home/**")
        eventually(lambda: len(one.storage("home").wild), "the deletion has come")
        one.storage("home").go_on_with_updates()
        assert not one.storage("home").wild.pending, "it is done with what was there"

        link.mend()

        eventually(lambda: [value for _, value in values(there, HISTORY)] == ["old", "-"], "it has come over")
        assert values(here, "home/**") == values(there, "home/**") == []


def test_broker_that_comes_back_is_asked_at_once_and_what_it_missed_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elea.node")
    with broker(home=PLAIN) as two:
        link = Cuttable(int(two.locator.rpartition(":")[2]))
        with contextlib.closing(link), broker(home=aligned(link.locator, interval=60)) as one, two.client() as there:
            eventually(lambda: facts(one)["rounds"] == 1, "the first round")
            there.put("home/a", "1", ack=True)
            link.cut()

            eventually(lambda: facts(one)["aligned"] == 1, "a round long before it was due")

            found = facts(one)
            assert found["node"] == str(two.session.zid())
            assert found["with"] == link.locator
            assert found["problem"] is None
            assert abs(found["last_success"] - time.time()) < 60
            assert told(one.session, "@store/info/*/home")["aligned"] == 1
    assert any("aligned: storage=home" in record.message for record in caplog.records)


def test_broker_that_is_not_there_is_told_and_waited_for() -> None:
    port = free_port()
    with broker(home=aligned(f"tcp/127.0.0.1:{port}")) as one:
        eventually(lambda: facts(one)["failed"] >= 2, "it is tried again")
        assert "cannot be reached" in facts(one)["problem"]
        with at(port, home=PLAIN) as two, two.client() as there:
            there.put("home/a", "1", ack=True)

            eventually(lambda: facts(one)["aligned"] == 1, "it is found when it comes")


@pytest.mark.parametrize("other", [{}, {"else": {"key_expr": "garden/**", "volume": "memory"}}])
def test_broker_without_the_storage_is_told(other: dict[str, Any]) -> None:
    with (
        broker(away={"key_expr": "away", "volume": "memory"}, **other) as two,
        broker(home=aligned(two.locator)) as one,
    ):
        eventually(lambda: facts(one)["problem"], "a problem")

        assert "nobody answers for @store/align/home/**" in facts(one)["problem"]


def test_broker_that_is_told_to_align_with_itself_says_so() -> None:
    port = free_port()
    locator = f"tcp/127.0.0.1:{port}"
    with at(port, home=aligned(locator)) as one:
        eventually(lambda: "this broker itself" in (facts(one)["problem"] or ""), "it is noticed")


def test_default_logs_are_aligned_with_each_other_and_not_with_storages(tmp_path: Path) -> None:
    def volumes(name: str, **more: Any) -> dict[str, Any]:
        storages = {"all": {"key_expr": "**", "volume": "memory"}} if name == "b" else {}
        return {"storage_manager": {"volumes": {"log": {"dir": str(tmp_path / name), **more}}, "storages": storages}}

    with contextlib.ExitStack() as stack:
        two = Broker(volumes("b"))
        stack.callback(two.session.close)
        one = Broker(volumes("a", replication={"peers": [two.locator], "interval": 0.2}))
        stack.callback(one.session.close)
        there = stack.enter_context(two.client())
        there.put("x/memory", "1")
        there.put("x/kept", "2", durability="persistent", ack=True)

        eventually(lambda: one.storage("default").log.end, "a sample has been brought")

        assert [found.record.key for found in one.storage("default").log.read()] == ["x/kept"]


def test_answers_that_make_no_sense_are_told() -> None:
    def answer(query: elea.Query) -> None:
        form = {"node": "a1", "epoch": "e", "floor": "0", "buckets": [[1, 2]]}
        query.reply(query.key_expr, json.dumps(form), encoding="application/json")

    with (
        broker(other={"key_expr": "other", "volume": "memory"}) as two,
        two.client() as liar,
        liar.declare_queryable("@store/align/home/**", answer),
        broker(home=aligned(two.locator)) as one,
    ):
        eventually(lambda: facts(one)["problem"], "a problem")

        assert "makes no sense" in facts(one)["problem"]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ("", "what is None"),
        ("what=head;floor=xyz", "NTP64"),
        ("what=digest;level=52;of=1", "level is 52"),
        ("what=digest;level=46;of=a", "numbers"),
        ("what=digest;level=46;of=" + ".".join("1" * 300), "up to 256"),
        ("what=list;level=46;bucket=1;part=2;parts=2", "part is from 0"),
        ("what=list;level=46;bucket=1;part=0;parts=0", "part is from 0"),
        ("what=list;level=7;bucket=1;part=0;parts=1", "level is 7"),
        ("what=rows;epoch=old", "epoch old is gone"),
    ],
)
def test_requests_that_make_no_sense_are_refused(parameters: str, problem: str) -> None:
    with broker(home=PLAIN) as one, one.client() as session:
        session.put("home/a", "1", ack=True)
        form = failure(session, f"@store/align/home/**?{parameters}", payload=packed([0]))

        assert problem in form["text"]


def test_too_many_positions_are_refused() -> None:
    with broker(home=PLAIN) as one, one.client() as session:
        form = failure(session, "@store/align/home/**?what=rows;epoch=e", payload=packed(range(5_000)))

        assert "at most 4096" in form["text"]


def test_positions_that_are_not_there_are_passed_over() -> None:
    with broker(home=PLAIN) as one, one.client() as session:
        session.put("home/a", "1", ack=True)
        epoch = one.storage("home").log.epoch

        *pieces, last = samples(session, f"@store/align/home/**?what=rows;epoch={epoch}", payload=packed([7, 0, -1]))

        assert json.loads(last.payload.to_string()) == {"epoch": epoch}
        assert b"home/a" in b"".join(piece.payload.to_bytes() for piece in pieces)


def test_positions_go_there_and_back() -> None:
    assert unpacked(packed([0, 1, 1 << 60])) == [0, 1, 1 << 60]
    assert packed([1]) == b"\1" + bytes(7)


def test_closing_does_not_wait_for_a_broker_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        locator = f"tcp/127.0.0.1:{silent.getsockname()[1]}"
        with broker(home=aligned(locator)) as one:
            begun = time.monotonic()
            one.session.close()

    assert time.monotonic() - begun < 30


def test_storage_that_strips_prefixes_is_aligned_with_one_that_does_not(tmp_path: Path) -> None:
    with broker(home=PLAIN) as two:
        stripping = {**aligned(two.locator), "volume": "log", "strip_prefix": "home"}
        with broker(tmp_path, home=stripping) as one, two.client() as there, one.client() as here:
            there.put("home/a/b", "1", ack=True)
            there.put("home", "2", ack=True)

            eventually(lambda: len(values(here, HISTORY)) == 2, "all samples have been brought")

            assert values(here, "home/**") == values(there, "home/**")
            before = facts(one)["differences"]
            rounds = facts(one)["rounds"]
            eventually(lambda: facts(one)["rounds"] > rounds + 1, "more rounds")
            assert facts(one)["differences"] == before
