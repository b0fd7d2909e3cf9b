"""A client: what it says to its gateway and what its own session hears. Spec: zenoh-1 section 13.1."""

from __future__ import annotations

import pytest

from elea.model.qos import Role
from elea.space.face import Declare, Final, Interest, InterestDone, Undeclare
from tests.unit.space.fakes import BOTH, CURRENT, FUTURE, QBL, SUB, TOK, FakeFace, Node, Q, S, T


@pytest.fixture
def node() -> Node:
    return Node(Role.CLIENT)


@pytest.fixture
def router(node: Node) -> FakeFace:
    return node.router("router")


def test_client_says_nothing_at_the_start(router: FakeFace) -> None:
    assert router.heard() == []


def test_entities_on_one_key_share_a_declaration(node: Node, router: FakeFace) -> None:
    first, second = node.local.declares(SUB, "a"), node.local.declares(SUB, "a")
    assert router.heard() == [Declare(SUB, 1, "a")]

    node.local.undeclares(SUB, first)
    assert router.heard() == []
    node.local.undeclares(SUB, second)
    assert router.heard() == [Undeclare(SUB, 1)]


def test_queryable_is_declared_again_when_completeness_changes(node: Node, router: FakeFace) -> None:
    node.local.declares(QBL, "q")
    number = node.local.declares(QBL, "q", complete=True)
    node.local.undeclares(QBL, number)

    assert router.heard() == [Declare(QBL, 1, "q"), Declare(QBL, 1, "q", True), Declare(QBL, 1, "q")]


def test_publishers_on_one_key_share_an_interest(node: Node, router: FakeFace) -> None:
    assert node.local.asks(11, BOTH, S, "a") == []
    assert node.local.asks(12, BOTH, S, "a") == []
    node.local.asks(13, BOTH, Q, "a")
    assert router.heard() == [Interest(1, BOTH, S, "a"), Interest(2, BOTH, Q, "a")]

    router.says(Final(1))
    assert node.local.heard() == [Final(11), Final(12)]
    assert node.local.asks(14, BOTH, S, "a") == [Final(14)]
    for number in (11, 12):
        node.local.ends(number)
    assert router.heard() == []
    node.local.ends(14)
    assert router.heard() == [InterestDone(1)]


def test_answers_of_the_router_are_relayed_into_the_interest(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, S, "a/*")

    router.says(Declare(SUB, 4, "a/1", interest_id=1), Declare(SUB, 4, "a/1", interest_id=1), Declare(SUB, 5, "a/2"))
    router.says(Final(1), Undeclare(SUB, 4))

    assert node.local.heard() == [
        Declare(SUB, 1, "a/1", interest_id=7),
        Declare(SUB, 2, "a/2"),
        Final(7),
        Undeclare(SUB, 1),
    ]


def test_known_entity_answers_a_second_interest_too(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, S, "a/*")
    node.local.asks(8, BOTH, S, "*/1")

    router.says(Declare(SUB, 4, "a/1", interest_id=1), Final(1), Declare(SUB, 4, "a/1", interest_id=2), Final(2))

    # The second time for the interest that waits for it, under the same id.
    assert node.local.heard() == [
        Declare(SUB, 1, "a/1", interest_id=7),
        Final(7),
        Declare(SUB, 1, "a/1", interest_id=8),
        Final(8),
    ]


def test_aggregate_interest_is_answered_once_through_the_router(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, S, "a/*", aggregate=True)
    assert router.heard() == [Interest(1, BOTH, S, "a/*", True)]

    router.says(Declare(SUB, 4, "a/*", interest_id=1), Final(1))

    assert node.local.heard() == [Declare(SUB, 1, "a/*", interest_id=7), Final(7)]


def test_silent_router_is_taken_to_have_answered(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, S, "a")
    node.local.asks(8, BOTH, S, "a")
    node.local.asks(9, CURRENT, T, "a")
    assert node.space.next_deadline() == node.now + 10

    node.wait(9.9)
    assert node.local.heard() == []
    node.wait(0.2)
    assert node.local.heard() == [Final(7), Final(8), Final(9)]
    assert node.space.next_deadline() is None
    # Silence does not prove that nobody is there.
    assert node.targets(node.local, "a") == {"router"}


