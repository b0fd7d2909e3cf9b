"""Rows about samples: side a puts and deletes, side b subscribes."""

from __future__ import annotations

from typing import Any

from tests.interop.network import Network
from tests.interop.rows.registry import row

ENDED = b"ended"


def ended(sample: Any) -> bool:
    """Whether this is the put that says there is no more."""
    return bool(sample.payload.to_bytes() == ENDED)


@row("put")
def put(net: Network) -> Any:
    with net.b.subscriber("put/x") as got:
        net.settle()

        net.a.session.put("put/x", "from the session")
        net.a.session.put("put/x", b"\x00\xff")
        net.a.session.put("put/x", "")

        return [net.sample(sample) for sample in got.take(3)]


@row("publisher")
def publisher(net: Network) -> Any:
    with net.b.subscriber("publisher/x") as got, net.a.session.declare_publisher("publisher/x") as made:
        net.settle()

        made.put("one")
        made.delete()
        made.put("two", encoding="text/plain", attachment="a")

        defaults = (str(made.key_expr), str(made.encoding), str(made.priority), str(made.congestion_control))
        return defaults, [net.sample(sample) for sample in got.take(3)]


@row("delete")
def delete(net: Network) -> Any:
    with net.b.subscriber("delete/**") as got:
        net.settle()

        net.a.session.delete("delete/x")
        net.a.session.delete("delete/y", attachment=b"why", priority=net.a.lib.Priority.DATA_HIGH)

        # Two conduits: either may arrive first.
        return sorted((net.sample(sample) for sample in got.take(2)), key=lambda seen: str(seen["key"]))


@row("encoding")
def encoding(net: Network) -> Any:
    kinds = net.a.lib.Encoding
    values = [
        kinds.TEXT_PLAIN,
        kinds.APPLICATION_JSON.with_schema("person"),
        "application/x-own",
        "zenoh/bytes",
        kinds("image/png;tiny"),
        kinds.ZENOH_SERIALIZED,
        "",
    ]
    with (
        net.b.subscriber("encoding/x") as got,
        net.a.session.declare_publisher("encoding/x", encoding="text/csv;utf-8") as made,
    ):
        net.settle()

        for value in values:
            net.a.session.put("encoding/x", "v", encoding=value)
        made.put("v")
        made.put("v", encoding=kinds.TEXT_HTML)

        return [str(sample.encoding) for sample in got.take(len(values) + 2)]


@row("attachment")
def attachment(net: Network) -> Any:
    with net.b.subscriber("attachment/x") as got:
        net.settle()

        for value in ("text", b"\x00\x01", b"", b"x" * 5000, net.a.ext.z_serialize({"a": 1})):
            net.a.session.put("attachment/x", "v", attachment=value)

        return [net.sample(sample)["attachment"] for sample in got.take(5)]


@row("timestamp")
def timestamp(net: Network) -> Any:
    stamp = net.a.session.new_timestamp()
    with net.b.subscriber("timestamp/x") as got:
        net.settle()

        net.a.session.put("timestamp/x", "given", timestamp=stamp)
        net.a.session.delete("timestamp/x", timestamp=stamp)
        net.a.session.put("timestamp/x", "not given")

        samples = got.take(3)
        same = [sample.timestamp is not None and str(sample.timestamp) == str(stamp) for sample in samples]
        return same, [net.sample(sample)["timestamp"] for sample in samples]


@row("timestamp stack")
def timestamp_stack(net: Network) -> Any:
    lib, session = net.a.lib, net.a.session
    with (
        net.b.subscriber("stack/x") as got,
        net.a.subscriber("stack/x") as own,
        session.declare_publisher("stack/x") as publisher,
    ):
        net.settle()

        for bits in range(1, 8):
            points = lib.TimestampInstrumentationBuilder()
            points = points.set_send(bool(bits & 1)).set_route(bool(bits & 2)).set_receive(bool(bits & 4)).build()
            session.put("stack/x", "put", timestamp_instrumentation=points, priority=lib.Priority.DATA)
            session.put("stack/x", bytes(200_000), timestamp_instrumentation=points, encoding="text/plain")
            session.delete("stack/x", timestamp_instrumentation=points, attachment=b"why")
            publisher.put("published", timestamp_instrumentation=points, timestamp=session.new_timestamp())
            publisher.delete(timestamp_instrumentation=points)
            publisher.put("without")

        seen = [(net.sample(one)["kind"], net.stack(one.timestamp_stack)) for one in got.take(42)]
        return seen, [net.stack(sample.timestamp_stack) for sample in own.take(42)]


