"""`elea trace` between real nodes, and the conversation it follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from elea.cli.conversation import Conversation, Seen
from elea.wire import dialect_named
from elea.wire.zenoh1 import messages as m
from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker

DIALECT = dialect_named("zenoh1")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    running, where = start_broker()
    with running:
        yield where


def start_trace(to: str, *words: str) -> tuple[Running, str]:
    trace = Running("trace", "--json", "-l", "tcp/127.0.0.1:0", "--to", to, *words)
    return trace, str(trace.form()["locators"][0])


def messages_until_end(trace: Running) -> list[dict[str, Any]]:
    found = []
    while (form := trace.form()).get("event") != "ended":
        if "message" in form:
            found.append(form)
    return found


# -- live --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["transport/unicast/qos/enabled:true", "transport/unicast/compression/enabled:true"])
def test_trace_shows_every_message_of_an_elea_client(elea: Elea, option: str) -> None:
    running, broker = start_broker("--cfg", option)
    with running:
        trace, locator = start_trace(broker)
        with trace:
            assert elea("put", "home/1", "21.5", "-e", locator, "--cfg", option).status == 0
            found = messages_until_end(trace)

            assert trace.stop() == 0
        assert running.stop() == 0
    names = [form["message"] for form in found]
    assert names[:4] == ["INIT_SYN", "INIT_ACK", "OPEN_SYN", "OPEN_ACK"]
    assert "CLOSE" in names
    put = next(form for form in found if form["message"] == "PUSH PUT")
    assert (put["key"], put["direction"], put["connection"]) == ("home/1", "to", 1)
    assert put["decoded"]["body"]["payload"] == b"21.5".hex()
    assert put["size"] > 10


def test_trace_follows_low_latency(elea: Elea) -> None:
    options = ("--cfg", "transport/unicast/qos/enabled:false", "--cfg", "transport/unicast/lowlatency:true")
    running, broker = start_broker(*options)
    with running:
        trace, locator = start_trace(broker)
        with trace:
            assert elea("put", "home/1", "21.5", "-e", locator, *options).status == 0
            found = messages_until_end(trace)

            assert trace.stop() == 0
        assert running.stop() == 0
    assert ("PUSH PUT", "home/1") in [(form["message"], form["key"]) for form in found]


def test_trace_shows_eclipse_zenoh(broker: str) -> None:
    zenoh = pytest.importorskip("zenoh")
    trace, locator = start_trace(broker)
    with trace:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([locator]))
        config.insert_json5("scouting/multicast/enabled", "false")
        with zenoh.open(config) as session:
            # Not through a publisher: with no subscriber it would stop sending as soon as it is told so.
            session.put("eclipse/demo", b"\x00" * 100_000, congestion_control=zenoh.CongestionControl.BLOCK)
            session.put("eclipse/demo", "small", congestion_control=zenoh.CongestionControl.BLOCK)
        found = messages_until_end(trace)

        assert trace.stop() == 0
    puts = [form for form in found if form["message"] == "PUSH PUT"]
    assert [form["key"] for form in puts] == ["eclipse/demo", "eclipse/demo"]
    assert puts[0]["fragments"] >= 2
    assert puts[0]["size"] > 100_000
    assert puts[1]["decoded"]["body"]["payload"] == b"small".hex()
    assert all("error" not in form for form in found)


def test_trace_prints_a_line_per_message_and_dissects_on_demand(elea: Elea, broker: str) -> None:
    for words, wanted in (((), "PUSH PUT"), (("--long",), "body: Put")):
        with Running("trace", "-l", "tcp/127.0.0.1:0", "--to", broker, *words) as trace:
            locator = trace.error_line().split()[2].rstrip(";")
            assert elea("put", "home/1", "\x1b[2J", "-e", locator).status == 0
            trace.wait_for_error("ended")

            assert trace.stop() == 0
            lines = trace.rest()
        assert any(wanted in line for line in lines)
        assert any("home/1" in line for line in lines)
        assert not any("\x1b" in line for line in lines)


def test_trace_ends_after_count(elea: Elea, broker: str) -> None:
    trace, locator = start_trace(broker, "-n", "2")
    with trace:
        elea("put", "a", "1", "-e", locator)

        assert trace.end() == 0
        assert [json.loads(line).get("message") for line in trace.rest()][1:3] == ["INIT_SYN", "INIT_ACK"]


def test_trace_tells_when_the_other_node_is_not_there(elea: Elea) -> None:
    trace, locator = start_trace("tcp/127.0.0.1:1")
    with trace:
        assert elea("put", "a", "1", "-e", locator).status == 3

        assert trace.form()["event"] == "unreachable"
        assert trace.stop() == 0


def test_trace_takes_streams_only(elea: Elea) -> None:
    assert elea("trace", "--to", "udp/127.0.0.1:1").status == 2


# -- the conversation --------------------------------------------------------------------------------------------------


def batch(*messages: object) -> bytes:
    data = DIALECT.encode("batch", messages)
    return len(data).to_bytes(2, "little") + data


def frame(*messages: Any) -> bytes:
    return batch(m.Frame(1, messages, True))


def names_and_keys(seen: Iterator[Seen]) -> list[tuple[str, str | None]]:
    return [(one.name, one.key) for one in seen]


def test_keys_are_named_by_what_either_side_declared() -> None:
    talk = Conversation(DIALECT)

    declared = talk.feed(0, frame(m.Declare(m.DeclareKeyExpr(7, 0, "home"))))
    assert names_and_keys(declared) == [("D_KEYEXPR", "home")]
    mine = talk.feed(0, frame(m.Push(m.WireExpr(7, True, "/1"), m.Put(b"x"))))
    assert names_and_keys(mine) == [("PUSH PUT", "home/1")]
    theirs = talk.feed(1, frame(m.Push(m.WireExpr(7, False, "/2"), m.Put(b"x"))))
    assert names_and_keys(theirs) == [("PUSH PUT", "home/2")]
    unknown = talk.feed(1, frame(m.Push(m.WireExpr(7, True, "/3"), m.Del())))
    assert names_and_keys(unknown) == [("PUSH DEL", "<7>/3")]
    assert names_and_keys(talk.feed(0, frame(m.Declare(m.UndeclareKeyExpr(7))))) == [("U_KEYEXPR", "home")]


def test_any_split_gives_the_same_messages() -> None:
    data = frame(m.Push(m.WireExpr(0, True, "a"), m.Put(b"x")), m.Push(m.WireExpr(0, True, "b"), m.Put(b"y"))) * 3
    whole = names_and_keys(Conversation(DIALECT).feed(0, data))
    talk = Conversation(DIALECT)

    assert [one for octet in data for one in names_and_keys(talk.feed(0, bytes([octet])))] == whole
    assert whole == [("PUSH PUT", "a"), ("PUSH PUT", "b")] * 3


def test_fragments_become_the_message_they_are_of() -> None:
    whole = DIALECT.encode("message", m.Push(m.WireExpr(0, True, "big"), m.Put(bytes(500))))
    talk = Conversation(DIALECT)
    pieces = [m.Fragment(1, whole[:300], True, True), m.Fragment(2, whole[300:], True)]

    seen = [one for piece in pieces for one in talk.feed(0, batch(piece))]
    assert [(one.name, one.key, one.pieces) for one in seen] == [
        ("FRAGMENT", None, 0),
        ("FRAGMENT", None, 0),
        ("PUSH PUT", "big", 2),
    ]
    assert [one.name for one in talk.feed(0, batch(m.Fragment(3, whole[300:], True)))][:1] == ["FRAGMENT"]


def test_bad_octets_are_shown_as_errors() -> None:
    talk = Conversation(DIALECT)
    (seen,) = talk.feed(0, b"\x02\x00\x1e\x00")

    assert seen.error is not None
    assert list(talk.feed(1, b"\x09\x00")) == []
    assert [one.name for one in talk.end(1)] == ["TRUNCATED"]


def test_early_packets_are_shown_by_message() -> None:
    talk = Conversation(dialect_named("xrce2017"))

    seen = talk.feed(0, bytes.fromhex("074b000301020c07"))
    assert [one.name for one in seen] == ["Pull", "Ping"]


# -- the own node ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_trace_shows_what_its_own_node_says_and_hears(elea: Elea, protocol: str) -> None:
    with Running("broker", "--json", "-l", f"{protocol}/127.0.0.1:0", "--no-multicast-scouting") as running:
        locator = running.form()["locators"][0]
        ran = elea("trace", "--json", "put", "home/1", "21.5", "-e", locator)

        assert running.stop() == 0
    assert (ran.status, ran.out) == (0, "put  home/1  4 B\n")
    forms = [json.loads(line) for line in ran.err.splitlines()]
    shown = [(form["message"], form["direction"]) for form in forms if "message" in form]
    assert shown[:4] == [("INIT_SYN", "to"), ("INIT_ACK", "back"), ("OPEN_SYN", "to"), ("OPEN_ACK", "back")]
    assert ("CLOSE", "to") in shown
    put = next(form for form in forms if form.get("message") == "PUSH PUT")
    assert (put["key"], put["direction"], put["connection"]) == ("home/1", "to", 1)
    assert [form["event"] for form in forms if "event" in form] == ["connected", "ended"]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
def test_trace_knows_the_dialect_of_a_link_by_its_locator(elea: Elea, dialect: str, protocol: str) -> None:
    words = "broker", "--json", "-l", f"{protocol}/127.0.0.1:0?dialect={dialect}", "--no-multicast-scouting"
    with Running(*words) as running:
        where = running.form()["locators"][0]
        done = elea("trace", "--json", "put", "home/1", "21.5", "-e", where)

        assert done.status == 0
        forms = [json.loads(line) for line in done.err.splitlines()]
    found = {form["message"]: form for form in forms if "message" in form}
    assert {"Open", "Accept", "WriteData", "AckNack", "Close"} <= set(found)
    assert found["WriteData"]["key"] in ("zenoh://home/1", "xrce://home/1")


def test_early_ids_are_shown_by_the_names_they_were_declared_with() -> None:
    codec = dialect_named("zenoh2018")
    talk = Conversation(codec)
    packets = ["06000301020b7a656e6f683a2f2f612f62020206 01".replace(" ", ""), "4701020178"]
    seen = [one for packet in packets for one in talk.feed(0, bytes([len(packet) // 2]) + bytes.fromhex(packet))]

    assert [(one.name, one.key) for one in seen] == [("Declare", "zenoh://a/b"), ("StreamData", "zenoh://a/b")]


def test_trace_of_a_broker_counts_its_clients(elea: Elea) -> None:
    with Running("trace", "--no-keep-alive", "broker", "--json", "-l", "tcp/127.0.0.1:0") as broker:
        locator = broker.form()["locators"][0]

        assert elea("put", "home/1", "21.5", "-e", locator).status == 0

        seen = [broker.error_line()]
        while "CLOSE" not in seen[-1]:
            seen.append(broker.error_line())
    assert "accepted" in seen[0]
    assert any("→" in line and "PUSH PUT" in line and "home/1" in line for line in seen)
    assert any("←" in line and "INIT_ACK" in line for line in seen)


def test_trace_refuses_what_is_no_verb(elea: Elea) -> None:
    assert elea("trace", "shout").status == 2
    assert elea("trace", "trace").status == 2
