"""What is said to whom, against the bytes of eclipse-zenoh, and whom to connect to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elea.model.qos import Role
from elea.node.discovery import GossipRules
from elea.node.sessionregistry import SessionRegistry
from elea.node.zenoh1 import gossip as module
from elea.node.zenoh1.gossip import Candidate, Gossip, Said, may_connect, read_oam, write_oam
from elea.wire.zenoh1.messages import BodyForm, LinkState, LinkStates, Oam

A1, A2, B1, C1 = b"\xa1", b"\xa2", b"\xb1", b"\xc1"
VECTORS = Path(__file__).parents[3] / "vectors" / "zenoh1"


def recorded(file: str, name: str) -> bytes:
    """The link states of the first OAM in a recorded batch."""
    vectors: list[dict[str, Any]] = json.loads((VECTORS / f"{file}.json").read_text())
    found = next(vector for vector in vectors if vector["name"] == name)
    return bytes.fromhex(next(m for m in found["decoded"]["msgs"] if m["_"] == "OAM")["body_hex"])


def at(port: int) -> str:
    return f"tcp/127.0.0.1:{port}"


def make(own: bytes, role: Role = Role.PEER, port: int = 28042, rules: GossipRules | None = None) -> Gossip:
    return Gossip(own, role, rules or GossipRules(), locators=lambda: [at(port)])


def of(psid: int, node_id: bytes | None, port: int | None, sn: int = 2, whatami: int | None = 2) -> LinkState:
    return LinkState(0, psid, sn, (), zid=node_id, whatami=whatami, locators=None if port is None else (at(port),))


def tell(gossip: Gossip, source: bytes, *entries: LinkState) -> tuple[list[Said], list[Candidate]]:
    return gossip.heard(source, LinkStates(entries))


def sent(said: list[Said]) -> dict[bytes, bytes]:
    return {one.to: bytes(write_oam(one.states).body or b"") for one in said}


# -- what is said, to the octet -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "port", "other", "name"), [(A1, 28042, C1, "peer/open/s2c3"), (C1, 28044, A1, "peer/open/c2s3")]
)
def test_peer_tells_new_peer_itself_and_all_it_knows(own: bytes, port: int, other: bytes, name: str) -> None:
    said = make(own, port=port).joined(other, Role.PEER)

    assert sent(said) == {other: recorded("peer", name)}


def test_peer_passes_entry_of_neighbour_on_to_its_other_peers() -> None:
    gossip = make(A1)
    gossip.joined(C1, Role.PEER)
    gossip.joined(B1, Role.PEER)

    said, candidates = tell(gossip, B1, of(0, B1, 28045))

    assert sent(said) == {C1: recorded("peer", "peer/gossip/s2c1")}
    assert candidates == []


def test_peer_tells_router_its_links_and_marks_it_as_gateway() -> None:
    said = make(C1, port=28002).joined(A1, Role.ROUTER)

    assert sent(said) == {A1: recorded("peer_router", "peer_router/open/c2s3")}


def test_peer_tells_router_of_new_peer_link() -> None:
    gossip = make(C1, port=28002)
    gossip.joined(A1, Role.ROUTER)

    joined = gossip.joined(A2, Role.PEER)
    said, _ = tell(gossip, A2, of(0, A2, 28003, sn=3))

    assert sent(joined)[A1] == recorded("peer_router", "peer_router/peer2/c2s1")
    assert sent(said) == {A1: recorded("peer_router", "peer_router/peer2/c2s2")}


def test_router_tells_first_peer_an_empty_list() -> None:
    said = make(A1, Role.ROUTER).joined(C1, Role.PEER)

    assert sent(said) == {C1: recorded("peer_router", "peer_router/open/s2c3")}


def test_router_introduces_its_peers_to_each_other() -> None:
    router = make(A1, Role.ROUTER)
    router.joined(C1, Role.PEER)
    tell(router, C1, of(0, C1, 28002))

    joined = router.joined(A2, Role.PEER)
    said, candidates = tell(router, A2, of(0, A2, 28003))

    assert joined == [Said(A2, LinkStates((of(1, C1, 28002),)))]
    assert sent(said) == {C1: recorded("peer_router", "peer_router/peer2/s2c1")}
    assert candidates == []


def test_new_peer_is_told_where_neighbours_are() -> None:
    gossip = make(A1)
    gossip.joined(C1, Role.PEER)
    tell(gossip, C1, of(0, C1, 28044))

    (said,) = gossip.joined(B1, Role.PEER)

    assert [(entry.zid, entry.locators) for entry in said.states.entries] == [
        (A1, (at(28042),)),
        (C1, (at(28044),)),
        (B1, None),
    ]


# -- what is not said ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (Role.PEER, Role.CLIENT),
        (Role.CLIENT, Role.ROUTER),
        (Role.CLIENT, Role.PEER),
        (Role.ROUTER, Role.CLIENT),
        (Role.ROUTER, Role.ROUTER),
    ],
)
def test_others_than_peers_and_their_routers_take_no_part(own: Role, other: Role) -> None:
    gossip = make(A1, own)

    assert gossip.joined(C1, other) == []
    assert tell(gossip, C1, of(0, C1, 28044), of(1, B1, 28045)) == ([], [])
    assert gossip.has_heard(C1)


def test_roles_that_are_no_targets_are_told_nothing() -> None:
    gossip = make(A1, rules=GossipRules(targets=frozenset({Role.ROUTER})))

    assert gossip.joined(C1, Role.PEER) == []


def test_known_entry_is_not_passed_on_again() -> None:
    router = make(A1, Role.ROUTER)
    router.joined(C1, Role.PEER)
    router.joined(A2, Role.PEER)
    tell(router, A2, of(0, A2, 28003))

    said, _ = tell(router, A2, of(0, None, 28003, sn=3))

    assert said == []


def test_peer_that_comes_back_is_introduced_again() -> None:
    router = make(A1, Role.ROUTER)
    router.joined(C1, Role.PEER)
    router.joined(A2, Role.PEER)
    tell(router, A2, of(0, A2, 28003, sn=9))
    router.left(A2)
    router.joined(A2, Role.PEER)

    said, _ = tell(router, A2, of(0, A2, 28003, sn=2))

    assert said == [Said(C1, LinkStates((of(2, A2, 28003),)))]


def test_hearsay_is_passed_on_only_with_multihop() -> None:
    for multihop, receivers in ((False, []), (True, [C1])):
        gossip = make(A1, rules=GossipRules(multihop=multihop))
        gossip.joined(C1, Role.PEER)
        gossip.joined(B1, Role.PEER)

        said, _ = tell(gossip, B1, of(5, A2, 28003))

        assert [one.to for one in said] == receivers


# -- whom to connect to -------------------------------------------------------------------------------------------


def test_node_heard_of_is_connected_to() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)

    _, candidates = tell(gossip, B1, of(0, B1, 28045), of(1, A1, None), of(2, C1, 28044), of(3, A2, None))

    assert candidates == [Candidate(C1, Role.PEER, (at(28044),))]
    assert gossip.has_heard(B1)


def test_neighbour_heard_of_is_not_connected_to() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)
    gossip.joined(C1, Role.PEER)

    assert tell(gossip, B1, of(2, C1, 1)) == ([], [])


def test_only_wanted_roles_are_connected_to() -> None:
    gossip = make(A1, rules=GossipRules(autoconnect=frozenset({Role.ROUTER})))
    gossip.joined(B1, Role.PEER)

    _, candidates = tell(gossip, B1, of(1, C1, 1), of(2, A2, 2, whatami=1), of(3, b"\xd1", 3, whatami=None))

    assert [candidate.node_id for candidate in candidates] == [A2, b"\xd1"]


def test_greater_id_connects_where_the_strategy_says_so() -> None:
    wanted, greater = frozenset(Role), frozenset({Role.PEER})

    assert may_connect(B1, A1, Role.PEER, wanted, greater)
    assert not may_connect(A1, B1, Role.PEER, wanted, greater)
    assert may_connect(A1, B1, Role.ROUTER, wanted, greater)
    assert not may_connect(A1, A1, Role.ROUTER, wanted, frozenset())


# -- what makes no sense ------------------------------------------------------------------------------------------


def test_entries_without_sense_are_counted_and_the_rest_is_taken() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)

    _, candidates = tell(
        gossip,
        B1,
        of(1, b"\0\0", 1),
        of(77, None, 2),
        of(3, b"\xd1", 3, whatami=3),
        of(4, C1, 4),
    )

    assert [candidate.node_id for candidate in candidates] == [C1]
    assert gossip.ignored == 3


def test_nodes_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 2)
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)

    _, candidates = tell(gossip, B1, of(1, C1, 1), of(2, A2, 2), of(3, b"\xd1", 3))

    assert [candidate.node_id for candidate in candidates] == [C1]
    assert gossip.ignored == 2
    assert gossip.joined(b"\xe1", Role.PEER) == []


def test_locators_beyond_the_limit_are_left_out() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)
    many = tuple(at(port) for port in range(1, 200))

    _, (candidate,) = tell(gossip, B1, LinkState(0, 1, 2, (), zid=C1, whatami=2, locators=many))

    assert candidate.locators == many[: module.MAX_LOCATORS]


@pytest.mark.parametrize(
    "message",
    [
        Oam(BodyForm.ZBufForm, 2, body=b"\0"),
        Oam(BodyForm.Z64Form, 1, body=5),
        Oam(BodyForm.UnitForm, 1),
        Oam(BodyForm.ZBufForm, 1, body=b""),
        Oam(BodyForm.ZBufForm, 1, body=b"\x02\x07\x00"),
        Oam(BodyForm.ZBufForm, 1, body=b"\xff" * 12),
    ],
    ids=["other id", "number", "nothing", "empty", "cut", "overflow"],
)
def test_unreadable_gossip_is_none(message: Oam) -> None:
    assert read_oam(message) is None


# -- one link per node --------------------------------------------------------------------------------------------


def test_second_link_to_a_node_is_not_begun_nor_accepted() -> None:
    claims: SessionRegistry[str] = SessionRegistry(A1)

    assert claims.accept(C1, "first")
    assert claims.confirm(C1, "first") is None
    assert not claims.begin(C1, "second")
    assert not claims.accept(C1, "third")
    assert claims.holder(C1) == "first"
    claims.release(C1, "first")
    assert claims.accept(C1, "third")


@pytest.mark.parametrize("first", [A1, C1])
def test_crossing_links_leave_the_same_one_on_both_ends(first: bytes) -> None:
    ends = {A1: SessionRegistry[str](A1), C1: SessionRegistry[str](C1)}
    other = {A1: C1, C1: A1}
    assert ends[A1].begin(C1, "a→c")
    assert ends[C1].begin(A1, "c→a")

    kept = []
    for own in (first, other[first]):
        link = "a→c" if own == A1 else "c→a"
        if ends[other[own]].accept(own, link):
            assert ends[own].confirm(other[own], link) in (None, "a→c", "c→a")
            kept.append(link)
        else:
            ends[own].release(other[own], link)

    assert kept == ["c→a"]
    assert ends[A1].holder(C1) == ends[C1].holder(A1) == "c→a"


def test_confirmed_link_replaces_the_accepted_one() -> None:
    claims: SessionRegistry[str] = SessionRegistry(A1)
    assert claims.begin(C1, "ours")
    assert claims.accept(C1, "theirs")

    assert claims.confirm(C1, "ours") == "theirs"
    assert claims.holder(C1) == "ours"


# -- nodes that come and go ---------------------------------------------------------------------------------------


def test_nodes_that_left_are_forgotten_and_their_numbers_used_again() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)

    for number in range(3 * module.MAX_NODES):
        passing = number.to_bytes(4, "little") + b"\x01"
        last = gossip.joined(passing, Role.PEER)
        tell(gossip, passing, of(0, passing, 28045))
        gossip.left(passing)

    assert gossip.ignored == 0
    assert {one.to for one in last} == {passing}
    entries = last[0].states.entries
    assert len(entries) <= module.SWEEP + 2
    assert B1 in {entry.zid for entry in entries}
    assert len({entry.psid for entry in entries}) == len(entries)
    assert max(entry.psid for entry in entries) <= module.SWEEP + 1


def test_node_that_a_neighbour_speaks_of_is_remembered() -> None:
    gossip = make(A1)
    gossip.joined(B1, Role.PEER)
    tell(gossip, B1, of(0, B1, 28045), of(7, C1, 28046))

    for number in range(3 * module.SWEEP):
        passing = number.to_bytes(4, "little") + b"\x01"
        gossip.joined(passing, Role.PEER)
        gossip.left(passing)
    _, candidates = tell(gossip, B1, of(7, None, 28047, sn=9, whatami=None))

    assert candidates == [Candidate(C1, Role.PEER, (at(28047),))]