@row("source info")
def source_info(net: Network) -> Any:
    lib = net.a.lib
    with net.b.subscriber("source/x") as got, net.a.session.declare_publisher("source/x") as made:
        net.settle()

        net.a.session.put("source/x", "v", source_info=lib.SourceInfo(net.a.session.id, 7))
        net.a.session.delete("source/x", source_info=lib.SourceInfo(net.a.session.id, 2**32 - 1))
        made.put("v", source_info=lib.SourceInfo(made.id, 0))
        net.a.session.put("source/x", "v")

        first, second, third, last = got.take(4)
        identical = (third.source_info.source_id.eid == made.id.eid, third.source_info.source_sn)
        return net.source(first.source_info), net.source(second.source_info), identical, net.source(last.source_info)


@row("each priority")
def priorities(net: Network) -> Any:
    names = "REAL_TIME INTERACTIVE_HIGH INTERACTIVE_LOW DATA_HIGH DATA DATA_LOW BACKGROUND".split()
    with net.b.subscriber("priority/**") as got:
        net.settle()

        for name in names:
            level = getattr(net.a.lib.Priority, name)
            net.a.session.put(f"priority/{name}", "session", priority=level)
            with net.a.session.declare_publisher(f"priority/{name}", priority=level) as made:
                made.put("publisher")

        samples = [net.sample(sample) for sample in got.take(2 * len(names))]
        return sorted((s["key"], s["payload"], s["qos"]) for s in samples)


@row("express")
def express(net: Network) -> Any:
    with net.b.subscriber("express/x") as got, net.a.session.declare_publisher("express/x", express=True) as made:
        net.settle()

        net.a.session.put("express/x", "v", express=True)
        net.a.session.put("express/x", "v", express=False)
        made.put("v")
        made.delete()

        return [net.sample(sample)["qos"] for sample in got.take(4)]


@row("congestion control")
def congestion(net: Network) -> Any:
    kinds = net.a.lib.CongestionControl
    with net.b.subscriber("congestion/x") as got:
        net.settle()

        for value in (kinds.DROP, kinds.BLOCK, kinds.BLOCK_FIRST):
            net.a.session.put("congestion/x", "v", congestion_control=value)

        return [net.sample(sample)["qos"] for sample in got.take(3)]


@row("best effort")
def best_effort(net: Network) -> Any:
    option = {"reliability": net.a.lib.Reliability.BEST_EFFORT}
    with net.b.subscriber("best/x") as got, net.a.session.declare_publisher("best/x", **option) as made:
        net.settle()

        for number in range(20):
            made.put(str(number))

        return str(made.reliability), [sample.payload.to_string() for sample in got.take(20)]


