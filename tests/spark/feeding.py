"""Who writes numbers for `tests.spark.kills`: acknowledged, to a broker with a store, or to a plain router."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Self

import zenoh

import elea
from tests.interop.inbox import free_port
from tests.robust.children import config, entries
from tests.spark.trouble import PATIENCE

__all__ = ["Feeder", "PlainFeeder"]

FEED_ROWS = 100
PAUSE = 0.2


class Feeder:
    """Stores numbers, acknowledged, a few at a time, until told to stop."""

    def __init__(self, locator: str) -> None:
        self.count = 0
        self.error: Exception | None = None
        self.locator = locator
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._feed()
        except Exception as error:  # noqa: BLE001 - looked at in the end
            self.error = error

    def _feed(self) -> None:
        with elea.open(config("client", "connect", self.locator)) as session:
            while not self._over.wait(PAUSE):
                session.put_batch([(f"in/{n % 10}", str(n)) for n in self._numbers()], "in/*", timeout=PATIENCE)
                self.count += FEED_ROWS

    def _numbers(self) -> range:
        return range(self.count, self.count + FEED_ROWS)

    def stop(self) -> int:
        self._over.set()
        self._thread.join(PATIENCE)
        assert self.error is None, self.error
        return self.count


class PlainFeeder(Feeder):
    """A router of eclipse-zenoh, and who puts numbers there, for whoever listens."""

    def __init__(self) -> None:
        locator = f"tcp/127.0.0.1:{free_port()}"
        made = zenoh.Config()
        for path, value in entries("router", "listen", locator).items():
            made.insert_json5(path, json.dumps(value))
        self._router = zenoh.open(made)
        super().__init__(locator)

    def _feed(self) -> None:
        while not self._over.wait(PAUSE):
            for n in self._numbers():
                self._router.put(f"in/{n % 10}", str(n), congestion_control=zenoh.CongestionControl.BLOCK)
            self.count += FEED_ROWS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(PATIENCE)
        self._router.close()  # type: ignore[no-untyped-call]
