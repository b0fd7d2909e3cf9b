"""Rows about queries: side a asks, side b answers."""

from __future__ import annotations

import time
import warnings
from typing import Any

from tests.interop.inbox import DEADLINE, Inbox, eventually
from tests.interop.network import Network, content
from tests.interop.rows.registry import row


def asked(net: Network, query: Any) -> dict[str, Any]:
    """A query as plain values."""
    return {
        "selector": str(query.selector),
        "key": str(query.key_expr),
        "parameters": str(query.parameters),
        "payload": None if query.payload is None else content(query.payload),
        "encoding": None if query.encoding is None else str(query.encoding),
        "attachment": None if query.attachment is None else content(query.attachment),
        "accepts": str(query.accepts_replies()),
        "source": net.source(query.source_info),
    }


@row("get")
def get(net: Network) -> Any:
    seen: list[Any] = []

    def answer(query: Any) -> None:
        seen.append(asked(net, query))
        query.reply(query.key_expr, "answer")

    with net.b.queryable("get/x", answer):
        net.settle()

        replies = [net.reply(reply) for reply in net.a.get("get/x")]

        return seen, replies


@row("get: payload, attachment, parameters")
def get_with_all(net: Network) -> Any:
    lib = net.a.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        seen.append(asked(net, query))
        query.reply("getall/y", "answer", encoding="text/plain", attachment=b"\x01", express=True)

    with net.b.queryable("getall/*", answer):
        net.settle()

        replies = net.a.get(
            "getall/y?a=1;b=two;flag",
            payload=b"question",
            encoding=lib.Encoding.APPLICATION_JSON,
            attachment="extra",
            source_info=lib.SourceInfo(net.a.session.id, 3),
            priority=lib.Priority.DATA_HIGH,
        )
        replies += net.a.get(lib.Selector("getall/*", {"k": "v"}), payload=b"")

        return seen, [net.reply(reply) for reply in replies]


@row("reply options")
def reply_options(net: Network) -> Any:
    stamp = net.b.session.new_timestamp()

    def answer(query: Any) -> None:
        query.reply(
            "options/x",
            "answer",
            encoding="a/b;c",
            express=True,
            timestamp=stamp,
        )

    with net.b.queryable("options/x", answer):
        net.settle()

        replies = net.a.get("options/x", priority=net.a.lib.Priority.BACKGROUND)

        return [net.reply(reply) for reply in replies], str(replies[0].ok.timestamp) == str(stamp)


@row("reply priority is deprecated")
def deprecated_options(net: Network) -> Any:
    lib = net.b.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            query.reply("deprec/x", "v", priority=lib.Priority.REAL_TIME)
            query.reply("deprec/x", "v", congestion_control=lib.CongestionControl.DROP)
            query.reply_del("deprec/x", priority=lib.Priority.REAL_TIME)
        seen.append([warning.category.__name__ for warning in heard])

    with net.b.queryable("deprec/x", answer):
        net.settle()

        replies = net.a.get("deprec/x", consolidation=net.a.lib.ConsolidationMode.NONE)

        return seen, [net.reply(reply)["qos"] for reply in replies]


def several_answering(net: Network, target: str) -> Any:
    """Three queryables: one complete on the key, one incomplete, one complete on part of it; plus the asker's own."""

    def named(name: str) -> Any:
        return lambda query: query.reply(f"target/{name}", name)

    with (
        net.b.queryable("target/*", named("whole"), complete=True),
        net.b.queryable("target/*", named("partial"), complete=False),
        net.b.queryable("target/narrow", named("narrow"), complete=True),
        net.a.queryable("target/*", named("own"), complete=False),
    ):
        net.settle()

        options = {"target": getattr(net.a.lib.QueryTarget, target)}
        wide = net.a.get("target/*", **options)
        narrow = net.a.get("target/narrow", **options)

        return [sorted(str(reply.ok.payload.to_string()) for reply in replies) for replies in (wide, narrow)]


@row("target best matching")
def best_matching(net: Network) -> Any:
    return several_answering(net, "BEST_MATCHING")


@row("target all")
def target_all(net: Network) -> Any:
    return several_answering(net, "ALL")


@row("target all complete")
def all_complete(net: Network) -> Any:
    return several_answering(net, "ALL_COMPLETE")


