"""Random programs for a few clients: what each declares, withdraws, puts, deletes and asks, in phases.

A step is (client, verb, arguments…). Everything a program does has one right outcome, whoever routes it: where the
protocol leaves a choice, programs do not go (two complete queryables of different clients, for one).
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

from elea.model.keyexpr import KeyExpr

__all__ = ["CLIENTS", "UNIVERSE", "Get", "Program", "Put", "Step", "program"]

CLIENTS = 3
CHUNKS = ("a", "b")
UNIVERSE = tuple("/".join(chunks) for n in (1, 2, 3) for chunks in itertools.product(CHUNKS, repeat=n))
"""All keys there are; key expressions are made over the same chunks."""

PRIORITIES = ("REAL_TIME", "INTERACTIVE_HIGH", "DATA", "DATA_LOW")
ENCODINGS = ("zenoh/bytes", "text/plain", "application/json;x", "own/thing")


@dataclass(frozen=True)
class Put:
    key: str
    number: int
    kind: str
    priority: str
    express: bool
    encoding: str
    attachment: str | None
    publisher: bool


@dataclass(frozen=True)
class Get:
    number: int
    key: str
    target: str
    consolidation: str


@dataclass(frozen=True)
class Step:
    """Something one client does; `name` is of the entity declared or undeclared."""

    client: int
    verb: str
    name: str = ""
    key: str = ""
    flag: bool = False
    put: Put | None = None
    get: Get | None = None


@dataclass
class Program:
    phases: list[list[Step]] = field(default_factory=list)


def program(seed: int, phases: int = 3, size: int = 8) -> Program:
    """The program of a seed."""
    return _Maker(random.Random(seed)).program(phases, size)


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._alive: list[tuple[int, str]] = []
        self._count = itertools.count(1)

    def program(self, phases: int, size: int) -> Program:
        made = Program()
        for _ in range(phases):
            steps = [self._declaration() for _ in range(size)]
            steps += [self._put() for _ in range(2 * size)]
            made.phases.append(steps)
            made.phases.append([self._question() for _ in range(size // 2)])
        return made

    def _client(self) -> int:
        return self._chance.randrange(CLIENTS)

    def _expression(self, wild: float = 0.6) -> str:
        chunks = self._chance.choice(UNIVERSE).split("/")
        for at in range(len(chunks)):
            if self._chance.random() < wild / 2:
                chunks[at] = self._chance.choice(("*", "**", "a$*", "*"))
        return str(KeyExpr.autocanonize("/".join(chunks)))

    def _declaration(self) -> Step:
        if self._alive and self._chance.random() < 0.35:
            client, name = self._alive.pop(self._chance.randrange(len(self._alive)))
            return Step(client, "undeclare", name)
        verb = self._chance.choice(("subscriber", "subscriber", "queryable", "queryable", "token", "watcher"))
        client, name = self._client(), f"{verb}{next(self._count)}"
        self._alive.append((client, name))
        flag = self._chance.random() < 0.5
        if verb == "queryable":
            # Of two clients that both have everything, a router asks the nearer, and both are as near.
            flag = flag and client == 0
        # Tokens have plain keys: 1.10.2, client or router, now and then misses that `**` is in question.
        return Step(client, verb, name, self._expression(0.0 if verb == "token" else 0.6), flag)

    def _put(self) -> Step:
        wild = 0.1 if self._chance.random() < 0.1 else 0.0
        put = Put(
            self._expression(wild),
            next(self._count),
            self._chance.choice(("put", "put", "delete")),
            self._chance.choice(PRIORITIES),
            self._chance.random() < 0.2,
            self._chance.choice(ENCODINGS),
            self._chance.choice((None, "", "note")),
            self._chance.random() < 0.3,
        )
        return Step(self._client(), "put", put=put)

    def _question(self) -> Step:
        if self._chance.random() < 0.25:
            return Step(self._client(), "tokens", f"tokens{next(self._count)}", self._expression())
        target = self._chance.choice(("BEST_MATCHING", "ALL", "ALL_COMPLETE"))
        consolidation = self._chance.choice(("AUTO", "NONE", "MONOTONIC", "LATEST"))
        return Step(self._client(), "get", get=Get(next(self._count), self._expression(), target, consolidation))
