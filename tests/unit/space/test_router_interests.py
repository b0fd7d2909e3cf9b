"""A router towards clients and peers: what it tells whom. Spec: zenoh-1 sections 9.3, 13.2, 17.5."""

from __future__ import annotations

import pytest

from elea.model.qos import Role
from elea.space.face import Declare, Entity, Final, Interest, Kinds, Undeclare
from tests.unit.space.fakes import BOTH, CURRENT, FUTURE, QBL, SUB, TOK, FakeFace, Node, Q, S, T


@pytest.fixture
def node() -> Node:
    return Node(Role.ROUTER)


@pytest.fixture
def one(node: Node) -> FakeFace:
    return node.client("one")


@pytest.fixture
def two(node: Node) -> FakeFace:
    return node.client("two")


def test_nothing_is_said_at_the_start_nor_without_interest(node: Node, one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "a/b")

    assert one.heard() == []
    assert node.client("three").heard() == []
    assert node.peer("four").heard() == []


def test_current_future_gets_matches_final_and_updates(one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "a/b")
    two.declares(SUB, "z")

    assert one.asks(7, BOTH, S, "a/*") == [Declare(SUB, 1, "a/b", interest_id=7), Final(7)]
    second = two.declares(SUB, "a/c")
    two.declares(SUB, "y")
    assert one.heard() == [Declare(SUB, 2, "a/c")]
    two.undeclares(SUB, second)
    assert one.heard() == [Undeclare(SUB, 2)]


def test_unrestricted_interest_gets_every_kind_asked_for(one: FakeFace, two: FakeFace) -> None:
    for entity, key in ((SUB, "s"), (QBL, "q"), (TOK, "t")):
        two.declares(entity, key)

    answers = one.asks(1, BOTH, S | Q | T)

    assert answers == [
        Declare(SUB, 1, "s", interest_id=1),
        Declare(QBL, 2, "q", interest_id=1),
        Declare(TOK, 3, "t", interest_id=1),
        Final(1),
    ]


def test_future_gets_final_at_once_then_updates(one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "old")

    assert one.asks(3, FUTURE, S) == [Final(3)]
    two.declares(SUB, "new")
    assert one.heard() == [Declare(SUB, 1, "new")]


@pytest.mark.parametrize("entity", [SUB, QBL, TOK])
def test_future_is_not_told_that_one_of_two_older_sources_left(node: Node, two: FakeFace, entity: Entity) -> None:
    asker, other = node.client("asker"), node.client("other")
    first = two.declares(entity, "a")
    other.declares(entity, "a")
    asker.asks(3, FUTURE, S | Q | T)

    two.undeclares(entity, first)

    assert asker.heard() == []


@pytest.mark.parametrize("kinds", [S, Q, S | Q, S | T, Q | T, S | Q | T, Kinds.KEYEXPRS, Kinds(0)])
def test_current_is_for_tokens_only(node: Node, one: FakeFace, two: FakeFace, kinds: Kinds) -> None:
    two.declares(SUB, "a")

    assert one.asks(4, CURRENT, kinds) == []
    assert node.space.ignored.current_interest == 1


def test_current_answers_have_id_0_and_nothing_follows(one: FakeFace, two: FakeFace) -> None:
    token = two.declares(TOK, "a")

    assert one.asks(4, CURRENT, T | Kinds.KEYEXPRS, "*") == [Declare(TOK, 0, "a", interest_id=4), Final(4)]
    two.undeclares(TOK, token)
    two.declares(TOK, "b")
    assert one.heard() == []


def test_entity_is_declared_per_interest_under_one_id(one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "a")

    assert one.asks(1, BOTH, S, "a")[0] == Declare(SUB, 1, "a", interest_id=1)
    assert one.asks(2, BOTH, S, "*")[0] == Declare(SUB, 1, "a", interest_id=2)
    two.declares(SUB, "b")
    assert one.heard() == [Declare(SUB, 2, "b")]


def test_one_declaration_per_key_however_many_sources(node: Node, one: FakeFace, two: FakeFace) -> None:
    three = node.client("three")
    one.asks(1, BOTH, S)

    first = two.declares(SUB, "a")
    second = three.declares(SUB, "a")
    third = two.declares(SUB, "a")
    assert one.heard() == [Declare(SUB, 1, "a")]
    two.undeclares(SUB, first)
    three.undeclares(SUB, second)
    assert one.heard() == []
    two.undeclares(SUB, third)
    assert one.heard() == [Undeclare(SUB, 1)]
    two.declares(SUB, "a")
    assert one.heard() == [Declare(SUB, 2, "a")]