def three_links(net: Network, target: str) -> Any:
    """Queryables behind two links, so that the router must choose."""

    def named(name: str) -> Any:
        return lambda query: query.reply(f"links/{name}", name)

    with (
        net.b.queryable("links/*", named("b")),
        net.c.queryable("links/**", named("c"), complete=True),
        net.c.queryable("links/c", named("c"), complete=False),
    ):
        net.settle()
        replies = net.a.get("links/*", target=getattr(net.a.lib.QueryTarget, target))

        return sorted((reply.ok.payload.to_string(), net.reply(reply)["by"]) for reply in replies)


for each in ("BEST_MATCHING", "ALL", "ALL_COMPLETE"):

    @row(f"two answering nodes, {each.lower()}", only="routed", reason="needs a third node")
    def two_nodes(net: Network, target: str = each) -> Any:
        return three_links(net, target)


def consolidated(net: Network, mode: str, suffix: str = "") -> Any:
    """Two keys; an older answer after a newer one, and answers without time."""
    early, late = net.b.session.new_timestamp(), net.b.session.new_timestamp()

    def answer(query: Any) -> None:
        query.reply("cons/a", "a late", timestamp=late)
        query.reply("cons/a", "a early", timestamp=early)
        query.reply("cons/b", "b first")
        query.reply("cons/b", "b second")
        query.reply("cons/c", "c early", timestamp=early)
        query.reply("cons/c", "c late", timestamp=late)
        query.reply("cons/c", "c untimed")

    with net.b.queryable("cons/*", answer):
        net.settle()

        replies = net.a.get(f"cons/*{suffix}", consolidation=getattr(net.a.lib.ConsolidationMode, mode))

        heard = [reply.ok.payload.to_string() for reply in replies]
        return sorted(heard) if mode in ("LATEST", "AUTO") and not suffix else heard


for each in ("AUTO", "NONE", "MONOTONIC", "LATEST"):

    @row(f"consolidation {each.lower()}")
    def consolidation(net: Network, mode: str = each) -> Any:
        return consolidated(net, mode)


@row("consolidation auto with _time")
def consolidation_with_time(net: Network) -> Any:
    return consolidated(net, "AUTO", "?_time=[..]")


@row("several replies")
def several_replies(net: Network) -> Any:
    def answer(query: Any) -> None:
        for number in range(50):
            query.reply(f"many/{number}", str(number))

    with net.b.queryable("many/**", answer):
        net.settle()

        none = net.a.lib.ConsolidationMode.NONE
        replies = net.a.get("many/*", consolidation=none)

        return [(str(reply.ok.key_expr), reply.ok.payload.to_string()) for reply in replies]


@row("reply_err")
def reply_err(net: Network) -> Any:
    def answer(query: Any) -> None:
        query.reply_err("not today", encoding="text/plain")
        query.reply_err(b"\x00")
        query.reply("err/x", "but this")

    with net.b.queryable("err/x", answer):
        net.settle()

        replies = net.a.get("err/x", consolidation=net.a.lib.ConsolidationMode.NONE)

        return [net.reply(reply) for reply in replies]


@row("reply_del")
def reply_del(net: Network) -> Any:
    def answer(query: Any) -> None:
        query.reply_del("del/x", attachment="gone")
        query.reply_del("del/y")

    with net.b.queryable("del/**", answer):
        net.settle()

        replies = net.a.get("del/*", consolidation=net.a.lib.ConsolidationMode.NONE)

        return [net.reply(reply) for reply in replies]


@row("replies of another key")
def other_key(net: Network) -> Any:
    outcomes: list[str] = []

    def answer(query: Any) -> None:
        try:
            query.reply("elsewhere/x", "other")
            outcomes.append("accepted")
        except net.b.lib.ZError:
            outcomes.append("refused")
        query.reply("otherkey/x", "own")

    with net.b.queryable("otherkey/x", answer):
        net.settle()

        first = net.a.get("otherkey/x")
        anything = net.a.get("otherkey/x", accept_replies=net.a.lib.ReplyKeyExpr.ANY)

        return outcomes, [sorted(str(reply.ok.key_expr) for reply in replies) for replies in (first, anything)]


@row("get timeout")
def timeout(net: Network) -> Any:
    held: list[Any] = []
    handle = net.b.session.declare_queryable("late/x", held.append)
    net.settle()

    began = time.monotonic()
    replies = net.a.get("late/x", timeout=0.3)
    took = time.monotonic() - began

    for query in held:
        query.drop()
    handle.undeclare()
    # The node that waits and the asker both say so; the reference hears one or two, as it comes.
    return {net.reply(reply)["error"] for reply in replies}, 0.25 < took < 1.5


