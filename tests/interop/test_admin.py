"""The admin space, asked by either library of either library: the same keys, the same JSON."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.columns import Column
from tests.interop.inbox import eventually
from tests.interop.network import Network, Side

pytestmark = pytest.mark.interop

ROUTED = [Column("Z", "Z", "Z"), Column("Z", "Z", "E"), Column("E", "E", "Z"), Column("E", "Z", "E")]
ENABLED = {"adminspace/enabled": True, "metadata": {"name": "hub"}}
TEXT = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.fixture(scope="module", params=ROUTED, ids=lambda column: column.name)
def net(request: pytest.FixtureRequest) -> Iterator[Network]:
    network = Network(request.param, hub=ENABLED)
    held = [
        network.b.session.declare_subscriber("demo/**", lambda sample: None),
        network.b.session.declare_queryable("demo/q", lambda query: None),
        network.b.session.liveliness().declare_token("alive/b"),
        network.b.session.declare_publisher("demo/p"),
        network.b.session.declare_querier("demo/q"),
        network.hub.session.declare_subscriber("own/x", lambda sample: None),
    ]
    network.settle()
    yield network
    del held
    network.close()


def named(net: Network, text: str) -> str:
    """The same with names for identifiers."""
    for side in net.sides:
        text = text.replace(str(side.session.zid()), side.name)
    return text


def ask(net: Network, side: Side, selector: str) -> dict[str, Any]:
    """Replies by key."""
    for node in net.sides:
        selector = selector.replace(f"<{node.name}>", str(node.session.zid()))
    target = side.lib.QueryTarget.ALL
    return {named(net, str(reply.ok.key_expr)): reply.ok for reply in side.get(selector, target=target)}


def read(net: Network, sample: Any) -> Any:
    return json.loads(named(net, sample.payload.to_string()))


def test_router_has_the_keys_of_eclipse_zenoh(net: Network) -> None:
    found = ask(net, net.a, "@/<router>/router/**")
    own = {key.removeprefix("@/router/router/") for key in found if "settle" not in key}

    assert own == {
        "@/router/router",
        "metrics",
        "linkstate/north",
        "linkstate/south:0:peer",
        "subscriber/demo/**",
        "subscriber/own/x",
        "queryable/demo/q",
        "token/alive/b",
        "publisher/demo/p",
        "querier/demo/q",
    }
    assert not [key for key in ask(net, net.a, "**") if key.startswith("@")]


def test_router_tells_of_itself(net: Network) -> None:
    (sample,) = ask(net, net.a, "@/<router>/router").values()
    told = read(net, sample)

    assert str(sample.encoding) == "application/json"
    assert set(told) == {"zid", "version", "metadata", "locators", "sessions", "plugins"}
    assert told["zid"] == "router"
    assert told["metadata"] == {"name": "hub"}
    assert told["locators"] == [net.locator]
    sessions = {session["peer"]: session for session in told["sessions"]}
    assert set(sessions) == {"a", "b"}
    assert set(sessions["a"]) == {"peer", "whatami", "region", "links", "weight", "shm"}
    assert (sessions["a"]["whatami"], sessions["a"]["region"]) == ("client", "south:0:client")
    link = net.a.session.info.links()[0]
    assert sessions["a"]["links"] == [{"src": link.dst, "dst": link.src}]


@pytest.mark.parametrize(
    ("key", "sources"),
    [
        ("subscriber/demo/**", (["router"], [], ["b"])),
        ("subscriber/own/x", (["router"], [], ["router"])),
        ("queryable/demo/q", (["router"], [], ["b"])),
        ("token/alive/b", (["router"], [], ["b"])),
        ("publisher/demo/p", ([], [], ["b"])),
        ("querier/demo/q", ([], [], ["b"])),
    ],
)
def test_router_tells_who_declared_what(net: Network, key: str, sources: tuple[list[str], ...]) -> None:
    (sample,) = ask(net, net.a, f"@/<router>/router/{key}").values()

    assert read(net, sample) == dict(zip(("routers", "peers", "clients"), sources, strict=True))


def test_metrics_come_compressed_unless_asked_otherwise(net: Network) -> None:
    (packed,) = ask(net, net.a, "@/<router>/router/metrics").values()
    (plain,) = ask(net, net.a, "@/<router>/router/metrics?compression=false").values()
    (bare,) = ask(net, net.a, "@/<router>/router/metrics?compression=false;descriptors=false").values()

    assert str(packed.encoding) == f"{TEXT};content-encoding=gzip"
    assert str(plain.encoding) == TEXT
    assert "# TYPE zenoh_build info" in gzip.decompress(packed.payload.to_bytes()).decode()
    assert 'local_whatami="router"' in plain.payload.to_string()
    assert plain.payload.to_string().rstrip().endswith("# EOF")
    assert "# HELP" not in bare.payload.to_string()


def test_session_tells_of_itself_to_itself_only(net: Network) -> None:
    found = ask(net, net.a, "@/<a>/**")
    transport = "@/a/session/transport/unicast/router"

    assert set(read(net, found[transport])) == {"zid", "whatami", "is_qos", "is_shm"}
    (link,) = [read(net, sample) for key, sample in found.items() if key.startswith(f"{transport}/link/")]
    members = "src dst group mtu is_streamed interfaces auth_identifier priorities reliability"
    assert set(link) == set(members.split())
    assert link["dst"] == net.locator
    assert len(found) == 2
    assert ask(net, net.a, "@/<b>/**") == {}
    assert not [key for key in ask(net, net.a, "@/**") if key.startswith("@/router/session")]


def test_counters_of_an_elea_router_count() -> None:
    net = Network(Column("Z", "Z", "E"), hub=ENABLED)
    try:
        with net.b.subscriber("count/x") as got, net.a.session.declare_publisher("count/x") as publisher:
            eventually(lambda: publisher.matching_status.matching, "matching")
            publisher.put("x")
            got.one()
        (sample,) = ask(net, net.a, "@/<router>/router/metrics?compression=false").values()
        lines = named(net, sample.payload.to_string()).splitlines()
        samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert samples['elea_sessions{role="client"}'] == "2"
        sent = [name for name in samples if name.startswith('elea_link_sent_messages_total{node="b"')]
        assert int(samples[sent[0]]) > 0
        assert [name for name in samples if name.startswith("elea_link_dropped_messages_total") and "full" in name]
    finally:
        net.close()


@pytest.mark.parametrize("router", ["Z", "E"])
def test_nothing_is_told_without_leave(router: str) -> None:
    net = Network(Column("Z", "E", router), hub={**ENABLED, "adminspace/permissions": {"read": False, "write": False}})
    try:
        for side in (net.a, net.b):
            assert ask(net, side, "@/<router>/router/**") == {}
    finally:
        net.close()


@pytest.mark.parametrize("router", ["Z", "E"])
def test_nothing_is_told_unless_switched_on(router: str) -> None:
    net = Network(Column("Z", "E", router))
    try:
        for side in (net.a, net.b):
            assert ask(net, side, "@/<router>/router/**") == {}
    finally:
        net.close()


@pytest.mark.parametrize("column", [Column("Z", "Z"), Column("Z", "E"), Column("E", "Z")], ids=lambda c: c.name)
def test_peer_tells_of_itself(column: Column) -> None:
    net = Network(column, hub=ENABLED)
    try:
        with net.hub.subscriber("own/x"), net.a.subscriber("other/x"):
            net.settle()
            found = ask(net, net.a, "@/<b>/peer/**")
            keys = {key.removeprefix("@/b/peer/") for key in found if "settle" not in key}
            assert keys == {"@/b/peer", "metrics", "linkstate/north", "subscriber/own/x", "subscriber/other/x"}
            root = read(net, found["@/b/peer"])
            assert [(s["peer"], s["whatami"], s["region"]) for s in root["sessions"]] == [("a", "peer", "north")]
            own, other = (read(net, found[f"@/b/peer/subscriber/{name}/x"]) for name in ("own", "other"))
            assert own == {"routers": [], "peers": ["b"], "clients": ["b"]}
            assert other == {"routers": [], "peers": ["a"], "clients": []}
            graph = named(net, found["@/b/peer/linkstate/north"].payload.to_string())
            assert ('label = "a"' in graph, 'label = "b"' in graph) == (True, True)
    finally:
        net.close()
