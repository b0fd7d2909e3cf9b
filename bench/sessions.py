"""The store end to end: a broker in a process of its own, and clients that put, put batches and read over loopback.

Rates say who got the cores; CPU a sample (user and system time of the process, all threads) is the steadier figure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import elea
from elea import aio

__all__ = ["Broker", "Figures", "batch_of", "broker", "put_batches", "puts_from_threads", "puts_in_flight", "scans"]

Figures = dict[str, float]

WARM_SECONDS = 0.5


class Broker:
    """A broker process."""

    def __init__(self, process: subprocess.Popen[str], locator: str) -> None:
        self.process = process
        self.locator = locator
        self.config = elea.Config()
        for path, value in {
            "mode": "client",
            "scouting/multicast/enabled": False,
            "connect/endpoints": [locator],
        }.items():
            self.config.insert_json5(path, json.dumps(value))

    def cpu(self) -> float:
        """Seconds of CPU so far; not a number where the system does not tell."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        except OSError:
            return float("nan")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def broker(directory: Path, *key_exprs: str) -> Iterator[Broker]:
    """A broker that keeps `fleet/**`, and further key expressions, in a directory."""
    command = [sys.executable, "-m", "elea", "broker", "--store", str(directory), "--persist", "fleet/**"]
    for key_expr in key_exprs:
        command += ["--persist", key_expr]
    command += ["--listen", "tcp/127.0.0.1:0", "--no-multicast-scouting", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        yield Broker(process, told["locators"][0])
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


def put_batches(at: Broker, batch: pa.RecordBatch, rounds: int) -> Figures:
    """Samples acknowledged a second, one `put_batch` after the other."""
    with elea.open(at.config) as session:
        session.put_batch(batch.slice(0, 20_000))
        spent = _Cpu(at)
        rate = _rate(rounds, lambda: session.put_batch(batch).rows)
        return {"elea": rate, **spent.each(rounds * batch.num_rows)}


def scans(at: Broker, rounds: int) -> Figures:
    """Rows a second of a whole log into record batches."""
    with elea.open(at.config) as session:
        return {"elea": _rate(rounds, lambda: sum(batch.num_rows for batch in session.read("fleet/**")))}


def puts_in_flight(at: Broker, keys: list[str], count: int, seconds: float) -> Figures:
    """Single acknowledged puts a second of `count` tasks of one loop, each of which waits for the one before."""
    payload = os.urandom(100)

    async def main() -> Figures:
        async with aio.open(at.config) as session:
            waits: list[float] = []

            async def put(number: int, until: float) -> None:
                while (begin := time.perf_counter()) < until:
                    await session.put(keys[number % len(keys)], payload, ack=True)
                    waits.append(time.perf_counter() - begin)
                    number += 1

            async def run(seconds: float) -> float:
                begin = time.perf_counter()
                await asyncio.gather(*(put(number * 97, begin + seconds) for number in range(count)))
                return time.perf_counter() - begin

            await run(WARM_SECONDS)
            waits.clear()
            spent = _Cpu(at)
            took = await run(seconds)
            return {**_of(waits, took), **spent.each(len(waits))}

    return asyncio.run(main())


def puts_from_threads(at: Broker, keys: list[str], count: int, seconds: float) -> Figures:
    """The same from `count` threads."""
    payload = os.urandom(100)
    with elea.open(at.config) as session:
        waits: list[float] = []

        def put(number: int, until: float) -> None:
            while (begin := time.perf_counter()) < until:
                session.put(keys[number % len(keys)], payload, ack=True)
                waits.append(time.perf_counter() - begin)
                number += 1

        def run(seconds: float) -> float:
            begin = time.perf_counter()
            threads = [threading.Thread(target=put, args=(number * 97, begin + seconds)) for number in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return time.perf_counter() - begin

        run(WARM_SECONDS)
        waits.clear()
        spent = _Cpu(at)
        took = run(seconds)
        return {**_of(waits, took), **spent.each(len(waits))}


class _Cpu:
    """What client and broker spend from now on."""

    def __init__(self, at: Broker) -> None:
        self._at = at
        self._client, self._broker = time.process_time(), at.cpu()

    def each(self, samples: int) -> Figures:
        """In microseconds a sample."""
        client, broker = time.process_time() - self._client, self._at.cpu() - self._broker
        return {"client_us": 1e6 * client / samples, "broker_us": 1e6 * broker / samples}


def _of(waits: list[float], took: float) -> Figures:
    waits = sorted(waits)
    return {
        "elea": len(waits) / took,
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
