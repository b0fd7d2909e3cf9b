"""How long from the acknowledgement of a put until a reader of the table can see the row?"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from pathlib import Path

import elea
from bench.spark.stage import OCTETS, PATIENCE, Stage

__all__ = ["latencies"]

LOOK_SECONDS = 0.002
PAUSE_SECONDS = 0.1  # between two puts, on average: they must not keep step with the micro-batches
WARM = 5


class Watch(threading.Thread):
    """Notes when the table's log has how many rows: what a commit adds is visible when its file is there."""

    def __init__(self, table: Path, rows: int) -> None:
        super().__init__(daemon=True)
        self._log = table / "_delta_log"
        self._rows = rows
        self._commits = 0
        self.seen: list[float] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        while len(self.seen) < self._rows and not self.stopped.wait(LOOK_SECONDS):
            while (path := self._log / f"{self._commits:020}.json").exists():
                now = time.perf_counter()
                self.seen += [now] * _rows_of(path)
                self._commits += 1


def _rows_of(path: Path) -> int:
    added = (json.loads(line).get("add") for line in path.read_text(encoding="utf-8").splitlines())
    return sum(json.loads(one["stats"])["numRecords"] for one in added if one is not None)


def latencies(on: Stage, puts: int) -> list[float]:
    """Seconds from each acknowledgement to the commit of the table that has the row; the query triggers at once."""
    from elea.spark import delta

    with on.table() as place, elea.open(on.broker.config) as session:
        source = on.spark.readStream.format("zenoh").option("connect", on.locator).option("startingOffsets", "latest")
        query = delta.write(
            source.load("live/**"), place / "table", checkpoint=place / "checkpoint", compact_every=None
        )
        watch = Watch(place / "table", WARM + puts)
        watch.start()
        try:
            until = time.monotonic() + PATIENCE
            while not query.recentProgress and query.isActive and time.monotonic() < until:
                time.sleep(0.02)  # it stands at the end of the log from now on
            stored = []
            for number in range(WARM + puts):
                session.put(f"live/{number % 7}", os.urandom(OCTETS), ack=True, timeout=PATIENCE)
                stored.append(time.perf_counter())
                time.sleep(0.5 if number < WARM else random.uniform(0, 2 * PAUSE_SECONDS))
            watch.join(PATIENCE)
            if len(watch.seen) < len(stored):
                raise RuntimeError(f"{len(watch.seen)} of {len(stored)} rows are in the table; {query.exception()}")
        finally:
            watch.stopped.set()
            query.stop()
        return [seen - put for put, seen in zip(stored, watch.seen, strict=True)][WARM:]
