"""Edge weights and paths, against values computed for and observed from eclipse-zenoh 1.10.2 routers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elea.model.node_id import NodeId
from elea.space.linkstate import Graph, direction, edge_weight, next_hop, shortest_tree, siphash13

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "zenoh1" / "linkstate_weights.json").read_text())

A, B, C, D, E = (NodeId.parse(text) for text in ("a1", "b2", "c3", "d4", "e5"))


def graph_of(*links: tuple[NodeId, NodeId] | tuple[NodeId, NodeId, int]) -> Graph:
    graph: dict[NodeId, dict[NodeId, int | None]] = {}
    for one, other, *weight in links:
        for here, there in ((one, other), (other, one)):
            graph.setdefault(here, {})[there] = weight[0] if weight else None
    return graph


def test_siphash_of_known_input() -> None:
    # What a hasher of Rust's standard library gives when nothing was written to it.
    assert siphash13(b"") == 15130871412783076140


@pytest.mark.parametrize("edge", VECTORS["edges"])
def test_edge_weight(edge: dict[str, Any]) -> None:
    one, other = NodeId.parse(edge["zid1"]), NodeId.parse(edge["zid2"])

    assert round(edge_weight(one, other), 6) == edge["weight"]
    assert edge_weight(one, other) == edge_weight(other, one)


def test_configured_weight_scales_the_jitter() -> None:
    assert edge_weight(A, B, weight=10) == pytest.approx(edge_weight(A, B) / 10)


@pytest.mark.parametrize("ring", VECTORS["rings"])
def test_next_hop_in_a_square_of_real_routers(ring: dict[str, Any]) -> None:
    a, b, c, d = (NodeId.parse(text) for text in ring["routers"])
    graph = graph_of((a, b), (a, c), (b, d), (c, d))

    assert str(next_hop(graph, a, d)) == ring["next_hop_A_to_D"]


def test_shorter_path_wins_over_fewer_links() -> None:
    graph = graph_of((A, C, 100), (A, B, 10), (B, C, 10))

    assert next_hop(graph, A, C) == B


def test_larger_of_both_configured_weights_counts() -> None:
    graph: Graph = {A: {B: 10, C: None}, B: {A: 500, C: None}, C: {A: None, B: None}}

    assert next_hop(graph, A, B) == C


def test_zero_weight_counts_as_not_configured() -> None:
    graph: Graph = {A: {B: 0, C: 40}, B: {A: 0, C: 40}, C: {A: None, B: None}}

    assert next_hop(graph, A, B) == C


def test_link_that_one_end_denies_does_not_exist() -> None:
    graph: Graph = {A: {B: None}, B: {}}

    assert next_hop(graph, A, B) is None


def test_neighbour_that_is_no_node_does_not_exist() -> None:
    assert next_hop({A: {B: None}}, A, B) is None
    assert next_hop({}, A, B) is None


def test_no_hop_leads_to_oneself() -> None:
    assert next_hop(graph_of((A, B)), A, A) is None


def test_tree_has_a_predecessor_for_each_reachable_node() -> None:
    graph = graph_of((A, B), (B, C), (C, D))

    assert shortest_tree(graph, A) == {B: A, C: B, D: C}
    assert shortest_tree(graph, E) == {}


@pytest.mark.parametrize(
    ("here", "target", "hop"),
    [
        (B, C, C),  # down to a child
        (B, D, C),  # down to a grandchild
        (B, A, A),  # up to the root
        (C, A, B),  # up by one
        (D, E, C),  # up, over and down
        (A, D, B),  # from the root
        (B, E, E),
        (B, B, None),
    ],
)
def test_direction_inside_a_tree(here: NodeId, target: NodeId, hop: NodeId | None) -> None:
    tree = {B: A, C: B, D: C, E: B}

    assert direction(tree, here, target) == hop


def test_direction_between_node_inside_and_node_outside_is_none() -> None:
    tree = {B: A}

    assert direction(tree, B, D) is None
    assert direction(tree, D, B) is None
    assert direction(tree, D, A) is None
