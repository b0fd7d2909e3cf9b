"""Pull and periodic subscribers, in virtual time: no sample outside of a window, none lost, none early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import elea
from elea.api.apierrors import ChannelClosed
from elea.model.errors import OperationTimeout, SessionClosed
from elea.model.limits import PACED_SAMPLES
from elea.testing import Network, Node

START_NS = 1_000_000_000_000_000_000


def pair(net: Network) -> tuple[Node, Node]:
    """Two peers with a quick link."""
    left, right = net.peer("left"), net.peer("right")
    net.link(left, right, delay=0.001)
    return left, right


def texts(samples: list[elea.Sample]) -> list[str]:
    return [sample.payload.to_string() for sample in samples]


def test_pull_returns_what_has_come_and_no_more_than_asked() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    subscriber = right.declare_subscriber("a/*", mode=elea.Pull(max_samples=2))
    net.settle()
    for number in range(5):
        left.put(f"a/{number}", str(number))
    net.run(1.0)

    assert texts(subscriber.pull()) == ["0", "1"]
    assert texts(subscriber.pull(1)) == ["2"]
    assert texts(subscriber.pull(100)) == ["3", "4"]
    assert subscriber.pull() == []


def test_pull_hands_samples_to_the_function_there_is() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    got: list[elea.Sample] = []
    subscriber = right.declare_subscriber("a", got.append, mode=elea.Pull())
    net.settle()
    left.put("a", "x")
    net.run(1.0)
    assert got == []

    assert subscriber.pull() == []
    net.run(0.1)

    assert texts(got) == ["x"]


def test_more_than_the_bound_makes_the_oldest_give_way() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    subscriber = right.declare_subscriber("a", mode=elea.Pull())
    net.settle()
    for number in range(PACED_SAMPLES + 3):
        left.put("a", str(number), congestion_control=elea.CongestionControl.BLOCK)
    net.run(60.0)

    assert subscriber.dropped == 3
    assert texts(subscriber.pull(2)) == ["3", "4"]


def test_periodic_samples_come_in_windows_only() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    got: list[tuple[float, str]] = []

    def note(sample: elea.Sample) -> None:
        got.append((round(net.now - declared, 3), sample.payload.to_string()))

    net.settle()
    declared = net.now
    right.declare_subscriber("a", note, mode=elea.Periodic(period=10, duration=2, origin=5.0))
    for number in range(30):
        net.run(declared + number + 0.5 - net.now)
        left.put("a", str(number))
    net.run(declared + 40 - net.now)

    windows = {at for at, _ in got}
    assert [text for _, text in got] == [str(number) for number in range(30)]
    assert all((at - 5) % 10 < 2 for at in windows)
    # What came between windows waits for the next opening; what comes inside is given at once.
    assert windows == {5.0, 5.501, 6.501, 15.0, 15.501, 16.501, 25.0, 25.501, 26.501, 35.0}


def test_an_origin_can_be_a_time_of_day() -> None:
    net = Network(seed=1, start_ns=START_NS)
    left, right = pair(net)
    got: list[float] = []
    net.settle()
    origin = datetime.fromtimestamp(START_NS / 1e9, UTC) + timedelta(seconds=100)
    mode = elea.Periodic(timedelta(seconds=60), timedelta(seconds=1), origin)
    right.declare_subscriber("a", lambda _: got.append(round(net.now, 3)), mode=mode)
    net.settle()

    left.put("a", "x")
    net.run(110.0)
    left.put("a", "y")
    net.run(110.0)

    assert got == [100.0, 160.0]


def test_a_pull_outside_a_window_is_answered_when_the_next_opens() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    net.settle()
    declared = net.now
    subscriber = right.declare_subscriber("a", mode=elea.Periodic(10, 1, pull=True))
    net.run(2.0)
    left.put("a", "x")
    net.run(1.0)

    assert texts(subscriber.pull()) == ["x"]

    assert round(net.now - declared, 3) == 10.0
    left.put("a", "y")
    net.run(0.1)
    assert texts(subscriber.pull()) == ["y"]
    assert round(net.now - declared, 3) == 10.1


def test_a_periodic_pull_by_a_function_waits_for_the_window() -> None:
    net = Network(seed=1)
    left, right = pair(net)
    got: list[float] = []
    net.settle()
    declared = net.now
    mode = elea.Periodic(10, 1, pull=True)
    subscriber = right.declare_subscriber("a", lambda _: got.append(round(net.now - declared, 3)), mode=mode)
    net.run(2.0)
    left.put("a", "x")
    net.run(20.0)
    assert got == []

    subscriber.pull()
    net.run(20.0)

    assert got == [30.0]


def test_a_pull_that_waits_too_long_says_so() -> None:
    net = Network(seed=1)
    _, right = pair(net)
    subscriber = right.declare_subscriber("a", mode=elea.Periodic(10, 1, pull=True))
    net.run(2.0)

    with pytest.raises(OperationTimeout):
        subscriber.pull(timeout=3)


def test_nothing_is_pulled_from_an_ended_subscriber() -> None:
    net = Network(seed=1)
    _, right = pair(net)
    subscriber = right.declare_subscriber("a", mode=elea.Pull())
    waiting = right.declare_subscriber("b", mode=elea.Periodic(10, 1, pull=True))
    net.run(2.0)
    subscriber.undeclare()
    right._node.loop.after(1.0, waiting.undeclare)

    with pytest.raises(SessionClosed):
        subscriber.pull()
    with pytest.raises(ChannelClosed):
        waiting.pull()


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        (lambda: elea.Pull(0), "one sample at least"),
        (lambda: elea.Periodic(1, 1), "less than its period"),
        (lambda: elea.Periodic(1, 0), "more than nothing"),
    ],
)
def test_a_mode_without_sense_is_refused(mode: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        mode()


def test_a_plain_subscriber_says_how_to_pull() -> None:
    net = Network(seed=1)
    _, right = pair(net)

    with pytest.raises(TypeError, match="declare it with mode"):
        right.declare_subscriber("a").pull()
    with pytest.raises(TypeError, match="declare it with mode"):
        right.declare_subscriber("a", mode=elea.Periodic(2, 1)).pull()
