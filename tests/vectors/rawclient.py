"""A client that says octets and hears messages: how a router is driven without anything of ours between."""

from __future__ import annotations

import random
import socket
import time
from typing import Any

from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Initiator
from elea.protocol.zenoh1.terms import Agreement, Offer
from elea.wire import dialect_named
from elea.wire.primitives import write_z

__all__ = ["DATA", "PATIENCE", "LinkEnded", "RawClient", "framed", "message_octets"]

PATIENCE = 60.0
"""Seconds after which an awaited message will not come; far more than a loaded machine needs."""

LEASE_MS = 3_600_000
"""So long that no keep-alive is needed between two steps of a debugged run."""

DATA = 5
"""The priority of a FRAME that does not say one."""

_ZENOH1 = dialect_named("zenoh1")


class LinkEnded(Exception):
    """The router has closed the link."""


class RawClient:
    """One TCP link with a session of role client over it."""

    def __init__(self, locator: str, **offer: Any) -> None:
        host, _, port = locator.removeprefix("tcp/").rpartition(":")
        node_id = random.randbytes(15) + b"\x01"
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.ended = False
        """Whether the router has closed the link; there may still be something to hear."""
        self.agreement = self._opened(Offer(node_id, Role.CLIENT, **{"lease_ms": LEASE_MS, **offer}))
        self._sns = [self.agreement.own_sn] * 16
        self.closes: list[Any] = []
        """What the router said when it closed the session."""

    def _opened(self, offer: Offer) -> Agreement:
        machine = Initiator(offer, time.monotonic(), PATIENCE)
        machine.start()
        while True:
            for batch in machine.to_send(time.monotonic()):
                self.send_batch(batch)
            agreement = machine.receive(self.batch(), time.monotonic())
            if agreement is not None:
                return agreement

    # -- saying -------------------------------------------------------------------------------------------------------

    def send_batch(self, batch: bytes) -> None:
        """One batch, behind its length."""
        try:
            self.socket.sendall(len(batch).to_bytes(2, "little") + batch)
        except OSError as error:
            raise LinkEnded(str(error)) from error

    def send(self, messages: bytes, priority: int = DATA) -> None:
        """Network messages in a reliable FRAME of this priority."""
        self.send_batch(framed(self.next_sn(priority), messages, priority))

    def say(self, form: Any, priority: int = DATA) -> None:
        """A network message given in the vectors' own JSON."""
        self.send(message_octets(form), priority)

    def next_sn(self, priority: int) -> int:
        """The sequence number of the next reliable FRAME or FRAGMENT of a priority."""
        conduit = priority << 1 | 1
        sn = self._sns[conduit]
        self._sns[conduit] = sn + 1 & self.agreement.sn_mask
        return sn

    # -- hearing ------------------------------------------------------------------------------------------------------

    def batch(self) -> bytes:
        """The next batch.

        Raises:
            LinkEnded: there is none, the link was closed.
            TimeoutError: nothing came.
        """
        while (found := self._cut()) is None:
            self.fill()
        return found

    def heard(self) -> list[tuple[int, Any]]:
        """The network messages of the next batch with their priority; empty for a keep-alive."""
        return self._messages(self.batch())

    def heard_so_far(self) -> list[tuple[int, Any]]:
        """All network messages that are here already."""
        found: list[tuple[int, Any]] = []
        while (batch := self._cut()) is not None:
            found += self._messages(batch)
        return found

    def fill(self) -> None:
        """Wait for octets and take them."""
        if self.ended:
            raise LinkEnded("closed by the router")
        try:
            piece = self.socket.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError:
            piece = b""
        self.ended = not piece
        self._buffer += piece

    def _cut(self) -> bytes | None:
        size = 2 + int.from_bytes(self._buffer[:2], "little")
        if len(self._buffer) < max(size, 2):
            return None
        found, self._buffer = self._buffer[2:size], self._buffer[size:]
        return found

    def _messages(self, batch: bytes) -> list[tuple[int, Any]]:
        found: list[tuple[int, Any]] = []
        form: Any = _ZENOH1.to_json("batch", _ZENOH1.decode("batch", batch), full=True)
        for message in form if isinstance(form, list) else [form]:
            if message["_"] == "FRAME":
                priority = message.get("ext", {}).get("qos", {}).get("priority", DATA)
                found += [(priority, one) for one in message["msgs"]]
            elif message["_"] == "CLOSE":
                self.closes.append(message)
        return found

    def close(self) -> None:
        """Leave without a word."""
        self.socket.close()


def framed(sn: int, messages: bytes, priority: int = DATA, *, reliable: bool = True) -> bytes:
    """A FRAME around network messages."""
    out = bytearray([0x05 | (0x20 if reliable else 0) | (0x80 if priority != DATA else 0)])
    write_z(out, sn, 32, "sn")
    if priority != DATA:
        out += bytes([0x31, priority])
    return bytes(out) + messages


def message_octets(form: Any) -> bytes:
    """The octets of a network message given in JSON."""
    return _ZENOH1.encode("message", _ZENOH1.from_json("message", form))
