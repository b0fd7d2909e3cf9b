"""Links of a node that cannot become connections, and the dialects it makes of its own."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import elea
from elea.io.linkerrors import LinkClosed
from elea.node.connection import Connection
from elea.node.dialect import Dialect, Machine
from elea.node.links import Links, LinkSettings
from tests.robust.hostile import configuration, eventually


class Failing(Links):
    """Whose connections cannot be made."""

    def _made(self, link: Any, dialect: Dialect, accepted: bool, timeout: float, locator: str = "") -> Connection:
        raise RuntimeError("no connection")


class KnownLink:
    """What is asked of a link before anything is read."""

    remote = "tcp/127.0.0.1:1"
    closed = False

    def close(self) -> None:
        self.closed = True


def test_link_is_closed_when_no_connection_can_be_made() -> None:
    with elea.open(configuration("peer")) as session:
        links = Failing(session._runtime.node, LinkSettings())
        link = KnownLink()

        with pytest.raises(RuntimeError, match="no connection"):
            links._accept(link, links.dialect())  # type: ignore[arg-type]

        assert link.closed
        assert len(links.half_open) == 0


class KnownEnd(KnownLink):
    local = "tcp/127.0.0.1:2"
    mtu = 65_535
    streamed = reliable = True
    drains = held = False
    on_arrival = None

    def fileno(self) -> int:
        return -1


class Broken(Machine):
    """Whose link is gone before its first word."""

    def start(self, now: float) -> None:
        raise LinkClosed("tcp/127.0.0.1:1")


class BrokenDialect(Dialect):
    def accept(self, connection: Connection) -> Machine:
        return Broken(connection.batches())


def test_link_that_ends_at_its_start_is_counted_once() -> None:
    with elea.open(configuration("peer")) as session:
        links = session._runtime.links
        link = KnownEnd()

        links._accept(link, BrokenDialect("broken", links))  # type: ignore[arg-type]

        assert link.closed
        assert (links.unopened, len(links.half_open)) == (1, 0)


def test_dialect_is_made_once_and_not_under_the_lock() -> None:
    from elea.node import dialect as registry

    made: list[Dialect] = []
    closed: list[Dialect] = []

    class Slow(Dialect):
        def close(self) -> None:
            closed.append(self)

    def make(links: Links) -> Dialect:
        one = Slow("slow", links)
        made.append(one)
        assert links.session_with(b"\x01") is None  # would wait for ever if the lock were held
        time.sleep(0.05)
        return one

    registry.register("slow", make)
    try:
        with elea.open(configuration("peer")) as session:
            links = session._runtime.links
            found: list[Dialect] = []
            threads = [threading.Thread(target=lambda: found.append(links.dialect("slow"))) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert len(set(map(id, found))) == 1
            eventually(lambda: len(closed) == len(made) - 1, "those not needed are closed")
    finally:
        registry._added.pop("slow")
