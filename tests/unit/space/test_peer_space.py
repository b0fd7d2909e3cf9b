"""A peer among peers, routers and clients. Spec: zenoh-1 sections 13.3, 13.4."""

from __future__ import annotations

import pytest

from elea.model.qos import Role
from elea.space.face import Declare, Final, Interest, InterestDone, Undeclare
from tests.unit.space.fakes import BOTH, CURRENT, FUTURE, QBL, SUB, TOK, Node, S, T


@pytest.fixture
def node() -> Node:
    return Node(Role.PEER)


def test_new_peer_is_told_all_then_final_0(node: Node) -> None:
    node.local.declares(SUB, "a")
    node.client("client").declares(TOK, "t")

    assert node.peer("peer").heard() == [Declare(SUB, 1, "a"), Declare(TOK, 2, "t"), Final(0)]
    assert node.peer("other").heard() == [Declare(SUB, 1, "a"), Declare(TOK, 2, "t"), Final(0)]


def test_peer_without_declarations_sends_final_0(node: Node) -> None:
    assert node.peer("peer").heard() == [Final(0)]


def test_later_declarations_flow_at_once_and_are_not_relayed(node: Node) -> None:
    peer, other = node.peer("peer"), node.peer("other")
    for face in (peer, other):
        face.heard()

    number = node.local.declares(QBL, "q", complete=True)
    peer.declares(SUB, "theirs")
    node.local.undeclares(QBL, number)

    assert peer.heard() == other.heard() == [Declare(QBL, 1, "q", True), Undeclare(QBL, 1)]


def test_no_interest_is_sent_to_peers_and_theirs_are_ignored(node: Node) -> None:
    peer = node.peer("peer")
    peer.says(Declare(TOK, 1, "t"), Final(0))
    peer.heard()

    # Answered from what is known.
    assert node.local.asks(1, BOTH, T) == [Declare(TOK, 1, "t", interest_id=1), Final(1)]
    assert node.local.asks(2, CURRENT, T) == [Declare(TOK, 0, "t", interest_id=2), Final(2)]
    assert peer.heard() == []
    assert peer.asks(1, BOTH, S) == []
    assert node.space.ignored.unasked_interest == 1


def test_own_session_does_not_hear_its_own_tokens(node: Node) -> None:
    node.local.declares(TOK, "t")

    assert node.local.asks(1, CURRENT, T) == [Final(1)]


def test_router_is_treated_as_a_client_would(node: Node) -> None:
    node.local.declares(SUB, "s")
    node.local.asks(7, BOTH, S, "p")
    node.local.heard()

    router = node.router("router")

    # Interests and declarations, and no final of interest 0.
    assert router.heard() == [Interest(1, BOTH, S, "p"), Declare(SUB, 1, "s")]


def test_clients_entities_go_to_routers_and_peers_as_own(node: Node) -> None:
    client, peer, router = node.client("client"), node.peer("peer"), node.router("router")
    peer.heard()

    number = client.declares(SUB, "a")
    node.local.declares(SUB, "a")
    client.undeclares(SUB, number)
    peer.declares(SUB, "theirs")
    router.declares(SUB, "far")

    assert peer.heard() == [Declare(SUB, 1, "a")]
    assert router.heard() == [Declare(SUB, 1, "a")]


def test_clients_interest_is_repeated_to_the_router_only(node: Node) -> None:
    client, peer, router = node.client("client"), node.peer("peer"), node.router("router")
    peer.says(Declare(SUB, 1, "a/peer"), Final(0))
    peer.heard()

    assert client.asks(5, BOTH, S, "a/*") == [Declare(SUB, 1, "a/peer", interest_id=5)]
    assert router.heard() == [Interest(1, BOTH, S, "a/*")]
    assert peer.heard() == []
    router.says(Declare(SUB, 9, "a/far", interest_id=1), Final(1))
    assert client.heard() == [Declare(SUB, 2, "a/far", interest_id=5), Final(5)]
    router.says(Declare(SUB, 10, "a/later"), Undeclare(SUB, 9))
    assert client.heard() == [Declare(SUB, 3, "a/later"), Undeclare(SUB, 2)]
    client.ends(5)
    assert router.heard() == [InterestDone(1)]


