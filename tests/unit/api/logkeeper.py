"""A store that can be made to lose, to fail and to be another one: a log in memory behind the keys of the service."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import elea
from elea.model.errors import EleaError, StoreCorrupt
from elea.model.timerange import TimeRange
from elea.store import Log, Range, Record, memory_log
from elea.store.retention import Retention

__all__ = ["LogKeeper", "clients", "config", "wait_until"]

PATIENCE = 60.0


def config(mode: str, **entries: Any) -> elea.Config:
    """A configuration that finds nobody unasked; `__` stands for `/`."""
    made = elea.Config()
    quiet = {"scouting/multicast/enabled": False, "scouting/delay": 0, "listen/endpoints": []}
    for path, value in {**quiet, "mode": mode, **{k.replace("__", "/"): v for k, v in entries.items()}}.items():
        made.insert_json5(path, json.dumps(value))
    return made


def wait_until(condition: Any, what: str) -> None:
    """Wait for something that will happen."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


class LogKeeper:
    """A router that keeps `key_expr` in a log of this process."""

    def __init__(self, key_expr: str = "k/**") -> None:
        self.log: Log = memory_log()
        self.failures: list[EleaError] = []
        """What the next reads end with, one after the other."""
        self.damaged = range(0)
        """Positions that cannot be read."""
        self.reads = 0
        self.clock = 1 << 60
        self.session = elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0"]))
        self.locator = self.session._runtime.links.locators()[0]
        for service, answer in (("read", self._read), ("cursor", self._cursor)):
            self.session.declare_queryable(f"@store/{service}/{key_expr}", answer, complete=True)

    def put(self, *texts: str, key: str = "k/a", live: bool = True, step: int = 1 << 32) -> None:
        """Keep samples, a second apart, and tell live subscribers of them or not."""
        records = []
        for text in texts:
            self.clock += step
            records.append(Record(key, text.encode(), self.clock, b"\x01", 0))
        self.log.append(records)
        self.log.shelf.roll()  # so that retention can take away what is older
        if live:
            for text in texts:
                self.session.put(key, text, congestion_control=elea.CongestionControl.BLOCK)

    def trim(self, keep: int) -> int:
        """Let go of all but the newest; the oldest position left."""
        self.log.retain(Retention(samples=keep), 0)
        return self.log.first

    def replace(self) -> None:
        """From now on another log is here."""
        self.log = memory_log()

    def _facts(self) -> dict[str, Any]:
        return {"log": "kept", "epoch": self.log.epoch, "first": self.log.first, "end": self.log.end}

    def _read(self, query: elea.Query) -> None:
        with query:
            self.reads += 1
            given = query.parameters
            key = str(query.key_expr).removeprefix("@store/read/")
            numbers = {name: _number(given.get(name)) for name in ("from", "to", "limit")}
            time = given.get("time")
            wanted = Range(
                key,
                numbers["from"],
                numbers["to"],
                None if time is None else TimeRange.parse(time),
                numbers["limit"],
                given.get("order") == "newest",
                given.get("by") == "time",
            )
            try:
                if self.failures:
                    raise self.failures.pop(0)
                facts = self._facts()
                pieces = b"".join(self.log.read_ipc(wanted))
                positions = [self._readable(stored.position) for stored in self.log.read(wanted)]
            except EleaError as error:
                form = {"error": type(error).__name__, "text": str(error), **vars(error)}
                query.reply_err(json.dumps(form), encoding="application/json")
                return
            following = facts["end"] if numbers["to"] is None else min(numbers["to"], facts["end"])
            if wanted.newest_first:
                following = facts["first"]
            if wanted.limit is not None and len(positions) == wanted.limit:
                following = positions[-1] + (0 if wanted.newest_first else 1)
            query.reply(query.key_expr, pieces)
            query.reply(query.key_expr, json.dumps({**facts, "next": following}), encoding="application/json")

    def _readable(self, position: int) -> int:
        if position in self.damaged:
            raise StoreCorrupt("some", position, last=self.damaged[-1])
        return position

    def _cursor(self, query: elea.Query) -> None:
        with query:
            name, move = query.parameters.get("name") or "", _number(query.parameters.get("move"))
            if move is not None:
                self.log.move_cursor(name, move)
            form = {**self._facts(), "position": self.log.cursor(name)}
            query.reply(query.key_expr, json.dumps(form), encoding="application/json")

    def close(self) -> None:
        self.session.close()


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


@contextlib.contextmanager
def clients(locator: str, count: int = 1) -> Iterator[Any]:
    """Sessions of clients; one is given as itself."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(elea.open(config("client", connect__endpoints=[locator]))) for _ in range(count)]
        yield made[0] if count == 1 else made
