"""Rows about the nodes themselves: what a session tells, the admin space, finding each other."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
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


def outcome(lib: Any, act: Callable[[], Any]) -> str:
    """How a call ends: which kind of error, or none."""
    try:
        act()
    except lib.ZError:
        return "ZError"
    except Exception as error:  # noqa: BLE001 -- which one it is, is what is looked at
        return type(error).__name__
    return "done"


@row("refusals")
def refusals(net: Network) -> Any:
    """What a session does not accept, and how it says so."""
    session, lib = net.a.session, net.a.lib
    undeclared = session.declare_publisher("refuse/x")
    undeclared.undeclare()
    subscriber = session.declare_subscriber("refuse/x")
    subscriber.undeclare()
    querier = session.declare_querier("refuse/x")
    querier.undeclare()
    token = session.liveliness().declare_token("refuse/x")
    token.undeclare()
    acts: dict[str, Callable[[], Any]] = {
        **{f"put {key!r}": functools.partial(session.put, key, "v") for key in BAD_KEYS},
        **{f"get {key!r}": functools.partial(session.get, key, timeout=0.1) for key in BAD_KEYS},
        "subscribe": lambda: session.declare_subscriber("a//b"),
        "publish": lambda: session.declare_publisher("a//b"),
        "token": lambda: session.liveliness().declare_token("a//b"),
        "put wild": lambda: session.put("refuse/**", "v"),
        "publisher wild": lambda: session.declare_publisher("refuse/*/y").undeclare(),
        "token wild": lambda: session.liveliness().declare_token("refuse/*").undeclare(),
        "number as payload": lambda: session.put("refuse/x", 1),
        "nothing as payload": lambda: session.put("refuse/x", None),
        "list as payload": lambda: session.put("refuse/x", ["a"]),
        "number as key": lambda: session.put(1, "v"),
        "number as encoding": lambda: session.put("refuse/x", "v", encoding=1),
        "text as priority": lambda: session.put("refuse/x", "v", priority="high"),
        "number as handler": lambda: session.declare_subscriber("refuse/x", 1),
        "negative timeout": lambda: session.get("refuse/x", timeout=-1.0),
        "text as timeout": lambda: session.get("refuse/x", timeout="soon"),
        "unknown option": lambda: session.put("refuse/x", "v", colour="red"),
        "put undeclared": lambda: undeclared.put("v"),
        "undeclare publisher twice": lambda: undeclared.undeclare(),
        "undeclare subscriber twice": lambda: subscriber.undeclare(),
        "undeclare querier twice": lambda: querier.undeclare(),
        "undeclare token twice": lambda: token.undeclare(),
        "get undeclared": lambda: querier.get(),
        "recv undeclared": lambda: subscriber.recv(),
        "try_recv undeclared": lambda: subscriber.try_recv(),
        "key of undeclared": lambda: undeclared.key_expr,
        "undeclare a plain key": lambda: session.undeclare(lib.KeyExpr("refuse/x")),
        "unknown entry": lambda: lib.Config().insert_json5("colour", "1"),
        "wrong entry": lambda: lib.Config().insert_json5("mode", '"boss"'),
        "open with wrong locator": lambda: lib.open(
            configuration(lib, {"mode": "client", "connect/endpoints": ["tcp/nowhere"]})
        ),
    }
    return {name: outcome(lib, act) for name, act in acts.items()}


BAD_KEYS = ("", "/a", "a/", "a//b", "a#b", "a?b", "a$b", "a/***", "**/**")


@row("a query's life")
def query_life(net: Network) -> Any:
    """What a query still does after it is dropped."""
    lib = net.b.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        query.reply("life/x", "v")
        query.drop()
        seen.append(
            [
                outcome(lib, lambda: query.reply("life/x", "late")),
                outcome(lib, lambda: query.reply_err("late")),
                outcome(lib, lambda: query.key_expr),
                outcome(lib, lambda: query.parameters),
                outcome(lib, lambda: query.payload),
                outcome(lib, query.drop),
            ]
        )

    handle = net.b.session.declare_queryable("life/x", answer)
    net.settle()
    replies = net.a.get("life/x")
    net.settle()
    handle.undeclare()
    return eventually(lambda: seen, "the answer"), len(replies)


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
            hello = heard.one(2.0)
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
            nodes += [
                Side(n, x, {"mode": "client", "scouting/timeout": 1000, **place})
                for n, x in (("b", column.b), ("a", column.a))
            ]
        else:
            nodes += [Side(n, x, {"mode": "peer", **listening, **place}) for n, x in (("b", column.b), ("a", column.a))]
        b, a = nodes[-2:]
        with b.subscriber("scouted/x") as got, a.session.declare_publisher("scouted/x") as publisher:
            eventually(lambda: publisher.matching_status.matching, "the two to find each other", 2.0)
            publisher.put("hello")
            return got.one().payload.to_string()
    finally:
        for node in reversed(nodes):
            node.close()
