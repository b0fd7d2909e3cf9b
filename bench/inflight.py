"""Single acknowledged puts to a store of this process: many in flight, from a loop and from threads."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

from elea.model.errors import StoreError
from elea.store import Committer, Outcome, Record

__all__ = ["KEYS", "asyncio_puts", "samples", "threaded_puts"]

KEYS = [f"fleet/robot/{number:05}/sensors/temperature" for number in range(10_000)]
START = 1_700_000_000


def samples(count: int, start: int = 0) -> list[Record]:
    """Records with 100 random octets each."""
    noise = os.urandom(count * 100)
    return [
        Record(
            KEYS[number % len(KEYS)],
            noise[(number - start) * 100 : (number - start + 1) * 100],
            (START << 32) + number * 5000,
            b"\x01",
            START * 10**9 + number * 1000,
        )
        for number in range(start, start + count)
    ]


def asyncio_puts(log: Any, count: int, seconds: float) -> tuple[float, list[float]]:
    """`count` coroutines, each of which puts and waits for the acknowledgement, again and again."""
    pool = samples(10_000)
    waits: list[float] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()

        def resolve(outcomes: list[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
            for future, outcome in outcomes:
                if not future.done():
                    future.set_result(outcome)

        def deliver(outcomes: list[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
            loop.call_soon_threadsafe(resolve, outcomes)

        committer = Committer[asyncio.Future[Outcome]](log, deliver)
        thread = threading.Thread(target=committer.run)
        thread.start()
        until = time.perf_counter() + seconds

        async def put(number: int) -> None:
            while (begin := time.perf_counter()) < until:
                future: asyncio.Future[Outcome] = loop.create_future()
                committer.submit([pool[(number := number + 1) % len(pool)]], future)
                if isinstance(await future, StoreError):
                    raise SystemExit("the store refused a sample")
                waits.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        await asyncio.gather(*(put(number * 97) for number in range(count)))
        spent = time.perf_counter() - begin
        committer.close()
        thread.join()
        return spent

    spent = asyncio.run(main())
    return len(waits) / spent, waits


def threaded_puts(log: Any, count: int, seconds: float) -> tuple[float, list[float]]:
    """The same from `count` threads."""
    pool = samples(10_000)
    waits: list[float] = []

    def answer(outcomes: list[tuple[threading.Event, Outcome]]) -> None:
        for event, _ in outcomes:
            event.set()

    committer: Committer[threading.Event] = Committer(log, answer)
    runner = threading.Thread(target=committer.run)
    runner.start()
    until = time.perf_counter() + seconds

    def put(number: int) -> None:
        while (begin := time.perf_counter()) < until:
            event = threading.Event()
            number += 1
            committer.submit([pool[number % len(pool)]], event)
            event.wait()
            waits.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    threads = [threading.Thread(target=put, args=(number * 97,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - begin
    committer.close()
    runner.join()
    return len(waits) / spent, waits
