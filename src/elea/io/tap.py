"""Listening in on the links of this process: what goes over them, as it goes, for those who look for a fault.

A tap is set for the whole process and concerns links made after that. Without one nothing here costs anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from elea.io.link import Link, Octets

__all__ = ["Ear", "Tap", "TappedLink", "set_tap", "tapped"]


class Ear(Protocol):
    """Hears one link. It is called by one thread at a time, in an order that an observer of the link could see."""

    def heard(self, data: bytes, outward: bool) -> None:
        """Bytes of the stream, or one datagram, that leave or have come."""
        ...

    def ended(self) -> None:
        """The link has been closed; called once."""
        ...


Tap = Callable[[Link, bool, str], Ear]
"""Given each new link, whether this process has accepted it, and the dialect it is for: who hears it."""

_tap: Tap | None = None


def set_tap(tap: Tap | None) -> None:
    """Listen in on all links made from now on; None ends it, for those to come."""
    global _tap
    _tap = tap


def tapped(link: Link, *, accepted: bool, dialect: str) -> Link:
    """The link itself or, while there is a tap, one in its place that tells what goes over it."""
    return link if _tap is None else TappedLink(link, _tap(link, accepted, dialect))


class TappedLink:
    """A link that tells."""

    def __init__(self, link: Link, ear: Ear) -> None:
        self._link = link
        self._ear = ear
        self._lock = threading.Lock()
        self._ended = False
        self.local = link.local
        self.remote = link.remote
        self.mtu = link.mtu
        self.streamed = link.streamed
        self.reliable = link.reliable
        self.drains = link.drains

    @property
    def on_arrival(self) -> Callable[[], None] | None:
        return self._link.on_arrival

    @on_arrival.setter
    def on_arrival(self, callback: Callable[[], None] | None) -> None:
        self._link.on_arrival = callback

    @property
    def closed(self) -> bool:
        return self._link.closed

    @property
    def held(self) -> bool:
        return self._link.held

    def send(self, data: Octets | Sequence[Octets]) -> None:
        # Told before it is sent: an answer can then not be told before what it answers.
        with self._lock:
            self._ear.heard(_whole(data), True)
        self._link.send(data)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        # What was taken is known only after it: until that is told, what comes has to wait.
        with self._lock:
            sent = self._link.try_send(data)
            if sent:
                self._ear.heard(_whole(data)[:sent], True)
        return sent

    def receive_ready(self, view: memoryview) -> int:
        count = self._link.receive_ready(view)
        if count > 0:
            with self._lock:
                self._ear.heard(bytes(view[:count]), False)
        return count

    def fileno(self) -> int:
        return self._link.fileno()

    def close(self) -> None:
        self._link.close()
        with self._lock:
            ended, self._ended = self._ended, True
            if not ended:
                self._ear.ended()


def _whole(data: Octets | Sequence[Octets]) -> bytes:
    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
