"""`elea broker` with storages as a process, and eclipse-zenoh clients of it."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import zenoh

from tests.unit.cli.running import Running

__all__ = ["StoringBroker", "client"]


class StoringBroker:
    """A broker process; started again, it has the same address."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self._locator = "tcp/127.0.0.1:0"
        self._start()

    def _start(self) -> None:
        self.running = Running(
            "broker", "--json", "--quiet", "--no-multicast-scouting", "-l", self._locator, *self._options
        )
        told = self.running.form_where(lambda form: form["event"] == "listening")
        (self.locator,) = told["locators"]
        self.id = told["id"]

    def kill(self) -> None:
        """As if the power were cut, except for what the operating system still writes."""
        self.running.process.send_signal(signal.SIGKILL)
        self.running.end()

    def restart(self, *more: str) -> None:
        """Once more, at the same address, with more options from now on."""
        self._options += more
        self._locator = self.locator
        self._start()

    def stop(self) -> int:
        """End in order."""
        return self.running.stop(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.running.process.poll() is None:
            self.stop()


@contextlib.contextmanager
def client(locator: str) -> Iterator[Any]:
    """An eclipse-zenoh client."""
    config = zenoh.Config()
    for path, value in {
        "mode": "client",
        "connect/endpoints": [locator],
        "scouting/multicast/enabled": False,
    }.items():
        config.insert_json5(path, json.dumps(value))
    with zenoh.open(config) as session:
        yield session
