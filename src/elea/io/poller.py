"""The system's poller, and a bell by which other threads end a wait: `epoll`, elsewhere what `selectors` finds best."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import socket
import threading
from typing import Final, Protocol, TypeAlias

from elea.model.values import mypyc_attr

__all__ = ["IN", "OUT", "Found", "Pollable", "Poller"]

IN: Final = 1
OUT: Final = 4
"""Bits of a mask: bytes to read, room to write. An end or a fault sets others, and is found by reading."""

MOST: Final = 512
"""Descriptors reported by one wait; the others are by the next."""

Found: TypeAlias = list[tuple[int, int]]


@mypyc_attr(allow_interpreted_subclasses=True)
class Pollable:
    """Something with a descriptor, for the leader to serve."""

    def __init__(self) -> None:
        self.descriptor = -1
        self.mask = 0
        self.is_costly = False
        """Whether what it brings is dealt with aside, since that takes long (`Loop.share`)."""

    def on_ready(self, mask: int) -> None:
        """Some of the events are there; nothing may wait here."""

    def on_takeover(self) -> None:
        """A handler holds up the thread that serves it: put aside what that has not taken, and go on with it soon."""

    def pause(self) -> None:
        """Read no more for a while."""

    def resume(self) -> None:
        """The end of a pause."""


class _System(Protocol):
    def register(self, fd: int, eventmask: int, /) -> None: ...
    def modify(self, fd: int, eventmask: int, /) -> None: ...
    def unregister(self, fd: int, /) -> None: ...
    def poll(self, timeout: float, maxevents: int, /) -> Found: ...
    def close(self) -> None: ...


class _SelectorPoll:
    """`epoll`'s interface over a selector."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, eventmask: int, /) -> None:
        self._selector.register(fd, _events(eventmask))

    def modify(self, fd: int, eventmask: int, /) -> None:
        self._selector.modify(fd, _events(eventmask))

    def unregister(self, fd: int, /) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float, maxevents: int, /) -> Found:
        found = self._selector.select(None if timeout < 0 else timeout)
        return [(key.fd, IN * bool(events & 1) | OUT * bool(events & 2)) for key, events in found[:maxevents]]

    def close(self) -> None:
        self._selector.close()


def _events(mask: int) -> int:
    return selectors.EVENT_READ * bool(mask & IN) | selectors.EVENT_WRITE * bool(mask & OUT)


class Poller:
    """Waits for many descriptors, by one thread at a time; any thread may change them and ring."""

    def __init__(self) -> None:
        self._is_epoll = hasattr(select, "epoll")
        self._system: _System = select.epoll() if self._is_epoll else _SelectorPoll()
        self._ringer: socket.socket | None = None
        self._rung: socket.socket | None = None
        if hasattr(os, "eventfd"):
            self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._ringer, self._rung = socket.socketpair()
            self._rung.setblocking(False)
            self._ringer.setblocking(False)
            self.bell = self._rung.fileno()
        self._system.register(self.bell, IN)
        self._lock = threading.Lock()  # else somebody rings a descriptor that is closed, or another file by then
        self._closed = False
        self._unheard: set[int] = set()  # descriptors of which nothing is wanted: the system would report their end

    def add(self, descriptor: int, mask: int) -> None:
        """Report a descriptor from now on; with no events at all, not even its end."""
        if mask:
            self._system.register(descriptor, mask)
            self._notice()
        else:
            self._unheard.add(descriptor)

    def change(self, descriptor: int, mask: int) -> None:
        """Report other events of a descriptor."""
        if mask and descriptor not in self._unheard:
            self._system.modify(descriptor, mask)
            self._notice()
        else:
            self.remove(descriptor)
            self.add(descriptor, mask)

    def remove(self, descriptor: int) -> None:
        """Report a descriptor no more; before it is closed."""
        if descriptor in self._unheard:
            self._unheard.discard(descriptor)
        else:
            self._system.unregister(descriptor)

    def wait(self, seconds: float) -> Found:
        """What is ready, waiting up to `seconds`, or for ever if they are negative."""
        return self._system.poll(seconds, MOST)

    def ring(self) -> None:
        """End the wait, or the next one: `bell` is ready."""
        with self._lock:
            if self._closed:
                return
            if self._ringer is None:
                os.eventfd_write(self.bell, 1)
                return
            with contextlib.suppress(BlockingIOError):  # it rings already
                self._ringer.send(b"x")

    def silence(self) -> None:
        """The bell has been heard."""
        try:
            if self._rung is None:
                os.eventfd_read(self.bell)
            else:
                self._rung.recv(4096)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give back what the system gave; nobody may wait from now on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._system.close()
            if self._ringer is None or self._rung is None:
                os.close(self.bell)
            else:
                self._ringer.close()
                self._rung.close()

    def _notice(self) -> None:
        """`epoll` sees changes while somebody waits; others look at what there was when they began."""
        if not self._is_epoll:
            self.ring()
