"""Who stops reading costs the others nothing: the matrix of slow subscribers and askers.

`python -m tests.hostile.slow` prints how fast they are; what is asserted here is that nobody waits for the stopped one.
Before, an acknowledged writer waited 5 s for it, and one who asked a store got no answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import elea
from tests.hostile.slow import CASES, Stopped, asking, keeping_broker, measured, subscribing
from tests.robust.hostile import Victim, eventually

STALL = 2.5
"""Seconds; waiting for somebody who takes nothing lasts 5."""

Broker = tuple[Victim, elea.Session, elea.Session]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with keeping_broker() as made:
        yield made


@pytest.mark.parametrize("case", CASES)
def test_others_are_not_held_up(broker: Broker, case: str) -> None:
    assert measured(broker[0], CASES[case], *broker[1:], rounds=2).stalled < STALL


def test_unread_answers_of_many_sessions_make_place(broker: Broker) -> None:
    victim, here, _ = broker
    asked = [asking("log/old/*", "_history") for _ in range(10)]
    stopped = [Stopped(victim, *asked) for _ in range(10)]
    time.sleep(0.5)

    since = time.monotonic()
    answers = [reply.ok for reply in here.get("log/old/*", timeout=30)]
    took = time.monotonic() - since

    for one in stopped:
        one.close()
    assert len(answers) == 2
    assert took < 5
    eventually(lambda: "the answer was not read" in str(victim.events), "it is told")


def test_stopped_subscriber_is_given_up_and_an_honest_one_is_not(broker: Broker) -> None:
    victim, here, there = broker
    got: list[int] = []
    stopped = Stopped(victim, subscribing("log/**"))
    with there.declare_subscriber("log/**", lambda sample: got.append(len(sample.payload.to_bytes()))):
        for number in range(300):
            here.put(f"log/live/{number % 5}", bytes(100_000), ack=True, durability="persistent")

        eventually(lambda: len(got) == 300, "the honest one has everything", show=lambda: len(got))
        eventually(lambda: "no room after 5 s" in str(victim.events), "the stopped one is given up")
    stopped.close()