def test_interest_is_answered_when_all_routers_have_answered(node: Node) -> None:
    first, second = node.router("first"), node.router("second")
    node.local.asks(1, BOTH, S, "a")

    first.says(Final(1))
    assert node.local.heard() == []
    second.says(Final(1))
    assert node.local.heard() == [Final(1)]


def test_lost_client_takes_its_interests_along(node: Node) -> None:
    client, router = node.client("client"), node.router("router")
    client.asks(5, BOTH, S, "a")
    client.asks(6, CURRENT, T, "a")
    router.heard()

    node.remove(client)

    assert router.heard() == [InterestDone(1)]


def test_client_of_a_peer_hears_its_own_tokens(node: Node) -> None:
    client = node.client("client")
    client.declares(TOK, "t")

    assert client.asks(1, CURRENT, T) == [Declare(TOK, 0, "t", interest_id=1), Final(1)]


def test_question_about_now_is_passed_on_and_its_answer_not_kept(node: Node) -> None:
    client, router = node.client("client"), node.router("router")
    node.local.declares(TOK, "t/1")

    assert client.asks(5, CURRENT, T, "t/*") == [Declare(TOK, 0, "t/1", interest_id=5)]
    router.says(Declare(TOK, 0, "t/1", interest_id=1), Declare(TOK, 0, "t/2", interest_id=1), Final(1))
    assert client.heard() == [Declare(TOK, 0, "t/2", interest_id=5), Final(5)]
    client.ends(5)
    assert node.space.ignored.unknown_interest == 1
    assert node.space.snapshot().tokens.keys() == {"t/1"}


def test_end_of_an_older_token_is_passed_on_by_key(node: Node) -> None:
    client, router, peer = node.client("client"), node.router("router"), node.peer("peer")
    client.asks(5, FUTURE, T, "t/*")
    router.says(Final(1))
    peer.says(Declare(TOK, 1, "t/known"))
    client.heard()
    peer.heard()

    router.says(Undeclare(TOK, 0, "t/old"), Undeclare(TOK, 0, "t/known"), Undeclare(TOK, 0, "t//"))
    peer.says(Undeclare(TOK, 0, "t/other"))

    assert client.heard() == [Undeclare(TOK, 0, "t/old")]
    assert peer.heard() == []
    assert (node.space.ignored.invalid_key, node.space.ignored.unknown_declaration) == (1, 1)


def test_nothing_is_left_of_neighbours_that_are_gone(node: Node) -> None:
    client, peer, router = node.client("client"), node.peer("peer"), node.router("router")
    for face in (client, peer, router, node.local):
        for entity in (SUB, QBL, TOK):
            face.declares(entity, "a")
    for face in (client, node.local):
        face.asks(1, BOTH, S, "a")
        face.asks(2, CURRENT, T)
        face.asks(3, FUTURE, T)
        face.asks(4, BOTH, S, "a", aggregate=True)
        face.queries(1, "a")

    for face in (router, client, peer, node.local):
        node.remove(face)

    upstream, interests = node.space._upstream, node.space._interests
    books = (upstream._by_id, upstream._shared, upstream._by_key, interests._by_id, node.space._announcements._told)
    assert [len(book) for book in books] == [0] * len(books)
    assert [wanted for held in upstream._of.values() for wanted in held] == []
    assert (len(interests._by_key), interests._unrestricted, node.space.next_deadline()) == (0, [], None)


def test_withdrawn_asker_of_a_shared_interest_is_not_answered_and_the_other_is(node: Node) -> None:
    router, client = node.router("router"), node.client("client")
    router.heard()
    client.asks(5, BOTH, S, "a")
    node.local.asks(6, BOTH, S, "a")
    (asked,) = [message for message in router.heard() if isinstance(message, Interest)]

    client.says(InterestDone(5))
    assert router.heard() == []  # the other one still asks
    router.says(Declare(SUB, 1, "a", interest_id=asked.id), Final(asked.id))

    assert client.heard() == []
    assert node.local.heard()[-1] == Final(6)
    node.local.says(InterestDone(6))
    assert router.heard() == [InterestDone(asked.id)]
