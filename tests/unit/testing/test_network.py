"""What a user of the simulator does: nodes that put, receive, ask and answer in virtual time."""

from __future__ import annotations

import pytest

import elea
from elea.model.errors import OperationTimeout
from elea.testing import Network, Node


def star(net: Network, *names: str) -> list[Node]:
    """A router and clients of it, linked."""
    router = net.router("router")
    clients = [net.client(name) for name in names]
    for client in clients:
        net.link(client, router, delay=(0.001, 0.005))
    return [router, *clients]


def test_sample_crosses_the_router() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    got = desk.subscribe("fleet/**")
    net.settle()

    robot.put("fleet/1", "here")
    net.run(1.0)

    assert [(str(s.key_expr), s.payload.to_string()) for s in got] == [("fleet/1", "here")]


def test_sample_is_stamped_with_virtual_time() -> None:
    net = Network(seed=1, start_ns=1_000_000_000_000_000_000)
    _, robot, desk = star(net, "robot", "desk")
    got = desk.subscribe("a")
    net.run(100.0)

    robot.put("a", "x")
    net.run(1.0)

    timestamp = got[0].timestamp
    assert timestamp is not None
    assert 1_000_000_100 <= timestamp.get_time().timestamp() < 1_000_000_101


def test_peers_talk_without_a_router() -> None:
    net = Network(seed=1)
    left, right = net.peer("left"), net.peer("right")
    net.link(left, right)
    got = right.subscribe("a/*")
    net.settle()

    left.put("a/b", b"x")
    net.run(1.0)

    assert [str(sample.key_expr) for sample in got] == ["a/b"]


def test_recv_lets_time_run() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    subscriber = desk.declare_subscriber("a")
    net.settle()
    before = net.now

    robot.put("a", "x")
    sample = subscriber.recv()

    assert sample.payload.to_string() == "x"
    assert before < net.now < before + 0.02


def test_recv_gives_up_after_its_timeout() -> None:
    net = Network(seed=1)
    _, desk = star(net, "desk")
    subscriber = desk.declare_subscriber("a")
    net.settle()
    before = net.now

    with pytest.raises(OperationTimeout):
        subscriber.handler.recv(timeout=7.0)

    assert net.now == pytest.approx(before + 7.0)


def test_fifo_channel_keeps_what_nobody_could_take_yet() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    subscriber = desk.declare_subscriber("a")
    net.settle()

    for number in range(1000):
        robot.put("a", str(number))
    net.run(1.0)

    assert [subscriber.recv().payload.to_string() for _ in range(1000)] == [str(number) for number in range(1000)]
    assert subscriber.dropped == 0


def test_ring_channel_keeps_the_newest() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    subscriber = desk.declare_subscriber("a", elea.handlers.RingChannel(2))
    net.settle()

    for number in range(5):
        robot.put("a", str(number))
    net.run(1.0)

    assert [subscriber.recv().payload.to_string() for _ in range(2)] == ["3", "4"]
    assert subscriber.dropped == 3


def test_get_is_answered() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    robot.declare_queryable("battery", lambda query: query.reply("battery", "81"))
    net.settle()

    replies = [reply.ok.payload.to_string() for reply in desk.get("battery")]

    assert replies == ["81"]


def test_get_ends_in_time_when_nobody_answers() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    kept: list[object] = []
    robot.declare_queryable("battery", kept.append)
    net.settle()
    before = net.now

    replies = list(desk.get("battery", timeout=30.0))

    assert [reply.err.payload.to_string() for reply in replies] == ["Timeout"]
    assert net.now == pytest.approx(before + 30.0, abs=0.1)
    assert len(kept) == 1


def test_handler_must_not_wait() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    problems: list[Exception] = []

    def wait(_: elea.Sample) -> None:
        try:
            net.run(1.0)
        except RuntimeError as error:
            problems.append(error)

    desk.declare_subscriber("a", wait)
    net.settle()
    robot.put("a", "x")
    net.run(1.0)

    assert len(problems) == 1


def test_run_takes_no_real_time_and_keeps_the_links() -> None:
    net = Network(seed=1)
    _, robot, desk = star(net, "robot", "desk")
    got = desk.subscribe("a")
    net.settle()

    net.run(3600.0)
    robot.put("a", "x")
    net.run(1.0)

    assert len(got) == 1
    assert net.now == pytest.approx(3601.0, abs=1.0)
    assert {crossing.link for crossing in net.trace} == {1}


def test_closed_node_says_so() -> None:
    net = Network(seed=1)
    router, robot = star(net, "robot")
    net.settle()

    robot.close()
    net.run(1.0)

    assert router.info.transports() == []
    assert "Close" in str(net.trace)


def test_node_of_another_configuration() -> None:
    config = elea.Config.from_json5('{id: "abc", transport: {link: {tx: {lease: 2000}}}}')
    net = Network(seed=1)
    router, robot = net.router("router"), net.client("robot", config)
    net.link(robot, router)
    net.settle()
    net.part(robot)

    net.run(1.9)
    before = len(router.info.transports())
    net.run(0.6)

    assert (str(robot.zid()), before, router.info.transports()) == ("abc", 1, [])


@pytest.mark.parametrize("form", ["{lowlatency: true, qos: {enabled: false}}", "{compression: {enabled: true}}"])
def test_trace_reads_every_form_of_batches(form: str) -> None:
    config = elea.Config.from_json5(f"{{transport: {{unicast: {form}}}}}")
    net = Network(seed=1)
    router, robot, desk = net.router("router", config), net.client("robot", config), net.client("desk")
    net.link(robot, router)
    net.link(desk, router)
    got = desk.subscribe("a")
    net.settle()

    robot.put("a", b"x" * 1000)
    net.run(1.0)

    assert len(got) == 1
    crossing = net.trace.between(robot, router)[-1]
    assert "Push Put" in str(crossing)


def test_nodes_and_links_have_one_place_each() -> None:
    net = Network()
    router, robot = star(net, "robot")

    with pytest.raises(ValueError, match="already"):
        net.client("robot")
    with pytest.raises(ValueError, match="linked already"):
        net.link(router, robot)
    with pytest.raises(ValueError, match="one node"):
        net.link(robot, robot)


def test_network_that_cannot_settle_says_which_link() -> None:
    net = Network(seed=1)
    net.link(net.client("robot"), net.router("router"), loss=1.0, datagrams=True)

    with pytest.raises(OperationTimeout, match="robot to router"):
        net.settle(5.0)


def test_network_closes_its_nodes() -> None:
    with Network(seed=1) as net:
        nodes = star(net, "robot", "desk")
        net.settle()

    assert all(node.is_closed() for node in nodes)
