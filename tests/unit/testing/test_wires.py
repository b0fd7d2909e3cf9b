"""What wires do to streams and datagrams, and what nodes make of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.model.qos import Reliability
from elea.testing import Fate, Network, Node, Wire
from elea.testing.wire import Conditions


def pair(net: Network, **conditions: object) -> tuple[Node, Node, Wire]:
    """Two peers and the wire between them."""
    left, right = net.peer("left"), net.peer("right")
    return left, right, net.link(left, right, **conditions)  # type: ignore[arg-type]


def send(net: Network, node: Node, count: int, *, reliability: Reliability = Reliability.RELIABLE) -> None:
    """One numbered sample each 10 ms."""
    publisher = node.declare_publisher("a", reliability=reliability)
    net.run(1.0)
    for number in range(count):
        publisher.put(str(number))
        net.run(0.01)
    net.run(1.0)


def numbers(samples: list[object]) -> list[int]:
    return [int(sample.payload.to_string()) for sample in samples]  # type: ignore[attr-defined]


def test_stream_keeps_order_whatever_the_delay() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, delay=(0.0, 2.0))
    got = right.subscribe("a")
    net.settle()

    send(net, left, 200)
    net.run(5.0)

    assert numbers(list(got)) == list(range(200))
    assert wire.lost == wire.reordered == wire.duplicated == 0


def test_lost_datagrams_are_missed_and_counted() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, datagrams=True)
    got = right.subscribe("a")
    net.settle()
    wire.conditions = Conditions(loss=0.2, datagrams=True)

    send(net, left, 500, reliability=Reliability.BEST_EFFORT)

    arrived = numbers(list(got))
    assert arrived == sorted(set(arrived))
    assert 300 < len(arrived) < 480
    samples = [c for c in net.trace.between("left", "right") if "Push" in str(c)]
    assert len(samples) == 500
    assert sum(c.fate is Fate.LOST for c in samples) == 500 - len(arrived)
    # What is lost behind the last that arrived cannot be missed.
    assert right.counters()["missing"] == 1 + max(arrived) - len(arrived)


def test_overtaken_datagrams_are_dropped_and_counted() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, datagrams=True, delay=0.02)
    got = right.subscribe("a")
    net.settle()
    wire.conditions = Conditions((0.02, 0.02), reorder=0.3, datagrams=True)

    send(net, left, 300)

    arrived = numbers(list(got))
    assert arrived == sorted(set(arrived))
    assert right.counters()["duplicates"] == 300 - len(arrived) > 0
    assert wire.reordered > 50
    assert wire.lost == 0


def test_doubled_datagrams_are_taken_once() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, datagrams=True, delay=0.02)
    got = right.subscribe("a")
    net.settle()
    wire.conditions = Conditions((0.02, 0.02), duplicate=1.0, datagrams=True)

    send(net, left, 100)

    assert numbers(list(got)) == list(range(100))
    assert right.counters()["duplicates"] >= 100
    assert sum(crossing.fate is Fate.COPY for crossing in net.trace) == wire.duplicated >= 100


def test_large_sample_is_fragmented_to_the_mtu() -> None:
    net = Network(seed=2)
    left, right, _ = pair(net, mtu=500)
    got = right.subscribe("a")
    net.settle()

    left.put("a", b"x" * 100_000)
    net.run(1.0)

    assert [len(sample.payload.to_bytes()) for sample in got] == [100_000]
    assert max(len(batch) for c in net.trace for batch in c.batches) <= 498
    assert right.counters()["fragments"] > 200


def test_lost_fragment_loses_the_whole_sample_only() -> None:
    net = Network(seed=4)
    left, right, wire = pair(net, datagrams=True, mtu=500)
    got = right.subscribe("a")
    net.settle()
    wire.conditions = Conditions(loss=0.05, datagrams=True)

    publisher = left.declare_publisher("a", reliability=Reliability.BEST_EFFORT)
    net.run(1.0)
    for number in range(100):
        publisher.put(f"{number:05}" * 1000)
        net.run(0.1)

    assert 0 < len(got) < 100
    assert all(len(sample.payload.to_bytes()) == 5000 for sample in got)
    assert right.counters()["fragments_lost"] > 0


def test_datagrams_do_not_cross_a_partition() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, datagrams=True, delay=0.5)
    got = right.subscribe("a")
    net.run(10.0)

    left.put("a", "on its way when the wire is cut")
    net.run(0.2)
    net.part(left, right)
    left.put("a", "afterwards")
    net.run(2.0)
    net.heal()
    net.run(2.0)

    assert list(got) == []
    assert wire.lost >= 2


def test_stream_brings_in_order_what_a_partition_held_back() -> None:
    net = Network(seed=2)
    left, right, wire = pair(net, delay=(0.1, 0.6))
    got = right.subscribe("a")
    net.settle()

    for number in range(30):
        if number == 10:
            net.part(left, right)
        if number == 20:
            held = len(got)
            net.heal(left, right)
        left.put("a", str(number))
        net.run(0.2)
    net.run(2.0)

    assert held < 10
    assert numbers(list(got)) == list(range(30))
    assert {crossing.link for crossing in net.trace} == {1}
    assert wire.lost == 0


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ({"loss": 0.1}, "datagrams"),
        ({"reorder": 0.1}, "datagrams"),
        ({"duplicate": 0.1}, "datagrams"),
        ({"loss": 1.5, "datagrams": True}, "share"),
        ({"delay": -1.0}, "delay"),
        ({"delay": (2.0, 1.0)}, "delay"),
        ({"mtu": 10}, "mtu"),
        ({"mtu": 70_000}, "mtu"),
    ],
)
def test_impossible_conditions_are_refused(conditions: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        pair(Network(), **conditions)


@given(
    seed=st.integers(0, 1 << 32),
    delay=st.sampled_from([0.0, 0.01, 0.2]),
    shares=st.tuples(*[st.sampled_from([0.0, 0.1, 0.5])] * 3),
    steps=st.lists(st.sampled_from(["put", "ask", "part", "heal", "run", "wait"]), max_size=60),
)
@settings(deadline=None, max_examples=60)
def test_whatever_happens_to_datagrams(
    seed: int, delay: float, shares: tuple[float, float, float], steps: list[str]
) -> None:
    """Nothing is delivered twice or out of order, nothing is made up, and every query ends."""
    net = Network(seed=seed)
    left, right, wire = pair(net, datagrams=True, delay=(0.0, delay))
    got = right.subscribe("a")
    right.declare_queryable("b", lambda query: query.reply("b", "x"))
    net.settle()
    wire.conditions = Conditions((0.0, delay), *shares, datagrams=True)
    queries, put = [], 0

    for step in steps:
        match step:
            case "put":
                left.put("a", str(put))
                put += 1
            case "ask":
                queries.append(left.get("b", timeout=5.0))
            case "part" | "heal":
                getattr(net, step)(left, right)
            case _:
                net.run(0.05 if step == "run" else 6.0)
    net.heal()
    net.run(10.0)

    arrived = numbers(list(got))
    assert arrived == sorted(set(arrived))
    assert set(arrived) <= set(range(put))
    assert all(replies.is_closed for replies in queries)
    if not any(shares) and "part" not in steps:
        assert arrived == list(range(put))


def test_a_lost_datagram_costs_its_own_samples_and_no_key_for_ever() -> None:
    net = Network(seed=11)
    left, right, wire = pair(net, datagrams=True)
    got = right.subscribe("fleet/**")
    publishers = [left.declare_publisher(f"fleet/{number}") for number in range(100)]
    net.settle()
    wire.conditions = Conditions(loss=0.2, datagrams=True)

    for _ in range(20):
        for publisher in publishers:
            publisher.put(b"here")
            net.run(0.001)

    assert len({str(sample.key_expr) for sample in got}) == 100
    assert len(got) < 2_000
