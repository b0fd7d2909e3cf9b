"""Where data goes, by role. Spec: zenoh-1 sections 13.1 to 13.4, 17.5."""

from __future__ import annotations

import pytest

from elea.model.limits import CACHED_ROUTES
from elea.model.qos import Role
from elea.space.face import Declare, Final, Undeclare
from tests.unit.space.fakes import BOTH, QBL, SUB, TOK, Node, S


def test_router_sends_to_matching_links_but_the_source() -> None:
    node = Node(Role.ROUTER)
    one, two, three = (node.client(name) for name in ("one", "two", "three"))
    one.declares(SUB, "a/*")
    two.declares(SUB, "a/**")
    two.declares(SUB, "a/b")
    three.declares(SUB, "z")

    assert node.targets(one, "a/b") == {"two"}
    assert node.targets(three, "a/b") == {"one", "two"}
    assert node.targets(three, "*/b") == {"one", "two"}
    assert node.targets(three, "z") == set()


def test_router_serves_its_own_session() -> None:
    node = Node(Role.ROUTER)
    one = node.client("one")
    node.local.declares(SUB, "a")
    one.declares(SUB, "a")

    assert node.targets(one, "a") == {"self"}
    assert node.targets(node.local, "a") == {"one"}


def test_router_does_not_relay_between_its_peers_but_to_clients_and_back() -> None:
    node = Node(Role.ROUTER)
    one, peer, other = node.client("one"), node.peer("peer"), node.peer("other")
    for face in (one, peer, other):
        face.declares(SUB, "a")

    assert node.targets(peer, "a") == {"one"}
    assert node.targets(one, "a") == {"peer", "other"}


def test_invalid_key_goes_nowhere_and_is_counted_each_time() -> None:
    node = Node(Role.ROUTER)
    one, two = node.client("one"), node.client("two")
    two.declares(SUB, "**")

    assert node.targets(one, "a//b") == node.targets(one, "a//b") == set()
    assert node.space.ignored.invalid_key == 2


def test_generation_changes_with_subscribers_only() -> None:
    node = Node(Role.ROUTER)
    one = node.client("one")
    before = node.space.generation

    one.declares(QBL, "a")
    one.declares(TOK, "a")
    assert node.space.generation == before
    number = one.declares(SUB, "a")
    after = node.space.generation
    assert after != before
    one.undeclares(SUB, number)
    assert node.space.generation != after


def test_routes_are_remembered_within_bounds() -> None:
    node = Node(Role.ROUTER)
    one, two = node.client("one"), node.client("two")
    one.declares(SUB, "**")
    long = "/".join(["long"] * 100)

    assert all(node.targets(two, key) == {"one"} for key in ("a", "b", "c", "a", long, long))
    assert node.space.targets(two, "a") is node.space.targets(two, "a")
    for number in range(CACHED_ROUTES + 2):
        node.targets(two, str(number))
        two.queries(number, str(number))
    assert len(node.space._routes.known[two]) <= CACHED_ROUTES
    assert len(node.space._routes._known_queries[node.space._neighbours[two]]) <= CACHED_ROUTES


def test_client_sends_everything_to_its_gateway() -> None:
    node = Node(Role.CLIENT)
    assert node.targets(node.local, "a") == set()

    router = node.router("router")

    assert node.targets(node.local, "a") == {"router"}
    assert node.targets(router, "a") == set()
    node.local.declares(SUB, "a")
    assert node.targets(router, "a") == {"self"}


@pytest.mark.parametrize("region", ["router", "peer"])
def test_client_filters_exactly_the_key_of_a_finalised_interest(region: str) -> None:
    node = Node(Role.CLIENT)
    gateway = node.router("gateway") if region == "router" else node.peer("gateway")

    node.local.asks(1, BOTH, S, "m/1")
    assert node.targets(node.local, "m/1") == {"gateway"}
    gateway.says(Final(1))
    assert node.targets(node.local, "m/1") == set()
    assert node.targets(node.local, "m/2") == {"gateway"}
    gateway.says(Declare(SUB, 1, "m/*"))
    assert node.targets(node.local, "m/1") == {"gateway"}
    gateway.says(Undeclare(SUB, 1))
    assert node.targets(node.local, "m/1") == set()
    node.local.ends(1)
    assert node.targets(node.local, "m/1") == {"gateway"}


def test_client_filters_nothing_on_a_wildcard() -> None:
    node = Node(Role.CLIENT)
    router = node.router("router")
    node.local.asks(1, BOTH, S, "m/*")

    router.says(Final(1))

    assert node.targets(node.local, "m/*") == node.targets(node.local, "m/1") == {"router"}


def test_peer_sends_to_a_peer_in_doubt_then_on_match_only() -> None:
    node = Node(Role.PEER)
    peer = node.peer("peer")
    assert node.targets(node.local, "a") == {"peer"}
    assert not node.space.greeted(peer)

    peer.says(Final(0))
    assert node.space.greeted(peer)
    assert node.targets(node.local, "a") == set()
    peer.declares(SUB, "a")
    assert node.targets(node.local, "a") == {"peer"}


def test_peer_relays_for_its_clients_and_not_between_peers_and_routers() -> None:
    node = Node(Role.PEER)
    client, other = node.client("client"), node.client("other")
    peer, second, router = node.peer("peer"), node.peer("second"), node.router("router")
    for face in (client, other, peer, second, router):
        face.declares(SUB, "a")
    peer.says(Final(0))

    assert node.targets(client, "a") == {"other", "peer", "second", "router"}
    assert node.targets(peer, "a") == {"client", "other"}
    assert node.targets(router, "a") == {"client", "other"}
    assert node.targets(client, "nobody") == {"router", "second"}
    assert node.space.greeted(router)


def test_what_was_seen_before_a_change_is_looked_at_again() -> None:
    node = Node(Role.ROUTER)
    one, two, three = (node.client(name) for name in ("one", "two", "three"))
    two.declares(SUB, "a/*")
    seen = node.space.look(one, "a/b")
    three.declares(SUB, "a/b")

    assert node.space.targets(one, "a/b", seen) == (two, three)
    assert node.space.look(one, "a/b") is None  # known now


def test_router_that_declares_between_the_look_and_the_put_gets_the_sample() -> None:
    node = Node(Role.CLIENT)
    router = node.router("router")
    node.local.asks(1, BOTH, S, "a/b")
    seen = node.space.look(node.local, "a/b")  # nothing is declared, so the router is in doubt and would get it
    router.says(Declare(SUB, 1, "a/**", interest_id=1), Final(1))

    assert node.space.targets(node.local, "a/b", seen) == (router,)


def test_neighbour_that_was_seen_and_is_gone_gets_nothing() -> None:
    node = Node(Role.ROUTER)
    one, two = node.client("one"), node.client("two")
    two.declares(SUB, "a/*")
    seen = node.space.look(one, "a/b")
    node.space.remove_face(two, 0.0)

    assert node.space.targets(one, "a/b", seen) == ()
