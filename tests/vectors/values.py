"""Vectors of values: key expressions, numbers, sequence numbers, link weights, DDS partitions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from elea.model.errors import InvalidKeyExpr
from tests.vectors.cases import Case, Json, Record, check_equal

__all__ = ["keyexpr_cases", "linkstate_cases", "partition_cases", "primitive_cases"]


# -- key expressions ---------------------------------------------------------------------------------------


def keyexpr_cases(content: Record) -> Iterator[Case]:
    """Validity, canonical forms and relations of key expressions."""
    for text, valid in content.get("valid", {}).items():
        yield Case(f"valid {text}", partial(_check_valid, text, valid))
    for text, form in content.get("autocanonize", {}).items():
        yield Case(f"canonical {text}", partial(_check_canonical, text, form))
    for pair in content.get("pairs", []):
        yield Case(f"{pair['a']} with {pair['b']}", partial(_check_pair, pair))


def _check_valid(text: str, valid: bool) -> None:
    from elea.model.keyexpr import KeyExpr

    try:
        KeyExpr(text)
    except InvalidKeyExpr:
        accepted = False
    else:
        accepted = True
    check_equal("valid", accepted, valid)


def _check_canonical(text: str, form: str | None) -> None:
    from elea.model.keyexpr import KeyExpr

    try:
        result = str(KeyExpr.autocanonize(text))
    except InvalidKeyExpr:
        result = None
    check_equal("canonical form", result, form)


def _check_pair(pair: Record) -> None:
    from elea.model.keyexpr import KeyExpr

    a, b = KeyExpr(pair["a"]), KeyExpr(pair["b"])
    found = {
        "intersects": a.intersects(b),
        "a_includes_b": a.includes(b),
        "b_includes_a": b.includes(a),
    }
    check_equal("relation", found, {name: pair[name] for name in found})
    check_equal("relation turned round", b.intersects(a), pair["intersects"])


# -- primitives --------------------------------------------------------------------------------------------


def primitive_cases(content: Record) -> Iterator[Case]:
    """Variable-length numbers and initial sequence numbers of Zenoh 1.x."""
    for record in content.get("vle", []):
        yield Case(f"vle {record['value']}", partial(_check_vle, record))
    for record in content.get("initial_sn", []):
        name = f"initial_sn {record['zid_from']}-{record['zid_to']}"
        yield Case(name, partial(_check_initial_sn, record))


def _check_vle(record: Record) -> None:
    from elea.wire import dialect_named

    dialect = dialect_named("zenoh1")
    data = bytes.fromhex(record["hex"])
    value = dialect.decode("vle", data)
    check_equal("value", dialect.to_json("vle", value), {"value": record["value"]})
    check_equal("octets", dialect.encode("vle", value).hex(), record["hex"])
    check_equal(
        "octets from JSON",
        dialect.encode("vle", dialect.from_json("vle", {"value": record["value"]})).hex(),
        record["hex"],
    )


def _check_initial_sn(record: Record) -> None:
    from elea.model.node_id import NodeId
    from elea.protocol.zenoh1 import initial_sn

    mask = (1 << record["bits"]) - 1
    sn = initial_sn(NodeId.parse(record["zid_from"]), NodeId.parse(record["zid_to"]), mask)
    check_equal("sn", sn, record["sn"])


# -- link state --------------------------------------------------------------------------------------------


def linkstate_cases(content: Record) -> Iterator[Case]:
    """Edge weights, and next hops in squares of routers."""
    for edge in content.get("edges", []):
        yield Case(f"edge {edge['zid1']}-{edge['zid2']}", partial(_check_edge, edge))
    for ring in content.get("rings", []):
        yield Case(f"ring {'-'.join(ring['routers'])}", partial(_check_ring, ring))


def _check_edge(edge: Record) -> None:
    from elea.model.node_id import NodeId
    from elea.space.linkstate import edge_weight

    one, other = NodeId.parse(edge["zid1"]), NodeId.parse(edge["zid2"])
    check_equal("weight", round(edge_weight(one, other), 6), edge["weight"])
    check_equal("weight turned round", round(edge_weight(other, one), 6), edge["weight"])


def _check_ring(ring: Record) -> None:
    from elea.model.node_id import NodeId
    from elea.space.linkstate import next_hop

    a, b, c, d = map(NodeId.parse, ring["routers"])
    # A-B, A-C, B-D, C-D; nobody has configured a weight.
    graph: dict[NodeId, dict[NodeId, int | None]] = {
        a: {b: None, c: None},
        b: {a: None, d: None},
        c: {a: None, d: None},
        d: {b: None, c: None},
    }
    check_equal("next hop", str(next_hop(graph, a, d)), ring["next_hop_A_to_D"])


# -- DDS ---------------------------------------------------------------------------------------------------


def partition_cases(content: Record) -> Iterator[Case]:
    """DDS partition, topic and durability to a resource."""
    for index, record in enumerate(content["vectors"]):
        name = record.get("name", f"{index} {record['partition']} {record['topic']}")
        yield Case(name, partial(_check_partition, record))


def _check_partition(record: Record) -> None:
    from elea.dds.partition import DdsDurability, path_of, resource_of

    durability = DdsDurability[record["durability"]]
    separator: Any = record["separator"]
    found: Json = resource_of(record["partition"], record["topic"], durability, separator=separator)
    check_equal("resource", found, record["resource"])
    if "path" in record:
        check_equal("path", path_of(record["partition"], separator=separator), record["path"])
