"""The graph of routers: edge weights and shortest paths.

Every router computes the same trees from the same graph; nothing here is negotiated, so weights must come out
equal to the last bit on all of them. What the nodes say to each other is decoded elsewhere.
Spec: zenoh-1 §17.2.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Final

from elea.model.node_id import NodeId

__all__ = ["DEFAULT_WEIGHT", "Graph", "direction", "edge_weight", "next_hop", "shortest_tree", "siphash13"]

DEFAULT_WEIGHT: Final = 100
"""The weight of a link for which neither end has configured one."""

Graph = Mapping[NodeId, Mapping[NodeId, int | None]]
"""From each node to the links it claims, with the weight it configured (None or 0: none)."""

_MASK64: Final = (1 << 64) - 1


def siphash13(data: bytes) -> int:
    """SipHash-1-3 with the key 0, 0 over `data`: 64 bits."""
    v = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        v = _absorb(v, int.from_bytes(data[at : at + 8], "little"))
    # The last word holds what is left over and, in its top byte, the length.
    v = _absorb(v, int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    v = (v[0], v[1], v[2] ^ 0xFF, v[3])
    for _ in range(3):
        v = _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def edge_weight(a: NodeId, b: NodeId, *, weight: int = DEFAULT_WEIGHT) -> float:
    """The length of the link between two nodes: `weight`, up to one percent longer by a hash of both ids.

    The jitter leaves no two paths equally long, which is what makes all routers choose the same one. The
    arithmetic is in the order of eclipse-zenoh's, so that rounding agrees too.
    """
    first, second = sorted((a, b))
    jitter = siphash13(first.padded + second.padded) & 0xFFFF_FFFF
    return weight * (1.0 + 0.01 * (jitter / 0xFFFF_FFFF))


def shortest_tree(graph: Graph, root: NodeId) -> dict[NodeId, NodeId]:
    """The predecessor of every node that can be reached from `root`, on the shortest path from there."""
    # Dijkstra. eclipse-zenoh uses Bellman-Ford, but both add up a path from its root: the sums are the same.
    before: dict[NodeId, NodeId] = {}
    done: set[NodeId] = set()
    queue: list[tuple[float, NodeId, NodeId]] = [(0.0, root, root)]
    while queue:
        length, node, predecessor = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if node != root:
            before[node] = predecessor
        for neighbour, edge in _edges(graph, node):
            if neighbour not in done:
                heapq.heappush(queue, (length + edge, neighbour, node))
    return before


def direction(tree: Mapping[NodeId, NodeId], here: NodeId, target: NodeId) -> NodeId | None:
    """Where `here` sends what goes to `target` along a tree: the child leading there, else the parent.

    None when the tree does not connect the two, or `target` is `here`.
    """
    if target == here:
        return None
    step, above = target, tree.get(target)
    while above is not None and above != here:
        step, above = above, tree.get(above)
    if above == here:
        return step
    return tree.get(here) if _root(tree, here) == step else None


def next_hop(graph: Graph, source: NodeId, target: NodeId) -> NodeId | None:
    """The neighbour of `source` on the shortest path to `target`; None when there is no path.

    >>> a, b, c = (NodeId.parse(text) for text in ("a1", "b2", "c3"))
    >>> next_hop({a: {b: None}, b: {a: None, c: None}, c: {b: None}}, a, c)
    NodeId('b2')
    """
    return direction(shortest_tree(graph, source), source, target)


def _root(tree: Mapping[NodeId, NodeId], node: NodeId) -> NodeId:
    while node in tree:
        node = tree[node]
    return node


def _edges(graph: Graph, node: NodeId) -> Iterator[tuple[NodeId, float]]:
    """The links of a node that exist: those both ends claim."""
    for neighbour, own in graph.get(node, {}).items():
        theirs = graph.get(neighbour, {})
        if node in theirs:
            weight = max(own or 0, theirs[node] or 0) or DEFAULT_WEIGHT
            yield neighbour, edge_weight(node, neighbour, weight=weight)


_Words = tuple[int, int, int, int]


def _absorb(v: _Words, word: int) -> _Words:
    v0, v1, v2, v3 = _round((v[0], v[1], v[2], v[3] ^ word))
    return v0 ^ word, v1, v2, v3


def _round(v: _Words) -> _Words:
    v0, v1, v2, v3 = v
    v0 = (v0 + v1) & _MASK64
    v1 = _rotated(v1, 13) ^ v0
    v0 = _rotated(v0, 32)
    v2 = (v2 + v3) & _MASK64
    v3 = _rotated(v3, 16) ^ v2
    v0 = (v0 + v3) & _MASK64
    v3 = _rotated(v3, 21) ^ v0
    v2 = (v2 + v1) & _MASK64
    v1 = _rotated(v1, 17) ^ v2
    v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK64