def test_own_subscribers_and_queryables_are_left_out(one: FakeFace, two: FakeFace) -> None:
    one.declares(SUB, "a")
    one.declares(QBL, "a")

    assert one.asks(1, BOTH, S | Q) == [Final(1)]
    one.declares(SUB, "b")
    assert one.heard() == []
    two.declares(SUB, "a")
    assert one.heard() == [Declare(SUB, 1, "a")]


def test_queryable_on_own_key_is_undeclared_too(one: FakeFace, two: FakeFace) -> None:
    # 1.10.2 forgets it; the specification says not to imitate that.
    one.declares(QBL, "a")
    one.asks(1, BOTH, Q)
    number = two.declares(QBL, "a")

    two.undeclares(QBL, number)

    assert one.heard() == [Declare(QBL, 1, "a"), Undeclare(QBL, 1)]


@pytest.mark.parametrize("mode", [CURRENT, BOTH])
def test_own_tokens_are_told_to_a_client(one: FakeFace, mode: object) -> None:
    one.declares(TOK, "a")

    assert [type(m) for m in one.asks(1, mode, T)] == [Declare, Final]  # type: ignore[arg-type]


def test_own_later_tokens_are_told_to_a_client(one: FakeFace) -> None:
    one.asks(1, FUTURE, T)

    number = one.declares(TOK, "a")
    one.undeclares(TOK, number)

    assert one.heard() == [Declare(TOK, 1, "a"), Undeclare(TOK, 1)]


def test_peer_hears_nothing_of_the_peer_region(node: Node, one: FakeFace) -> None:
    peer, other = node.peer("peer"), node.peer("other")
    for entity in (SUB, QBL, TOK):
        peer.declares(entity, "mine")
        other.declares(entity, "theirs")
        one.declares(entity, "client")

    assert peer.asks(1, BOTH, S | Q | T) == [
        Declare(SUB, 1, "client", interest_id=1),
        Declare(QBL, 2, "client", interest_id=1),
        Declare(TOK, 3, "client", interest_id=1),
        Final(1),
    ]
    assert peer.asks(2, CURRENT, T, "mine") == [Final(2)]
    other.declares(TOK, "more")
    assert peer.heard() == []


def test_client_and_own_session_hear_of_peers(node: Node, one: FakeFace) -> None:
    peer = node.peer("peer")
    peer.declares(SUB, "a")

    assert one.asks(1, BOTH, S) == [Declare(SUB, 1, "a", interest_id=1), Final(1)]
    assert node.local.asks(1, BOTH, S) == [Declare(SUB, 1, "a", interest_id=1), Final(1)]
    node.local.declares(QBL, "q")
    assert one.asks(2, BOTH, Q) == [Declare(QBL, 2, "q", interest_id=2), Final(2)]


def test_older_token_of_a_future_interest_ends_by_key_and_id_0(one: FakeFace, two: FakeFace) -> None:
    token, subscriber = two.declares(TOK, "al/1"), two.declares(SUB, "al/1")
    one.asks(1, FUTURE, S | T)

    two.undeclares(SUB, subscriber)
    two.undeclares(TOK, token)

    assert one.heard() == [Undeclare(TOK, 0, "al/1")]


def test_end_of_interest_stops_news_and_undoes_nothing(one: FakeFace, two: FakeFace) -> None:
    one.asks(1, BOTH, S)
    number = two.declares(SUB, "a")
    one.heard()

    one.ends(1)
    two.declares(SUB, "b")
    assert one.heard() == []
    two.undeclares(SUB, number)
    assert one.heard() == [Undeclare(SUB, 1)]


def test_unknown_interest_is_ignored(node: Node, one: FakeFace) -> None:
    one.ends(99)

    assert one.heard() == []
    assert node.space.ignored.unknown_interest == 1


def test_interest_with_invalid_key_gets_final_only(node: Node, one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "a")

    assert one.asks(1, BOTH, S, "a//b") == [Final(1)]
    assert node.space.ignored.invalid_key == 1
    one.ends(1)
    assert node.space.ignored.unknown_interest == 1


def test_interest_id_used_again_replaces_the_first(one: FakeFace, two: FakeFace) -> None:
    one.asks(1, BOTH, S, "a")
    one.asks(1, BOTH, S, "b")

    two.declares(SUB, "a")
    two.declares(SUB, "b")

    assert one.heard() == [Declare(SUB, 1, "b")]


def test_interest_of_a_router_is_ignored(node: Node) -> None:
    router = node.router("router")

    assert router.asks(1, BOTH, S) == []
    assert node.space.ignored.unasked_interest == 1


