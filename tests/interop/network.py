"""A small network of either library: a router and two clients, or two peers, and how to look at what passes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.interop.columns import Column
from tests.interop.inbox import DEADLINE, Inbox, eventually, free_port

__all__ = ["Network", "Side", "configuration"]

LIBRARIES = {"E": "elea", "Z": "zenoh"}
SHORT = 200
"""Longer payloads are compared by length and digest."""

QUIET = {"scouting/multicast/enabled": False, "scouting/delay": 50}
"""Nobody is to be found unasked, and a router that knows so need not wait its usual half second for it."""

DROP = "transport/link/tx/queue/congestion_control/drop"
PATIENT = {f"{DROP}/wait_before_drop": 1_000_000, f"{DROP}/max_wait_before_drop_fragments": 1_000_000}
"""Microseconds. eclipse-zenoh drops a sample when its sending thread does not run for a millisecond, as on a machine
that is busy with other tests.
"""

Entries = Mapping[str, Any]


def configuration(lib: Any, entries: Entries) -> Any:
    """A `Config` of `lib`; multicast is off unless asked for."""
    config = lib.Config()
    for path, value in {**QUIET, **PATIENT, **entries}.items():
        config.insert_json5(path, json.dumps(value))
    return config


class Side:
    """One session of one library."""

    def __init__(self, name: str, letter: str, entries: Entries) -> None:
        self.name = name
        self.letter = letter
        self.entries = dict(entries)
        self.lib: Any = importlib.import_module(LIBRARIES[letter])
        self.ext: Any = importlib.import_module(f"{LIBRARIES[letter]}.ext")
        self.handlers: Any = importlib.import_module(f"{LIBRARIES[letter]}.handlers")
        self.session: Any = self.lib.open(configuration(self.lib, entries))

    def close(self) -> None:
        """End it."""
        self.session.close()

    def reopen(self) -> None:
        """The same again, after `close`."""
        self.session = self.lib.open(configuration(self.lib, self.entries))

    @contextlib.contextmanager
    def subscriber(self, key: str, **options: Any) -> Iterator[Inbox]:
        """What is put to `key`."""
        inbox = Inbox()
        handle = self.session.declare_subscriber(key, inbox, **options)
        try:
            yield inbox
        finally:
            handle.undeclare()

    @contextlib.contextmanager
    def queryable(self, key: str, answer: Any, **options: Any) -> Iterator[Any]:
        """Answers queries with `answer(query)`."""

        def answered(query: Any) -> None:
            with query:
                answer(query)

        handle = self.session.declare_queryable(key, answered, **options)
        try:
            yield handle
        finally:
            handle.undeclare()

    def get(self, selector: Any, **options: Any) -> list[Any]:
        """All replies."""
        return list(self.session.get(selector, **{"timeout": DEADLINE, **options}))


class Network:
    """The nodes of one cell."""

    def __init__(
        self,
        column: Column,
        *,
        scheme: str = "tcp/127.0.0.1:",
        hub: Entries | None = None,
        leaf: Entries | None = None,
        third: bool = False,
    ) -> None:
        """Open all nodes.

        Args:
            column: who plays what.
            scheme: locator up to the port; a scheme that ends in `/` is a path, used as it is with the port appended.
            hub: further configuration of the node that accepts.
            leaf: further configuration of the nodes that connect.
            third: a second answering session `c` of b's library; only with a router.
        """
        self.column = column
        self.locator = f"{scheme}{free_port()}"
        self.sides: list[Side] = []
        accept = {"listen/endpoints": [self.locator], **(hub or {})}
        connect = {"connect/endpoints": [self.locator], **(leaf or {})}
        self.leaf = {"mode": "client" if column.router is not None else "peer", "listen/endpoints": [], **connect}
        self.router: Side | None = None
        self._guards: list[Any] = []
        try:
            if column.router is not None:
                self.router = self.hub = self._open("router", column.router, {"mode": "router", **accept})
                self.b = self._open("b", column.b, {"mode": "client", **connect})
                self.a = self._open("a", column.a, {"mode": "client", **connect})
                if third:
                    self.c = self._open("c", column.b, {"mode": "client", **connect})
            else:
                connect = {"mode": "peer", "listen/endpoints": [], **connect}
                accept = {"mode": "peer", **accept}
                order = ("b", "a") if column.a_connects else ("a", "b")
                letters = {"a": column.a, "b": column.b}
                first, second = (
                    self._open(name, letters[name], entries)
                    for name, entries in zip(order, (accept, connect), strict=True)
                )
                self.hub = first
                self.a, self.b = (second, first) if column.a_connects else (first, second)
            self.guard(*(side for side in self.sides if side is not self.router))
        except BaseException:
            self.close()
            raise

    def _open(self, name: str, letter: str, entries: Entries) -> Side:
        side = Side(name, letter, entries)
        self.sides.append(side)
        return side

    def guard(self, *sides: Side) -> None:
        """Declare what `settle` asks; again for a side that was reopened."""
        for side in sides:
            self._guards.append(side.session.declare_queryable(f"settle/{side.name}", _echo))

    def settle(self) -> None:
        """Everything declared so far is known everywhere: a query went the whole way behind it and came back."""
        names = [side for side in self.sides if side is not self.router]
        for asking in names:
            for asked in names:
                if asking is not asked:
                    self._reach(asking, asked)

    def _reach(self, asking: Side, asked: Side) -> None:
        def answered() -> bool:
            return any(reply.ok is not None for reply in asking.get(f"settle/{asked.name}", timeout=DEADLINE))

        eventually(answered, f"{asking.name} asks {asked.name}")

    def owner(self, text: object) -> str:
        """Whose identifier this is."""
        for side in self.sides:
            if str(side.session.zid()) == str(text):
                return side.name
        return f"unknown {text}"

    def sample(self, sample: Any) -> dict[str, Any]:
        """A sample as plain values, the same for both libraries."""
        return {
            "key": str(sample.key_expr),
            "kind": str(sample.kind),
            "payload": content(sample.payload),
            "encoding": str(sample.encoding),
            "qos": (str(sample.priority), str(sample.congestion_control), sample.express),
            "timestamp": None if sample.timestamp is None else self.owner(sample.timestamp.get_id()),
            "attachment": None if sample.attachment is None else content(sample.attachment),
            "source": self.source(sample.source_info),
        }

    def source(self, info: Any) -> Any:
        """Source information as plain values."""
        return None if info is None else (self.owner(info.source_id.zid), info.source_id.eid, info.source_sn)

    def stack(self, stack: Any) -> Any:
        """A timestamp stack as plain values: the points asked for, and where and by whom each record was made."""
        if stack is None:
            return None
        lib = importlib.import_module("elea" if type(stack).__module__.startswith("elea.") else "zenoh")
        points = [lib.InterceptionPoint.SEND, lib.InterceptionPoint.ROUTE, lib.InterceptionPoint.RECEIVE]
        records = []
        for record in stack.records:
            stamp = record.timestamp()
            by = content(stamp) if record.is_custom else self.owner(str(stamp.get_id()))
            records.append((points.index(record.point), by))
        return [stack.instrumentation.is_instrumented(point) for point in points], records

    def reply(self, reply: Any) -> dict[str, Any]:
        """A reply as plain values."""
        by = reply.replier_id
        who = None if by is None else self.owner(by.zid)
        if reply.ok is not None:
            return {"by": who, "same": reply.result is not None, **self.sample(reply.ok)}
        return {"by": who, "error": content(reply.err.payload), "encoding": str(reply.err.encoding)}

    def close(self) -> None:
        """End all."""
        for side in reversed(self.sides):
            side.close()


def content(payload: Any) -> Any:
    """Bytes as they are, or length and digest when long."""
    data = payload.to_bytes()
    return data if len(data) <= SHORT else (len(data), hashlib.sha256(data).hexdigest()[:16])


def _echo(query: Any) -> None:
    with query:
        query.reply(query.key_expr, "here")
