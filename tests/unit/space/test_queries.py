"""Queries: where they go, and how answers come back. Spec: zenoh-1 section 14."""

from __future__ import annotations

import pytest

from elea.model.qos import QueryTarget, Role
from elea.space.face import Declare, Final, Request, Response, ResponseFinal
from elea.space.queries import TIMEOUT
from elea.space.questions import QueryBody
from tests.unit.space.fakes import BODY, BOTH, QBL, SUB, FakeFace, Node, Q

BEST, ALL, COMPLETE = QueryTarget.BEST_MATCHING, QueryTarget.ALL, QueryTarget.ALL_COMPLETE


@pytest.fixture
def node() -> Node:
    return Node(Role.ROUTER)


@pytest.fixture
def asker(node: Node) -> FakeFace:
    return node.client("asker")


def reached(asker: FakeFace, faces: list[FakeFace], key: str, target: QueryTarget) -> set[str]:
    """Who gets a query, by name."""
    asker.queries(1, key, target)
    found = {str(face) for face in faces for message in face.heard() if isinstance(message, Request)}
    asker._node.space.cancel(asker, 1)
    return found


def test_query_without_destination_is_final_at_once(asker: FakeFace) -> None:
    asker.says(Request(5, "nobody", BEST, BODY, qos=5))
    asker.says(Request(6, "bad//key", BEST, BODY))

    assert asker.heard() == [ResponseFinal(5, 5), ResponseFinal(6)]


def test_answers_of_a_face_that_is_gone_are_counted(node: Node, asker: FakeFace) -> None:
    node.space.remove_face(asker, 0.0)

    node.space.answer(asker, Response(1, "q", b"late"))
    node.space.answer(asker, ResponseFinal(1))

    assert (node.space.ignored.unknown_face, node.space.ignored.unknown_query) == (2, 0)


def test_query_gets_an_id_of_each_link_and_answers_come_back(node: Node, asker: FakeFace) -> None:
    one, two = node.client("one"), node.client("two")
    for face in (one, two):
        face.declares(QBL, "q/*")
        face.declares(QBL, "q/**")
    one.says(Request(9, "q/x", ALL, QueryBody("earlier")))
    two.heard()

    asker.says(Request(40, "q/1", ALL, BODY, timeout_ms=500, qos=0x1D, budget=3))

    assert one.heard() == [Request(1, "q/1", ALL, BODY, 500, 0x1D, 3)]
    assert two.heard() == [Request(2, "q/1", ALL, BODY, 500, 0x1D, 3)]
    two.says(Response(2, "q/1", b"reply", responder=(b"two", 7)), ResponseFinal(2))
    one.says(Response(1, "other/key", b"not checked"))
    assert asker.heard() == [
        Response(40, "q/1", b"reply", 0x1D, (b"two", 7)),
        Response(40, "other/key", b"not checked", 0x1D),
    ]
    one.says(ResponseFinal(1))
    assert asker.heard() == [ResponseFinal(40, 0x1D)]


def test_silent_branch_is_answered_for_after_its_timeout(node: Node, asker: FakeFace) -> None:
    one, two = node.client("one"), node.client("two")
    for face in (one, two):
        face.declares(QBL, "q")
    asker.queries(4, "q", ALL, timeout_ms=500)
    two.says(ResponseFinal(1))

    assert node.space.next_deadline() == 100.5
    node.wait(0.4)
    assert asker.heard() == []
    node.wait(0.1)
    assert asker.heard() == [Response(4, "", TIMEOUT, 0x0D, (b"one", 0)), ResponseFinal(4)]
    one.says(Response(1, "q", b"late"), ResponseFinal(1))
    assert asker.heard() == []
    assert node.space.ignored.unknown_query == 2
    assert node.space.next_deadline() is None


def test_timeout_is_ten_seconds_when_the_query_does_not_say(node: Node, asker: FakeFace) -> None:
    node.client("one").declares(QBL, "q")
    asker.queries(4, "q")

    assert node.space.next_deadline() == 110.0


def test_closed_link_finalises_its_branches(node: Node, asker: FakeFace) -> None:
    one, two = node.client("one"), node.client("two")
    for face in (one, two):
        face.declares(QBL, "q")
    asker.queries(4, "q", ALL)

    node.remove(one)
    assert asker.heard() == []
    node.remove(two)
    assert asker.heard() == [ResponseFinal(4)]


