"""The broker of the ledger test: small segments, quick upkeep, one log that is kept and one that is trimmed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.interop.inbox import free_port
from tests.robust.children import Child
from tests.robust.ledgerwriter import KEPT, TRIMMED

__all__ = ["Killed"]

SEGMENT_BYTES = 100_000
UPKEEP = {"LOOK_SECONDS": 0.05, "CHECKPOINT_SAMPLES": 30, "CHECKPOINT_LOOKS": 3}


class Killed:
    """A broker with two storages that dies again and again, and comes back at the same place."""

    def __init__(self, directory: Path, *, sync: str = "durable") -> None:
        self.directory = directory
        self.locator = f"tcp/127.0.0.1:{free_port()}"
        volume = {"dir": str(directory), "sync": sync}
        kept = {"key_expr": f"{KEPT}/**", "volume": "log"}
        trimmed = {"key_expr": f"{TRIMMED}/**", "volume": "log", "retain": {"samples": 60}}
        manager = {"volumes": {"log": volume}, "storages": {KEPT: kept, TRIMMED: trimmed}}
        self._options = ["--cfg", f"plugins/storage_manager:{json.dumps(manager)}"]
        self._child: Child | None = None

    def start(self, point: str | None = None, count: int = 1, **faults: Any) -> Child:
        """Start it, with a point to die at; it may not live until it listens."""
        self.end()
        told = {"point": point, "count": count, "segment_bytes": SEGMENT_BYTES, "upkeep": UPKEEP, **faults}
        words = ["broker", "--json", "--quiet", "--no-multicast-scouting", "-l", self.locator, *self._options]
        self._child = Child(["tests.robust.faulty", json.dumps(told), *words])
        return self._child

    def serve(self, **faults: Any) -> Child:
        """Start it and wait until it listens."""
        child = self.start(**faults)
        assert child.answer()["event"] == "listening"
        return child

    def end(self) -> None:
        """It is gone."""
        if self._child is not None:
            self._child.end()
            self._child = None
