"""Matching status and the snapshot."""

from __future__ import annotations

from elea.model.qos import Role
from elea.space.face import Region
from elea.space.snapshot import SessionInfo, Sources
from tests.unit.space.fakes import BOTH, QBL, SUB, TOK, Node, Q, S, T


def test_matching_looks_at_everyone_else() -> None:
    node = Node(Role.ROUTER)
    one = node.client("one")
    one.declares(SUB, "a/*")
    node.local.declares(SUB, "b")

    assert node.space.matching(node.local, SUB, "a/1")
    assert node.space.matching(one, SUB, "b")
    assert not node.space.matching(one, SUB, "a/1")
    assert not node.space.matching(node.local, SUB, "b")
    assert not node.space.matching(node.local, QBL, "a/1")


def test_matching_may_ask_for_complete_queryables() -> None:
    node = Node(Role.ROUTER)
    one = node.client("one")
    one.declares(QBL, "a/1", complete=True)
    one.declares(QBL, "b")

    assert node.space.matching(node.local, QBL, "a/1", complete=True)
    assert not node.space.matching(node.local, QBL, "a/*", complete=True)
    assert node.space.matching(node.local, QBL, "b")
    assert not node.space.matching(node.local, QBL, "b", complete=True)


def test_sessions_of_one_node_match_each_other() -> None:
    node = Node(Role.PEER)
    other = node.add("other", Region.LOCAL)
    other.declares(SUB, "a")

    assert node.space.matching(node.local, SUB, "a")
    assert node.targets(node.local, "a") == {"other"}


def test_snapshot_names_sources_by_role() -> None:
    node = Node(Role.ROUTER)
    client, peer = node.client("client"), node.peer("peer")
    for face in (client, peer, node.local):
        face.declares(SUB, "a")
    client.declares(SUB, "a")
    peer.declares(TOK, "t")
    client.declares(QBL, "q")
    client.asks(1, BOTH, S, "pub")
    client.asks(2, BOTH, S, "pub")
    peer.asks(1, BOTH, Q, "get")
    peer.asks(2, BOTH, S | Q | T)

    snapshot = node.space.snapshot()

    assert snapshot.sessions == (
        SessionInfo(b"client", Role.CLIENT, Region.CLIENTS),
        SessionInfo(b"peer", Role.PEER, Region.PEERS),
    )
    assert snapshot.subscribers == {"a": Sources(routers=[b"self"], peers=[b"peer"], clients=[b"client"])}
    assert snapshot.queryables == {"q": Sources(clients=[b"client"])}
    assert snapshot.tokens == {"t": Sources(peers=[b"peer"])}
    assert snapshot.publishers == {"pub": Sources(clients=[b"client"])}
    assert snapshot.queriers == {"get": Sources(peers=[b"peer"])}