def test_lost_or_cancelled_asker_gets_nothing(node: Node, asker: FakeFace) -> None:
    one = node.client("one")
    one.declares(QBL, "q")
    asker.queries(4, "q")
    asker.queries(5, "q")

    node.space.cancel(asker, 4)
    node.space.cancel(asker, 4)
    one.says(Response(1, "q", b"late"))
    assert node.space.ignored.unknown_query == 2
    node.remove(asker)
    one.says(ResponseFinal(2))
    assert asker.heard() == []
    assert node.space.next_deadline() is None
    assert len(node.space._queries) == 0


def test_unknown_answers_and_repeated_queries_are_ignored(node: Node, asker: FakeFace) -> None:
    one = node.client("one")
    one.declares(QBL, "q")
    asker.says(Response(1, "q", b"?"), ResponseFinal(1))
    asker.queries(4, "q")
    asker.queries(4, "q")

    assert len(one.heard()) == 1
    assert (node.space.ignored.unknown_query, node.space.ignored.repeated_query) == (2, 1)


# -- targets ---------------------------------------------------------------------------------------------------


def test_all_reaches_every_candidate_but_the_source(node: Node, asker: FakeFace) -> None:
    faces = [node.client("one"), node.peer("peer"), node.local, asker]
    for face in faces:
        face.declares(QBL, "q")
    node.client("other").declares(QBL, "z")

    assert reached(asker, faces, "*", ALL) == {"one", "peer", "self"}


def test_all_complete_needs_the_flag_and_inclusion(node: Node, asker: FakeFace) -> None:
    one, two, three = (node.client(name) for name in ("one", "two", "three"))
    one.declares(QBL, "q/**", complete=True)
    two.declares(QBL, "q/1", complete=True)
    three.declares(QBL, "q/**")
    faces = [one, two, three]

    assert reached(asker, faces, "q/1", COMPLETE) == {"one", "two"}
    assert reached(asker, faces, "q/*", COMPLETE) == {"one"}
    asker.heard()
    assert reached(asker, faces, "**", COMPLETE) == set()
    assert asker.heard() == [ResponseFinal(1)]


def test_best_matching_takes_one_complete_candidate_per_region(node: Node, asker: FakeFace) -> None:
    clients = [node.client(name) for name in ("c1", "c2", "c3")]
    peers = [node.peer(name) for name in ("p1", "p2")]
    clients[0].declares(QBL, "q")
    clients[1].declares(QBL, "q", complete=True)
    clients[2].declares(QBL, "q", complete=True)
    for peer in peers:
        peer.declares(QBL, "q")
    node.local.declares(QBL, "q")
    faces = [*clients, *peers, node.local]

    # One complete client; the peers have none that is complete, so all of them; and the own session.
    assert reached(asker, faces, "q", BEST) == {"c2", "p1", "p2", "self"}


def test_a_link_is_complete_if_one_of_its_queryables_is(node: Node, asker: FakeFace) -> None:
    one, two = node.client("one"), node.client("two")
    one.declares(QBL, "q")
    one.declares(QBL, "q/**", complete=True)
    one.declares(QBL, "**/q")
    two.declares(QBL, "q")

    assert reached(asker, [one, two], "q", BEST) == {"one"}


def test_queries_of_peers_are_not_relayed_to_peers(node: Node) -> None:
    peer, other, client = node.peer("peer"), node.peer("other"), node.client("client")
    for face in (peer, other, client):
        face.declares(QBL, "q")

    assert reached(peer, [other, client], "q", ALL) == {"client"}


def test_route_follows_the_declarations(node: Node, asker: FakeFace) -> None:
    one = node.client("one")
    number = one.declares(QBL, "q")
    long = "/".join(["long"] * 80)
    one.declares(QBL, long)

    assert reached(asker, [one], "q", BEST) == {"one"}
    one.says(Declare(SUB, 9, "q"))
    assert reached(asker, [one], "q", BEST) == {"one"}
    one.undeclares(QBL, number)
    assert reached(asker, [one], "q", BEST) == set()
    assert reached(asker, [one], long, BEST) == {"one"}


