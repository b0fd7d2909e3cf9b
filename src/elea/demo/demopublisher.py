"""A publisher of the demo: `python -m elea.demo.demopublisher BY LOCATOR LEDGER --rate 500 --seed 1`.

`house` and `fleet` are clients of Elea, whose every sample is acknowledged when it is safe; a broker that is away is
waited for. `eclipse` is one of eclipse-zenoh, whose puts nobody acknowledges, `vehicle` a uProtocol entity
(`elea.demo.vehicle`). Lines on standard input say `go`, `stop` and `end`; each is answered by a line with the counts
when it is done, and the end of the input is an `end`. A line with the counts comes twice a second besides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from elea.demo.ledger import Writer
from elea.demo.world import PUBLISHERS, Reading, readings

__all__ = ["Publisher", "config_of", "main", "obey"]

TURN_SECONDS: Final = 0.1
"""As many samples as are due are put together this often."""

TELL_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 300.0
"""How long a put goes on trying while the broker is away."""

GROUP: Final = 400
"""Puts under way at the same time; the API lets 500 of an entity be."""

JSON: Final = "application/json"


class Publisher:
    """Puts readings at a rate, and keeps the accounts."""

    def __init__(self, by: str, ledger: Writer, rate: float, seed: int) -> None:
        self.by = by
        self.tried = 0
        self.acknowledged = 0
        self.is_going = False
        self.is_over = False
        self._ledger = ledger
        self._rate = rate
        self._source = readings(by, seed)
        self._due = 0.0
        self._before = time.monotonic()
        self._told = 0.0

    def turn(self) -> list[list[Reading]]:
        """The samples that are due now, in groups."""
        now = time.monotonic()
        # What a broker that was away has held up is not made up for: a sensor has no more to say than it has.
        passed, self._before = min(now - self._before, 1.0), now
        self._due = self._due + passed * self._rate if self.is_going else 0.0
        count, self._due = int(self._due), self._due % 1.0
        due = list(islice(self._source, count))
        return [due[at : at + GROUP] for at in range(0, count, GROUP)]

    def note_tried(self, count: int) -> None:
        """Some samples are about to be put."""
        self._ledger.note("tried", self.tried, self.tried + count)
        self.tried += count

    def note_acknowledged(self, first: int, count: int) -> None:
        """Some samples are safe."""
        self._ledger.note("acknowledged", first, first + count)
        self.acknowledged += count

    def tell(self, answer: str | None = None) -> None:
        """Print the counts: as an answer, or because it is time."""
        if answer is None and time.monotonic() - self._told < TELL_SECONDS:
            return
        self._told = time.monotonic()
        form = {"by": self.by, "tried": self.tried, "acknowledged": self.acknowledged}
        print(json.dumps(form | ({} if answer is None else {"answer": answer})), flush=True)


async def with_elea(publisher: Publisher, locator: str, commands: Callable[[], Iterator[str]]) -> None:
    """Put acknowledged samples until told to end."""
    import elea
    import elea.aio

    config = elea.Config.from_json5(json.dumps(config_of(locator)))
    async with await elea.aio.open(config) as session:

        async def put(reading: Reading) -> None:
            await session.put(
                reading.key, reading.payload, encoding=JSON, attachment=reading.origin, ack=True,
                durability="persistent", timeout=PATIENCE_SECONDS,
            )  # fmt: skip

        while not publisher.is_over:
            for group in publisher.turn():
                first = publisher.tried
                publisher.note_tried(len(group))
                await asyncio.gather(*(put(reading) for reading in group))
                publisher.note_acknowledged(first, len(group))
                publisher.tell()
            obey(publisher, commands())
            publisher.tell()
            await asyncio.sleep(TURN_SECONDS)


def with_eclipse(publisher: Publisher, locator: str, commands: Callable[[], Iterator[str]]) -> None:
    """Put samples with eclipse-zenoh's own library until told to end; nobody says what becomes of them."""
    import zenoh

    config: Any = zenoh.Config()
    for path, value in config_of(locator).items():
        config.insert_json5(path, json.dumps(value))
    with zenoh.open(config) as session:
        wait = zenoh.CongestionControl.BLOCK
        while not publisher.is_over:
            for group in publisher.turn():
                publisher.note_tried(len(group))
                for reading in group:
                    session.put(
                        reading.key, reading.payload, encoding=JSON, attachment=reading.origin, congestion_control=wait
                    )
                publisher.tell()
            obey(publisher, commands())
            publisher.tell()
            time.sleep(TURN_SECONDS)


def config_of(locator: str) -> dict[str, Any]:
    """A client of the broker."""
    return {"mode": "client", "connect": {"endpoints": [locator]}, "scouting": {"multicast": {"enabled": False}}}


def obey(publisher: Publisher, commands: Iterator[str]) -> None:
    """Do what was said, and answer."""
    for command in commands:
        publisher.is_going = command == "go"
        publisher.is_over = publisher.is_over or command == "end"
        publisher.tell(command)


def _commands() -> Callable[[], Iterator[str]]:
    """What has been said on standard input since the last call."""
    said: list[str] = []

    def listen() -> None:
        for line in iter(sys.stdin.readline, ""):
            said.append(line.strip())
        said.append("end")

    def taken() -> Iterator[str]:
        while said:
            yield said.pop(0)

    threading.Thread(target=listen, daemon=True).start()
    return taken


def main(arguments: list[str] | None = None) -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(prog="python -m elea.demo.demopublisher", description=__doc__)
    parser.add_argument("by", choices=PUBLISHERS)
    parser.add_argument("locator")
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--rate", type=float, default=300.0, help="samples a second")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    ledger = Writer(args.ledger)
    publisher = Publisher(args.by, ledger, args.rate, args.seed)
    if args.by == "eclipse":
        with_eclipse(publisher, args.locator, _commands())
    elif args.by == "vehicle":
        from elea.demo.vehicle import drive

        drive(publisher, args.locator, _commands())
    else:
        asyncio.run(with_elea(publisher, args.locator, _commands()))
    ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
