"""A dialect of lines joins a real node: put, subscribe, get, stored history, both ways with nodes of Zenoh 1.x."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.io.linkerrors import LocatorError
from elea.model.errors import Malformed, SessionError
from elea.testing import textdialect
from elea.wire import compiled
from tests.unit.node.storage.serving import WAIT, eventually

textdialect.register()

BLOCK = elea.CongestionControl.BLOCK


class Lines:
    """Somebody at a terminal."""

    def __init__(self, locator: str) -> None:
        host, _, port = locator.partition("/")[2].partition("?")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), WAIT)
        self._file = self._socket.makefile("r", encoding="utf-8")

    def say(self, *lines: str) -> None:
        self._socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def hear(self) -> str:
        return self._file.readline().rstrip("\n")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def config(mode: str, **entries: Any) -> elea.Config:
    made = elea.Config.from_json5(f"{{mode: '{mode}', scouting: {{multicast: {{enabled: false}}}}}}")
    for name, value in entries.items():
        made.insert_json5(name.replace("__", "/"), json.dumps(value))
    return made


@pytest.fixture
def router() -> Iterator[elea.Session]:
    """A router that keeps `kept/**` in memory and is reached in two dialects."""
    storages = {"kept": {"key_expr": "kept/**", "volume": "memory"}}
    made = config(
        "router",
        adminspace__enabled=True,
        listen__endpoints=["tcp/127.0.0.1:0", "tcp/127.0.0.1:0?dialect=text"],
        plugins__storage_manager={"volumes": {"memory": {}}, "storages": storages},
    )
    with elea.open(made) as session:
        yield session


@pytest.fixture
def robot(router: elea.Session) -> Iterator[elea.Session]:
    (locator,) = router._runtime.links.locators("zenoh1")
    with elea.open(config("client", connect__endpoints=[locator])) as session:
        yield session


@pytest.fixture
def lines(router: elea.Session) -> Iterator[Lines]:
    (locator,) = router._runtime.links.locators("text")
    made = Lines(locator)
    made.say("HELLO client 1f")
    assert made.hear() == f"HELLO router {router.zid()}"
    yield made
    made.close()


def await_subscriber(router: elea.Session, key: str) -> None:
    eventually(lambda: router._node.route(router._node.local, key).ways, f"a subscriber to {key}")


def test_a_sample_goes_both_ways(router: elea.Session, robot: elea.Session, lines: Lines) -> None:
    with robot.declare_subscriber("home/**") as subscriber:
        await_subscriber(router, "home/a")
        lines.say("SUB 1 home/**", 'PUT home/a "from lines \\u00e9"', "DEL home/b")

        first, second = subscriber.handler.recv(timeout=WAIT), subscriber.handler.recv(timeout=WAIT)
        assert (str(first.key_expr), first.payload.to_string()) == ("home/a", "from lines é")
        assert (str(second.key_expr), second.kind) == ("home/b", elea.SampleKind.DELETE)
        assert first.timestamp is not None, "the router has stamped it"

    robot.put("home/c", b"\xff\n", congestion_control=BLOCK)
    robot.delete("home/c", congestion_control=BLOCK)
    assert [lines.hear(), lines.hear()] == ['PUT home/c "\\udcff\\n"', "DEL home/c"]

    lines.say("UNSUB 1", "GET 1 nobody/here")
    assert lines.hear() == "END 1"
    robot.put("home/c", "unwanted", congestion_control=BLOCK)
    robot.put("other", "x", congestion_control=BLOCK)
    lines.say("GET 2 nobody/here")
    assert lines.hear() == "END 2"


def test_patterns_of_both_grammars_meet_exactly(router: elea.Session, robot: elea.Session, lines: Lines) -> None:
    """A 1.x node is told an expression that has all keys of the pattern; what is sent on is decided by the pattern."""
    lines.say("SUB 1 zenoh://home/?/t*", "GET 1 nobody/here")
    assert lines.hear() == "END 1"
    publisher = robot.declare_publisher("home/a/temp")
    eventually(lambda: publisher.matching_status.matching, "the subscriber, as 1.x can say it")

    for key in ("home/ab/temp", "home/a/humidity", "home/a/b/temp", "home/a/temp", "home/b/t"):
        robot.put(key, key, congestion_control=BLOCK)

    assert [lines.hear(), lines.hear()] == ['PUT home/a/temp "home/a/temp"', 'PUT home/b/t "home/b/t"']
    lines.say("UNSUB 1")
    eventually(lambda: not publisher.matching_status.matching, "its end")


def test_the_admin_space_tells_of_early_patterns(robot: elea.Session, lines: Lines) -> None:
    lines.say("SUB 1 zenoh://home/?/t*", "GET 1 nobody/here")
    assert lines.hear() == "END 1"

    keys = {str(reply.ok.key_expr) for reply in robot.get("@/*/router/**", timeout=WAIT) if reply.ok}

    assert any(key.endswith("/router/subscriber/home/*/t$*") for key in keys), keys


def test_a_batch_goes_to_neighbours_of_both_dialects(router: elea.Session, robot: elea.Session, lines: Lines) -> None:
    pytest.importorskip("pyarrow")
    with robot.declare_subscriber("a/**") as subscriber:
        await_subscriber(router, "a/1")
        lines.say("SUB 1 b/**", "GET 1 nobody/here")
        assert lines.hear() == "END 1"

        router.put_batch([("a/1", b"x"), ("b/1", b"y"), ("a/1", b"z")], durability="volatile")

        assert [subscriber.handler.recv(timeout=WAIT).payload.to_bytes() for _ in range(2)] == [b"x", b"z"]
        assert lines.hear() == 'PUT b/1 "y"'


def test_a_key_that_is_no_word_makes_no_line(robot: elea.Session, lines: Lines) -> None:
    lines.say("SUB 1 q/**", "GET 1 nobody/here")
    assert lines.hear() == "END 1"

    robot.put('q/x "1"\nPUT q/evil', "2", congestion_control=BLOCK)
    robot.put("q/y", "3", congestion_control=BLOCK)

    assert lines.hear() == 'PUT q/y "3"'


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-in for a machine's method")
def test_a_batch_that_fails_aside_leaves_nothing_behind(router: elea.Session, robot: elea.Session) -> None:
    loop, connections = router._runtime.loop, router._runtime.links.connections
    eventually(lambda: bool(connections), "the session, which the robot knows of first")
    (connection,) = connections

    def fail(batch: object, now: float) -> None:
        loop.step_aside()
        raise Malformed("zenoh1", 0, "whatever it was")

    connection.machine.receive = fail  # type: ignore[method-assign]
    robot.put("home/x", "1", congestion_control=BLOCK)

    assert connection.ended.wait(WAIT)
    eventually(lambda: loop.aside == 0, "the end of what was aside")


def test_a_query_goes_both_ways(router: elea.Session, robot: elea.Session, lines: Lines) -> None:
    with robot.declare_queryable("math/*", lambda query: query.reply("math/sum", str(query.parameters))):
        querier = router.declare_querier("math/sum")
        eventually(lambda: querier.matching_status.matching, "the queryable")
        lines.say("GET 7 math/sum?a=1")
        assert [lines.hear(), lines.hear()] == ['REPLY 7 math/sum "a=1"', "END 7"]

    lines.say("ASK 1 text/**", "GET 8 nobody/here")
    assert lines.hear() == "END 8"
    answers = robot.get("text/x?p=2", timeout=WAIT)
    word, number, selector = lines.hear().split(" ")
    assert (word, selector) == ("GET", "text/x?p=2")
    lines.say(f'REPLY {number} text/x "yes"', f'ERR {number} "but"', f"END {number}")
    found = [reply.ok.payload.to_string() if reply.ok else reply.err.payload.to_string() for reply in answers]
    assert sorted(found) == ["but", "yes"]


def test_what_is_stored_is_there_for_both(robot: elea.Session, lines: Lines) -> None:
    lines.say('PUT kept/a "1"', 'PUT kept/a "2"', "GET 1 kept/**?_history")
    assert [lines.hear() for _ in range(3)] == ['REPLY 1 kept/a "1"', 'REPLY 1 kept/a "2"', "END 1"]

    robot.put("kept/b", "3", congestion_control=BLOCK)
    (latest,) = [reply.ok for reply in robot.get("kept/a", timeout=WAIT)]
    assert latest is not None
    assert latest.payload.to_string() == "2"
    lines.say("GET 2 kept/b")
    assert [lines.hear(), lines.hear()] == ['REPLY 2 kept/b "3"', "END 2"]


def test_the_session_api_speaks_it_too(router: elea.Session, robot: elea.Session) -> None:
    (locator,) = router._runtime.links.locators("text")
    with elea.open(config("client", connect__endpoints=[locator])) as session:
        with session.declare_subscriber("from/robot") as subscriber, robot.declare_subscriber("from/text") as theirs:
            publisher = session.declare_publisher("from/text")
            await_subscriber(router, "from/robot")
            await_subscriber(router, "from/text")
            robot.put("from/robot", "to text", congestion_control=BLOCK)
            publisher.put("to robot")
            session.put("from/text", "and again", congestion_control=BLOCK)

            assert subscriber.handler.recv(timeout=WAIT).payload.to_string() == "to text"
            assert [theirs.handler.recv(timeout=WAIT).payload.to_string() for _ in range(2)] == [
                "to robot",
                "and again",
            ]
        session.put("kept/x", "stored", congestion_control=BLOCK)
        (reply,) = session.get("kept/x", timeout=WAIT)
        assert reply.ok is not None
        assert reply.ok.payload.to_string() == "stored"
        assert [str(one) for one in session.info.routers_zid()] == [str(router.zid())]


@pytest.mark.parametrize(
    "line",
    [
        "PUT",
        "PUT a " + "[" * 20_000,
        "PUT a//b 1",
        "PUT a {",
        "SUB x a",
        "GET 1 ",
        "WHAT",
        "\xff",
        "SUB 1 **/**x",
        "HELLO client 1f",
    ],
)
def test_a_line_that_makes_no_sense_ends_its_link_only(
    router: elea.Session, robot: elea.Session, lines: Lines, line: str
) -> None:
    with robot.declare_subscriber("home/**") as subscriber:
        await_subscriber(router, "home/x")
        lines.say(line)
        assert lines.hear() == ""

        robot.put("home/x", "still there", congestion_control=BLOCK)
        assert subscriber.handler.recv(timeout=WAIT).payload.to_string() == "still there"


def test_a_line_without_end_ends_the_link(lines: Lines) -> None:
    with contextlib.suppress(OSError):  # the other end does not read to the end
        lines.say("PUT a " + "x" * (2 * textdialect.LONGEST))
    assert lines.hear() == ""


def test_who_does_not_greet_is_not_waited_for(router: elea.Session) -> None:
    (locator,) = router._runtime.links.locators("text")
    silent = Lines(locator)
    silent.hear()
    silent.say('PUT home/a "x"')
    assert silent.hear() == ""
    silent.close()
    eventually(lambda: router._runtime.links.unopened == 1, "the count")


def test_locators_of_a_dialect_are_told_to_nobody_else(router: elea.Session) -> None:
    assert all("dialect" not in locator for locator in router._runtime.links.locators("zenoh1"))
    assert [locator.partition("?")[2] for locator in router._runtime.links.locators("text")] == ["dialect=text"]


@pytest.mark.parametrize(("where", "mode"), [("listen", "peer"), ("connect", "client"), ("connect", "peer")])
def test_an_unknown_dialect_is_an_error_that_names_the_nearest(where: str, mode: str) -> None:
    with pytest.raises((LocatorError, SessionError), match=r"unknown dialect 'texd'.*did you mean 'text'"):
        elea.open(config(mode, **{f"{where}__endpoints": ["tcp/127.0.0.1:1?dialect=texd"]}))
