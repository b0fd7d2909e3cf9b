"""Random programs with predicates: whoever comes and goes, every subscriber gets exactly the samples it wants."""

from __future__ import annotations

import random
from typing import Any

import pytest

from elea.testing import Network, Node

KEYS = ("a/1", "a/2", "b/1")
EXPRESSIONS = (*KEYS, "a/*", "**", "*/1")
PREDICATES = (None, None, "value > 5", "value <= 5", "value = 3", "key = 'a/1'", "value IN (1, 9)", "nosuch = 1")


def holds(predicate: str | None, key: str, value: int) -> bool:
    """The oracle."""
    wanted = {
        None: True,
        "value > 5": value > 5,
        "value <= 5": value <= 5,
        "value = 3": value == 3,
        "key = 'a/1'": key == "a/1",
        "value IN (1, 9)": value in (1, 9),
    }
    return wanted.get(predicate, False)


def matches(expression: str, key: str) -> bool:
    first, last = key.split("/")
    return expression in (key, "**") or (expression == "a/*" and first == "a") or (expression == "*/1" and last == "1")


class Model:
    """A network, its subscribers with what they should have got, and its publishers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.net = Network(seed=seed)
        self.router = self.net.router("router")
        makers = (self.net.client, self.net.client, self.net.client, self.net.peer)
        self.nodes: list[Node] = [make(f"node{at}") for at, make in enumerate(makers)]
        for node in self.nodes:
            self.net.link(node, self.router)
        self.net.settle()
        self.nodes.append(self.router)
        self.subscribers: list[tuple[Any, str, str | None, list[tuple[str, int]], list[tuple[str, int]]]] = []
        self.publishers: list[tuple[Any, str]] = []

    def step(self) -> None:
        draw = self.chance.random()
        if draw < 0.3:
            self.subscribe()
        elif draw < 0.45 and self.subscribers:
            self.subscribers.pop(self.chance.randrange(len(self.subscribers)))[0].undeclare()
        elif draw < 0.6:
            key = self.chance.choice(KEYS)
            self.publishers.append((self.chance.choice(self.nodes).declare_publisher(key), key))
        elif draw < 0.7 and self.publishers:
            self.publishers.pop(self.chance.randrange(len(self.publishers)))[0].undeclare()
        self.net.settle()
        for _ in range(4):
            self.put()
        self.net.run(0.5)

    def subscribe(self) -> None:
        expression, predicate = self.chance.choice(EXPRESSIONS), self.chance.choice(PREDICATES)
        got: list[tuple[str, int]] = []
        subscriber = self.chance.choice(self.nodes).declare_subscriber(
            expression,
            lambda sample: got.append((str(sample.key_expr), int(sample.payload.to_string()))),
            where=predicate,
        )
        self.subscribers.append((subscriber, expression, predicate, got, []))

    def put(self) -> None:
        value = self.chance.randrange(10)
        if self.publishers and self.chance.random() < 0.6:
            publisher, key = self.chance.choice(self.publishers)
            publisher.put(str(value))
        else:
            key = self.chance.choice(KEYS)
            self.chance.choice(self.nodes).put(key, str(value))
        for _, expression, predicate, _, wanted in self.subscribers:
            if matches(expression, key) and holds(predicate, key, value):
                wanted.append((key, value))

    def check(self) -> None:
        for _, expression, predicate, got, wanted in self.subscribers:
            assert sorted(got) == sorted(wanted), (expression, predicate)


@pytest.mark.parametrize("seed", range(12))
def test_everybody_gets_what_it_wants(seed: int) -> None:
    model = Model(seed)

    for _ in range(40):
        model.step()
        model.check()

    kept_back = sum(node._node.filters.kept_back for node in model.nodes if node._node.filters is not None)
    assert kept_back > 0