def large(net: Network, size: int) -> Any:
    data = bytes(range(251)) * (size // 251 + 1)
    block = net.a.lib.CongestionControl.BLOCK
    with net.b.subscriber("large/x") as got:
        net.settle()

        net.a.session.put("large/x", data[:size], congestion_control=block, attachment=data[: size // 10])
        net.a.session.put("large/x", "after", congestion_control=block)

        return [(s["payload"], s["attachment"]) for s in map(net.sample, got.take(2, timeout=10.0))]


@row("200 kB")
def fragments(net: Network) -> Any:
    return large(net, 200_000)


@row("5 MB")
def many_fragments(net: Network) -> Any:
    return large(net, 5_000_000)


@row("best effort 200 kB")
def best_effort_fragments(net: Network) -> Any:
    options = {
        "reliability": net.a.lib.Reliability.BEST_EFFORT,
        "congestion_control": net.a.lib.CongestionControl.BLOCK,
    }
    with net.b.subscriber("beste/x") as got, net.a.session.declare_publisher("beste/x", **options) as made:
        net.settle()

        made.put(b"z" * 200_000)

        return net.sample(got.one())["payload"]


@row("2000 in order")
def in_order(net: Network) -> Any:
    block = net.a.lib.CongestionControl.BLOCK
    with (
        net.b.subscriber("order/x") as got,
        net.a.session.declare_publisher("order/x", congestion_control=block) as made,
    ):
        net.settle()

        for number in range(2000):
            made.put(str(number))

        return [int(sample.payload.to_string()) for sample in got.take(2000)] == list(range(2000))


@row("wild cards")
def wild_cards(net: Network) -> Any:
    # With the last key of each: eclipse-zenoh has a thread for every subscriber, so only its own samples say how far
    # one has come.
    patterns = {
        "wild/*": "wild/z",
        "wild/**": "wild/z",
        "wild/a$*": "wild/az",
        "wild/a/*/c": "wild/a/z/c",
        "**/c": "z/c",
    }
    keys = ("wild/a", "wild/ab", "wild", "wild/a/b/c", "wild/a/c", "wild/b")
    seen: dict[str, list[str]] = {}
    for pattern, last in patterns.items():
        with net.b.subscriber(pattern) as got:
            net.settle()
            for key in (*keys, last):
                net.a.session.put(key, "v")
            came = got.until(lambda sample: str(sample.key_expr) == last)  # noqa: B023 - called here
            seen[pattern] = [str(sample.key_expr) for sample in came]
    return seen


@row("put on wild card")
def put_on_wild_card(net: Network) -> Any:
    with net.b.subscriber("pwild/a/x") as one, net.b.subscriber("pwild/**") as other:
        net.settle()

        net.a.session.put("pwild/*/x", "v")

        return net.sample(one.one())["key"], net.sample(other.one())["key"]


@row("several subscribers")
def several(net: Network) -> Any:
    with (
        net.b.subscriber("several/x") as one,
        net.b.subscriber("several/x") as two,
        net.b.subscriber("several/*") as wild,
        net.a.subscriber("several/**") as own,
    ):
        net.settle()

        net.a.session.put("several/x", "v")
        net.a.session.put("several/x", ENDED)

        return [[net.sample(s) for s in inbox.until(ended)] for inbox in (one, two, wild, own)]


@row("undeclared subscriber")
def undeclared(net: Network) -> Any:
    with net.b.subscriber("gone/**") as all_of_it, net.a.session.declare_publisher("gone/x") as made:
        with net.b.subscriber("gone/x") as got:
            net.settle()
            made.put("first")
            got.one()
        net.settle()
        made.put("second")
        made.put(ENDED)
        heard = [sample.payload.to_string() for sample in all_of_it.until(ended)]

        return heard, len(got.drain())


@row("resubscription")
def resubscription(net: Network) -> Any:
    seen = []
    with net.a.session.declare_publisher("again/x") as made:
        for turn in range(3):
            with net.b.subscriber("again/x") as got:
                net.settle()
                made.put(str(turn))
                seen.append(got.one().payload.to_string())
            net.settle()
            made.put("nobody hears this")
    return seen


@row("locality")
def locality(net: Network) -> Any:
    kinds = net.a.lib.Locality
    others = net.b.lib.Locality
    with (
        net.b.subscriber("local/x") as far,
        net.b.subscriber("local/x", allowed_origin=others.SESSION_LOCAL) as far_local,
        net.b.subscriber("local/x", allowed_origin=others.REMOTE) as far_remote,
        net.a.subscriber("local/x") as near,
        net.a.subscriber("local/x", allowed_origin=kinds.SESSION_LOCAL) as near_local,
        net.a.subscriber("local/x", allowed_origin=kinds.REMOTE) as near_remote,
    ):
        net.settle()

        net.a.session.put("local/x", "here", allowed_destination=kinds.SESSION_LOCAL)
        net.a.session.put("local/x", "there", allowed_destination=kinds.REMOTE)
        net.a.session.put("local/x", "all")
        net.a.session.put("local/x", ENDED)
        heard = [[s.payload.to_string() for s in x.until(ended)] for x in (far, far_remote, near, near_local)]
        net.b.session.put("local/x", ENDED)

        return heard, [[s.payload.to_string() for s in x.until(ended)] for x in (far_local, near_remote)]


@row("key expression declaration")
def key_declaration(net: Network) -> Any:
    with net.b.subscriber("declared/**") as got, net.b.queryable("declared/key", lambda q: q.reply(q.key_expr, "r")):
        net.settle()
        key = net.a.session.declare_keyexpr("declared/key")
        wide = net.b.session.declare_keyexpr("declared/*")

        net.a.session.put(key, "one")
        with net.a.session.declare_publisher(key) as made, net.b.subscriber(wide) as second:
            net.settle()
            made.put("two")
            second.one()
        replies = net.a.get(key)
        net.a.session.undeclare(key)
        net.a.session.put("declared/key", "three")

        heard = [(str(s.key_expr), s.payload.to_string()) for s in got.take(3)]
        return str(key), str(wide), heard, [str(reply.ok.key_expr) for reply in replies]


@row("both ways at once")
def both_ways(net: Network) -> Any:
    with net.b.subscriber("both/a") as at_b, net.a.subscriber("both/b") as at_a:
        net.settle()

        for number in range(100):
            net.a.session.put("both/a", str(number))
            net.b.session.put("both/b", str(number))

        return [[int(s.payload.to_string()) for s in inbox.take(100)] for inbox in (at_b, at_a)]


@row("put in a callback")
def put_in_callback(net: Network) -> Any:
    def again(sample: Any) -> None:
        net.b.session.put("callback/back", sample.payload)

    with net.a.subscriber("callback/back") as got:
        handle = net.b.session.declare_subscriber("callback/there", again)
        net.settle()

        for number in range(10):
            net.a.session.put("callback/there", str(number))
        seen = [sample.payload.to_string() for sample in got.take(10)]

        handle.undeclare()
        return seen
