"""Peers that are all linked to each other: whatever was cut in between, in the end everybody hears everybody once."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import elea
from elea.testing import Network

PEERS = 4
LEASE = 10.0

pairs = st.sampled_from(list(itertools.combinations(range(PEERS), 2)))
steps = st.one_of(
    st.tuples(st.just("part"), pairs),
    st.tuples(st.just("heal"), pairs),
    st.tuples(st.just("subscribe"), st.integers(0, PEERS - 1)),
    st.tuples(st.just("put"), st.integers(0, PEERS - 1)),
    st.tuples(st.just("run"), st.sampled_from([0.01, 5.0, 11.0, 30.0])),
)


@given(seed=st.integers(0, 1 << 32), schedule=st.lists(steps, max_size=30))
@settings(deadline=None, max_examples=40)
def test_peers_hear_each_other_once_after_any_schedule(seed: int, schedule: list[tuple[str, Any]]) -> None:
    net = Network(seed=seed)
    peers = [net.peer(f"peer{number}") for number in range(PEERS)]
    for left, right in itertools.combinations(peers, 2):
        net.link(left, right, delay=(0.0, 0.1))
    heard: list[tuple[int, list[elea.Sample]]] = []
    for step, what in schedule:
        match step:
            case "part" | "heal":
                getattr(net, step)(peers[what[0]], peers[what[1]])
            case "subscribe":
                heard.append((what, peers[what].subscribe("a/*")))
            case "put":
                peers[what].put(f"a/{what}", "on the way")
            case _:
                net.run(what)
    net.heal()
    net.run(LEASE + 1.0)
    net.settle()

    for number, peer in enumerate(peers):
        peer.put(f"a/{number}", "in the end")
    net.run(1.0)

    for _, samples in heard:
        last = [str(sample.key_expr) for sample in samples if sample.payload.to_string() == "in the end"]
        assert sorted(last) == [f"a/{number}" for number in range(PEERS)]
    ids = [bytes(peer.zid()) for peer in peers]
    for own, peer in enumerate(peers):
        known = peer._node.space.snapshot().subscribers
        sources = known["a/*"].peers if known else []
        assert sorted(set(sources) - {ids[own]}) == sorted({ids[number] for number, _ in heard} - {ids[own]})
