"""A node of an early dialect for tests: the machines of `protocol.early` over a real socket, driven by hand."""

from __future__ import annotations

import select
import socket
import time
from types import TracebackType
from typing import Any, Self

from elea.io.locator import Locator
from elea.protocol.early.declarations import Change
from elea.protocol.early.generation import GENERATIONS
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.numbered import plain_entry, stream_entry, vle, write_entry
from elea.protocol.early.session import Arrived, Ended, Session
from elea.protocol.early.terms import Offer
from elea.wire.primitives import read_nat

WAIT = 10.0


class EarlyClient:
    """One session, from Open on; `seen` are the data messages that came, `announced` what the broker declared."""

    def __init__(self, locator: str, pid: bytes = b"device", *, opens: bool = True, **offer: Any) -> None:
        where = Locator.parse(locator)
        self.generation = GENERATIONS[where.meta("dialect") or "zenoh2018"]
        self.m = self.generation.messages
        self.streamed = where.protocol == "tcp"
        kind = socket.SOCK_STREAM if self.streamed else socket.SOCK_DGRAM
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.connect((where.host, where.port))
        self.session = Session(self.generation, Offer(pid, lease=0.0, **offer), initiates=True)
        self.neighbour = Neighbour(self.session)
        self.seen: list[Any] = []
        self.announced: list[Change] = []
        self.ended: Ended | None = None
        self.results: list[Any] = []
        self.is_over = False
        self._waiting = b""
        if opens:
            self.session.open(self.now())
            self.until(lambda: self.session.is_open or self.ended)

    def now(self) -> float:
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    # -- talking ------------------------------------------------------------------------------------------------------

    def until(self, condition: Any, seconds: float = WAIT) -> None:
        """Talk until something is so."""
        ends = self.now() + seconds
        while not condition():
            if self.now() > ends:
                raise AssertionError(f"not so in {seconds:g} s: {condition}; seen {self.seen[-3:]}, ended {self.ended}")
            self.step(0.02)

    def talk(self, seconds: float) -> None:
        """Talk for a while."""
        ends = self.now() + seconds
        while self.now() < ends:
            self.step(0.01)

    def step(self, seconds: float) -> None:
        now = self.now()
        self.session.on_deadline(now)
        for packet in self.session.to_send(now):
            self.write(packet)
        if select.select([self.socket], [], [], seconds)[0]:
            try:
                octets = self.socket.recv(65_536)
            except ConnectionError:
                octets = b""
            if not octets:
                self.is_over = True
            for packet in self._packets(octets):
                self._take(packet)
            for packet in self.session.to_send(self.now()):
                self.write(packet)

    def write(self, packet: bytes) -> None:
        """Send a packet as it is."""
        try:
            self.socket.send(vle(len(packet)) + packet if self.streamed else packet)
        except ConnectionError:
            self.is_over = True

    def _packets(self, octets: bytes) -> list[bytes]:
        if not self.streamed:
            return [octets] if octets else []
        self._waiting += octets
        found = []
        while self._waiting:
            try:
                size, at = read_nat(self._waiting[:10], 0, "test")
            except IndexError:
                break
            if len(self._waiting) < at + size:
                break
            found.append(self._waiting[at : at + size])
            self._waiting = self._waiting[at + size :]
        return found

    def _take(self, packet: bytes) -> None:
        for event in self.neighbour.receive(packet, self.now()):
            if isinstance(event, Arrived):
                self.seen.append(event.message)
            elif isinstance(event, Change):
                self.announced.append(event)
            elif isinstance(event, Ended):
                self.ended = event

    # -- words --------------------------------------------------------------------------------------------------------

    def declare(self, *declarations: Any) -> int:
        """Declare something as one transaction: the status it ended with."""
        before = len(self.results)
        self.neighbour.declare(list(declarations), self.results.append)
        self.until(lambda: len(self.results) > before)
        error = self.results[-1]
        return 0 if error is None else int(error.status)

    def subscribe(self, id: int, name: str | None = None, mode: int = 1, **fields: Any) -> int:
        listed = [] if name is None else [self.m.ResourceDecl(id, name.encode())]
        return self.declare(*listed, self.m.SubscriberDecl(id, self.m.SubscriptionModeId(mode), **fields))

    def publish(self, id: int, name: str | None = None) -> int:
        listed = [] if name is None else [self.m.ResourceDecl(id, name.encode())]
        return self.declare(*listed, self.m.PublisherDecl(id))

    def write_data(self, name: str, payload: bytes, *, reliable: bool = True) -> None:
        self.session.send(write_entry(name.encode(), payload, reliable=reliable), reliable=reliable)

    def stream(self, id: int, payload: bytes, *, reliable: bool = True, prid: int | None = None) -> None:
        self.session.send(stream_entry(id, payload, reliable=reliable, prid=prid), reliable=reliable)

    def pull(self, id: int, **fields: Any) -> None:
        self.session.send(plain_entry(self.generation, self.generation.pull(id, **fields)))

    def payloads(self) -> list[bytes]:
        """Of all samples that came, in their order; the ends of pulls are None."""
        found: list[bytes] = []
        for message in self.seen:
            payload = message.payload
            if isinstance(payload, bytes):
                found.append(payload)
            else:
                found += [one if isinstance(one, bytes) else one.payload for one in payload]
        return found

    def await_samples(self, count: int) -> list[bytes]:
        self.until(lambda: len(self.payloads()) >= count)
        return self.payloads()