@row("late reply")
def late_reply(net: Network) -> Any:
    """What is answered after the asker gave up disturbs nothing."""
    held: list[Any] = []
    handle = net.b.session.declare_queryable("tardy/x", held.append)
    net.settle()
    net.a.get("tardy/x", timeout=0.1)

    held[0].reply("tardy/x", "too late")
    held[0].drop()
    net.settle()

    handle.undeclare()
    return len(held)


@row("get without anyone")
def nobody(net: Network) -> Any:
    net.settle()
    began = time.monotonic()

    replies = net.a.get("nobody/x")

    return len(replies), time.monotonic() - began < DEADLINE / 2


@row("query dropped unanswered")
def unanswered(net: Network) -> Any:
    with net.b.queryable("mute/x", lambda query: None):
        net.settle()
        began = time.monotonic()

        replies = net.a.get("mute/x")

        return len(replies), time.monotonic() - began < DEADLINE / 2


@row("query held, answered later")
def answered_later(net: Network) -> Any:
    inbox, replies = Inbox(), Inbox()
    handle = net.b.session.declare_queryable("later/x", inbox)
    net.settle()

    net.a.session.get("later/x", replies, timeout=5.0)
    query = inbox.one()
    before = len(replies.drain())
    query.reply("later/x", "now")
    query.drop()

    heard = net.reply(replies.one())
    handle.undeclare()
    return before, heard


@row("query channel")
def query_channel(net: Network) -> Any:
    handle = net.b.session.declare_queryable("channel/x")
    net.settle()

    replies = net.a.session.get("channel/x?n=1", timeout=3.0)
    query = eventually(handle.try_recv, "a query in the channel")
    query.reply(query.key_expr, query.parameters.get("n"))
    query.drop()

    heard = [reply.ok.payload.to_string() for reply in replies]
    handle.undeclare()
    return heard, handle is not None


@row("large question and answer")
def large_query(net: Network) -> Any:
    def answer(query: Any) -> None:
        query.reply("bulk/x", query.payload.to_bytes() * 2)

    with net.b.queryable("bulk/x", answer):
        net.settle()

        replies = net.a.get("bulk/x", payload=b"q" * 200_000, timeout=10.0)

        return [net.reply(reply)["payload"] for reply in replies]


@row("querier")
def querier(net: Network) -> Any:
    lib = net.a.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        seen.append(asked(net, query))
        query.reply(query.key_expr, query.parameters.get("n", "none"))

    with net.b.queryable("querier/x", answer), net.a.session.declare_querier("querier/x", timeout=3.0) as made:
        net.settle()

        replies = [
            *made.get(),
            *made.get(parameters="n=1"),
            *made.get(parameters={"n": "2"}, payload="p", attachment="t"),
        ]
        replies += made.get(encoding=lib.Encoding.TEXT_PLAIN)

        facts = (str(made.key_expr), str(made.accept_replies), made.matching_status.matching)
        return facts, seen, [net.reply(reply) for reply in replies]


@row("querier options")
def querier_options(net: Network) -> Any:
    lib = net.a.lib

    def answer(query: Any) -> None:
        query.reply("quopt/a", "one")
        query.reply("quopt/a", "two")

    options = {
        "target": lib.QueryTarget.ALL_COMPLETE,
        "consolidation": lib.ConsolidationMode.NONE,
        "timeout": 2.0,
        "priority": lib.Priority.INTERACTIVE_LOW,
        "congestion_control": lib.CongestionControl.BLOCK,
        "express": True,
    }
    with net.a.session.declare_querier("quopt/*", **options) as made:
        with net.b.queryable("quopt/*", answer, complete=False):
            net.settle()
            none = [net.reply(reply) for reply in made.get()]
        with net.b.queryable("quopt/*", answer, complete=True):
            net.settle()
            both = [net.reply(reply) for reply in made.get()]
        return none, both


@row("cancellation")
def cancellation(net: Network) -> Any:
    held = Inbox()
    handle = net.b.session.declare_queryable("cancel/x", held)
    net.settle()
    token = net.a.lib.CancellationToken()
    began = time.monotonic()

    replies = net.a.session.get("cancel/x", timeout=DEADLINE, cancellation_token=token)
    query = held.one()
    token.cancel()
    heard = list(replies)

    query.drop()
    handle.undeclare()
    return len(heard), token.is_cancelled, time.monotonic() - began < DEADLINE / 2


