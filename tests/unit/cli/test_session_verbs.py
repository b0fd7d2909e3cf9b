"""Verbs that use a data space, against a real broker on this machine."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.api.config import Config
from elea.api.session import Session
from elea.api.session import open as open_session
from tests.interop.inbox import free_port
from tests.unit.cli.conftest import Elea
from tests.unit.cli.running import Running, start_broker


@pytest.fixture(scope="module")
def locator() -> Iterator[str]:
    broker, where = start_broker()
    with broker:
        yield where


@contextlib.contextmanager
def session_with(entry: str) -> Iterator[Session]:
    with open_session(Config.from_json5(f"{{scouting: {{multicast: {{enabled: false}}}}, {entry}}}")) as session:
        yield session


def subscribed(*words: str) -> Running:
    """A subscriber that is ready: without --json it says so, with it a moment has to do."""
    running = Running("sub", *words)
    if "--json" not in words:
        running.wait_for_error("subscribed")
    return running


# -- put, delete, sub --------------------------------------------------------------------------------------------------


def test_sub_prints_what_is_put_and_deleted_and_ends_after_count(elea: Elea, locator: str) -> None:
    with subscribed("t1/**", "-n", "3", "-e", locator) as sub:
        assert elea("put", "t1/a", "21.5", "--encoding", "text/plain", "--attach", "hey", "-e", locator).status == 0
        assert elea("put", "t1/bin", "-", "-e", locator, stdin=b"\x00\x1b[2J\xff").status == 0
        assert elea("delete", "t1/a", "-e", locator).status == 0

        text, binary, deleted = sub.line(), sub.line(), sub.line()
        status = sub.end()

    assert status == 0
    assert text.split()[1:] == ["t1/a", "put", "text/plain", "21.5", "attached", "hey"]
    assert binary.split()[1:] == ["t1/bin", "put", "zenoh/bytes", "00", "1b", "5b", "32", "4a", "ff", "(6", "octets)"]
    assert deleted.split()[1:3] == ["t1/a", "delete"]
    assert "\x1b" not in text + binary + deleted


def test_sub_json_has_every_member(elea: Elea, locator: str) -> None:
    with Running("sub", "t2/**", "--json", "-e", locator) as sub:
        form = put_until_seen(elea, sub, "t2/a", locator)

        assert sub.stop() == 0

    assert form["key"] == "t2/a"
    assert form["kind"] == "put"
    assert form["value"] == "é"
    assert form["size"] == 2
    assert form["encoding"] == "text/plain"
    assert form["priority"] == "real-time"
    assert form["congestion"] == "block"
    assert form["express"] is True
    assert form["attachment"] == {"hex": "ff"}
    assert str(form["time"]).startswith("20")


def put_until_seen(elea: Elea, sub: Running, key: str, locator: str) -> dict[str, object]:
    """Puts until the subscriber, which says nothing with --json, has declared itself."""
    words = ("--encoding", "text/plain", "--attach", "\udcff", "--priority", "real-time", "--congestion", "block")
    for _ in range(50):
        assert elea("put", key, "é", *words, "--express", "-e", locator).status == 0
        if not sub._lines.empty():
            return sub.form()
        time.sleep(0.1)
    raise AssertionError("the subscriber saw nothing")


def test_sub_raw_writes_octets_only(elea: Elea, locator: str) -> None:
    with subscribed("t3/**", "--raw", "-n", "2", "-e", locator) as sub:
        elea("put", "t3/a", "one\n", "-e", locator)
        elea("put", "t3/a", "two\n", "-e", locator)

        assert sub.end() == 0
        assert sub.rest() == ["one", "two"]


def test_put_says_what_it_did(elea: Elea, locator: str) -> None:
    assert elea("put", "a/b", "12", "-e", locator).out == "put  a/b  2 B\n"
    assert json.loads(elea("put", "a/b", "12", "-e", locator, "--json").out) == {"key": "a/b", "kind": "put", "size": 2}
    assert json.loads(elea("delete", "a/b", "-e", locator, "--json").out) == {"key": "a/b", "kind": "delete"}


def test_put_and_delete_say_where_the_broker_has_it(elea: Elea, tmp_path: Path) -> None:
    broker, where = start_broker("--store", str(tmp_path / "store"))
    with broker:
        put = elea("put", "a/b", "12", "--durability", "persistent", "--ack", "-e", where)
        deleted = elea("delete", "a/b", "--durability", "persistent", "--ack", "-e", where, "--json")

    assert put.out == "put  a/b  2 B  acknowledged, position 0 of log default\n"
    form = json.loads(deleted.out)
    assert (form["log"], form["position"]) == ("default", 1)


def test_put_that_nobody_keeps_is_data_at_risk(elea: Elea, locator: str) -> None:
    result = elea("put", "a/b", "12", "--durability", "persistent", "--ack", "-e", locator)

    assert result.status == 5
    assert "no broker keeps a/b" in result.err
    assert "--persist" in result.err
    assert elea("put", "a/b", "12", "--durability", "volatile", "--ack", "-e", locator).status == 2


# -- pub ---------------------------------------------------------------------------------------------------------------


def test_pub_sends_lines_of_standard_input(elea: Elea, locator: str) -> None:
    with subscribed("t4/**", "--raw", "-n", "3", "-e", locator) as sub:
        result = elea("pub", "t4/a", "--json", "-e", locator, stdin=b"a\nb\nc\n")

        assert sub.end() == 0
        assert sub.rest() == ["abc"]
    form = json.loads(result.lines[-1])
    assert result.status == 0
    assert (form["event"], form["sent"], form["dropped"], form["octets"]) == ("done", 3, 0, 3)
    assert isinstance(form["matching"], bool)


def test_pub_keeps_its_rate(elea: Elea, locator: str) -> None:
    began = time.monotonic()
    result = elea("pub", "t5/a", "--size", "10", "--rate", "50/s", "-n", "11", "-e", locator)

    assert time.monotonic() - began >= 0.2
    assert result.status == 0
    assert result.out.startswith("11 sent  0 dropped")
    assert "nobody subscribes to t5/a" in result.err


def test_pub_ends_in_good_order_on_ctrl_c(locator: str) -> None:
    with Running("pub", "t6/a", "--value", "x", "--rate", "100/s", "-e", locator) as pub:
        pub.wait_for_error("publishing")

        assert pub.stop() == 0
        assert "sent" in pub.rest()[-1]


# -- get, queryable ----------------------------------------------------------------------------------------------------


def test_get_prints_the_answer_of_a_queryable(elea: Elea, locator: str) -> None:
    with Running("queryable", "q1/**", "hello", "--complete", "-n", "2", "-e", locator) as queryable:
        queryable.wait_for_error("answering")
        human = elea("get", "q1/x?a=1", "--payload", "why", "-e", locator)
        form = json.loads(elea("get", "q1/x", "--target", "all", "--json", "-e", locator).out)

        assert queryable.line().split()[1:] == ["q1/x?a=1", "why"]
        assert queryable.end() == 0
    assert (human.status, human.lines[0].split()[1:]) == (0, ["q1/x", "put", "zenoh/bytes", "hello"])
    assert (form["key"], form["kind"], form["value"]) == ("q1/x", "put", "hello")
    assert isinstance(form["replier"], str)


def test_get_without_reply_is_a_negative_answer(elea: Elea, locator: str) -> None:
    result = elea("get", "nobody/**", "-e", locator, "--timeout", "2", "--json")

    assert (result.status, result.out) == (1, "")
    assert json.loads(result.err)["problem"] == "elea get: nobody answered nobody/**"


def test_get_raw_writes_the_bytes_of_the_value(elea: Elea, locator: str) -> None:
    data = bytes(range(256))
    with session_with(f"mode: 'client', connect: {{endpoints: ['{locator}']}}") as session:
        queryable = session.declare_queryable("raw/1", lambda query: query.reply("raw/1", data))
        command = [sys.executable, "-m", "elea", "get", "raw/1", "--raw", "-e", locator]
        done = subprocess.run(command, capture_output=True, check=True)
        queryable.undeclare()

    assert (done.stdout, done.stderr) == (data, b"")
    assert elea("get", "raw/1", "--raw", "--json", "-e", locator).status == 2


def test_metrics_are_text(elea: Elea, locator: str) -> None:
    text = elea("metrics", "-e", locator)
    forms = [json.loads(line) for line in elea("metrics", "-e", locator, "--match", "elea_sessions{", "--json").lines]

    assert text.status == 0
    assert "# TYPE elea_sessions gauge" in text.lines
    assert {form["name"] for form in forms} >= {'elea_sessions{role="client"}'}
    assert all(isinstance(form["value"], int) for form in forms)


def test_metrics_that_nobody_tells_are_a_negative_answer(elea: Elea) -> None:
    with session_with("listen: {endpoints: ['tcp/127.0.0.1:0']}") as session:
        result = elea("metrics", "-e", session.info.locators()[0], "--timeout", "1")

    assert result.status == 1
    assert "no router told its counters" in result.err


def test_queryable_json_tells_the_questions(elea: Elea, locator: str) -> None:
    with Running("queryable", "q2", "v", "--json", "-e", locator) as queryable:
        for _ in range(50):
            if elea("get", "q2", "--payload", "p", "--attach", "a", "-e", locator).status == 0:
                break
            time.sleep(0.1)

        form = queryable.form()
        assert queryable.stop() == 0
    assert form == {
        "event": "query",
        "selector": "q2",
        "key": "q2",
        "payload": {"value": "p"},
        "attachment": {"value": "a"},
    }


# -- liveliness --------------------------------------------------------------------------------------------------------


def test_liveliness_token_is_listed_watched_and_gone(elea: Elea, locator: str) -> None:
    with Running("liveliness", "token", "l1/a", "-e", locator) as token:
        assert token.line() == "alive  l1/a  until Ctrl-C"
        listed = elea("liveliness", "get", "l1/*", "-e", locator)
        form = json.loads(elea("liveliness", "get", "l1/*", "--json", "-e", locator).out)
        with Running("liveliness", "sub", "l1/*", "--history", "-n", "2", "--json", "-e", locator) as watch:
            first = watch.form()
            assert token.stop(signal.SIGTERM) == 0
            second = watch.form()
            assert watch.end() == 0

    assert (listed.status, listed.out) == (0, "alive  l1/a\n")
    assert form == first == {"key": "l1/a", "alive": True}
    assert second == {"key": "l1/a", "alive": False}
    assert elea("liveliness", "get", "l1/*", "-e", locator).status == 1


# -- ping, info --------------------------------------------------------------------------------------------------------


def test_ping_measures_against_a_pong(elea: Elea, locator: str) -> None:
    with Running("ping", "--pong", "-e", locator) as pong:
        pong.wait_for_error("answering")
        human = elea("ping", "-n", "20", "-e", locator)
        form = json.loads(elea("ping", "-n", "20", "--size", "8", "--json", "-e", locator).out)

        assert pong.stop() == 0
    assert human.status == 0
    assert "p99" in human.out
    assert "█" in human.out
    assert (form["count"], form["lost"], form["size"]) == (20, 0, 8)
    assert form["min_us"] <= form["p50_us"] <= form["p99_us"] <= form["max_us"]
    assert sum(bar["count"] for bar in form["histogram"]) == 20


def test_ping_without_pong_is_a_negative_answer(elea: Elea, locator: str) -> None:
    result = elea("ping", "--timeout", "0.4", "-e", locator)

    assert result.status == 1
    assert "--pong" in result.err


def test_info_shows_the_session(elea: Elea, locator: str) -> None:
    facts = json.loads(elea("info", "--json", "-e", locator).out)

    assert len(facts["routers"]) == 1
    assert facts["peers"] == []
    assert all(isinstance(count, int) for count in facts["dropped"].values())
    assert "routers" in elea("info", "-e", locator).out
    assert "routers" not in json.loads(elea("info", "--json").out)


# -- what goes wrong ---------------------------------------------------------------------------------------------------

CONNECTING = [
    ["put", "a", "1"],
    ["delete", "a"],
    ["get", "a"],
    ["sub", "a"],
    ["pub", "a", "--value", "1"],
    ["queryable", "a", "1"],
    ["liveliness", "get", "a"],
    ["ping"],
    ["info"],
]


@pytest.mark.parametrize("words", CONNECTING, ids=lambda words: words[0])
def test_unreachable_node_gives_exit_code_3_soon(elea: Elea, words: list[str]) -> None:
    began = time.monotonic()
    result = elea(*words, "-e", f"tcp/127.0.0.1:{free_port()}", "--json")

    assert (result.status, result.out) == (3, "")
    assert time.monotonic() - began < 5
    told = json.loads(result.err)
    assert (told["error"], told["status"]) == ("unreachable", 3)
    assert told["problem"].startswith(f"elea {words[0]}: ")
    assert told["hint"]


def test_peer_that_finds_nobody_cannot_put(elea: Elea) -> None:
    result = elea("put", "a", "1", "--no-multicast-scouting", "-l", "tcp/127.0.0.1:0")

    assert result.status == 3
    assert "elea broker" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ["put", "a//b", "1"],
        ["put", "a", "1", "-e", "tcp/nowhere"],
        ["put", "a", "1", "-e", "quic/localhost:1"],
        ["put", "a", "1", "--cfg", "mode"],
        ["put", "a", "1", "--cfg", "modus:1"],
        ["put", "a", "1", "--cfg", "mode:'clint'"],
        ["put", "a", "1", "-c", "/does/not/exist.json5"],
        ["put", "a", "1", "--priority", "control"],
        ["get", "a?b", "--timeout", "-1"],
        ["get", "a//b"],
        ["sub", "a", "-n", "0"],
        ["sub", "a", "--raw", "--json"],
        ["pub", "a", "--rate", "fast"],
        ["pub", "a", "--size", "-1"],
        ["pub", "a", "--size", "1", "--value", "x"],
        ["ping", "--size", "7"],
        ["liveliness", "list", "a"],
        ["broker", "-i", "xyz"],
    ],
    ids=" ".join,
)
def test_wrong_usage_gives_exit_code_2(elea: Elea, words: list[str]) -> None:
    result = elea(*words)

    assert (result.status, result.out) == (2, "")
    assert result.err


def test_refused_session_gives_exit_code_4(elea: Elea, tmp_path: object) -> None:
    users = f"{tmp_path}/users"
    with open(users, "w") as file:
        file.write("user:secret\n")
    login = "{{user: 'user', password: '{}', dictionary_file: {}}}"
    broker, locator = start_broker("--cfg", f"transport/auth/usrpwd:{login.format('secret', json.dumps(users))}")
    with broker:
        wrong = login.format("wrong", "null")
        result = elea("put", "a", "1", "-e", locator, "--cfg", f"transport/auth/usrpwd:{wrong}")

        assert broker.stop() == 0
    assert result.status == 4
    assert "usrpwd" in result.err
