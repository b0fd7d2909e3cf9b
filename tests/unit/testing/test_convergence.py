"""Whatever happens on the way: when the links are whole again, everybody knows what there is and nothing is wrong.

Hypothesis makes the schedules: who declares, puts, asks and is cut off when. A schedule that fails is shrunk, and
runs the same way again.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import elea
from elea.testing import Network, Node

CLIENTS = 3
KEYS = ("a/1", "a/2", "b/1")
PATTERNS = ("a/*", "a/1", "**")
QUERY_SECONDS = 10.0
LEASE = 10.0

clients = st.integers(0, CLIENTS - 1)
steps = st.one_of(
    st.tuples(st.just("put"), clients, st.sampled_from(KEYS)),
    st.tuples(st.just("put"), clients, st.sampled_from(KEYS)),
    st.tuples(st.just("subscribe"), clients, st.sampled_from(PATTERNS)),
    st.tuples(st.just("unsubscribe"), clients, st.none()),
    st.tuples(st.just("answer"), clients, st.sampled_from(KEYS)),
    st.tuples(st.just("ask"), clients, st.sampled_from(PATTERNS)),
    st.tuples(st.just("live"), clients, st.sampled_from(KEYS)),
    st.tuples(st.just("die"), clients, st.none()),
    st.tuples(st.just("part"), clients, st.none()),
    st.tuples(st.just("heal"), clients, st.none()),
    st.tuples(st.just("settle"), st.none(), st.none()),
    st.tuples(st.just("run"), st.none(), st.sampled_from([0.003, 0.1, 3.0, 9.0, 12.0, 25.0])),
)


def matches(pattern: str, key: str) -> bool:
    return elea.KeyExpr(pattern).intersects(elea.KeyExpr(key))


@dataclass
class Listener:
    """A subscriber, and what it has received: who put it, the how manyth of theirs on the key."""

    client: int
    pattern: str
    handle: Any
    got: list[tuple[str, int, int]] = field(default_factory=list)
    known: int = 0
    """The link over which everybody has heard of it."""


@dataclass
class Sent:
    """A sample, the link it left over, and those who must get it, over which link."""

    key: str
    client: int
    number: int
    link: int
    wanted: list[tuple[Listener, int]]


class World:
    """A router, clients, and what they should know and receive."""

    def __init__(self, seed: int, delays: list[float]) -> None:
        self.net = Network(seed=seed)
        self.router = self.net.router("router")
        self.clients = [self.net.client(f"client{number}") for number in range(CLIENTS)]
        self.watcher = self.net.client("watcher")
        for client, delay in zip([*self.clients, self.watcher], [*delays, 0.001], strict=True):
            self.net.link(client, self.router, delay=(0.0, delay))
        self.listeners: list[Listener] = []
        self.tokens: list[tuple[str, Any]] = []
        self.sent: list[Sent] = []
        self.queries: list[tuple[float, Any]] = []
        self.alive: set[str] = set()
        self.watcher.liveliness().declare_subscriber("**", self._token_changed, history=True)
        self._numbers = itertools.count()

    def _token_changed(self, sample: elea.Sample) -> None:
        change = self.alive.add if sample.kind is elea.SampleKind.PUT else self.alive.remove
        change(str(sample.key_expr))

    def link(self, who: int) -> int:
        """The number of the link a client has, another whenever one is lost; 0 if it has none."""
        client = self.clients[who]
        return len(self.net.wire(client, self.router).dials) if client.info.transports() else 0

    # -- steps

    def do(self, step: str, who: Any, what: Any) -> None:
        getattr(self, f"_{step}")(who, what)

    def _put(self, who: int, key: str) -> None:
        wanted = [
            (listener, listener.known)
            for listener in self.listeners
            if self.link(listener.client) == listener.known > 0 and matches(listener.pattern, key)
        ]
        sent = Sent(key, who, next(self._numbers), self.link(who), wanted)
        self.clients[who].put(key, f"{who} {sent.number}")
        self.sent.append(sent)

    def _subscribe(self, who: int, pattern: str) -> None:
        listener = Listener(who, pattern, None)

        def heard(sample: elea.Sample) -> None:
            client, number = map(int, sample.payload.to_string().split())
            listener.got.append((str(sample.key_expr), client, number))

        listener.handle = self.clients[who].declare_subscriber(pattern, heard)
        self.listeners.append(listener)

    def _unsubscribe(self, who: int, _: None) -> None:
        for listener in self.listeners:
            if listener.client == who:
                listener.handle.undeclare()
                for sent in self.sent:
                    sent.wanted = [wanted for wanted in sent.wanted if wanted[0] is not listener]
        self.listeners = [listener for listener in self.listeners if listener.client != who]

    def _answer(self, who: int, key: str) -> None:
        self.clients[who].declare_queryable(key, lambda query: query.reply(key, "x"))

    def _ask(self, who: int, pattern: str) -> None:
        replies = self.clients[who].get(pattern, target=elea.QueryTarget.ALL, timeout=QUERY_SECONDS)
        self.queries.append((self.net.now, replies))

    def _live(self, who: int, key: str) -> None:
        name = f"{key}/{who}"
        self.tokens.append((name, self.clients[who].liveliness().declare_token(name)))

    def _die(self, who: int, _: None) -> None:
        for name, token in self.tokens:
            if name.endswith(f"/{who}"):
                token.undeclare()
        self.tokens = [(name, token) for name, token in self.tokens if not name.endswith(f"/{who}")]

    def _part(self, who: int, _: None) -> None:
        self.net.part(self.clients[who])

    def _heal(self, who: int, _: None) -> None:
        self.net.heal(self.clients[who])

    def _run(self, _: None, seconds: float) -> None:
        self.net.run(seconds)

    def _settle(self, _: None, __: None) -> None:
        self.net.heal()
        self.net.run(LEASE + 1.0)  # a link that broke unnoticed is noticed
        self.net.settle()
        for listener in self.listeners:
            listener.known = self.link(listener.client)

    # -- laws

    def check_samples(self) -> None:
        """None twice, in the order they were put, none from nowhere, none lost while the links stayed up."""
        for listener in self.listeners:
            ordered: dict[tuple[str, int], list[int]] = defaultdict(list)
            for key, client, number in listener.got:
                ordered[key, client].append(number)
            for numbers in ordered.values():
                assert numbers == sorted(set(numbers))
        for sent in self.sent:
            for listener, link in sent.wanted:
                if self.link(sent.client) == sent.link > 0 and self.link(listener.client) == link:
                    assert (sent.key, sent.client, sent.number) in listener.got

    def check_queries(self) -> None:
        """Every query has ended, by an answer or in time."""
        for _, replies in self.queries:
            assert replies.is_closed

    def check_declarations(self) -> None:
        """The router, the watcher and a newcomer know what there is, and nothing else."""
        known = self.router._node.space.snapshot().subscribers
        found = {(key, source) for key, sources in known.items() for source in sources.clients}
        ids = [bytes(client.zid()) for client in self.clients]
        assert found == {(listener.pattern, ids[listener.client]) for listener in self.listeners}
        tokens = {name for name, _ in self.tokens}
        assert self.alive == tokens
        newcomer = self.newcomer()
        assert {str(reply.ok.key_expr) for reply in newcomer.liveliness().get("**")} == tokens
        for key in KEYS:
            matching = newcomer.declare_publisher(key)
            self.net.run(1.0)
            wanted = any(matches(listener.pattern, key) for listener in self.listeners)
            assert matching.matching_status.matching == wanted

    def newcomer(self) -> Node:
        node = self.net.client("newcomer")
        self.net.link(node, self.router)
        self.net.settle()
        return node


@given(
    seed=st.integers(0, 1 << 32),
    delays=st.lists(st.sampled_from([0.0, 0.01, 0.5]), min_size=CLIENTS, max_size=CLIENTS),
    schedule=st.lists(steps, max_size=40),
)
@settings(deadline=None, max_examples=60)
def test_everybody_agrees_after_any_schedule(seed: int, delays: list[float], schedule: list[Any]) -> None:
    world = World(seed, delays)
    world.do("settle", None, None)
    for step in schedule:
        world.do(*step)
    world.do("settle", None, None)
    for who, key in itertools.product(range(CLIENTS), KEYS):
        world.do("put", who, key)
    world.net.run(QUERY_SECONDS + 1.0)

    world.check_samples()
    world.check_queries()
    world.check_declarations()


def test_a_schedule_with_everything_in_it() -> None:
    """One that is always run, so that the laws above are seen to bite."""
    world = World(1, [0.0, 0.01, 0.5])
    world.do("settle", None, None)
    for who in range(CLIENTS):
        world.do("subscribe", who, "**")
        world.do("live", who, "a/1")
        world.do("answer", who, "a/1")
    world.do("settle", None, None)
    for client in (0, 1, 2, 0):
        world.do("put", client, "a/1")
        world.do("ask", client, "a/*")
        world.do("part", client, None)
        world.do("run", None, 25.0)
        world.do("put", client, "a/1")
        world.do("heal", client, None)
    world.do("settle", None, None)
    world.do("put", 0, "a/1")
    world.net.run(11.0)

    world.check_samples()
    world.check_queries()
    world.check_declarations()
    assert world.listeners[1].got[-1] == ("a/1", 0, world.sent[-1].number)
    assert len(world.net.wire(world.clients[0], world.router).dials) > 1
