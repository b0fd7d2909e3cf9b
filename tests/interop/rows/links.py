"""Rows about links and sessions, each with nodes of its own: media, trust, compression, low latency, loss."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.interop.columns import Column
from tests.interop.inbox import DEADLINE, Inbox, eventually
from tests.interop.network import Network, configuration
from tests.interop.rows.registry import row
from tests.unit.io.ends import Authority

QUICK_RETRY = {"connect/retry": {"period_init_ms": 20, "period_max_ms": 100, "period_increase_factor": 2}}


@contextlib.contextmanager
def network(column: Column, **options: Any) -> Iterator[Network]:
    """A network for one cell."""
    net = Network(column, **options)
    try:
        yield net
    finally:
        net.close()


def exchange(net: Network) -> Any:
    """Small and large samples, and a query, both ways."""
    block = {"congestion_control": net.a.lib.CongestionControl.BLOCK}
    with (
        net.b.subscriber("exchange/a") as at_b,
        net.a.subscriber("exchange/b") as at_a,
        net.b.queryable("exchange/q", lambda query: query.reply("exchange/q", b"r" * 100_000)),
    ):
        net.settle()
        net.a.session.put("exchange/a", "small", **block)
        net.a.session.put("exchange/a", b"abc" * 100_000, **block)
        net.b.session.put("exchange/b", "back", congestion_control=net.b.lib.CongestionControl.BLOCK)

        replies = [net.reply(reply)["payload"] for reply in net.a.get("exchange/q")]
        return [net.sample(s)["payload"] for s in [*at_b.take(2), at_a.one()]], replies


def exchanged(column: Column, **options: Any) -> Any:
    """What passes through a network made for it."""
    with network(column, **options) as net:
        return exchange(net)


def refused(column: Column, hub: Mapping[str, Any], leaf: Mapping[str, Any], scheme: str = "tcp/127.0.0.1:") -> Any:
    """Whether a side that should not be let in is let in; it comes with a once-only connect and must hear an error."""
    once = {"connect/exit_on_failure": True, "connect/timeout_ms": 0, "transport/unicast/open_timeout": 2000}
    try:
        net = Network(column, scheme=scheme, hub=hub, leaf={**leaf, **once})
    except Exception as error:  # noqa: BLE001 -- which of the two libraries' errors it is, is what is looked at
        return "ZError" if any(kind.__name__ == "ZError" for kind in type(error).__mro__) else type(error).__name__
    net.close()
    return "let in"


# -- media


@row("tcp on IPv6", own=True)
def ipv6(column: Column) -> Any:
    return exchanged(column, scheme="tcp/[::1]:")


@row("tcp by name", own=True)
def by_name(column: Column) -> Any:
    return exchanged(column, scheme="tcp/localhost:")


@row("udp", own=True)
def udp(column: Column) -> Any:
    with network(column, scheme="udp/127.0.0.1:") as net, net.b.subscriber("udp/x") as got:
        net.settle()
        net.a.session.put("udp/x", "v")
        net.a.session.put("udp/x", b"u" * 20_000)
        return [net.sample(s)["payload"] for s in got.take(2)]


@row("unix socket", own=True)
def unix(column: Column) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        return exchanged(column, scheme=f"unixsock-stream/{directory}/s")


# -- trust


@functools.cache
def certificates() -> dict[str, Any]:
    """An authority, a server and a client it vouches for, and one it does not."""
    keep = tempfile.TemporaryDirectory()
    root, other = Path(keep.name) / "root", Path(keep.name) / "other"
    root.mkdir()
    other.mkdir()
    good, bad = Authority(root), Authority(other)
    return {
        "keep": keep,
        "root": good.certificate,
        "other": bad.certificate,
        "server": good.issue("server"),
        "client": good.issue("client"),
        "stranger": bad.issue("stranger"),
    }


def server(**more: Any) -> dict[str, Any]:
    """The accepting node's part of tls."""
    certificate, key = certificates()["server"]
    entries = {"listen_certificate": certificate, "listen_private_key": key, **more}
    return {f"transport/link/tls/{name}": value for name, value in entries.items()}


def trusting(root: str = "root", who: str | None = None) -> dict[str, Any]:
    """The connecting nodes' part of tls."""
    entries: dict[str, Any] = {"root_ca_certificate": certificates()[root]}
    if who is not None:
        entries["enable_mtls"] = True
        entries["connect_certificate"], entries["connect_private_key"] = certificates()[who]
    return {f"transport/link/tls/{name}": value for name, value in entries.items()}


