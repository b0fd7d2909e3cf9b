"""Timestamp stacks as programs see them; the matrix of `tests/interop` has the same with eclipse-zenoh."""

from __future__ import annotations

import pytest

import elea
from elea.api.instrumentation import TimestampStack, give_timestamps
from elea.testing import Network
from elea.wire.timestampstack import CUSTOM, CollectedStamps

SEND, ROUTE, RECEIVE = elea.InterceptionPoint.SEND, elea.InterceptionPoint.ROUTE, elea.InterceptionPoint.RECEIVE
ALL = elea.TimestampInstrumentationBuilder().set_send(True).set_route(True).set_receive(True).build()


def records(stack: TimestampStack | None) -> list[elea.TimestampStackRecord]:
    assert stack is not None
    return stack.records


def points(stack: TimestampStack | None) -> list[elea.InterceptionPoint]:
    return [record.point for record in records(stack)]


def test_every_node_on_the_way_gives_a_timestamp_and_times_ascend() -> None:
    net = Network(seed=1)
    router, robot, desk = net.router("router"), net.client("robot"), net.client("desk")
    net.link(robot, router, delay=0.01)
    net.link(desk, router, delay=0.01)
    seen = desk.subscribe("a")
    net.settle()

    robot.put("a", "1", timestamp_instrumentation=ALL)
    net.run(1.0)

    (sample,) = seen
    assert points(sample.timestamp_stack) == [SEND, ROUTE, ROUTE, ROUTE, RECEIVE]
    stamps = [record.timestamp() for record in records(sample.timestamp_stack)]
    assert all(isinstance(stamp, elea.Timestamp) for stamp in stamps)
    names = [str(stamp.get_id()) for stamp in stamps if isinstance(stamp, elea.Timestamp)]
    assert names == [str(node.zid()) for node in (robot, robot, router, desk, desk)]
    assert stamps == sorted(stamps, key=str)


def test_a_callback_gives_bytes_in_place_of_the_clock() -> None:
    net = Network(seed=1)
    robot, desk = net.peer("robot"), net.peer("desk")
    net.link(desk, robot)
    told: list[elea.TimestampContext] = []

    def own_time(context: elea.TimestampContext) -> bytes:
        told.append(context)
        return b"now"

    give_timestamps(robot._node, own_time)
    seen = desk.subscribe("a")
    net.settle()

    robot.put("a", "1", timestamp_instrumentation=ALL)
    net.run(1.0)

    found = records(seen[0].timestamp_stack)
    assert [(record.point, record.is_custom) for record in found] == [
        (SEND, True),
        (ROUTE, True),
        (ROUTE, False),
        (RECEIVE, False),
    ]
    assert found[0].timestamp() == b"now"
    assert [(one.zid, one.whatami) for one in told] == [(robot.zid(), elea.WhatAmI.PEER)] * 2


@pytest.mark.parametrize("wrong", [lambda _: 1 / 0, lambda _: "text", lambda _: b""], ids=["raises", "text", "empty"])
def test_a_callback_that_fails_costs_its_timestamp_and_not_the_sample(
    wrong: object, caplog: pytest.LogCaptureFixture
) -> None:
    net = Network(seed=1)
    robot = net.peer("robot")
    give_timestamps(robot._node, wrong)  # type: ignore[arg-type]
    seen = robot.subscribe("a")
    net.settle()

    for _ in range(3):
        robot.put("a", "1", timestamp_instrumentation=ALL)
    net.run(1.0)

    assert [points(sample.timestamp_stack) for sample in seen] == [[]] * 3
    lines = [line for line in caplog.messages if "timestamp callback failed" in line]
    assert len(lines) == (0 if robot._node.instruments.failures == 0 else 3)  # of six: the first, second, fourth


def test_an_answer_goes_on_where_its_question_stopped() -> None:
    net = Network(seed=1)
    robot, desk = net.peer("robot"), net.peer("desk")
    net.link(desk, robot)
    asked: list[TimestampStack | None] = []

    def answer(query: elea.Query) -> None:
        asked.append(query.timestamp_stack)
        query.reply("a", "1")
        query.reply_err("no")

    robot.declare_queryable("a", answer)
    net.settle()

    replies = list(desk.get("a", timestamp_instrumentation=ALL, consolidation=elea.ConsolidationMode.NONE))

    there = [SEND, ROUTE, ROUTE, RECEIVE]
    assert points(asked[0]) == there
    assert [points(reply.result.timestamp_stack) for reply in replies] == [there * 2, there * 2]
    assert all(reply.result.timestamp_stack is None for reply in desk.get("a"))


def test_records_that_make_no_sense_are_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    good = (4 | CUSTOM, b"x")
    stack = TimestampStack.of(
        CollectedStamps(3, ((3, b"\x01\x01\xc1"), (1, b"\xff"), (1, b""), (1, b"\x01\x01\x00"), good))
    )

    assert [(record.point, record.timestamp()) for record in stack.records] == [(RECEIVE, b"x")]
    assert sum("timestamp of a stack left out" in line for line in caplog.messages) == 4


def test_a_put_that_a_store_keeps_collects_no_timestamps_and_says_so() -> None:
    net = Network(seed=1)
    robot = net.peer("robot")

    for act in (robot.put, lambda key, _, **options: robot.delete(key, **options)):
        with pytest.raises(elea.ZError, match="timestamp_instrumentation: a put with a durability"):
            act("a", "1", durability="persistent", ack=True, timestamp_instrumentation=ALL)


def test_a_session_opens_with_a_callback() -> None:
    config = elea.Config.from_json5("{scouting: {multicast: {enabled: false}}, listen: {endpoints: []}}")
    with elea.open(config, timestamp_callback=lambda context: str(context.whatami).encode()) as session:
        subscriber = session.declare_subscriber("a")
        session.put("a", "1", timestamp_instrumentation=ALL)

        stack = subscriber.recv().timestamp_stack
        assert stack is not None
        assert [(record.point, record.timestamp()) for record in stack.records] == [(SEND, b"peer"), (RECEIVE, b"peer")]
