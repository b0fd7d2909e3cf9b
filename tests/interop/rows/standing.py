"""Rows about who is there: liveliness and matching. Side b appears and goes, side a notices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.interop.inbox import DEADLINE, Inbox, eventually
from tests.interop.network import Network, Side
from tests.interop.rows.registry import row


@contextlib.contextmanager
def watcher(side: Side, key: str, **options: Any) -> Iterator[Inbox]:
    """What the tokens on `key` do."""
    inbox = Inbox()
    handle = side.session.liveliness().declare_subscriber(key, inbox, **options)
    try:
        yield inbox
    finally:
        handle.undeclare()


def told(sample: Any) -> tuple[str, str, int]:
    """What a liveliness sample says."""
    return str(sample.kind), str(sample.key_expr), len(sample.payload.to_bytes())


def alive(side: Side, key: str) -> list[str]:
    """The tokens a get finds; the reference answers own ones twice, so each counts once."""
    return sorted({str(reply.ok.key_expr) for reply in side.session.liveliness().get(key, timeout=DEADLINE)})


@row("liveliness token and subscriber")
def token(net: Network) -> Any:
    with watcher(net.a, "token/*") as got:
        net.settle()

        one = net.b.session.liveliness().declare_token("token/one")
        two = net.b.session.liveliness().declare_token("token/two")
        born = [told(sample) for sample in got.take(2)]
        one.undeclare()
        died = [told(got.one())]
        with two:
            pass
        died.append(told(got.one()))

        return born, died


@row("liveliness sample")
def liveliness_sample(net: Network) -> Any:
    with watcher(net.a, "lsample/x") as got:
        net.settle()

        with net.b.session.liveliness().declare_token("lsample/x"):
            born = net.sample(got.one())
        died = net.sample(got.one())

        return born, died


@row("liveliness get")
def liveliness_get(net: Network) -> Any:
    none = alive(net.a, "lget/**")
    with (
        net.b.session.liveliness().declare_token("lget/one"),
        net.b.session.liveliness().declare_token("lget/two/three"),
        net.a.session.liveliness().declare_token("lget/own"),
    ):
        net.settle()
        found = [alive(net.a, key) for key in ("lget/**", "lget/*", "lget/one", "lget/none")]
    net.settle()
    return none, found, alive(net.a, "lget/**")


@row("liveliness history")
def history(net: Network) -> Any:
    with net.b.session.liveliness().declare_token("past/one"):
        net.settle()
        with watcher(net.a, "past/**", history=True) as with_past, watcher(net.a, "past/*") as without:
            past = told(with_past.one())
            net.settle()
            with net.b.session.liveliness().declare_token("past/two"):
                fresh = told(with_past.one()), told(without.one())
            gone = told(with_past.one()), told(without.one())
            return past, fresh, gone


@row("liveliness history twice")
def history_twice(net: Network) -> Any:
    """Two subscribers with history, one after the other, each get the past."""
    with net.b.session.liveliness().declare_token("twice/x"), watcher(net.a, "twice/x", history=True) as first:
        net.settle()
        seen = [told(first.one())]
        with watcher(net.a, "twice/x", history=True) as second:
            seen.append(told(second.one()))
        return seen


@row("tokens on the same key")
def same_key(net: Network) -> Any:
    """The key lives as long as one of its tokens."""
    with watcher(net.a, "same/**") as got:
        net.settle()
        one = net.b.session.liveliness().declare_token("same/x")
        two = net.b.session.liveliness().declare_token("same/x")
        net.settle()
        one.undeclare()
        with net.b.session.liveliness().declare_token("same/end"):
            before = [told(s) for s in got.until(lambda s: str(s.key_expr) == "same/end")]
        got.one()
        two.undeclare()
        return before, told(got.one())


@row("tokens are not data")
def not_data(net: Network) -> Any:
    with net.a.subscriber("ndata/**") as samples, watcher(net.a, "ndata/**") as tokens:
        net.settle()
        with net.b.session.liveliness().declare_token("ndata/x"):
            born = told(tokens.one())
            net.b.session.put("ndata/y", "v")
            replies = net.a.get("ndata/**")
            return [str(samples.one().key_expr)], born, len(tokens.drain()), len(replies)


@row("own token")
def own_token(net: Network) -> Any:
    with watcher(net.a, "mine/**", history=True) as got:
        net.settle()
        with net.a.session.liveliness().declare_token("mine/x"):
            born = got.one()
            net.settle()
        # The reference itself tells of the birth twice at times: from here and through the router.
        return {told(born), *map(told, got.until(lambda s: str(s.kind) == "SampleKind.DELETE"))}


def matching(net: Network, made: Any, appear: Any) -> Any:
    """The status and what a listener hears while a counterpart comes and goes, twice."""
    events = Inbox()
    listener = made.declare_matching_listener(events)
    net.settle()
    states = [made.matching_status.matching]
    heard = []
    for _ in range(2):
        with appear():
            heard.append(events.one().matching)
            states.append(made.matching_status.matching)
        heard.append(events.one().matching)
        states.append(made.matching_status.matching)
    listener.undeclare()
    return states, heard


@row("matching of a publisher")
def publisher_matching(net: Network) -> Any:
    with net.a.session.declare_publisher("match/pub/x") as made:
        return matching(net, made, lambda: net.b.subscriber("match/pub/*"))


@row("matching of a querier")
def querier_matching(net: Network) -> Any:
    with net.a.session.declare_querier("match/que/x") as made:
        return matching(net, made, lambda: net.b.queryable("match/que/**", lambda query: None))


@row("matching of a querier, all complete")
def complete_matching(net: Network) -> Any:
    target = net.a.lib.QueryTarget.ALL_COMPLETE
    with net.a.session.declare_querier("match/com/x", target=target) as made:
        with net.b.queryable("match/com/x", lambda query: None, complete=False):
            net.settle()
            incomplete = made.matching_status.matching
        net.settle()
        complete = matching(net, made, lambda: net.b.queryable("match/com/x", lambda query: None, complete=True))
        return incomplete, complete


@row("matching before the listener")
def matching_before(net: Network) -> Any:
    """What is there already: the status says so at once or soon, and the listener may tell it once."""
    with net.b.subscriber("match/old"):
        net.settle()
        with net.a.session.declare_publisher("match/old") as made:
            return eventually(lambda: made.matching_status.matching, "a match with an old subscriber")


@row("matching by locality")
def matching_by_locality(net: Network) -> Any:
    """Where a publisher or querier may go decides who matches: own ones, those elsewhere, or both."""
    kinds = net.a.lib.Locality
    seen = {}
    for kind in (kinds.ANY, kinds.SESSION_LOCAL, kinds.REMOTE):
        options = {"allowed_destination": kind}
        found = []
        for where, end in (("own", net.a), ("other", net.b)):
            key = f"match/{kind}/{where}"  # a key of its own: what was undeclared a moment ago is not seen
            with (
                net.a.session.declare_publisher(key, **options) as publisher,
                net.a.session.declare_querier(key, **options) as querier,
                end.subscriber(key),
                end.queryable(key, lambda query: None),
            ):
                net.settle()
                found.append((publisher.matching_status.matching, querier.matching_status.matching))
        seen[str(kind)] = found
    return seen


@row("matching of own subscriber")
def own_matching(net: Network) -> Any:
    with net.a.session.declare_publisher("match/self") as made:
        return matching(net, made, lambda: net.a.subscriber("match/self"))


@row("matching of own queryable")
def own_queryable_matching(net: Network) -> Any:
    with net.a.session.declare_querier("match/selfq") as made:
        return matching(net, made, lambda: net.a.queryable("match/selfq", lambda query: None))


@row("matching with two counterparts")
def two_counterparts(net: Network) -> Any:
    """Only the first to come and the last to go are told."""
    events = Inbox()
    with net.a.session.declare_publisher("match/two") as made:
        listener = made.declare_matching_listener(events)
        net.settle()
        with net.b.subscriber("match/two"):
            with net.b.subscriber("match/*"):
                net.settle()
            net.settle()
            middle = made.matching_status.matching
        heard = [events.one().matching, events.one().matching]
        net.settle()
        listener.undeclare()
        return middle, heard, len(events.drain())
