"""Rows about the nodes themselves: what a session tells, the admin space, finding each other."""

from __future__ import annotations

import json
from typing import Any

from tests.interop.columns import Column
from tests.interop.inbox import Inbox, eventually, free_port
from tests.interop.network import Network, Side, configuration
from tests.interop.rows.registry import row


@row("session info")
def session_info(net: Network) -> Any:
    def facts(side: Side) -> Any:
        info = side.session.info
        return {
            "zid": net.owner(info.zid()),
            "routers": sorted(net.owner(zid) for zid in info.routers_zid()),
            "peers": sorted(net.owner(zid) for zid in info.peers_zid()),
            "transports": sorted(
                (net.owner(t.zid), str(t.whatami), t.is_qos, t.is_multicast) for t in info.transports()
            ),
            "links": sorted(
                (net.owner(x.zid), x.mtu, x.is_streamed, x.group, x.auth_identifier, str(x.reliability), x.priorities)
                for x in info.links()
            ),
        }

    net.settle()
    return [facts(side) for side in (net.a, net.b)]


@row("closed session")
def closed_session(net: Network) -> Any:
    """What an ended session refuses."""
    extra = Side("extra", net.column.a, net.leaf)
    publisher = extra.session.declare_publisher("closed/x")
    extra.close()
    outcomes = [extra.session.is_closed()]
    for act in (
        lambda: extra.session.put("closed/x", "v"),
        lambda: extra.session.declare_subscriber("closed/x"),
        lambda: list(extra.session.get("closed/x")),
        lambda: publisher.put("v"),
        lambda: extra.session.close(),
    ):
        try:
            act()
            outcomes.append("done")
        except extra.lib.ZError:
            outcomes.append("ZError")
    return outcomes


@row("admin space", own=True)
def admin(column: Column) -> Any:
    """The accepting node tells of itself: which keys, and for its own one which members."""
    role = "peer" if column.router is None else "router"
    net = Network(column, hub={"adminspace/enabled": True})
    try:
        zid = str(net.hub.session.zid())
        leaf = net.a if net.hub is not net.a else net.b
        found = leaf.get(f"@/{zid}/{role}")
        assert found, "the admin space does not answer"
        value = json.loads(found[0].ok.payload.to_bytes())
        keys = sorted(str(reply.ok.key_expr).replace(zid, "HUB") for reply in leaf.get(f"@/{zid}/{role}/**"))
        for side in net.sides:
            keys = [key.replace(str(side.session.zid()), side.name) for key in keys]
        return str(found[0].ok.encoding), sorted(value), sorted(keys)
    finally:
        net.close()


MULTICAST = {"scouting/multicast/enabled": True, "scouting/multicast/interface": "lo"}


def meeting_place() -> dict[str, Any]:
    """A multicast address nobody else uses now."""
    return {**MULTICAST, "scouting/multicast/address": f"224.0.0.224:{free_port()}"}


@row("scouting: scout", own=True)
def scout(column: Column) -> Any:
    """Side a looks for side b's node (or the router) without opening a session."""
    place = meeting_place()
    letter = column.router or column.b
    role = "router" if column.router is not None else "peer"
    found = Side("found", letter, {"mode": role, "listen/endpoints": ["tcp/127.0.0.1:0"], **place})
    try:
        lib = __import__({"E": "elea", "Z": "zenoh"}[column.a])
        heard = Inbox()
        with lib.scout(heard, what=role, config=configuration(lib, place)):
            hello = heard.one()
        return str(hello.whatami), str(hello.zid) == str(found.session.zid()), len(hello.locators)
    finally:
        found.close()


@row("scouting: connect", own=True)
def scouted(column: Column) -> Any:
    """No endpoint is configured: clients find the router, peers each other."""
    place = meeting_place()
    listening = {"listen/endpoints": ["tcp/127.0.0.1:0"]}
    nodes: list[Side] = []
    try:
        if column.router is not None:
            nodes.append(Side("router", column.router, {"mode": "router", **listening, **place}))
            nodes += [Side(n, x, {"mode": "client", **place}) for n, x in (("b", column.b), ("a", column.a))]
        else:
            nodes += [
                Side(n, x, {"mode": "peer", **listening, **place}) for n, x in (("b", column.b), ("a", column.a))
            ]
        b, a = nodes[-2:]
        with b.subscriber("scouted/x") as got, a.session.declare_publisher("scouted/x") as publisher:
            eventually(lambda: publisher.matching_status.matching, "the two to find each other")
            publisher.put("hello")
            return got.one().payload.to_string()
    finally:
        for node in reversed(nodes):
            node.close()