@row("100 queries in flight")
def in_flight(net: Network) -> Any:
    def answer(query: Any) -> None:
        query.reply(query.key_expr, query.parameters.get("n"))

    with net.b.queryable("flight/x", answer):
        net.settle()

        pending = [net.a.session.get(f"flight/x?n={number}", timeout=5.0) for number in range(100)]

        return [[reply.ok.payload.to_string() for reply in replies] for replies in pending]


@row("query within a query")
def nested(net: Network) -> Any:
    def outer(query: Any) -> None:
        inner = [reply.ok.payload.to_string() for reply in net.b.get("nested/inner")]
        query.reply("nested/outer", inner[0])

    with (
        net.b.queryable("nested/outer", outer),
        net.a.queryable("nested/inner", lambda query: query.reply("nested/inner", "deep")),
    ):
        net.settle()

        return [reply.ok.payload.to_string() for reply in net.a.get("nested/outer", timeout=5.0)]


@row("own queryable")
def own_queryable(net: Network) -> Any:
    with net.a.queryable("own/x", lambda query: query.reply("own/x", "mine", attachment="t")):
        net.settle()

        kinds = net.a.lib.Locality
        found = [
            net.a.get("own/x", allowed_destination=kind) for kind in (kinds.ANY, kinds.SESSION_LOCAL, kinds.REMOTE)
        ]

        return [[net.reply(reply) for reply in replies] for replies in found]


@row("timestamp stack of a query")
def timestamp_stack(net: Network) -> Any:
    lib = net.a.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        seen.append(net.stack(query.timestamp_stack))
        query.reply("qstack/x", "answer")
        query.reply_del("qstack/y")
        query.reply_err("no")

    points = lib.TimestampInstrumentationBuilder().set_send(True).set_route(True).set_receive(True).build()
    with net.b.queryable("qstack/*", answer), net.a.session.declare_querier("qstack/*") as querier:
        net.settle()

        replies = [
            *net.a.get("qstack/*", timestamp_instrumentation=points, payload=b"p"),
            *net.a.get("qstack/*"),
            *querier.get(timestamp_instrumentation=points),
        ]

        ok = [(net.reply(one)["key"], net.stack(one.ok.timestamp_stack)) for one in replies if one.ok is not None]
        ok.sort(key=repr)  # the latest of several keys come in no order
        return seen, ok, [net.stack(one.err.timestamp_stack) for one in replies if one.ok is None]


@row("timestamp stack of an own query")
def own_timestamp_stack(net: Network) -> Any:
    lib = net.a.lib
    seen: list[Any] = []

    def answer(query: Any) -> None:
        seen.append(net.stack(query.timestamp_stack))
        query.reply("ownstack/x", "answer")

    points = lib.TimestampInstrumentationBuilder().set_send(True).set_route(True).set_receive(True).build()
    with net.a.queryable("ownstack/x", answer):
        net.settle()

        replies = net.a.get("ownstack/x", timestamp_instrumentation=points)

        return seen, [net.stack(one.ok.timestamp_stack) for one in replies]


@row("consolidation: equal stamps")
def equal_stamps(net: Network) -> Any:
    """Two stamps of one time are ordered by their nodes; of two that are the same the later answer counts."""
    lib = net.b.lib
    when = net.b.session.new_timestamp()
    first, second, long = (
        lib.Timestamp(when.get_time(), lib.TimestampId(name)) for name in (b"\x01\x02", b"\x02\x01", b"\x01\x00\x01")
    )
    orders = [(first, second), (second, first), (first, first), (long, second), (second, long)]

    def answer(query: Any) -> None:
        for number, stamps in enumerate(orders):
            for at, stamp in enumerate(stamps):
                query.reply(f"equal/{number}", f"{at}", timestamp=stamp)

    with net.b.queryable("equal/*", answer):
        net.settle()

        found = []
        for mode in (net.a.lib.ConsolidationMode.LATEST, net.a.lib.ConsolidationMode.MONOTONIC):
            replies = net.a.get("equal/*", consolidation=mode)
            found.append(sorted((str(one.ok.key_expr), one.ok.payload.to_string()) for one in replies))
        return found
