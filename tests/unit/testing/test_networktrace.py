"""The record of what crossed which link."""

from __future__ import annotations

from elea.testing import Fate, Network
from elea.testing.networktrace import Crossing, Form, Trace
from elea.wire.zenoh1 import messages as m


def crossing(data: bytes, *, streamed: bool = False) -> Crossing:
    return Crossing(1.0, 2.0, "a", "b", 1, Fate.ARRIVED, data, streamed, Form.PLAIN)


def test_trace_tells_the_story_of_a_link() -> None:
    net = Network(seed=1)
    robot, router = net.client("robot"), net.router("router")
    net.link(robot, router, delay=0.001)
    router.subscribe("a/**")
    robot.declare_subscriber("b", lambda sample: None)
    net.settle()
    robot.put("a/b", "x")
    net.run(0.1)
    robot.close()
    net.run(0.1)

    lines = [str(line).split("#1 ", 1)[1] for line in net.trace]

    assert lines[-1] == "unread: end of the link"
    told = " ".join(lines)
    for word in ("InitSyn", "InitAck", "OpenSyn", "OpenAck", "DeclareSubscriber b", "Push Put a/b", "Close"):
        assert word in told
    assert str(net.trace).startswith("0.002000 0.003000 robot > router #1 arrived: InitSyn")


def test_messages_are_decoded() -> None:
    net = Network(seed=1)
    robot, router = net.client("robot"), net.router("router")
    net.link(robot, router)
    router.subscribe("a")
    net.settle()

    robot.put("a", "x")
    net.run(1.0)

    found = [
        message.body.payload
        for one, message in net.trace.network()
        if isinstance(message, m.Push) and isinstance(message.body, m.Put) and one.source == "robot"
    ]
    assert found == [b"x"]


def test_a_stream_may_carry_several_batches_at_once() -> None:
    one = crossing(b"\x01\x00\x04\x01\x00\x04", streamed=True)

    assert one.batches == (b"\x04", b"\x04")
    assert [type(message) for message in one.messages] == [m.KeepAlive, m.KeepAlive]


def test_what_nobody_can_read_stays_octets() -> None:
    one = crossing(b"\xff\xff")

    assert one.messages == ()
    assert one.data == b"\xff\xff"


def test_trace_forgets_the_oldest() -> None:
    trace = Trace(2)

    for number in range(5):
        trace.add(crossing(bytes([number])))

    assert [one.data for one in trace] == [b"\x03", b"\x04"]
    assert (len(trace), trace.forgotten) == (2, 3)
