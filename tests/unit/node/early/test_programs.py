"""Programs that connect in an early dialect: the same API, and clear errors for what the dialect cannot say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.api.pacedsubscriber import PacedSubscriber
from elea.api.wirepulls import WirePullSubscriber
from elea.io.udp import UdpLink
from elea.model.errors import NotExpressible, SessionClosed
from tests.unit.node.early.client import WAIT, EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config

BLOCK = elea.CongestionControl.BLOCK
LINKS = [(dialect, protocol) for dialect in ("zenoh2018", "xrce2017") for protocol in ("tcp", "udp")]


@pytest.fixture(params=LINKS, ids="-".join)
def program(router: elea.Session, request: pytest.FixtureRequest) -> Iterator[elea.Session]:
    """A client of the broker in an early dialect."""
    with elea.open(config("client", connect__endpoints=[locator_of(router, *request.param)])) as session:
        yield session


@pytest.fixture
def modern(router: elea.Session) -> Iterator[elea.Session]:
    """The same, of 2018 over tcp."""
    with elea.open(config("client", connect__endpoints=[locator_of(router)])) as session:
        yield session


def received(subscriber: elea.Subscriber[Any], count: int) -> list[tuple[str, str]]:
    got = [subscriber.handler.recv(timeout=WAIT) for _ in range(count)]
    return [(str(one.key_expr), one.payload.to_string()) for one in got]


def test_a_program_puts_and_subscribes(router: elea.Session, robot: elea.Session, program: elea.Session) -> None:
    with program.declare_subscriber("a/**") as own, robot.declare_subscriber("b/**") as other:
        await_subscriber(router, "a/1")
        await_subscriber(router, "b/1")
        for key in ("a", "a/1", "ab", "a/1/2"):
            robot.put(key, key, congestion_control=BLOCK)
        assert received(own, 3) == [("a", "a"), ("a/1", "a/1"), ("a/1/2", "a/1/2")]

        program.put("b/1", "by name")
        publisher = program.declare_publisher("b/2")
        eventually(lambda: publisher.matching_status.matching, "the subscriber")
        publisher.put("by id")
        assert received(other, 2) == [("b/1", "by name"), ("b/2", "by id")]
    eventually(lambda: not publisher.matching_status.matching, "its end")


def test_a_put_behind_the_end_of_a_publisher_arrives(
    router: elea.Session, robot: elea.Session, program: elea.Session
) -> None:
    """The id of a publisher that ends is used no more from when the other node is told to forget it."""
    with robot.declare_subscriber("b/**") as found:
        await_subscriber(router, "b/1")
        for number in range(20):
            with program.declare_publisher("b/1") as publisher:
                eventually(lambda: publisher.matching_status.matching, "the subscriber")
            program.put("b/1", str(number), congestion_control=BLOCK)
        assert received(found, 20) == [("b/1", str(number)) for number in range(20)]


def test_a_sample_comes_once_however_many_subscribers_take_it(
    router: elea.Session, robot: elea.Session, modern: elea.Session
) -> None:
    exact, wide = modern.declare_subscriber("a/b"), modern.declare_subscriber("a/**")
    await_subscriber(router, "a/b")
    await_subscriber(router, "a/c")

    robot.put("a/b", "1", congestion_control=BLOCK)
    robot.put("a/c", "2", congestion_control=BLOCK)

    assert received(wide, 2) == [("a/b", "1"), ("a/c", "2")]
    assert received(exact, 1) == [("a/b", "1")]
    assert (exact.handler.try_recv(), wide.handler.try_recv()) == (None, None)


def test_a_get_finds_what_is_stored(robot: elea.Session, program: elea.Session) -> None:
    robot.put("kept/a", "stored", congestion_control=BLOCK)
    eventually(lambda: list(robot.get("kept/a")), "the storage")

    answers = [reply.ok for reply in program.get("kept/a", timeout=WAIT)]

    assert [(str(one.key_expr), one.payload.to_string()) for one in answers if one] == [("kept/a", "stored")]


def test_a_get_with_wildcards_ends_by_itself(robot: elea.Session, modern: elea.Session) -> None:
    for key in ("kept/a", "kept/b", "kept/b/c"):
        robot.put(key, key, congestion_control=BLOCK)
    eventually(lambda: len(list(robot.get("kept/**"))) == 3, "the storage")

    assert sorted(str(reply.ok.key_expr) for reply in modern.get("kept/*", timeout=60) if reply.ok) == [
        "kept/a",
        "kept/b",
    ]
    assert len(list(modern.get("kept/**", timeout=60))) == 3
    assert list(modern.get("nothing/**", timeout=60)) == []
    (connection,) = modern._runtime.links.connections
    ours = connection.machine.neighbour.ours  # type: ignore[attr-defined]
    eventually(lambda: not ours.space(0).selections, "selections are forgotten")


def test_2017_cannot_say_where_answers_end(router: elea.Session) -> None:
    with elea.open(config("client", connect__endpoints=[locator_of(router, "xrce2017")])) as program:
        (reply,) = program.get("kept/*", timeout=WAIT)
        assert reply.err is not None
        assert "xrce2017 cannot express where the answers to kept/* end" in reply.err.payload.to_string()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda session: session.put("kept/1", "x", durability="persistent"), "a put that is stored"),
        (lambda session: session.put("kept/1", "x", ack=True), "a put that is stored"),
        (lambda session: session.delete("kept/1", ack=True), "a put that is stored"),
        (lambda session: session.declare_publisher("kept/1", durability="persistent"), "a put that is stored"),
        (lambda session: session.put_batch([("kept/1", "x")]), "a put that is stored"),
        (lambda session: session.read("kept/**"), "a read of what a log has"),
        (lambda session: session.replay("kept/**"), "a read of what a log has"),
        (lambda session: session.declare_subscriber("kept/**", history=3), "a read of what a log has"),
        (lambda session: session.declare_subscriber("kept/**", since=0), "a read of what a log has"),
        (lambda session: session.declare_subscriber("kept/**", cursor="me"), "a read of what a log has"),
        (lambda session: session.cursor("kept/**", "me"), "a cursor"),
    ],
    ids=[
        "durability",
        "ack",
        "delete",
        "publisher",
        "batch",
        "read",
        "replay",
        "history",
        "since",
        "cursor",
        "cursors",
    ],
)
def test_requests_to_stores_are_errors_that_say_so(program: elea.Session, call: Any, what: str) -> None:
    dialect = program._runtime.wanted[0].partition("dialect=")[2]
    with pytest.raises(NotExpressible, match=f"{dialect} cannot express {what}") as caught:
        call(program)
    assert caught.value.dialect == dialect
    program.put("kept/1", "x", durability="volatile")  # which asks for nothing


def test_what_a_dialect_cannot_say_is_an_error_that_says_so(program: elea.Session) -> None:
    with pytest.raises(NotExpressible, match="cannot express a deletion"):
        program.delete("a/b")
    with pytest.raises(NotExpressible, match="cannot express a queryable"):
        program.declare_queryable("a/b")
    with pytest.raises(NotExpressible, match="cannot express a liveliness token"):
        program.liveliness().declare_token("a/b")
    (reply,) = program.get("a/b?_time=[now(-1h)..]", timeout=WAIT)
    assert reply.err is not None
    assert "cannot express a query with parameters" in reply.err.payload.to_string()


def test_a_program_pulls(router: elea.Session, robot: elea.Session, program: elea.Session) -> None:
    with program.declare_subscriber("a/**", mode=elea.Pull()) as subscriber:
        await_subscriber(router, "a/1")
        for number in range(3):
            robot.put("a/1", str(number), congestion_control=BLOCK)
        assert isinstance(subscriber, PacedSubscriber)
        is_remote = isinstance(subscriber, WirePullSubscriber)
        assert is_remote is (program._runtime.wanted[0].find("zenoh2018") > 0)
        if is_remote:
            (face,) = [one.face for one in router._runtime.links.connections if one.dialect.name == "zenoh2018"]
            eventually(lambda: sum(map(len, _queues(face))) == 3, "the samples wait at the broker")
        else:
            eventually(lambda: subscriber.waiting == 3, "the samples")

        assert [one.payload.to_string() for one in subscriber.pull(2)] == ["0", "1"]
        if is_remote:
            assert (subscriber.waiting, sum(map(len, _queues(face)))) == (0, 1)
        program.put("a/2", "own")
        robot.put("a", "more", congestion_control=BLOCK)
        robot.get("a")  # behind the put
        found: list[tuple[str, str]] = []

        def has_all() -> bool:
            found.extend((str(one.key_expr), one.payload.to_string()) for one in subscriber.pull())
            return len(found) == 3

        eventually(has_all, "the rest")
        assert sorted(found) == [("a", "more"), ("a/1", "2"), ("a/2", "own")]
        assert subscriber.pull() == []


def test_a_pull_subscriber_goes_with_its_end(router: elea.Session, modern: elea.Session) -> None:
    with modern.declare_subscriber("a/**", mode=elea.Pull(), handler=elea.handlers.FifoChannel(10)) as subscriber:
        await_subscriber(router, "a/1")
        router.put("a/1", "for the handler", congestion_control=BLOCK)
        assert subscriber.pull() == []
        assert subscriber.recv().payload.to_string() == "for the handler"
    (face,) = [one.face for one in router._runtime.links.connections if one.dialect.name == "zenoh2018"]
    eventually(lambda: not _queues(face), "the broker has no subscriber any more")


def test_a_pull_subscriber_is_there_again_when_its_session_is(router: elea.Session, modern: elea.Session) -> None:
    with modern.declare_subscriber("a/**", mode=elea.Pull()) as subscriber:
        await_subscriber(router, "a/1")
        (before,) = modern._runtime.links.connections
        before.end(SessionClosed(text="a test ends it"))
        eventually(lambda: [one for one in modern._runtime.links.connections if one is not before], "it is back")

        assert subscriber.pull() == []
        await_subscriber(router, "a/1")
        router.put("a/1", "again", congestion_control=BLOCK)
        assert [one.payload.to_string() for one in subscriber.pull()] == ["again"]


def _queues(face: Any) -> list[Any]:
    """What waits at a broker, by pull subscriber."""
    return [queue.pacer for queue in list(face.pulling._pulls._queues.values()) if not queue.is_stored]


def test_large_samples_cross_in_fragments(router: elea.Session, robot: elea.Session, program: elea.Session) -> None:
    sizes = [0, 1, 1472, 65_535, 200_000, 1_000_000]
    with program.declare_subscriber("a/**") as own, robot.declare_subscriber("b/**") as other:
        await_subscriber(router, "a/1")
        await_subscriber(router, "b/1")
        for size in sizes:
            robot.put("a/1", bytes(size), congestion_control=BLOCK)
            program.put("b/1", bytes(size), congestion_control=BLOCK)

        assert [len(own.handler.recv(timeout=WAIT).payload.to_bytes()) for _ in sizes] == sizes
        assert [len(other.handler.recv(timeout=WAIT).payload.to_bytes()) for _ in sizes] == sizes


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_what_was_put_before_the_end_arrives(router: elea.Session, robot: elea.Session, protocol: str) -> None:
    with robot.declare_subscriber("b/**") as other:
        await_subscriber(router, "b/1")
        with elea.open(config("client", connect__endpoints=[locator_of(router, "zenoh2018", protocol)])) as program:
            for number in range(500):
                program.put("b/1", str(number), congestion_control=BLOCK)
        assert [text for _, text in received(other, 500)] == [str(number) for number in range(500)]


def test_what_was_lost_before_the_end_is_sent_again(
    router: elea.Session, robot: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends = itertools.count()
    send = UdpLink.try_send

    def lossy(link: UdpLink, data: Any) -> int:
        size = len(data) if isinstance(data, bytes) else sum(map(len, data))
        return size if next(sends) % 3 == 0 else send(link, data)

    with robot.declare_subscriber("b/**") as other:
        await_subscriber(router, "b/1")
        with elea.open(config("client", connect__endpoints=[locator_of(router, "zenoh2018", "udp")])) as program:
            monkeypatch.setattr(UdpLink, "try_send", lossy)
            for connection in program._runtime.links.connections:
                connection.machine.outbox._try_send = connection.link.try_send  # type: ignore[union-attr]
            for number in range(200):
                program.put("b/1", f"{number:1000}", congestion_control=BLOCK)
        assert [int(text) for _, text in received(other, 200)] == list(range(200))


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_two_peers_need_no_broker(protocol: str) -> None:
    listening = config("peer", listen__endpoints=[f"{protocol}/127.0.0.1:0?dialect=zenoh2018"])
    with elea.open(listening) as one:
        (locator,) = one._runtime.links.locators("zenoh2018")
        calling = config("peer", connect__endpoints=[locator], listen__endpoints=[])
        with elea.open(calling) as two, one.declare_subscriber("a/*") as first, two.declare_subscriber("b/*") as second:
            await_subscriber(one, "b/1")
            await_subscriber(two, "a/1")
            assert not two._node.route(two._node.local, "nobody").ways, "a peer sends to peers that want it only"

            one.put("b/1", "x")
            two.put("a/1", "y")

            assert received(first, 1) == [("a/1", "y")]
            assert received(second, 1) == [("b/1", "x")]


def test_a_publisher_writes_as_its_subscribers_have_declared_meanwhile() -> None:
    with elea.open(config("peer", listen__endpoints=["tcp/127.0.0.1:0?dialect=zenoh2018"])) as peer:
        (locator,) = peer._runtime.links.locators("zenoh2018")
        publisher = peer.declare_publisher("home/a", congestion_control=BLOCK)
        with EarlyClient(locator, is_peer=True) as device:
            device.subscribe(2, "zenoh://home/**")
            await_subscriber(peer, "home/a")
            publisher.put("1")
            publisher.put("2")
            device.await_samples(2)
            before = len(device.seen)

            assert device.declare(device.m.ResourceDecl(4, b"zenoh://home/a")) == 0
            publisher.put("3")
            device.await_samples(3)
            publisher.put("4")
            device.await_samples(4)

        assert device.payloads() == [b"1", b"2", b"3", b"4"]
        assert {type(one).__name__ for one in device.seen[:before]} == {"WriteData"}
        assert [(one.id, one.prid) for one in device.seen[before:]] == [(2, 4)] * 2


def test_nodes_of_one_machine_send_each_other_packets_larger_than_an_ethernet_carries(
    router: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest: dict[str, int] = {}
    send = UdpLink.try_send

    def noted(link: UdpLink, data: Any) -> int:
        size = sum(map(len, data)) if isinstance(data, list | tuple) else len(data)
        largest[link.remote] = max(size, largest.get(link.remote, 0))
        return send(link, data)

    monkeypatch.setattr(UdpLink, "try_send", noted)
    found: dict[str, list[elea.Sample]] = {"all": [], "few": []}
    for name, options in (("all", ""), ("few", ";mtu=1000")):
        locator = locator_of(router, "zenoh2018", "udp") + options
        with (
            elea.open(config("client", connect__endpoints=[locator])) as session,
            router.declare_subscriber("a", found[name].append),
        ):
            await_subscriber(session, "a")
            session.put("a", bytes(10_000), congestion_control=BLOCK)
            eventually(lambda name=name: len(found[name]) == 1, "the sample")  # type: ignore[misc]
        assert max(largest.values()) > 10_000 if name == "all" else max(largest.values()) <= 1_000
        largest.clear()


@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
def test_a_broker_connects_to_a_broker(router: elea.Session, robot: elea.Session, dialect: str) -> None:
    other = config("router", listen__endpoints=["tcp/127.0.0.1:0"], connect__endpoints=[locator_of(router, dialect)])
    with elea.open(other) as far:
        near = config("client", connect__endpoints=far._runtime.links.locators("zenoh1"))
        with (
            elea.open(near) as client,
            client.declare_subscriber("a/*") as one,
            robot.declare_subscriber("b/**") as two,
        ):
            await_subscriber(router, "a/1")
            await_subscriber(router, "b/1")  # not only there: a broker is told of any subscriber, not of which
            await_subscriber(far, "b/1")

            robot.put("a/1", "x", congestion_control=BLOCK)
            client.put("b/1", "y", congestion_control=BLOCK)

            assert received(one, 1) == [("a/1", "x")]
            assert received(two, 1) == [("b/1", "y")]
        eventually(lambda: not router._node.route(router._node.local, "a/1").ways, "the end of the subscriber")
