"""A writer with a ledger, as a process: before each put it writes down what it tries, and after it what came of it.

The ledger is a file of its own, synced at every line. Lines are `tried|acked|unknown <kind> <first number> <count>
<first position>`; a number stands for one sample, wherever it went, and -1 for a position that is not known. `unknown`
ended with an error that leaves open whether it is stored.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import elea
from tests.robust.children import PATIENCE, config

__all__ = ["HIGHEST", "KEPT", "TRIMMED", "Ledger", "Place", "payload_of", "write"]

KEPT, TRIMMED = "kept", "trimmed"
"""What keys begin with in the log of which everything is kept, and in the one of which only the newest is."""

HIGHEST = 1 << 20
KINDS = ("put", "put", "publish", "batch", "delete", "trimmed", "trimmed")
RETRY = {"period_init_ms": 50, "period_max_ms": 200, "period_increase_factor": 2}


class Place(NamedTuple):
    """Where a sample goes: its key, and whether it is a deletion."""

    key: str
    deleted: bool = False


def place_of(kind: str, writer: int, number: int) -> Place:
    """What a number of a kind is, without asking the writer."""
    if kind == "trimmed":
        return Place(f"{TRIMMED}/{writer}/{number % 7}")
    if kind == "delete":  # the number before it was put to the same key
        return Place(f"{KEPT}/{writer}/gone/{number - 1}", True)
    if kind == "put-to-delete":
        return Place(f"{KEPT}/{writer}/gone/{number}")
    if kind == "publish":
        return Place(f"{KEPT}/{writer}/published")
    return Place(f"{KEPT}/{writer}/{kind}/{number % 50}")


def payload_of(writer: int, number: int, size: int) -> bytes:
    """The payload of a number; every octet can be told from those of others."""
    head = b"%d:%d:" % (writer, number)
    return (head * (size // len(head) + 1))[: max(size, len(head))]


class Ledger:
    """What a writer has written down."""

    def __init__(self, path: Path) -> None:
        self.tried: dict[int, str] = {}
        self.acked: dict[int, int] = {}
        """The position that each was acknowledged with."""
        self.unknown: set[int] = set()
        for line in path.read_text().splitlines():
            word, kind, first, count, position = line.split()
            numbers = range(int(first), int(first) + int(count))
            if word == "tried":
                self.tried.update(dict.fromkeys(numbers, kind))
            elif word == "acked":
                known = int(position) >= 0
                self.acked |= {number: int(position) + at if known else -1 for at, number in enumerate(numbers)}
            else:
                self.unknown.update(numbers)


class Writer:
    """Puts in every way there is, until told to stop."""

    def __init__(self, session: elea.Session, writer: int, ledger: Path, seed: int) -> None:
        self._session = session
        self._writer = writer
        self._chance = random.Random(seed)
        self._ledger = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC)
        self._publisher = session.declare_publisher(place_of("publish", writer, 0).key, durability="persistent")
        self.number = 0
        self.acked = 0

    def act(self) -> None:
        """One operation; a deletion is two."""
        kind = self._chance.choice(KINDS)
        count = self._chance.randrange(1, 40) if kind == "batch" else 1
        if kind == "delete":
            self._entered("put-to-delete", 1)
        self._entered(kind, count)

    def _entered(self, kind: str, count: int) -> None:
        first = self.number
        self.number += count
        # Now and then one that gives up soon: what became of it nobody knows, but it must not be there twice.
        timeout = self._chance.choice((0.3, PATIENCE * 5, PATIENCE * 5, PATIENCE * 5))
        self._note("tried", kind, first, count)
        try:
            receipt = self._do(kind, first, count, timeout)
        except (elea.ZError, TimeoutError):
            self._note("unknown", kind, first, count)
            time.sleep(0.05)  # a store that takes nothing refuses at once
        else:
            self.acked += count
            # Of a batch that was stored in two attempts it is not known where each row is.
            known = receipt is not None and receipt.position is not None and receipt.repeated in (0, count == 1)
            self._note("acked", kind, first, count, receipt.position if known else -1)

    def _do(self, kind: str, first: int, count: int, timeout: float) -> Any:
        key = place_of(kind, self._writer, first).key
        if kind == "delete":
            return self._session.delete(key, ack=True, timeout=timeout)
        if kind == "publish":
            return self._publisher.put(self._payload(first), ack=True, timeout=timeout)
        if kind == "batch":
            places = [place_of(kind, self._writer, number).key for number in range(first, first + count)]
            rows = [(place, self._payload(number, 10)) for number, place in enumerate(places, first)]
            return self._session.put_batch(rows, f"{KEPT}/{self._writer}/batch/*", timeout=timeout)
        return self._session.put(key, self._payload(first), ack=True, durability="persistent", timeout=timeout)

    def _payload(self, number: int, least: int = 10) -> bytes:
        """From 10 octets to 1 MiB; half of them are below 100, one in fifty is above 100 kB."""
        size = int(least * (HIGHEST / least) ** (self._chance.random() ** 3))
        return payload_of(self._writer, number, min(size, HIGHEST))

    def _note(self, word: str, kind: str, first: int, count: int, position: int = -1) -> None:
        os.write(self._ledger, f"{word} {kind} {first} {count} {position}\n".encode())

    def close(self) -> None:
        self._publisher.undeclare()
        os.close(self._ledger)


def write(locator: str, writer: int, ledger: Path, seed: int) -> None:
    """Write until a line comes; then say how much was acknowledged."""
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    with elea.open(config("client", "connect", locator, connect__retry=RETRY)) as session:
        acting = Writer(session, writer, ledger, seed)
        print(json.dumps("open"), flush=True)
        with contextlib.closing(acting):
            while not stop.is_set():
                acting.act()
        print(json.dumps([acting.number, acting.acked]), flush=True)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
