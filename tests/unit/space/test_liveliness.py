"""Liveliness tokens across a router. Spec: zenoh-1 section 15; what concerns interests is in the tests of 9.3."""

from __future__ import annotations

import pytest

from elea.model.qos import Role
from elea.space.face import Declare, Final, Undeclare
from tests.unit.space.fakes import BOTH, CURRENT, FUTURE, QBL, SUB, TOK, FakeFace, Node, T


@pytest.fixture
def node() -> Node:
    return Node(Role.ROUTER)


@pytest.fixture
def watcher(node: Node) -> FakeFace:
    return node.client("watcher")


def test_get_lists_the_tokens_of_everyone(node: Node, watcher: FakeFace) -> None:
    for face in (node.client("one"), node.peer("peer"), node.local, watcher):
        face.declares(TOK, f"t/{face.name}")

    answers = watcher.asks(3, CURRENT, T, "t/*")

    assert {a.key for a in answers if isinstance(a, Declare) and (a.id, a.interest_id) == (0, 3)} == {
        "t/one",
        "t/peer",
        "t/self",
        "t/watcher",
    }
    assert answers[-1] == Final(3)


def test_subscriber_without_history_hears_of_later_tokens_only(node: Node, watcher: FakeFace) -> None:
    one = node.client("one")
    one.declares(TOK, "t/old")

    assert watcher.asks(3, FUTURE, T, "t/*") == [Final(3)]
    number = one.declares(TOK, "t/new")
    one.undeclares(TOK, number)
    assert watcher.heard() == [Declare(TOK, 1, "t/new"), Undeclare(TOK, 1)]


def test_subscriber_with_history_hears_of_all(node: Node, watcher: FakeFace) -> None:
    node.client("one").declares(TOK, "t/old")

    assert watcher.asks(3, BOTH, T, "t/*") == [Declare(TOK, 1, "t/old", interest_id=3), Final(3)]


def test_token_declared_again_is_not_told_twice(node: Node, watcher: FakeFace) -> None:
    one = node.client("one")
    watcher.asks(3, BOTH, T, "t/*")

    one.says(Declare(TOK, 5, "t/1"), Declare(TOK, 5, "t/1"))

    assert watcher.heard() == [Declare(TOK, 1, "t/1")]


def test_token_lives_until_its_link_is_lost(node: Node, watcher: FakeFace) -> None:
    one = node.client("one")
    peer = node.peer("peer")
    for face in (watcher, peer, node.local):
        face.asks(3, BOTH, T)
    one.declares(TOK, "t/1")

    node.remove(one)

    for face in (watcher, peer, node.local):
        assert face.heard() == [Declare(TOK, 1, "t/1"), Undeclare(TOK, 1)]


def test_tokens_never_match_data_or_queries(node: Node, watcher: FakeFace) -> None:
    one = node.client("one")
    one.declares(TOK, "a")

    assert node.targets(watcher, "a") == set()
    assert not node.space.matching(watcher, SUB, "a")
    assert not node.space.matching(watcher, QBL, "a")
    assert node.space.matching(watcher, TOK, "a")