# -- other roles -------------------------------------------------------------------------------------------------


def test_client_sends_queries_to_its_router_unless_it_knows_better() -> None:
    node = Node(Role.CLIENT)
    router = node.router("router")
    local = node.local

    assert reached(local, [router], "q", COMPLETE) == {"router"}
    local.asks(1, BOTH, Q, "q")
    assert reached(local, [router], "q", BEST) == {"router"}
    router.says(Final(1))
    assert reached(local, [router], "q", BEST) == set()
    router.says(Declare(QBL, 1, "q"))
    assert reached(local, [router], "q", BEST) == {"router"}
    assert reached(local, [router], "q", COMPLETE) == set()


def test_client_answers_from_its_own_session() -> None:
    node = Node(Role.CLIENT)
    router = node.router("router")
    node.local.declares(QBL, "q")

    router.queries(8, "*")
    assert node.local.heard() == [Request(1, "*", BEST, BODY)]
    node.local.says(Response(1, "q", b"reply"), ResponseFinal(1))
    assert router.heard()[1:] == [Response(8, "q", b"reply"), ResponseFinal(8)]


def test_unfinished_link_counts_but_never_as_nearest_complete() -> None:
    node = Node(Role.PEER)
    known, silent = node.peer("known"), node.peer("silent")
    known.says(Declare(QBL, 1, "q"), Final(0))
    faces = [known, silent]

    assert reached(node.local, faces, "q", BEST) == {"known", "silent"}
    assert reached(node.local, faces, "q", ALL) == {"known", "silent"}
    assert reached(node.local, faces, "q", COMPLETE) == {"silent"}
    known.says(Declare(QBL, 1, "q", True))
    assert reached(node.local, faces, "q", BEST) == {"known"}
    assert reached(node.local, faces, "q", COMPLETE) == {"known", "silent"}


def test_query_of_a_peers_client_goes_to_router_peers_and_clients() -> None:
    node = Node(Role.PEER)
    asker, client = node.client("asker"), node.client("client")
    peer, router = node.peer("peer"), node.router("router")
    peer.says(Final(0))
    faces = [client, peer, router, node.local]

    assert reached(asker, faces, "q", BEST) == {"router"}
    for face in (client, peer, node.local):
        face.declares(QBL, "q")
    assert reached(asker, faces, "q", BEST) == {"client", "peer", "router", "self"}
    assert reached(peer, faces, "q", BEST) == {"client", "self"}


@pytest.mark.parametrize(
    ("peer_complete", "far_complete", "in_doubt", "asked"),
    [
        (True, True, {"peer"}, {"peer"}),
        (True, False, {"peer"}, {"peer"}),
        (False, True, {"peer", "router"}, {"router"}),
        (False, False, {"peer", "router"}, {"peer", "router"}),
    ],
)
def test_peers_and_routers_of_a_peer_are_one_region(
    peer_complete: bool, far_complete: bool, in_doubt: set[str], asked: set[str]
) -> None:
    # Seen with real 1.10.2 nodes: first a get, then one with a querier, which knows what is behind the router.
    node = Node(Role.PEER)
    peer, router = node.peer("peer"), node.router("router")
    peer.says(Declare(QBL, 1, "q", peer_complete), Final(0))

    assert reached(node.local, [peer, router], "q", BEST) == in_doubt
    node.local.asks(1, BOTH, Q, "q")
    router.says(Declare(QBL, 1, "q", far_complete, interest_id=1), Final(1))
    assert reached(node.local, [peer, router], "q", BEST) == asked


def test_queryables_seen_before_a_change_are_looked_at_again(node: Node, asker: FakeFace) -> None:
    one, two = node.client("one"), node.client("two")
    one.declares(QBL, "q/**", complete=True)
    request = Request(77, "q/*", ALL, BODY)
    seen = node.space.look_for_query(asker, request)
    assert seen is not None
    two.declares(QBL, "q/1")

    node.space.ask(asker, request, 0.0, seen)

    assert [type(message).__name__ for message in two.heard()].count("Request") == 1
    assert reached(asker, [one, two], "q/*", ALL) == {"one", "two"}
    assert list(seen.sources.values()) == [True]
