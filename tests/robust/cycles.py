"""Sessions opened and closed again and again: `python -m tests.robust.cycles 1000` prints what that leaves behind."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator

import elea
from elea.node.connection import Connection
from tests.robust.children import Child, config, facts, node

__all__ = ["FAR", "Left", "cycle", "left", "main", "run"]

FAR = {"client": "router", "peer": "peer"}
"""Whom a session of a role connects to."""

Left = dict[str, int]


def cycle(role: str, locator: str) -> None:
    """A short life that uses everything a session has."""
    with elea.open(config(role, "connect", locator)) as session:
        session.declare_subscriber("leak/none", lambda sample: None)
        session.declare_queryable("leak/none", lambda query: query.drop())
        _token = session.liveliness().declare_token("leak/token")
        publisher = session.declare_publisher("leak/data")
        publisher.put("1")
        session.put("leak/data", "2")
        list(session.get("leak/nowhere"))


def run(role: str, far: Child, locator: str, cycles: int) -> Iterator[int]:
    """Lives one after the other; yields the number of each when it is over."""
    for number in range(1, cycles + 1):
        cycle(role, locator)
        yield number


def left(far: Child) -> Left:
    """What both processes hold now."""
    gc.collect()
    near = facts(os.getpid())
    there = facts(far.process.pid)
    return {
        "files": near["files"],
        "threads": near["threads"],
        "memory": near["memory"],
        "links": sum(isinstance(one, Connection) for one in gc.get_objects()),
        "far files": there["files"],
        "far threads": there["threads"],
        "far memory": there["memory"],
        "far links": far.ask("objects"),
    }


def main() -> None:
    """Prints a line now and then."""
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for role, other in FAR.items():
        with node(other, "listen", "tcp/127.0.0.1:0") as far:
            far.ask("subscribe", "leak/data")
            locator = far.ask("locators")[0]
            begin = time.monotonic()
            for number in run(role, far, locator, cycles):
                if number in (cycles // 10, cycles // 2, cycles):
                    time.sleep(2.0)  # threads that wait for work go after a second
                    seconds = time.monotonic() - begin
                    print(f"{role} to {other}: {number} cycles, {seconds:.1f} s, {left(far)}", flush=True)
            print(f"{role} to {other}: {far.ask('count', 'leak/data')} of {2 * cycles} samples arrived", flush=True)


if __name__ == "__main__":
    main()
