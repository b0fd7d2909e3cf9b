"""A router of this process that keeps samples, clients of it, and stores that answer as a test wants."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import elea

__all__ = ["Scripted", "broker", "client", "config", "locator_of"]


def config(mode: str, **entries: Any) -> elea.Config:
    """A configuration that finds nobody unasked; `__` stands for `/`."""
    made = elea.Config()
    entries = {"scouting/multicast/enabled": False, "scouting/delay": 0, "listen/endpoints": [], **entries}
    for path, value in {"mode": mode, **entries}.items():
        made.insert_json5(path.replace("__", "/"), json.dumps(value))
    return made


def locator_of(session: elea.Session) -> str:
    """Where a node listens."""
    return session._runtime.links.locators()[0]


@contextlib.contextmanager
def broker(**storages: str) -> Iterator[elea.Session]:
    """A router that keeps these key expressions in memory."""
    entries: dict[str, Any] = {"listen/endpoints": ["tcp/127.0.0.1:0"]}
    if storages:
        kept = {name: {"key_expr": keys, "volume": "memory", "complete": True} for name, keys in storages.items()}
        entries["plugins/storage_manager"] = {"storages": kept}
    with elea.open(config("router", **entries)) as session:
        yield session


@contextlib.contextmanager
def client(router: elea.Session, **entries: Any) -> Iterator[elea.Session]:
    """A client of it."""
    with elea.open(config("client", connect__endpoints=[locator_of(router)], **entries)) as session:
        yield session


class Scripted:
    """A store of which a test says how it answers: the n-th request goes to the n-th function, the last to all after.

    What comes is remembered, as (key, parameters). Queries that are kept are answered by nobody.
    """

    def __init__(self, session: elea.Session, *answers: Callable[[elea.Query], object]) -> None:
        self.asked: list[tuple[str, str]] = []
        self.kept: list[elea.Query] = []
        self.came = threading.Event()
        self._answers = answers
        self.queryable = session.declare_queryable("@store/**", self._answer, complete=True)

    def _answer(self, query: elea.Query) -> None:
        self.asked.append((str(query.key_expr), str(query.parameters)))
        self._answers[min(len(self.asked), len(self._answers)) - 1](query)
        self.came.set()

    @staticmethod
    def stored(query: elea.Query) -> None:
        """An acknowledgement."""
        answer = {"log": "fake", "epoch": "e", "position": 7, "repeated": False}
        query.reply(query.key_expr, json.dumps(answer), encoding="application/json")

    @staticmethod
    def silent(query: elea.Query) -> None:
        """The end, and nothing before it: what a lost link looks like."""

    def keep(self, query: elea.Query) -> None:
        """Nothing, not even the end."""
        self.kept.append(query)

    @staticmethod
    def failing(**form: object) -> Callable[[elea.Query], None]:
        """An error."""
        return lambda query: query.reply_err(json.dumps(form), encoding="application/json")
