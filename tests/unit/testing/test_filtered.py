"""Subscribers with a predicate: samples that nobody wants do not travel, and everybody gets what it wants."""

from __future__ import annotations

import json

import pytest

import elea
from elea.content import Contents, SamplePredicate
from elea.model.errors import InvalidPredicate
from elea.model.limits import FILTER_BYTES, FILTER_WEIGHT, PREDICATE_PATTERN, PREDICATES_DECLARED
from elea.space.face import Declare, Entity
from elea.testing import Network, Node

WHERE = "speed > 2"


def network() -> tuple[Network, Node, Node, Node, Node]:
    """A router with three clients."""
    net = Network(seed=1)
    router = net.router("router")
    robot, desk, other = net.client("robot"), net.client("desk"), net.client("other")
    for client in (robot, desk, other):
        net.link(client, router)
    net.settle()
    return net, router, robot, desk, other


def speeds(subscriber: elea.Subscriber[elea.handlers.Handler[elea.Sample]]) -> list[int]:
    found = []
    while (sample := subscriber.try_recv()) is not None:
        found.append(json.loads(sample.payload.to_string())["speed"])
    return found


def kept_back(node: Node) -> int:
    filters = node._node.filters
    return 0 if filters is None else filters.kept_back


def put_all(publisher: elea.Publisher) -> None:
    for speed in range(6):
        publisher.put(json.dumps({"speed": speed}))