def mutual() -> dict[str, Any]:
    """The accepting node's part of mutual tls."""
    return server(enable_mtls=True, root_ca_certificate=certificates()["root"])


@row("tls", own=True)
def tls(column: Column) -> Any:
    return exchanged(column, scheme="tls/localhost:", hub=server(), leaf=trusting())


@row("tls, unknown authority", own=True)
def tls_unknown(column: Column) -> Any:
    return [refused(column, server(), trusting(who), "tls/localhost:") for who in ("other", "root")]


@row("mutual tls", own=True)
def mutual_tls(column: Column) -> Any:
    return exchanged(column, scheme="tls/localhost:", hub=mutual(), leaf=trusting(who="client"))


@row("mutual tls, stranger", own=True)
def mutual_stranger(column: Column) -> Any:
    return [refused(column, mutual(), trusting(who=who), "tls/localhost:") for who in ("stranger", "client")]


@contextlib.contextmanager
def users() -> Iterator[dict[str, Any]]:
    """A dictionary of users, as the accepting node is told it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "users"
        path.write_text("alice:wonder\nbob:builder\n")
        usrpwd = {"user": "hub", "password": "hub", "dictionary_file": str(path)}
        yield {"transport/auth/usrpwd": usrpwd}


def login(user: str, password: str) -> dict[str, Any]:
    """A connecting node's name and password."""
    return {"transport/auth/usrpwd": {"user": user, "password": password}}


@row("usrpwd accepted", own=True)
def usrpwd(column: Column) -> Any:
    with users() as hub:
        return exchanged(column, hub=hub, leaf=login("alice", "wonder"))


@row("usrpwd wrong password", own=True)
def wrong_password(column: Column) -> Any:
    with users() as hub:
        return [refused(column, hub, login("alice", password)) for password in ("land", "wonder")]


@row("usrpwd unknown user", own=True)
def unknown_user(column: Column) -> Any:
    with users() as hub:
        return refused(column, hub, login("mallory", "wonder"))


@row("usrpwd missing", own=True)
def no_login(column: Column) -> Any:
    with users() as hub:
        return refused(column, hub, {})


# -- what a session agrees on

COMPRESSED = {"transport/unicast/compression/enabled": True}
LOW_LATENCY = {"transport/unicast/lowlatency": True, "transport/unicast/qos/enabled": False}
NO_QOS = {"transport/unicast/qos/enabled": False}


@row("compression", own=True)
def compression(column: Column) -> Any:
    return exchanged(column, hub=COMPRESSED, leaf=COMPRESSED)


@row("compression on one side", own=True)
def half_compression(column: Column) -> Any:
    return exchanged(column, hub=COMPRESSED), exchanged(column, leaf=COMPRESSED)


@row("low latency", own=True)
def low_latency(column: Column) -> Any:
    with network(column, hub=LOW_LATENCY, leaf=LOW_LATENCY) as net, net.b.subscriber("low/x") as got:
        net.settle()
        net.a.session.put("low/x", "v")
        net.a.session.put("low/x", b"u" * 20_000)
        return [net.sample(s)["payload"] for s in got.take(2)]


@row("low latency on one side", own=True)
def half_low_latency(column: Column) -> Any:
    return exchanged(column, hub=LOW_LATENCY), exchanged(column, leaf=LOW_LATENCY)


@row("no qos", own=True)
def no_qos(column: Column) -> Any:
    with network(column, hub=NO_QOS, leaf=NO_QOS) as net, net.b.subscriber("noqos/x") as got:
        net.settle()
        net.a.session.put("noqos/x", "v", priority=net.a.lib.Priority.REAL_TIME)
        return net.sample(got.one())["qos"], exchange(net)


@row("no qos on one side", own=True)
def half_no_qos(column: Column) -> Any:
    return exchanged(column, hub=NO_QOS), exchanged(column, leaf=NO_QOS)


@row("8 bit numbers", own=True)
def narrow_numbers(column: Column) -> Any:
    """Sequence numbers wrap round every 256 frames."""
    entries = {"transport/link/tx/sequence_number_resolution": "8bit"}
    with network(column, hub=entries, leaf=entries) as net, net.b.subscriber("narrow/x") as got:
        net.settle()
        block = {"congestion_control": net.a.lib.CongestionControl.BLOCK, "express": True}
        for number in range(1000):
            net.a.session.put("narrow/x", str(number), **block)
        return [int(s.payload.to_string()) for s in got.take(1000)] == list(range(1000))


@row("small batches", own=True)
def small_batches(column: Column) -> Any:
    entries = {"transport/link/tx/batch_size": 1000}
    return exchanged(column, hub=entries, leaf=entries)


