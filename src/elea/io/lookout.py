"""Waiting for a link or for a call, whichever comes first: for threads that have more than one thing to wait for."""

from __future__ import annotations

import os
import select
from typing import Final

from elea.io.errors import LinkClosed
from elea.io.link import SocketLink, TcpLink, UnixLink

__all__ = ["Lookout", "has_lookout"]

_LONGEST_MS: Final = 1 << 30


def has_lookout(link: object) -> bool:
    """Whether this can be done with a link: it must be a bare stream, all of whose octets the kernel has."""
    return type(link) in (TcpLink, UnixLink) and hasattr(os, "eventfd")


class Lookout:
    """Waits for one link, by one thread at a time; any other thread may call it back."""

    def __init__(self, link: SocketLink) -> None:
        """Raises `LinkClosed` if it is, `OSError` if the process has too many files open."""
        self._link = link
        self._poll = select.poll()
        link._enter()
        try:
            self._poll.register(link._socket, select.POLLIN)
            self._calls = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        finally:
            link._leave()
        self._poll.register(self._calls, select.POLLIN)

    def wait(self, seconds: float | None) -> bool:
        """Whether the link has octets or has ended; False if there was a call, or time is over."""
        try:
            self._link._enter()
        except LinkClosed:
            return True
        try:
            found = self._poll.poll(None if seconds is None else min(int(seconds * 1000) + 1, _LONGEST_MS))
        finally:
            self._link._leave()
        ready = False
        for number, _ in found:
            if number == self._calls:
                os.eventfd_read(number)
            else:
                ready = True
        return ready

    def call(self) -> None:
        """Let the one who waits, or the next one who does, come back."""
        os.eventfd_write(self._calls, 1)

    def close(self) -> None:
        """Give back what the system gave; nobody may wait or call from now on."""
        os.close(self._calls)
