"""A broker with one storage on a disk with faults, as the tests of such disks use it."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import elea
from tests.robust.children import PATIENCE, Child, config

__all__ = ["KEYS", "Served", "info", "options_for", "session", "values"]

KEYS = "f/**"
UPKEEP = {"LOOK_SECONDS": 0.1}


def options_for(directory: Path) -> list[str]:
    """The options of such a broker, whichever way it is started."""
    storage = {"key_expr": KEYS, "volume": "log"}
    manager = {"volumes": {"log": {"dir": str(directory)}}, "storages": {"f": storage}}
    listen = ["--no-multicast-scouting", "-l", "tcp/127.0.0.1:0"]
    return [*listen, "--cfg", f"plugins/storage_manager:{json.dumps(manager)}"]


class Served:
    """A broker with one storage, on a disk with faults that can be switched on."""

    def __init__(self, directory: Path, *, clock: float | None = None, **faults: Any) -> None:
        self.directory = directory
        self.switches = directory.parent / "switches"
        self.switches.mkdir(exist_ok=True)
        self._faults = {"switches": str(self.switches), "upkeep": UPKEEP, **faults}
        self.said: list[dict[str, Any]] = []
        if clock is not None:
            self.set_clock(clock)
        self.start()

    def set_clock(self, seconds: float) -> None:
        """By how much its time is wrong; for a broker that is running only if it was started with this set."""
        whole = self.switches / "clock.new"
        whole.write_text(str(seconds))
        whole.rename(self.switches / "clock")

    def start(self) -> None:
        words = ["broker", "--json", "--quiet", *options_for(self.directory)]
        self.child = Child(["tests.robust.faulty", json.dumps(self._faults), *words])
        self.locator = self.child.answer()["locators"][0]

    def restart(self, end: signal.Signals = signal.SIGKILL) -> None:
        self.end(end)
        self.start()

    def end(self, end: signal.Signals = signal.SIGKILL) -> None:
        self.child.signal(end)
        self.child.process.wait(PATIENCE)
        self.child.end()

    def has_said(self, *texts: str) -> bool:
        """Whether one event has all these texts."""
        while not self.child.lines.empty():
            line = self.child.lines.get()
            if line:
                self.said.append(json.loads(line))
        return any(all(text in json.dumps(event) for text in texts) for event in self.said)

    @property
    def log(self) -> Path:
        return self.directory / "f"


@contextlib.contextmanager
def session(served: Served) -> Iterator[elea.Session]:
    with elea.open(config("client", "connect", served.locator)) as made:
        yield made


def info(asking: elea.Session) -> dict[str, Any]:
    """What the storage tells of itself."""
    (found,) = [json.loads(reply.ok.payload.to_bytes()) for reply in asking.get("@store/info/*/f") if reply.ok]
    assert isinstance(found, dict)
    return found


def values(asking: elea.Session) -> list[bytes]:
    """All payloads of the log, in the order of positions."""
    payloads: list[bytes] = asking.read(KEYS, skip_damaged=True).read_all().column("payload").to_pylist()
    return payloads