def test_queryable_completeness_is_or_and_updated_under_the_same_id(node: Node, one: FakeFace, two: FakeFace) -> None:
    three = node.client("three")
    one.asks(1, BOTH, Q)

    two.declares(QBL, "q")
    number = three.declares(QBL, "q", complete=True)
    three.undeclares(QBL, number)
    assert one.heard() == [Declare(QBL, 1, "q"), Declare(QBL, 1, "q", True), Declare(QBL, 1, "q")]
    two.says(Declare(QBL, 1, "q", True))
    assert one.heard() == [Declare(QBL, 1, "q", True)]
    one.ends(1)
    two.says(Declare(QBL, 1, "q"))
    assert one.heard() == []


def test_completeness_counts_only_sources_the_neighbour_hears(one: FakeFace, two: FakeFace) -> None:
    one.declares(QBL, "q", complete=True)
    one.asks(1, BOTH, Q)

    two.declares(QBL, "q")

    assert one.heard() == [Declare(QBL, 1, "q", False)]


# -- aggregates ------------------------------------------------------------------------------------------------


def test_aggregate_is_one_declaration_on_the_interests_key(one: FakeFace, two: FakeFace) -> None:
    first = two.declares(SUB, "k/**")

    assert one.asks(1, BOTH, S, "k/x/*", aggregate=True) == [Declare(SUB, 1, "k/x/*", interest_id=1), Final(1)]
    second = two.declares(SUB, "k/x/1")
    two.undeclares(SUB, first)
    assert one.heard() == []
    two.undeclares(SUB, second)
    assert one.heard() == [Undeclare(SUB, 1)]
    two.declares(SUB, "k/x/2")
    assert one.heard() == [Declare(SUB, 2, "k/x/*")]


def test_aggregate_without_match_is_final_only(one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "other")

    assert one.asks(1, BOTH, S, "k/*", aggregate=True) == [Final(1)]


def test_aggregate_queryable_is_complete_if_a_complete_one_includes_the_key(one: FakeFace, two: FakeFace) -> None:
    two.declares(QBL, "kq/a", complete=True)

    assert one.asks(1, BOTH, Q, "kq/a", aggregate=True)[0] == Declare(QBL, 1, "kq/a", True, interest_id=1)
    assert one.asks(2, BOTH, Q, "kq/**", aggregate=True)[0] == Declare(QBL, 2, "kq/**", False, interest_id=2)
    two.declares(QBL, "kq/**", complete=True)
    assert one.heard() == [Declare(QBL, 2, "kq/**", True)]


def test_ended_aggregate_is_still_undeclared_once(node: Node, one: FakeFace, two: FakeFace) -> None:
    number = two.declares(SUB, "k/1")
    one.asks(1, BOTH, S | Q, "k/*", aggregate=True)
    one.ends(1)

    two.declares(QBL, "k/1")
    two.undeclares(SUB, number)
    assert one.heard() == [Undeclare(SUB, 1)]
    two.declares(SUB, "k/1")
    assert one.heard() == []


def test_ended_aggregate_of_two_kinds_stands_until_both_are_gone(one: FakeFace, two: FakeFace) -> None:
    subscriber, queryable = two.declares(SUB, "k/1"), two.declares(QBL, "k/1")
    one.asks(1, BOTH, S | Q, "k/*", aggregate=True)
    one.ends(1)

    two.undeclares(SUB, subscriber)
    two.undeclares(QBL, queryable)

    assert one.heard() == [Undeclare(SUB, 1), Undeclare(QBL, 2)]


def test_neighbour_may_go_while_an_ended_aggregate_stands(node: Node, one: FakeFace, two: FakeFace) -> None:
    number = two.declares(SUB, "k/1")
    one.asks(1, BOTH, S, "k/*", aggregate=True)
    one.ends(1)

    node.remove(one)
    two.undeclares(SUB, number)

    assert one.heard() == []


def test_tokens_are_never_aggregated(one: FakeFace, two: FakeFace) -> None:
    two.declares(TOK, "k/1")

    assert one.asks(1, BOTH, T, "k/*", aggregate=True) == [Declare(TOK, 1, "k/1", interest_id=1), Final(1)]


def test_aggregate_of_a_peer_is_ignored(node: Node, two: FakeFace) -> None:
    two.declares(SUB, "k/1")

    assert node.peer("peer").asks(1, BOTH, S, "k/*", aggregate=True)[0] == Declare(SUB, 1, "k/1", interest_id=1)


