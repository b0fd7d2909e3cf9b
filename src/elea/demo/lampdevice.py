"""Devices of the protocol of 2017 and 2018 in the demo: `elea.tiny` over a socket or a serial line, each in a thread.

A device puts a reading whenever it is time and its last one is acknowledged, which it is when it is on the broker's
disk. One that has lost its broker opens a session again.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from elea.io.locator import Locator
from elea.tiny import Client, Event, publisher, resource, subscriber, turn

__all__ = ["Device", "Kind", "Line", "first_stored"]

TURN_SECONDS: Final = 0.05
PULL_SECONDS: Final = 0.3
LEASE_SECONDS: Final = 2.0
FAREWELL_SECONDS: Final = 3.0
"""How long a device waits for the end of its session when the demo ends."""

AGAIN_SECONDS: Final = 0.2
"""Between two tries to reach a broker that is away."""

ID: Final = 2
PUSH, PULL = 1, 2
PERSISTENT: Final = 2


@dataclass(frozen=True, slots=True)
class Kind:
    """What a device is like."""

    by: str
    dialect: str
    name: bytes
    mtu: int = 1472
    sn_bits: int = 14
    mode: int = PUSH
    window: int = 8


class Line:
    """The device's end of what leads to the broker: a socket, or a serial line that stays what it is."""

    def __init__(self, locator: str, near: int | None = None) -> None:
        where = Locator.parse(locator)
        self.is_streamed = where.protocol != "udp"
        self._socket: socket.socket | None = None
        self._chunk = 20 if near is not None else 1 << 16
        if near is not None:
            self._near = near
        else:
            kind = socket.SOCK_STREAM if self.is_streamed else socket.SOCK_DGRAM
            self._socket = socket.socket(socket.AF_INET, kind)
            self._socket.connect((where.host, where.port))
            self._near = self._socket.fileno()

    def write(self, packet: bytes) -> None:
        """All of it."""
        while packet:
            packet = packet[os.write(self._near, packet[: self._chunk]) :]

    def read(self, seconds: float) -> bytes | None:
        """What has come within some seconds; nothing if nothing has."""
        if not select.select([self._near], [], [], seconds)[0]:
            return None
        data = os.read(self._near, 1 << 16)
        if not data and self._socket is not None and self.is_streamed:
            raise ConnectionResetError("the broker has closed the connection")
        return data

    def close(self) -> None:
        """A serial line is left to whoever has opened it."""
        if self._socket is not None:
            self._socket.close()


class Device:
    """One device; `seen` gets what it is told of its key, `tried` and `acknowledged` the numbers of its puts."""

    def __init__(
        self,
        kind: Kind,
        connect: Callable[[], Line],
        *,
        due: Callable[[str], str | None],
        acknowledged: Callable[[str], None],
        seen: Callable[[str, bytes], None],
    ) -> None:
        """Args:
        due: the next thing to put, if it is time; it counts as tried.
        acknowledged: what was put last is safe.
        """
        self.kind = kind
        self._connect = connect
        self._due = due
        self._acknowledged = acknowledged
        self._seen = seen
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"elea-demo-{kind.by}", daemon=True)

    def start(self) -> None:
        """Connect, and go on until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End the session in order."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                line = self._connect()
            except OSError:  # the broker is away
                self._over.wait(AGAIN_SECONDS)
                continue
            try:
                self._talk(line)
            except OSError:
                self._over.wait(AGAIN_SECONDS)
            finally:
                line.close()

    def _talk(self, line: Line) -> None:
        """One session, until it or the demo ends."""
        kind = self.kind
        client = Client(
            kind.by[:8].encode(), kind.dialect, mtu=kind.mtu, sn_bits=kind.sn_bits, window=kind.window,
            lease=LEASE_SECONDS, streamed=line.is_streamed,
        )  # fmt: skip
        client.open(time.monotonic())
        is_waiting = is_declared = False
        pulled = 0.0
        ends = float("inf")
        while client.state and time.monotonic() < ends:
            if self._over.is_set():
                ends = min(ends, time.monotonic() + FAREWELL_SECONDS)
            for event in turn(client, line.write, line.read, time.monotonic, TURN_SECONDS):
                if event.kind == "opened":
                    client.declare(resource(ID, kind.name), publisher(ID, PERSISTENT), subscriber(ID, kind.mode))
                elif event.kind == "declared":
                    is_declared = event.status == 0
                elif event.kind == "sample":
                    self._seen(kind.by, event.payload)
            if not client.is_open or not is_declared or not client.is_settled:
                continue
            if is_waiting:
                is_waiting = False
                self._acknowledged(kind.by)
            if self._over.is_set():
                client.close(time.monotonic())
            elif kind.mode == PULL and time.monotonic() >= pulled + PULL_SECONDS:
                pulled = time.monotonic()
                client.pull(ID, pulled)
            elif ID in client.wanted:
                payload = self._due(kind.by)
                if payload is not None:
                    is_waiting = client.put(ID, payload.encode(), time.monotonic())


def first_stored(locator: str, name: bytes, seconds: float) -> bytes | None:
    """What a node that comes late is given first of a durable resource; None if nothing came in time."""
    line = Line(locator)
    client = Client(b"late", streamed=line.is_streamed)
    try:
        client.open(time.monotonic())
        end = time.monotonic() + seconds
        found: list[Event] = []
        while time.monotonic() < end and client.state:
            for event in turn(client, line.write, line.read, time.monotonic, TURN_SECONDS):
                if event.kind == "opened":
                    client.declare(resource(ID, name), subscriber(ID))
                elif event.kind == "sample":
                    found.append(event)
            if found:
                client.close(time.monotonic())
        return found[0].payload if found else None
    finally:
        line.close()
