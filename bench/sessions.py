"""The store end to end: a broker in a process of its own, and clients that put, put batches and read over loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import elea
from elea import aio

__all__ = ["Figures", "batch_of", "broker", "put_batches", "puts_in_flight", "scans"]

Figures = dict[str, float]


@contextlib.contextmanager
def broker(directory: Path) -> Iterator[elea.Config]:
    """A broker that keeps `fleet/**` in a directory; the configuration of its clients."""
    command = [sys.executable, "-m", "elea", "broker", "--store", str(directory), "--persist", "fleet/**"]
    command += ["--listen", "tcp/127.0.0.1:0", "--no-multicast-scouting", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        config = elea.Config()
        for path, value in {
            "mode": "client",
            "scouting/multicast/enabled": False,
            "connect/endpoints": [told["locators"][0]],
        }.items():
            config.insert_json5(path, json.dumps(value))
        yield config
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def batch_of(keys: list[str], rows: int) -> pa.RecordBatch:
    """Samples of 100 random octets."""
    noise = os.urandom(rows * 100)
    payloads = [noise[at * 100 : at * 100 + 100] for at in range(rows)]
    columns = [pa.array([keys[at % len(keys)] for at in range(rows)]), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["key", "payload"])


def put_batches(config: elea.Config, batch: pa.RecordBatch, rounds: int) -> float:
    """Samples acknowledged a second, one `put_batch` after the other."""
    with elea.open(config) as session:
        return _rate(rounds, lambda: session.put_batch(batch).rows)


def scans(config: elea.Config, rounds: int) -> float:
    """Rows a second of a whole log into record batches."""
    with elea.open(config) as session:
        return _rate(rounds, lambda: sum(batch.num_rows for batch in session.read("fleet/**")))


def puts_in_flight(config: elea.Config, keys: list[str], count: int, seconds: float) -> Figures:
    """Single acknowledged puts a second of `count` tasks of one loop, each of which waits for the one before."""
    waits: list[float] = []
    payload = os.urandom(100)

    async def main() -> float:
        async with aio.open(config) as session:
            await session.put(keys[0], payload, ack=True)
            until = time.perf_counter() + seconds

            async def put(number: int) -> None:
                while (begin := time.perf_counter()) < until:
                    await session.put(keys[number % len(keys)], payload, ack=True)
                    waits.append(time.perf_counter() - begin)
                    number += 1

            begin = time.perf_counter()
            await asyncio.gather(*(put(number * 97) for number in range(count)))
            return time.perf_counter() - begin

    spent = asyncio.run(main())
    waits.sort()
    return {
        "elea": len(waits) / spent,
        "p50_ms": 1000 * waits[len(waits) // 2],
        "p99_ms": 1000 * waits[len(waits) * 99 // 100],
    }


def _rate(rounds: int, work: Callable[[], int]) -> float:
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        done = work()
        found.append(done / (time.perf_counter() - begin))
    return statistics.median(found)
