"""Acknowledged puts that travel together, and batches two pieces at a time, to a broker that is killed between request
and answer: every sample is stored once, and what is stored of a batch is its beginning.

    python -m tests.robust.acking --kills 50

Sixty-four tasks of one loop put, each waiting for its acknowledgement; a thread puts batches in many pieces. Whenever
both have got on the broker is killed, which is always between some request and its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
import threading
import time
from collections import Counter
from typing import Any, NamedTuple

import elea
from elea import aio
from elea.api import batches
from tests.robust.children import PATIENCE, config
from tests.robust.following import KEYS, Broker

__all__ = ["Outcome", "run"]

IN_FLIGHT = 64
PIECES = 8
PIECE_ROWS = 50
STALLED = 120.0
"""Seconds without any progress after which something has gone wrong for good."""


class Outcome(NamedTuple):
    """What a run has come to."""

    puts: int
    rows: int
    repeated: int
    kills: int
    seconds: float


class Writers:
    """What was put, and what was acknowledged of it."""

    def __init__(self, locator: str) -> None:
        self._config = config("client", "connect", locator)
        self._stop = threading.Event()
        self.puts: dict[str, int | None] = {}
        self.batches = 0
        self.repeated = 0
        self.failed: list[BaseException] = []
        works = (self._put_in_loop, self._put_batches)
        self._threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]
        for thread in self._threads:
            thread.start()

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - looked at by who waits
            self.failed.append(error)

    def _put_in_loop(self) -> None:
        async def put(session: aio.Session, task: int) -> None:
            number = 0
            while not self._stop.is_set():
                name = f"{task}:{number}"
                receipt = await session.put(f"f/put/{task}", name, ack=True, timeout=PATIENCE * 5)
                assert receipt is not None
                self.puts[name] = receipt.position
                self.repeated += receipt.repeated
                number += 1

        async def main() -> None:
            async with aio.open(self._config) as session:
                await asyncio.gather(*(put(session, task) for task in range(IN_FLIGHT)))

        asyncio.run(main())

    def _put_batches(self) -> None:
        with elea.open(self._config) as session:
            while not self._stop.is_set():
                rows = [("f/batch", f"{self.batches}:{row}") for row in range(PIECES * PIECE_ROWS)]
                receipt = session.put_batch(rows, timeout=PATIENCE * 5)
                self.repeated += receipt.repeated
                self.batches += 1

    def wait(self) -> None:
        """Until both have got on."""
        puts, batches = len(self.puts) + 5 * IN_FLIGHT, self.batches + 1
        end = time.monotonic() + STALLED
        while len(self.puts) < puts or self.batches < batches:
            assert not self.failed, self.failed
            assert time.monotonic() < end, f"nothing goes on: puts={len(self.puts)} batches={self.batches}"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(STALLED)
            assert not thread.is_alive()
        assert not self.failed, self.failed


def run(kills: int, by: signal.Signals = signal.SIGKILL) -> Outcome:
    """Write, kill (or stop the broker, with another signal), and look at what is there."""
    begin = time.monotonic()
    before, batches.PIECE_ROWS = batches.PIECE_ROWS, PIECE_ROWS  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(directory)
        try:
            writers = Writers(broker.locator)
            for _ in range(kills):
                writers.wait()
                broker.kill(by)
            writers.wait()
            writers.stop()
            with elea.open(config("client", "connect", broker.locator)) as session:
                table = session.read(KEYS).read_all()
        finally:
            broker.close()
            batches.PIECE_ROWS = before  # type: ignore[misc]
    positions, keys, payloads = (table.column(name).to_pylist() for name in ("position", "key", "payload"))
    found = [(key, payload.decode()) for key, payload in zip(keys, payloads, strict=True)]
    _check(writers, dict(zip(positions, found, strict=True)))
    return Outcome(len(writers.puts), len(found), writers.repeated, broker.kills, time.monotonic() - begin)


def _check(writers: Writers, stored: dict[int, tuple[str, str]]) -> None:
    twice = [sample for sample, count in Counter(stored.values()).items() if count > 1]
    assert not twice, f"stored twice: {twice[:5]}"
    for name, position in writers.puts.items():
        task = name.split(":")[0]
        assert position is not None, f"{name} was acknowledged without a place"
        assert stored[position] == (f"f/put/{task}", name), f"{name} is not where its receipt says"
    assert sum(key != "f/batch" for key, _ in stored.values()) == len(writers.puts)
    rows = [value for _, (key, value) in sorted(stored.items()) if key == "f/batch"]
    wanted = [f"{batch}:{row}" for batch in range(writers.batches) for row in range(PIECES * PIECE_ROWS)]
    assert rows == wanted, "batches are not in their order"


def main() -> None:
    parser = argparse.ArgumentParser(description="Acknowledged puts and batches, and a broker that is killed.")
    parser.add_argument("--kills", type=int, default=20)
    print(run(parser.parse_args().kills))


if __name__ == "__main__":
    main()
