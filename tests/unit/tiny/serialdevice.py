"""A device at one end of a serial line (a pseudo-terminal), for tests: `elea.tiny`, 20 bytes at a time."""

from __future__ import annotations

import os
import select
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elea.tiny import Client, Event, turn

__all__ = ["WAIT", "SerialDevice", "serial_line"]

WAIT = 10.0


class SerialDevice:
    """A tiny client that reads and writes the other end of the line."""

    def __init__(self, line: int, dialect: str, mtu: int) -> None:
        self.client = Client(b"device", dialect, mtu=mtu, sn_bits=7, window=48, lease=0.0, streamed=True)
        self.events: list[Event] = []
        self.writes: list[int] = []
        self._line = line

    def until(self, condition: Callable[[], object], seconds: float = WAIT) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not in time: {self.events[-3:]}"
            self.step(0.02)

    def step(self, seconds: float) -> None:
        self.events += turn(self.client, self._write, self._read, time.monotonic, seconds)

    def _write(self, packet: bytes) -> None:
        for at in range(0, len(packet), 20):
            self.writes.append(os.write(self._line, packet[at : at + 20]))

    def _read(self, seconds: float) -> bytes | None:
        return os.read(self._line, 20) if select.select([self._line], [], [], seconds)[0] else None

    def samples(self) -> list[bytes]:
        return [event.payload for event in self.events if event.kind == "sample"]


@contextmanager
def serial_line() -> Iterator[tuple[int, str]]:
    """The device's end, and the file of the broker's."""
    near, far = os.openpty()
    tty.setraw(near)
    try:
        yield near, os.ttyname(far)
    finally:
        os.close(near)
        os.close(far)