def test_publisher_does_not_send_what_nobody_wants() -> None:
    net, router, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/**", where=WHERE)
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    put_all(publisher)
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]
    assert (kept_back(robot), kept_back(router)) == (3, 0)
    assert subscriber.where is not None
    assert (subscriber.where.passed, subscriber.where.refused) == (3, 0)


def test_router_does_not_pass_on_what_nobody_wants() -> None:
    """A put without a publisher is sent in doubt."""
    net, router, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/**", where=WHERE)
    net.settle()

    for speed in range(6):
        robot.put("fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]
    assert (kept_back(robot), kept_back(router)) == (0, 3)


def test_filter_opens_and_closes_with_other_subscribers() -> None:
    net, router, robot, desk, other = network()
    subscriber = desk.declare_subscriber("fleet/**", where=WHERE)
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    everything = other.declare_subscriber("fleet/1")
    net.settle()
    put_all(publisher)
    net.run(1.0)
    assert (speeds(subscriber), speeds(everything)) == ([3, 4, 5], list(range(6)))
    assert (kept_back(robot), kept_back(router)) == (0, 3)

    everything.undeclare()
    slow = other.declare_subscriber("fleet/1", where="speed < 1")
    net.settle()
    put_all(publisher)
    net.run(1.0)
    assert (speeds(subscriber), speeds(slow)) == ([3, 4, 5], [0])
    assert kept_back(robot) == 2  # 1 and 2: nobody wants them

    subscriber.undeclare()
    net.settle()
    put_all(publisher)
    net.run(1.0)
    assert speeds(slow) == [0]
    assert kept_back(robot) == 2 + 5


def test_two_subscribers_of_one_session_get_what_each_wants() -> None:
    net, _, robot, desk, _ = network()
    fast = desk.declare_subscriber("fleet/1", where="speed > 4")
    slow = desk.declare_subscriber("fleet/1", where="speed < 1")
    odd = desk.declare_subscriber("fleet/*", where="speed IN (1, 3)")
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    put_all(publisher)
    net.run(1.0)

    assert (speeds(fast), speeds(slow), speeds(odd)) == ([5], [0], [1, 3])
    assert kept_back(robot) == 2


def test_interest_that_ended_does_not_hold_back_what_comes_later() -> None:
    """Without a publisher nobody tells the session of new subscribers, so it must not trust what it knew."""
    net, _, robot, desk, other = network()
    subscriber = desk.declare_subscriber("fleet/1", where=WHERE)
    publisher = robot.declare_publisher("fleet/1")
    net.settle()
    publisher.undeclare()
    everything = other.declare_subscriber("fleet/1")
    net.settle()

    for speed in range(6):
        robot.put("fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert (speeds(subscriber), speeds(everything)) == ([3, 4, 5], list(range(6)))


def test_peers_hold_back_too() -> None:
    net = Network(seed=1)
    robot, desk = net.peer("robot"), net.peer("desk")
    net.link(robot, desk)
    subscriber = desk.declare_subscriber("fleet/**", where=WHERE)
    net.settle()

    for speed in range(6):
        robot.put("fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]
    assert kept_back(robot) == 3


def test_own_samples_are_held_against_the_predicate() -> None:
    net = Network(seed=1)
    desk = net.peer("desk")
    subscriber = desk.declare_subscriber("fleet/**", where=WHERE)

    for speed in range(6):
        desk.put("fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]


def test_order_between_keys_stays() -> None:
    net, router, robot, desk, _ = network()
    found: list[str] = []
    desk.declare_subscriber("a", lambda sample: None)  # so `a` goes there unlooked at, and `b` does not
    desk.declare_subscriber("*", lambda sample: found.append(str(sample.key_expr)), where="value >= 0")
    net.settle()

    for number in range(40):
        robot.put("b" if number % 2 else "a", str(number))
    net.run(1.0)

    assert found == ["a", "b"] * 20
    assert router._node.filters is not None
    assert router._node.filters.passed == 20


def test_timestamp_is_looked_at_by_the_subscriber_only() -> None:
    """The router gives it on the way, so nobody before knows it."""
    net, router, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/**", where="timestamp > '2000-01-01T00:00:00Z' AND speed > 2")
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    put_all(publisher)
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]
    assert (kept_back(robot), kept_back(router)) == (0, 0)


def test_key_of_a_namespace_is_its_own() -> None:
    net = Network(seed=1)
    config = elea.Config()
    config.insert_json5("namespace", '"house"')
    router, desk, robot = net.router("router"), net.client("desk", config), net.client("robot")
    net.link(desk, router)
    net.link(robot, router)
    net.settle()
    subscriber = desk.declare_subscriber("**", where="key = 'fleet/1' AND speed > 2")
    net.settle()

    for speed in range(6):
        robot.put("house/fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert speeds(subscriber) == [3, 4, 5]


def test_more_predicates_than_are_looked_at_let_everything_through() -> None:
    net, router, robot, desk, _ = network()
    subscribers = [
        desk.declare_subscriber("fleet/1", where=f"speed = {number}") for number in range(PREDICATES_DECLARED + 1)
    ]
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    put_all(publisher)
    net.run(1.0)
    assert [speeds(each) for each in subscribers[:7]] == [[0], [1], [2], [3], [4], [5], []]
    assert (kept_back(robot), kept_back(router)) == (0, 0)

    subscribers.pop().undeclare()
    net.settle()
    publisher.put('{"speed": 99}')
    net.run(1.0)
    assert kept_back(robot) == 1


@pytest.mark.parametrize("text", ["nosuch(a)", "speed >", "", "[", "a" * 10_000])
def test_what_a_neighbour_takes_for_a_predicate_and_is_none_lets_everything_through(text: str) -> None:
    net, router, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/1")
    desk._node.control(desk._node.local, Declare(Entity.SUBSCRIBER, 99, "fleet/2", predicates=(text,)))
    publisher = robot.declare_publisher("fleet/1")
    net.settle()

    put_all(publisher)
    net.run(1.0)

    assert speeds(subscriber) == list(range(6))
    assert desk._node.space.ignored.invalid_predicate == 1
    assert kept_back(router) == 0


def test_large_payload_is_looked_at_by_the_subscriber() -> None:
    net, router, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/1", where=WHERE)
    net.settle()

    for size in (FILTER_BYTES, FILTER_BYTES + 1):
        for speed in (1, 3):
            robot.put("fleet/1", json.dumps({"speed": speed}).ljust(size))
    net.run(1.0)

    assert speeds(subscriber) == [3, 3]
    assert subscriber.where is not None
    assert (kept_back(router), subscriber.where.refused) == (1, 1)
    assert router._node.filters is not None
    assert router._node.filters.unlooked == 2


def test_predicates_that_are_much_work_are_left_to_the_subscriber() -> None:
    net, router, robot, desk, _ = network()
    heavy = " OR ".join(["name LIKE '" + "%a" * 100 + "'"] * 6)
    subscriber = desk.declare_subscriber("fleet/1", where=f"speed > 2 AND ({heavy} OR speed > 3)")
    net.settle()

    for speed in range(6):
        robot.put("fleet/1", json.dumps({"speed": speed, "name": "b"}))
    net.run(1.0)

    assert speeds(subscriber) == [4, 5]
    assert kept_back(router) == 0
    assert router._node.filters is not None
    assert router._node.filters.too_heavy == 1
    # As heavy as may be is looked at.
    assert SamplePredicate("a LIKE '" + "x" * (PREDICATE_PATTERN - 3) + "'").weight == PREDICATE_PATTERN
    assert PREDICATE_PATTERN < FILTER_WEIGHT


def test_payload_is_decoded_once_for_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    net, _, robot, desk, other = network()
    found = [
        session.declare_subscriber("fleet/1", where=where)
        for session, where in ((desk, "speed > 2"), (other, "speed > 4"))
    ]
    net.settle()
    robot.put("fleet/1", '{"speed": 0}')
    net.run(1.0)
    decoded: list[bytes] = []
    original = Contents.decode

    def decode(self: Contents, key: str, encoding: int, schema: bytes | None, payload: bytes) -> object:
        decoded.append(payload)
        return original(self, key, encoding, schema, payload)

    monkeypatch.setattr(Contents, "decode", decode)

    robot.put("fleet/1", '{"speed": 1}')
    net.run(1.0)

    assert decoded == [b'{"speed": 1}']
    assert [speeds(each) for each in found] == [[], []]


def test_predicate_that_is_none_is_refused_where_it_is_given() -> None:
    net = Network(seed=1)
    desk = net.peer("desk")

    with pytest.raises(InvalidPredicate, match="column 8"):
        desk.declare_subscriber("a", where="speed >")
    with pytest.raises(InvalidPredicate, match="PUT"):
        desk.declare_subscriber("a", where="kind = 'put'")


def test_pull_brings_what_is_wanted() -> None:
    net, _, robot, desk, _ = network()
    subscriber = desk.declare_subscriber("fleet/**", mode=elea.Pull(max_samples=2), where=WHERE)
    net.settle()
    for speed in range(6):
        robot.put("fleet/1", json.dumps({"speed": speed}))
    net.run(1.0)

    assert [json.loads(sample.payload.to_bytes())["speed"] for sample in subscriber.pull()] == [3, 4]


def test_replies_are_held_against_the_predicate() -> None:
    net, _, robot, desk, _ = network()

    def answer(query: elea.Query) -> None:
        assert query.parameters.get("_where") == "speed>2 AND name LIKE 'a%25'"
        for number in range(6):
            query.reply(f"fleet/{number}", json.dumps({"speed": number, "name": "abc"}))
        query.reply_err("no more")

    robot.declare_queryable("fleet/*", answer)
    net.settle()

    replies = list(desk.get("fleet/*", where="speed > 2 AND name LIKE 'a%'", consolidation=elea.ConsolidationMode.NONE))

    assert [str(reply.ok.key_expr) for reply in replies if reply.ok] == ["fleet/3", "fleet/4", "fleet/5"]
    assert [reply.err.payload.to_string() for reply in replies if reply.err] == ["no more"]
