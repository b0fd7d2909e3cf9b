"""One router, one number of clients: `python -m bench.scale.measurement SPEC`, with the router started before.

Says a line of JSON for every figure, at last `done`, or `failed` and why. CPU is that of the router alone: what the
clients cost, in plain asyncio, is nobody's figure.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.node.talk import Parent
from bench.scale.crowd import Client, Crowd, CrowdFailed, in_turn
from bench.scale.light import key, put, subscriber
from bench.scale.meter import Meter
from bench.scale.probe import Latency
from bench.scale.rows import FAN_OUT_FLIGHTS, PROBES, Fan, Row
from bench.scale.tls import client_context

TO_ALL: Final = "scale/all"
TO_ONE: Final = "scale/one"
OWN: Final = "scale/client/{}/in"
SAID: Final = "scale/client/{}/out"
SAID_BY_ANY: Final = "scale/client/*/out"

ALL_NUMBER: Final = 1  # of the keys that clients declare
ONE_NUMBER: Final = 2
SAID_NUMBER: Final = 3

FAN_IN_WINDOW: Final = 100
"""Samples on their way to the one who receives: the same for any number of clients, or more of them would also mean
larger batches."""

KNOWN: Final = 60.0  # seconds until every declaration must have reached the router
RETRY: Final = 0.1  # seconds until what did not come is put again
DRAINED: Final = 0.3  # seconds without a sample after which none is on its way
PAUSE: Final = 1.0  # seconds after which a router has done what it left for later
EVERY_SECOND: Final = 1.0

Say = Callable[..., None]


class Measurement:
    """The figures of one router and one number of clients."""

    def __init__(self, spec: dict[str, Any], say: Say) -> None:
        self._spec = spec
        self._say = say
        self._router = Meter(spec["pid"])
        self._number: int = spec["clients"]
        self._seconds: float = spec["seconds"]

    async def run(self) -> None:
        """Everything, in an order in which no figure disturbs the next.

        Raises:
            CrowdFailed: clients could not be opened, or were lost.
        """
        context = client_context(self._spec["certificate"]) if self._spec["certificate"] else None
        await self._probe("alone")
        async with Crowd(self._spec["port"], context) as crowd:
            await self._open(crowd)
            self._figure(Row.REST, await self._load(self._spec["rest"]))
            await self._probe("idle")
            crowd.check()
            for flight in FAN_OUT_FLIGHTS:
                await self._fan_out(crowd, flight)
            await self._fan_in(crowd)
            await self._busy(crowd)

    # -- what is measured ----------------------------------------------------------------------------------------------

    async def _open(self, crowd: Crowd) -> None:
        """Sessions with two subscribers each; the time ends when a sample shows that the router knows all of them."""
        memory, cpu, start = self._router.memory(), self._router.cpu(), time.perf_counter()
        await crowd.open(self._number, greet)
        gc.freeze()  # so many objects that stay would make every collection long
        await reach(crowd, crowd.clients[0], put(ALL_NUMBER), crowd.clients[1:])
        took, used = time.perf_counter() - start, self._router.cpu() - cpu
        await asyncio.sleep(PAUSE)
        await drained(crowd)
        self._figure(Row.OPEN_MS, took / self._number * 1e3)
        self._figure(Row.OPEN_CPU, used / self._number * 1e3)
        self._figure(Row.MEMORY, (self._router.memory() - memory) / self._number)
        self._figure(Row.THREADS, self._router.threads())

    async def _fan_out(self, crowd: Crowd, flight: int) -> None:
        """One puts `flight` samples, all others receive them; then the next."""
        speaker, message = crowd.clients[0], put(ALL_NUMBER)

        def send() -> int:
            for _ in range(flight):
                speaker.send(message)
            return flight * (len(crowd.clients) - 1)

        await self._fan(crowd, Fan.out(flight), send)

    async def _fan_in(self, crowd: Crowd) -> None:
        """All others put in turn, one receives."""
        speakers = crowd.clients[1:]
        await self._connect(crowd, subscriber(3, TO_ONE), speakers, ONE_NUMBER, lambda _: TO_ONE)
        message, turn = put(ONE_NUMBER), itertools.cycle(speakers)
        window = min(FAN_IN_WINDOW, len(speakers))

        def send() -> int:
            for client in itertools.islice(turn, window):
                client.send(message)
            return window

        await self._fan(crowd, Fan.IN, send)

    async def _busy(self, crowd: Crowd) -> None:
        """Half of the clients put once a second, under a key of their own, and one receives all of it."""
        speakers = crowd.clients[1::2]
        await self._connect(crowd, subscriber(4, SAID_BY_ANY), speakers, SAID_NUMBER, SAID.format)
        begun, sent, message = crowd.received, 0, put(SAID_NUMBER)

        def speak(client: Client) -> None:
            nonlocal sent
            client.send(message)
            sent += 1

        speaking = asyncio.create_task(in_turn(speakers, EVERY_SECOND, speak))
        try:
            await asyncio.sleep(PAUSE)
            before = crowd.received
            self._figure(Row.BUSY, await self._load(self._seconds))
            rate = (crowd.received - before) / self._seconds
            await self._probe("busy")
        finally:
            speaking.cancel()
        await crowd.until(begun + sent)
        crowd.check()
        self._figure(Row.BUSY_RATE, rate, lost=begun + sent - crowd.received)

    # -- how ---------------------------------------------------------------------------------------------------------

    async def _fan(self, crowd: Crowd, fan: Fan, send: Callable[[], int]) -> None:
        """Again and again `send`, which tells how many samples must come, and wait for them."""
        await asyncio.sleep(PAUSE)
        begun, due = crowd.received, 0
        cpu, start = self._router.cpu(), time.perf_counter()
        whole = True
        while whole and time.perf_counter() - start < self._seconds:
            due += send()
            whole = await crowd.until(begun + due)
        took, used, came = time.perf_counter() - start, self._router.cpu() - cpu, crowd.received - begun
        crowd.check()
        self._figure(fan.cost, used / max(1, came) * 1e6, lost=due - came)
        self._figure(fan.rate, came / took)

    async def _connect(
        self, crowd: Crowd, declared: bytes, speakers: Sequence[Client], number: int, key_of: Callable[[int], str]
    ) -> None:
        """The first client subscribes, the speakers declare their keys, and a sample of each goes through uncounted."""
        crowd.clients[0].send(declared)
        for client in speakers:
            client.send(key(number, key_of(client.number)))
        await reach(crowd, speakers[0], put(number), crowd.clients[:1])
        await drained(crowd)
        for first in range(0, len(speakers), FAN_IN_WINDOW):
            turn = speakers[first : first + FAN_IN_WINDOW]
            begun = crowd.received
            for client in turn:
                client.send(put(number))
            if not await crowd.until(begun + len(turn)):
                raise CrowdFailed(f"{crowd.received - begun} of {len(turn)} samples came through to one client")

    async def _load(self, seconds: float) -> float:
        """CPU of the router in % of a core."""
        cpu, start = self._router.cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        return (self._router.cpu() - cpu) / (time.perf_counter() - start) * 100

    async def _probe(self, when: str) -> None:
        spec = {"port": self._spec["port"], "certificate": self._spec["certificate"], "seconds": self._seconds}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.scale.probe",
            json.dumps(spec),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, words = await process.communicate()
        if process.returncode:
            last = words.decode(errors="replace").strip().splitlines()
            raise CrowdFailed(f"the probe failed: {last[-1] if last else process.returncode}")
        found = Latency(**json.loads(out))
        half, most = PROBES[when]
        self._figure(half, found.p50, lost=found.lost)
        self._figure(most, found.p99)

    def _figure(self, row: str, value: float, lost: int | None = None) -> None:
        self._say(said={"row": row, "value": value, "lost": lost})


def greet(client: Client) -> None:
    """What a client declares when its session is open: what all listen to, and something of its own."""
    declarations = subscriber(1, TO_ALL) + subscriber(2, OWN.format(client.number))
    client.send(declarations if client.number else declarations + key(ALL_NUMBER, TO_ALL))


async def reach(crowd: Crowd, speaker: Client, message: bytes, receivers: Sequence[Client]) -> None:
    """Put until a sample has come to each of the receivers: the router knows what they declared."""
    before = [client.session.samples for client in receivers]
    end = time.monotonic() + KNOWN
    while left := sum(client.session.samples == was for client, was in zip(receivers, before, strict=True)):
        crowd.check()
        if time.monotonic() > end:
            raise CrowdFailed(f"after {KNOWN:.0f} s a sample has not come to {left} of {len(receivers)} clients")
        speaker.send(message)
        await crowd.until(crowd.received + left, quiet=RETRY)


async def drained(crowd: Crowd) -> None:
    """No more samples come."""
    while await crowd.until(crowd.received + 1, quiet=DRAINED):
        pass


async def measure(spec: dict[str, Any], parent: Parent) -> None:
    # Whether an order comes or the end of the stream: without a parent there is no reason to go on.
    asyncio.get_running_loop().add_reader(0, functools.partial(os._exit, 0))
    try:
        await Measurement(spec, parent.say).run()
    except (CrowdFailed, OSError) as error:
        parent.say(said={"failed": str(error)})
        return
    parent.say(said={"done": True})


if __name__ == "__main__":
    asyncio.run(measure(json.loads(sys.argv[1]), Parent()))
