"""A node in a process of its own, which does what is written to it: `python -m tests.robust.node elea '{…}'`.

Each line of its input is a JSON list, a command and its arguments; each is answered with one line of JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Commands", "main"]


class Commands:
    """What a node can be told to do."""

    def __init__(self, library: Any, config: Any) -> None:
        self._lib = library
        self._session = library.open(config)
        self._kept: list[Any] = []
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def subscribe(self, key: str) -> bool:
        """Count what arrives on a key."""
        self._counts[key] = 0

        def count(sample: Any) -> None:
            with self._lock:
                self._counts[key] += 1

        self._kept.append(self._session.declare_subscriber(key, count))
        return True

    def count(self, key: str) -> int:
        """How much has arrived."""
        return self._counts[key]

    def token(self, key: str) -> bool:
        """Say that this node lives."""
        self._kept.append(self._session.liveliness().declare_token(key))
        return True

    def queryable(self, key: str) -> bool:
        """Answer every query with the key it asks for."""

        def answer(query: Any) -> None:
            with query:
                query.reply(query.key_expr, "here")

        self._kept.append(self._session.declare_queryable(key, answer))
        return True

    def publish(self, key: str, count: int, size: int, block: bool) -> int:
        """Put as fast as possible; returns how many were put."""
        control = self._lib.CongestionControl
        publisher = self._session.declare_publisher(key, congestion_control=control.BLOCK if block else control.DROP)
        payload = bytes(size)
        for _ in range(count):
            publisher.put(payload)
        return count

    def spread(self, way: str, start: int, count: int) -> int:
        """Use keys that were not used before, each once, in one of several ways."""
        session, block = self._session, self._lib.CongestionControl.BLOCK
        for number in range(start, start + count):
            key = f"many/keys/of/some/length/{number}"
            if way == "put":
                session.put(key, b"x", congestion_control=block)
            elif way == "publisher":
                with session.declare_publisher(key, congestion_control=block) as publisher:
                    publisher.put(b"x")
            elif way == "get":
                list(session.get(key))
            elif way == "subscriber":
                session.declare_subscriber(key, lambda _: None).undeclare()
            elif way == "token":
                session.liveliness().declare_token(key).undeclare()
            elif way == "querier":
                querier = session.declare_querier(key)
                list(querier.get())
                querier.undeclare()
            else:
                raise ValueError(way)
        return count

    def matching(self, key: str) -> bool:
        """Whether anybody wants what would be put to a key."""
        with self._session.declare_publisher(key) as publisher:
            return bool(publisher.matching_status.matching)

    def dropped(self) -> dict[str, int]:
        """What this node has lost; of elea only."""
        return dict(self._session.info.dropped())

    def objects(self) -> int:
        """How many links this process still remembers; of elea only."""
        from elea.node.connection import Connection

        gc.collect()
        return sum(isinstance(one, Connection) for one in gc.get_objects())

    def locators(self) -> list[str]:
        """Where this node can be reached; of elea only."""
        return list(self._session.info.locators())

    def neighbours(self) -> int:
        """How many nodes it is connected to."""
        return len(self._session.info.routers_zid()) + len(self._session.info.peers_zid())

    def close(self) -> bool:
        """End the session."""
        self._session.close()
        return True


def main() -> None:
    """Opens a session and obeys until the input ends."""
    library = importlib.import_module(sys.argv[1])
    config = library.Config()
    for path, value in json.loads(sys.argv[2]).items():
        config.insert_json5(path, json.dumps(value))
    commands = Commands(library, config)
    print(json.dumps("open"), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        command: Callable[..., Any] = getattr(commands, name)
        print(json.dumps(command(*arguments)), flush=True)


if __name__ == "__main__":
    main()