def test_interest_withdrawn_before_its_answer(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, S, "a")
    node.local.asks(8, CURRENT, T, "a")
    node.local.ends(7)
    node.local.ends(8)

    assert router.heard() == [Interest(1, BOTH, S, "a"), Interest(2, CURRENT, T, "a"), InterestDone(1)]
    router.says(Final(1))
    assert node.local.heard() == []
    assert (node.space.next_deadline(), node.space.ignored.unexpected_final) == (None, 1)


def test_without_a_gateway_interests_are_answered_at_once(node: Node) -> None:
    assert node.local.asks(1, BOTH, S, "a") == [Final(1)]


def test_lost_router_answers_what_waits_and_takes_its_entities_along(node: Node, router: FakeFace) -> None:
    node.local.asks(7, BOTH, T)
    node.local.asks(8, CURRENT, T)
    router.says(Declare(TOK, 3, "t", interest_id=1))

    node.remove(router)

    assert node.local.heard() == [Declare(TOK, 1, "t", interest_id=7), Undeclare(TOK, 1), Final(7), Final(8)]


def test_new_router_gets_interests_then_subscribers_queryables_tokens(node: Node, router: FakeFace) -> None:
    local = node.local
    local.declares(TOK, "t")
    local.declares(QBL, "q")
    local.declares(SUB, "s1")
    local.undeclares(SUB, 3)
    local.declares(SUB, "s")
    local.asks(7, BOTH, S, "a")
    local.asks(8, FUTURE, T, "t/*")
    router.says(Final(1), Final(2))
    node.remove(router)

    again = node.router("router")

    # Everything with fresh ids of the new link.
    assert again.heard() == [
        Interest(1, BOTH, S, "a"),
        Interest(2, BOTH, T, "t/*"),
        Declare(SUB, 1, "s"),
        Declare(QBL, 2, "q"),
        Declare(TOK, 3, "t"),
    ]
    assert node.targets(local, "a") == {"router"}
    local.heard()
    again.says(Final(1), Declare(TOK, 9, "t/1", interest_id=2), Final(2))
    assert node.targets(local, "a") == set()
    assert local.heard() == [Declare(TOK, 1, "t/1")]


def test_second_asker_waits_for_a_renewed_interest(node: Node) -> None:
    node.local.asks(7, BOTH, S, "a")
    node.local.heard()
    router = node.router("router")

    assert node.local.asks(8, BOTH, S, "a") == []
    router.says(Final(1))

    assert node.local.heard() == [Final(8)]


def test_interest_from_the_router_is_ignored(node: Node, router: FakeFace) -> None:
    assert router.asks(1, BOTH, S) == []
    assert node.space.ignored.unasked_interest == 1


def test_two_unrestricted_interests_end_apart(node: Node, router: FakeFace) -> None:
    node.local.asks(1, BOTH, S)
    node.local.asks(2, FUTURE, S)

    node.local.ends(1)

    assert router.heard() == [Interest(1, BOTH, S), Interest(2, FUTURE, S), InterestDone(1)]


def test_two_interests_on_one_key_end_apart(node: Node, router: FakeFace) -> None:
    node.local.asks(1, BOTH, S, "a")
    node.local.asks(2, BOTH, Q, "a")
    router.says(Final(1), Final(2))

    node.local.ends(2)

    assert node.targets(node.local, "a") == set()


def test_answers_of_a_kind_not_asked_for_are_kept_but_not_passed_on(node: Node, router: FakeFace) -> None:
    node.local.asks(1, BOTH, S, "a")
    node.local.asks(2, CURRENT, T, "a")

    router.says(Declare(QBL, 1, "a", interest_id=1), Declare(QBL, 2, "b", interest_id=2))

    assert node.local.heard() == []
    assert node.space.matching(node.local, QBL, "b")


def test_face_is_added_once(node: Node, router: FakeFace) -> None:
    with pytest.raises(ValueError, match="there already"):
        node.space.add_face(router)
