"""Leases, scouting and reconnection: what happens when, without a clock."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from elea.model.found import ANY_ROLE, Found
from elea.model.qos import Role
from elea.protocol.zenoh1 import (
    Backoff,
    ScoutAnswerer,
    Scouter,
    lease_ends,
    next_keep_alive,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1"

# -- leases ----------------------------------------------------------------------------------------------------------


def test_keep_alive_goes_four_times_a_lease() -> None:
    assert next_keep_alive(100.0, 10.0) == 102.5
    assert next_keep_alive(100.0, 10.0, per_lease=2) == 105.0
    assert lease_ends(100.0, 8.0) == 108.0


@pytest.mark.parametrize("phase", [0.0, 0.3, 1.1, 77.7])
def test_keep_alive_comes_after_half_to_all_of_the_time_it_may(phase: float) -> None:
    for last_sent in (100.0, 100.4, 101.2, 103.9):
        due = next_keep_alive(last_sent, 10.0, phase=phase)
        assert 1.25 < due - last_sent <= 2.50001
        assert next_keep_alive(due, 10.0, phase=phase) == pytest.approx(due + 2.5)  # and then as seldom as it may


def test_links_that_sent_at_one_moment_are_not_due_at_one_moment() -> None:
    due = sorted(next_keep_alive(100.0, 10.0, phase=opened * 0.0001) for opened in range(12_500))

    assert max(later - earlier for earlier, later in pairwise(due)) < 0.0002


# -- reconnection ----------------------------------------------------------------------------------------------------


def test_first_attempt_comes_at_once_then_waits_double() -> None:
    backoff = Backoff()

    assert [backoff.delay() for _ in range(6)] == [0.0, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert backoff.attempts == 6
    backoff.reset()
    assert (backoff.attempts, backoff.delay(), backoff.delay()) == (0, 0.0, 1.0)


def test_waits_are_configurable() -> None:
    backoff = Backoff(first=0.5, factor=1.5, longest=1.0)

    assert [backoff.delay() for _ in range(5)] == [0.0, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize(("first", "factor", "longest"), [(0.0, 2.0, 4.0), (1.0, 0.5, 4.0), (2.0, 2.0, 1.0)])
def test_waits_that_do_not_grow_are_refused(first: float, factor: float, longest: float) -> None:
    with pytest.raises(ValueError):
        Backoff(first=first, factor=factor, longest=longest)


# -- scouting --------------------------------------------------------------------------------------------------------

HELLO = bytes.fromhex("220900a101137463702f3132372e302e302e313a3238303636")


def test_scout_goes_at_once_then_ever_more_seldom() -> None:
    scouter = Scouter(ANY_ROLE, 0.0)
    sent: list[tuple[float, str]] = []
    while len(sent) < 6:
        now = scouter.next_deadline()
        sent += [(now, batch.hex()) for batch in scouter.to_send(now)]
        assert scouter.to_send(now) == []

    assert sent == [(at, "010907") for at in (0.0, 1.0, 3.0, 7.0, 15.0, 23.0)]


def test_recorded_scouting() -> None:
    records = {record["name"]: record["hex"] for record in json.loads((VECTORS / "scouting.json").read_text())}
    answerer = ScoutAnswerer(b"\xa1", Role.ROUTER, ["tcp/127.0.0.1:28066"])
    scouter = Scouter(Role.ROUTER | Role.PEER, 0.0)

    assert scouter.to_send(0.0) == [bytes.fromhex(records["scouting/scout_api"])]
    for asked, name in (("010907", "hello_any_nozid"), ("010901", "hello_router")):
        answer = answerer.receive(bytes.fromhex(asked))
        assert answer == bytes.fromhex(records[f"scouting/{name}"])
        assert scouter.receive(answer) == Found(b"\xa1", Role.ROUTER, ("tcp/127.0.0.1:28066",))
    assert answerer.answered == 2


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("what", range(8))
def test_node_answers_only_if_its_role_is_asked_for(role: Role, what: int) -> None:
    answerer = ScoutAnswerer(b"\xa1", role)

    assert (answerer.receive(bytes((1, 9, what))) is not None) == bool(what & role)


def test_node_without_locators_says_none() -> None:
    answer = ScoutAnswerer(b"\xa1", Role.PEER).receive(b"\x01\x09\x07")

    assert answer == bytes.fromhex("020901a1")
    assert Scouter(ANY_ROLE, 0.0).receive(answer) == Found(b"\xa1", Role.PEER, ())


def test_node_does_not_find_itself() -> None:
    scouter = Scouter(ANY_ROLE, 0.0, own_id=b"\xa1")

    assert scouter.receive(HELLO) is None
    assert scouter.receive(bytes.fromhex("020901a2")) == Found(b"\xa2", Role.PEER, ())
    assert scouter.ignored == 0


def test_node_does_not_answer_itself() -> None:
    answerer = ScoutAnswerer(b"\xa1", Role.PEER)

    assert answerer.receive(bytes.fromhex("01090fa1")) is None
    assert answerer.receive(bytes.fromhex("01091fa100")) is None
    assert answerer.receive(bytes.fromhex("01090fa2")) is not None


GARBAGE = ["", "01", "0108", "010807", "ff", "220900a1ff", "020903a1", "02090000", "020801a1", "04", "911f"]


@pytest.mark.parametrize("datagram", GARBAGE)
def test_unreadable_datagrams_are_counted(datagram: str) -> None:
    scouter, answerer = Scouter(ANY_ROLE, 0.0), ScoutAnswerer(b"\xa1", Role.PEER)

    assert scouter.receive(bytes.fromhex(datagram)) is None
    assert answerer.receive(bytes.fromhex(datagram)) is None
    assert (scouter.ignored, answerer.ignored) == (1, 1)


@pytest.mark.parametrize("what", [0, 8])
def test_scout_for_nobody_is_refused(what: int) -> None:
    with pytest.raises(ValueError):
        Scouter(what, 0.0)
