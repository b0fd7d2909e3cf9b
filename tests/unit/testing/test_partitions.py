"""Links that break: leases, reconnecting, declarations that come again, nodes that go."""

from __future__ import annotations

import pytest

import elea
from elea.model.qos import SampleKind
from elea.testing import Network, Node

LEASE = 10.0


def fleet(net: Network) -> tuple[Node, Node, Node]:
    router, robot, desk = net.router("router"), net.client("robot"), net.client("desk")
    net.link(robot, router, delay=(0.002, 0.01))
    net.link(desk, router, delay=(0.002, 0.01))
    return router, robot, desk


def watched(net: Network, node: Node) -> list[tuple[SampleKind, str, float]]:
    """What a node hears of tokens, and when."""
    heard: list[tuple[SampleKind, str, float]] = []
    node.liveliness().declare_subscriber(
        "alive/*", lambda sample: heard.append((sample.kind, str(sample.key_expr), net.now)), history=True
    )
    return heard


def test_token_goes_with_the_lease_and_comes_back() -> None:
    net = Network(seed=5)
    _, robot, desk = fleet(net)
    heard = watched(net, desk)
    _token = robot.liveliness().declare_token("alive/robot")
    net.settle()

    parted = net.now
    net.part(robot)
    net.run(60.0)
    net.heal()
    healed = net.now
    net.settle()
    net.run(1.0)

    assert [(kind, key) for kind, key, _ in heard] == [
        (SampleKind.PUT, "alive/robot"),
        (SampleKind.DELETE, "alive/robot"),
        (SampleKind.PUT, "alive/robot"),
    ]
    assert LEASE * 0.75 <= heard[1][2] - parted <= LEASE + 0.1
    assert healed < heard[2][2] < healed + 5.0


def test_short_partition_breaks_nothing() -> None:
    net = Network(seed=5)
    _, robot, desk = fleet(net)
    heard = watched(net, desk)
    _token = robot.liveliness().declare_token("alive/robot")
    got = desk.subscribe("a")
    net.settle()

    net.part(robot)
    robot.put("a", "held back")
    net.run(LEASE / 2)
    net.heal()
    net.run(LEASE)

    assert len(heard) == len(got) == 1
    assert {crossing.link for crossing in net.trace} == {1}


def test_everything_is_declared_again() -> None:
    net = Network(seed=5)
    _, robot, desk = fleet(net)
    got = desk.subscribe("position/*")
    desk.declare_queryable("map", lambda query: query.reply("map", "here"))
    net.settle()

    net.part(desk)
    net.run(30.0)
    robot.put("position/1", "nobody hears this")
    before = list(robot.get("map"))
    net.heal()
    net.settle()
    robot.put("position/2", "this is heard")
    after = [reply.ok.payload.to_string() for reply in robot.get("map")]
    net.run(1.0)

    assert before == []
    assert after == ["here"]
    assert [str(sample.key_expr) for sample in got] == ["position/2"]


def test_query_ends_when_its_answerer_is_cut_off() -> None:
    net = Network(seed=5)
    _, robot, desk = fleet(net)
    robot.declare_queryable("map", lambda query: query.reply("map", "here"))
    net.settle()
    net.part(robot)
    before = net.now

    replies = list(desk.get("map", timeout=100.0))

    assert replies == []
    assert net.now - before <= LEASE + 0.1


def test_query_ends_when_its_asker_is_cut_off() -> None:
    net = Network(seed=5)
    _, robot, desk = fleet(net)
    robot.declare_queryable("map", lambda query: query.reply("map", "here"))
    net.settle()
    net.part(desk)
    before = net.now

    replies = list(desk.get("map", timeout=3.0))

    assert [reply.err.payload.to_string() for reply in replies] == ["Timeout"]
    assert net.now - before == pytest.approx(3.0, abs=0.01)


def test_attempts_given_up_in_a_partition_do_not_come_after_it() -> None:
    net = Network(seed=5)
    router, robot, _ = fleet(net)
    wire = net.wire(robot, router)
    net.settle()

    net.part(robot)
    net.run(120.0)
    given_up = len(wire.dials)
    net.heal()
    net.settle()
    net.run(1.0)

    # The first link, whose end arrives late, and the two that were tried when the way was free again.
    later = {crossing.link for crossing in net.trace.between(robot, router) if crossing.ended > 120.0}
    assert given_up > 5
    assert later <= {1, given_up, given_up + 1}
    assert len(wire._flows) <= 2


def test_lost_link_is_tried_again_with_growing_pauses() -> None:
    net = Network(seed=5)
    router, robot, _ = fleet(net)
    net.run(100.0)
    router.close()

    net.run(20.0)

    # At once, since the session had lasted; once more at once; then after 1, 2, 4, 4 … seconds (zenoh-1 §22).
    dials = net.wire(robot, router).dials[1:]
    pauses = [later - earlier for earlier, later in zip([100.0, *dials], dials, strict=False)]
    assert pauses == pytest.approx([0.0, 0.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0], abs=0.05)


def test_killed_node_is_missed_at_once() -> None:
    net = Network(seed=5)
    router, robot, desk = fleet(net)
    heard = watched(net, desk)
    _token = robot.liveliness().declare_token("alive/robot")
    net.settle()
    before = net.now

    robot.kill()
    net.run(1.0)

    assert [kind for kind, _, _ in heard] == [SampleKind.PUT, SampleKind.DELETE]
    assert heard[1][2] - before < 0.1
    assert [str(transport.zid) for transport in router.info.transports()] == [str(desk.zid())]
    assert "Close" not in str(net.trace)


def test_datagram_session_comes_back_after_a_partition() -> None:
    net = Network(seed=5)
    router, robot = net.router("router"), net.client("robot")
    net.link(robot, router, datagrams=True)
    got = router.subscribe("a")
    net.settle()

    net.part(robot)
    net.run(60.0)
    net.heal()
    net.settle()
    robot.put("a", "again")
    net.run(1.0)

    assert len(got) == 1


def test_node_learns_from_a_stray_datagram_that_its_session_is_over() -> None:
    """The router gives up after the 3 seconds the robot promised; the robot would wait for the router's 10."""
    net = Network(seed=5)
    router = net.router("router")
    robot = net.client("robot", elea.Config.from_json5("{transport: {link: {tx: {lease: 3000}}}}"))
    wire = net.link(robot, router, datagrams=True)
    net.run(10.0)

    net.part(robot)
    net.run(5.0)
    net.heal()
    net.run(2.0)

    assert len(router.info.transports()) == len(robot.info.transports()) == 1
    assert len(wire.dials) == 2


def test_session_opens_although_datagrams_of_the_handshake_are_lost() -> None:
    net = Network(seed=5)
    router, robot = net.router("router"), net.client("robot")
    wire = net.link(robot, router, datagrams=True, loss=0.5)

    net.run_until(lambda: len(robot.info.transports()) and len(router.info.transports()), seconds=3600.0)

    assert wire.lost > 0


def test_parting_one_node_cuts_it_from_all() -> None:
    net = Network(seed=5)
    a, b, c = net.peer("a"), net.peer("b"), net.peer("c")
    wires = [net.link(a, b), net.link(b, c), net.link(a, c)]

    net.part(b)
    cut = [wire.parted for wire in wires]
    net.heal(b, c)
    partly = [wire.parted for wire in wires]
    net.heal()

    assert cut == [True, True, False]
    assert partly == [True, False, False]
    assert not any(wire.parted for wire in wires)
