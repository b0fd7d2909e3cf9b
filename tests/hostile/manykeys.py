"""Keys that change all the time: what nodes remember of them is bounded.

`python -m tests.hostile.manykeys [WAY …]` prints the memory of a broker and of its clients, in MB, as keys come.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from tests.robust.children import Child, broker, facts, node

__all__ = ["WAYS", "Memory", "growth"]

WAYS = ("put", "publisher", "get", "querier", "subscriber", "token")

Memory = dict[str, int]
"""MB by node."""

NODES = ("broker", "using", "serving")


@contextlib.contextmanager
def world() -> Iterator[dict[str, Child]]:
    """A broker, a client that uses keys, and one that subscribes to and answers for all of them."""
    with (
        broker() as (router, locator),
        node("client", "connect", locator) as using,
        node("client", "connect", locator) as serving,
    ):
        serving.ask("subscribe", "many/**")
        serving.ask("queryable", "many/**")
        yield {"broker": router, "using": using, "serving": serving}


def growth(way: str, steps: int, step: int) -> list[Memory]:
    """The memory of all nodes, at the beginning and after each step."""
    with world() as nodes:
        found = [_memory(nodes)]
        for number in range(steps):
            nodes["using"].ask("spread", way, number * step, step, timeout=600)
            found.append(_memory(nodes))
        return found


def _memory(nodes: dict[str, Child]) -> Memory:
    return {name: facts(child.process.pid)["memory"] // 1000 for name, child in nodes.items()}


def main(ways: list[str]) -> int:
    for way in ways or WAYS:
        steps = growth(way, 8, 20_000)
        for name in NODES:
            print(f"{way:10} {name:8}", *(f"{step[name]:5}" for step in steps), "MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