@row("short lease", own=True)
def short_lease(column: Column) -> Any:
    """Keep-alives hold an idle session up well past its lease."""
    import time

    entries = {"transport/link/tx/lease": 300}
    with network(column, hub=entries, leaf=entries) as net, net.b.subscriber("lease/x") as got:
        net.settle()
        before = [str(zid) for zid in [*net.a.session.info.peers_zid(), *net.a.session.info.routers_zid()]]
        time.sleep(0.8)  # what is looked at is that nothing happens in this time
        net.a.session.put("lease/x", "still there")
        after = [str(zid) for zid in [*net.a.session.info.peers_zid(), *net.a.session.info.routers_zid()]]
        return net.sample(got.one())["payload"], before == after


# -- loss


@row("reconnect", own=True)
def reconnect(column: Column) -> Any:
    """The accepting node ends and comes back at the same place: all that was declared is declared again."""
    with network(column, leaf=QUICK_RETRY) as net:
        if net.router is None:
            return _peer_reconnect(net)
        with (
            net.b.subscriber("recon/sub") as got,
            net.b.queryable("recon/que", lambda query: query.reply("recon/que", "r")),
            net.b.session.liveliness().declare_token("recon/tok"),
            net.a.session.declare_publisher("recon/sub") as publisher,
            net.a.session.declare_querier("recon/que", timeout=2.0) as querier,
        ):
            alive = Inbox()
            watch = net.a.session.liveliness().declare_subscriber("recon/tok", alive, history=True)
            net.settle()
            events = [str(alive.one().kind)]
            net.router.close()
            events.append(str(alive.one().kind))
            gone = eventually(lambda: not publisher.matching_status.matching, "the match to go")
            net.router.reopen()
            events.append(str(alive.one(10.0).kind))
            eventually(lambda: publisher.matching_status.matching, "the match to come back")
            eventually(lambda: querier.matching_status.matching, "the querier's match to come back")
            publisher.put("again")
            replies = [reply.ok.payload.to_string() for reply in querier.get()]
            watch.undeclare()
            return events, gone, net.sample(got.one())["payload"], replies


def _peer_reconnect(net: Network) -> Any:
    leaf = net.a if net.hub is net.b else net.b
    with leaf.subscriber("recon/sub") as got, leaf.session.declare_publisher("recon/back") as publisher:
        net.settle()
        net.hub.close()
        eventually(lambda: not list(leaf.session.info.peers_zid()), "the peer to be gone")
        net.hub.reopen()
        net.guard(net.hub)
        eventually(lambda: list(leaf.session.info.peers_zid()), "the peer to be back", 10.0)
        net.settle()
        net.hub.session.put("recon/sub", "again")
        with net.hub.subscriber("recon/back") as back:
            eventually(lambda: publisher.matching_status.matching, "the match to come back")
            publisher.put("and back")
            return net.sample(got.one())["payload"], net.sample(back.one())["payload"]


@row("responder gone", own=True)
def responder_gone(column: Column) -> Any:
    """The answering node leaves with a query unanswered: the asker hears the end long before the timeout."""
    import time

    with network(column) as net:
        held = Inbox()
        net.b.session.declare_queryable("rgone/x", held)
        net.settle()
        began = time.monotonic()
        replies = net.a.session.get("rgone/x", timeout=DEADLINE)
        query = held.one()
        net.b.close()
        heard = [net.reply(reply) for reply in replies]
        del query
        return len(heard), time.monotonic() - began < DEADLINE / 2


@row("tokens of a closed session", own=True)
def closed_tokens(column: Column) -> Any:
    with network(column) as net:
        seen = Inbox()
        net.a.session.liveliness().declare_subscriber("closed/*", seen)
        net.settle()
        net.b.session.liveliness().declare_token("closed/x")
        born = str(seen.one().kind)
        net.b.close()
        return born, str(seen.one().kind)


@row("no one listens", own=True)
def nobody_there(column: Column) -> Any:
    """A client that reaches nobody fails at once; a peer goes on trying and its open returns."""
    import time

    from tests.interop.inbox import free_port

    side = column.a
    net_lib = __import__({"E": "elea", "Z": "zenoh"}[side])
    began = time.monotonic()
    entries = {"connect/endpoints": [f"tcp/127.0.0.1:{free_port()}"], "mode": "client" if column.router else "peer"}
    try:
        session = net_lib.open(configuration(net_lib, {"listen/endpoints": [], **entries}))
        session.close()
        outcome = "opened"
    except net_lib.ZError:
        outcome = "ZError"
    return outcome, time.monotonic() - began < 2.0
