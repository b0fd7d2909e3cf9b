"""What a run of `tests.spark.kills` is made of: the driver, and everything that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.interop.storing import StoringBroker
from tests.robust.children import Child, eventually
from tests.spark.parking import PLACE

__all__ = ["PATIENCE", "ROOT", "Driver", "Trouble"]

PATIENCE = 300.0
"""Seconds without any progress after which something has gone wrong for good."""

ROOT = Path(__file__).parents[2]


class Driver:
    """The driver process, started as often as needed."""

    def __init__(self, place: Path, arguments: list[str]) -> None:
        self._place = place
        self._arguments = arguments
        self.starts = 0
        self.child: Child | None = None

    def start(self, *more: str) -> Child:
        self.end()
        self.starts += 1
        self._errors = (self._place / f"driver-{self.starts}.err").open("w")
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {**os.environ, PLACE: str(self._place), "PYTHONPATH": paths}
        called = ["tests.spark.kills", "--drive", str(self._place), *self._arguments, *more]
        self.child = Child(called, start_new_session=True, stderr=self._errors, env=environment)
        return self.child

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.is_running

    def progress(self, more: int) -> None:
        """Wait until every query has gone on by so many batches; start the driver if it does not run."""
        if not self.is_running:
            self.start()
        first: list[int] | None = None
        moved = time.monotonic()
        while True:
            assert self.child is not None
            assert time.monotonic() - moved < PATIENCE, f"no progress; see {self._errors.name}"
            try:
                line = self.child.lines.get(timeout=1.0)
            except queue.Empty:
                continue
            if not line:
                self.start()
                first = None
                continue
            now = json.loads(line)
            moved = time.monotonic()
            first = now if first is None else first
            if all(new >= old + more for old, new in zip(first, now, strict=True)):
                return

    def kill(self) -> None:
        """The whole group, without a word."""
        assert self.child is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.process.pid, signal.SIGKILL)
        self.child.process.wait(PATIENCE)

    def end(self) -> None:
        if self.child is not None:
            self.kill()
            self.child.end()
            self._errors.close()
            self.child = None


def descendants(pid: int) -> Iterator[tuple[int, int, str]]:
    """Every process below one: its id, that of its parent, and how it was called."""
    # -ww: an environment that knows the width of a terminal must not cut off what a process is called.
    called = ["ps", "-ww", "-eo", "pid=,ppid=,args="]
    listed = subprocess.run(called, capture_output=True, text=True, check=True).stdout
    table = [
        (int(one), int(parent), args) for one, parent, args in (line.split(None, 2) for line in listed.splitlines())
    ]
    below = {pid}
    for _ in range(10):
        below |= {one for one, parent, _ in table if parent in below}
    yield from (row for row in table if row[0] in below and row[0] != pid)


class Trouble:
    """What can happen to a run."""

    def __init__(self, place: Path, broker: StoringBroker, driver: Driver, targets: Sequence[str]) -> None:
        self._place = place
        self._broker = broker
        self._driver = driver
        self._targets = targets
        self.kills: Counter[str] = Counter()

    def happen(self, what: str, chance: random.Random) -> None:
        time.sleep(chance.uniform(0, 0.5))
        getattr(self, what)(chance)
        self.kills[what] += 1

    def driver(self, chance: random.Random) -> None:
        self._driver.kill()

    def point(self, chance: random.Random) -> None:
        (self._place / "park").touch()
        wanted = [self._place / f"at-{target}" for target in self._targets]
        assert self._driver.child is not None
        process = self._driver.child.process
        eventually(lambda: all(path.exists() for path in wanted) or process.poll() is not None, "all parked", PATIENCE)
        assert all(path.exists() for path in wanted), "a driver that was to be parked has ended"
        self._driver.kill()
        (self._place / "park").unlink()
        for path in wanted:
            path.unlink()

    def worker(self, chance: random.Random) -> None:
        self._end_one("pyspark.daemon", chance, of_its_kind=True)

    def executor(self, chance: random.Random) -> None:
        self._end_one("CoarseGrainedExecutorBackend", chance, of_its_kind=False)

    def broker(self, chance: random.Random) -> None:
        self._broker.kill()
        time.sleep(chance.uniform(0, 1))
        self._broker.restart()

    def _end_one(self, called: str, chance: random.Random, *, of_its_kind: bool) -> None:
        assert self._driver.child is not None
        pid = self._driver.child.process.pid

        def found() -> list[int]:
            rows = [row for row in descendants(pid) if called in row[2]]
            kind = {row[0] for row in rows}
            # The daemon forks the workers: those whose parent is called the same.
            return [one for one, parent, _ in rows if (parent in kind) == of_its_kind]

        chosen = chance.choice(eventually(found, f"a process called {called}", PATIENCE))
        os.kill(chosen, signal.SIGKILL)
