"""One port for Zenoh 1.x and an early dialect: `tcp/[::]:7447?dialect=any`, or `?dialect=any;early=xrce2017`.

The first two bytes of a stream tell. In 1.x they are the length of a handshake message, below 256, so the second is 0.
In the early dialects the first is the size of a packet that fits 127 bytes and the second its first message, or both
are its size; the second is never 0. Datagrams do not tell them apart: a Scout looks like the beginning of an INIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.io.batchreader import BatchReader
from elea.io.linkerrors import LocatorError
from elea.io.locator import Locator
from elea.model.errors import SessionClosed
from elea.node.dialect import DEFAULT, Dialect, Machine
from elea.protocol.early.generation import GENERATIONS, ZENOH2018

if TYPE_CHECKING:
    from elea.node.connection import Connection
    from elea.node.links import Links

__all__ = ["AnyDialect", "make"]

NEEDED: Final = 2


class _FirstBytes(BatchReader):
    """Waits for two bytes, and hands all there are on."""

    def __init__(self, connection: Connection, home: AnyDialect) -> None:
        super().__init__(connection.link)
        self._connection = connection
        self._home = home

    def cut(self) -> bytes | memoryview | None:
        waiting = bytes(self.waiting)
        if len(waiting) >= NEEDED:
            self.pass_over(len(waiting))
            self._home.chosen(self._connection, waiting)
        return None


class _Listening(Machine):
    """A link whose dialect is not known yet."""

    def __init__(self, connection: Connection, home: AnyDialect) -> None:
        super().__init__(_FirstBytes(connection, home))
        self._deadline = home.links.loop.now() + home.links.settings.accept_timeout

    def next_deadline(self) -> float | None:
        return self._deadline

    def on_deadline(self, now: float) -> None:
        raise SessionClosed(text="the other end said nothing in time")


class AnyDialect(Dialect):
    """Zenoh 1.x where we connect; what the other node speaks where it does."""

    def check(self, locator: str) -> None:
        where = Locator.parse(locator)
        if not where.streamed:
            raise LocatorError(locator, "datagrams do not tell dialects apart", "name one, or use tcp")
        early = where.meta("early")
        if early is not None and early not in GENERATIONS:
            raise LocatorError(locator, f"unknown early dialect {early!r}", f"use one of {', '.join(GENERATIONS)}")

    def initiate(self, connection: Connection, timeout: float) -> Machine:
        connection.dialect = self.links.dialect(DEFAULT)
        return connection.dialect.initiate(connection, timeout)

    def accept(self, connection: Connection) -> Machine:
        return _Listening(connection, self)

    def chosen(self, connection: Connection, first: bytes) -> None:
        """The other node has begun to speak."""
        early = Locator.parse(connection.locator).meta("early") if connection.locator else None
        name = (early or ZENOH2018.name) if first[1] else DEFAULT
        dialect = self.links.dialect(name)
        connection.dialect = dialect
        connection.go_on_with(dialect.accept(connection), first)


def make(links: Links, name: str) -> AnyDialect:
    """The dialect of a node."""
    return AnyDialect(name, links)
