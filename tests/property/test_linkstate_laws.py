"""Laws of shortest paths: hops lead to their target, and the plain algorithm gives the same tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.model.node_id import NodeId
from elea.space.linkstate import DEFAULT_WEIGHT, Graph, direction, edge_weight, next_hop, shortest_tree

NODES = [NodeId(bytes([n * 37 % 251 + 1])) for n in range(6)]
PAIRS = [(a, b) for i, a in enumerate(NODES) for b in NODES[i + 1 :]]
graphs = st.dictionaries(st.sampled_from(PAIRS), st.sampled_from([None, 10, 100, 100, 300]))


def graph_of(links: dict[tuple[NodeId, NodeId], int | None]) -> Graph:
    graph: dict[NodeId, dict[NodeId, int | None]] = {node: {} for node in NODES}
    for (a, b), weight in links.items():
        graph[a][b] = graph[b][a] = weight
    return graph


def bellman_ford(links: dict[tuple[NodeId, NodeId], int | None], root: NodeId) -> dict[NodeId, NodeId]:
    length = {root: 0.0}
    before: dict[NodeId, NodeId] = {}
    for _ in NODES:
        for (a, b), weight in links.items():
            edge = edge_weight(a, b, weight=weight or DEFAULT_WEIGHT)
            for here, there in ((a, b), (b, a)):
                if here in length and length[here] + edge < length.get(there, float("inf")):
                    length[there] = length[here] + edge
                    before[there] = here
    return before


@given(graphs, st.sampled_from(NODES))
def test_tree_is_that_of_the_plain_algorithm(links: dict[tuple[NodeId, NodeId], int | None], root: NodeId) -> None:
    assert shortest_tree(graph_of(links), root) == bellman_ford(links, root)


@given(graphs, st.sampled_from(NODES), st.sampled_from(NODES))
def test_following_hops_reaches_the_target(
    links: dict[tuple[NodeId, NodeId], int | None], source: NodeId, target: NodeId
) -> None:
    graph = graph_of(links)
    here, hops = source, 0
    while (hop := next_hop(graph, here, target)) is not None:
        here, hops = hop, hops + 1
        assert hops <= len(NODES)

    assert here == (target if target in shortest_tree(graph, source) else source)


@given(graphs, st.sampled_from(NODES), st.sampled_from(NODES), st.sampled_from(NODES))
def test_following_directions_of_any_tree_reaches_the_target(
    links: dict[tuple[NodeId, NodeId], int | None], root: NodeId, source: NodeId, target: NodeId
) -> None:
    tree = shortest_tree(graph_of(links), root)
    members = {root, *tree}
    here, hops = source, 0
    while (hop := direction(tree, here, target)) is not None:
        here, hops = hop, hops + 1
        assert hops <= len(NODES)

    assert here == (target if {source, target} <= members else source)