def test_aggregate_without_key_is_plain(one: FakeFace, two: FakeFace) -> None:
    two.declares(SUB, "k/1")

    assert one.asks(1, BOTH, S, None, aggregate=True)[0] == Declare(SUB, 1, "k/1", interest_id=1)


# -- neighbours that go ------------------------------------------------------------------------------------------


def test_lost_neighbour_is_undeclared_and_its_interests_dropped(node: Node, one: FakeFace, two: FakeFace) -> None:
    one.asks(1, BOTH, S | Q | T)
    two.asks(1, BOTH, S)
    for entity in (SUB, QBL, TOK):
        two.declares(entity, "a")
    one.heard()

    node.remove(two)
    one.declares(SUB, "b")

    assert one.heard() == [Undeclare(SUB, 1), Undeclare(QBL, 2), Undeclare(TOK, 3)]
    assert two.heard() == []
    assert node.targets(one, "a") == set()


def test_removing_twice_and_messages_of_the_gone_are_harmless(node: Node, one: FakeFace) -> None:
    assert node.space.knows(one)
    node.remove(one)
    node.remove(one)

    one.says(Interest(1, BOTH, S))

    assert one.heard() == []
    assert not node.space.knows(one)
    assert node.space.ignored.unknown_face == 1


# -- odd declarations ------------------------------------------------------------------------------------------


def test_live_id_taken_for_another_key_keeps_both(node: Node, one: FakeFace, two: FakeFace) -> None:
    one.says(Declare(SUB, 1, "a"), Declare(SUB, 1, "b"))
    assert (node.targets(two, "a"), node.targets(two, "b")) == ({"one"}, {"one"})

    one.says(Undeclare(SUB, 1), Undeclare(SUB, 1))
    assert (node.targets(two, "a"), node.targets(two, "b")) == ({"one"}, set())
    assert node.space.ignored.unknown_declaration == 1

    node.remove(one)
    assert node.targets(two, "a") == set()


def test_invalid_keys_and_stray_finals_are_counted_only(node: Node, one: FakeFace) -> None:
    one.says(Declare(SUB, 1, "a//b"), Final(0), Final(3), Undeclare(SUB, 9), Undeclare(TOK, 9, "x"))

    assert one.heard() == []
    ignored = node.space.ignored
    assert (ignored.invalid_key, ignored.unexpected_final, ignored.unknown_declaration) == (1, 2, 2)


def test_token_is_undeclared_by_key_when_the_id_is_unknown(node: Node, one: FakeFace, two: FakeFace) -> None:
    one.asks(1, BOTH, T)
    two.declares(TOK, "a")
    two.declares(TOK, "b")
    one.heard()

    two.says(Undeclare(TOK, 0, "b"), Undeclare(TOK, 0, "c"))

    assert one.heard() == [Undeclare(TOK, 2)]
    assert node.space.ignored.unknown_declaration == 1


# -- routers -----------------------------------------------------------------------------------------------------


def test_routers_are_pushed_merged_declarations_named_by_key(node: Node, one: FakeFace, two: FakeFace) -> None:
    peer = node.peer("peer")
    first = one.declares(SUB, "a")
    router = node.router("router")
    assert router.heard() == [Declare(SUB, 0, "a")]

    peer.declares(SUB, "b")
    two.declares(SUB, "a")
    one.undeclares(SUB, first)
    assert router.heard() == [Declare(SUB, 0, "b")]
    node.remove(two)
    assert router.heard() == [Undeclare(SUB, 0, "a")]


def test_declarations_of_routers_are_told_by_key(node: Node, one: FakeFace) -> None:
    router = node.router("router")
    one.asks(1, BOTH, S)

    router.says(Declare(SUB, 0, "a"), Declare(SUB, 0, "b"), Undeclare(SUB, 0, "a"))

    assert one.heard() == [Declare(SUB, 1, "a"), Declare(SUB, 2, "b"), Undeclare(SUB, 1)]
    assert node.targets(one, "b") == {"router"}


def test_queryable_that_is_declared_again_is_as_complete_as_it_says_now(one: FakeFace, two: FakeFace) -> None:
    two.says(Declare(QBL, 1, "q", True))
    assert one.asks(1, BOTH, Q) == [Declare(QBL, 1, "q", True, interest_id=1), Final(1)]

    two.says(Declare(QBL, 1, "q", False))
    assert one.heard()[-1] == Declare(QBL, 1, "q", False)
    two.says(Declare(QBL, 1, "q", True))
    assert one.heard()[-1] == Declare(QBL, 1, "q", True)
