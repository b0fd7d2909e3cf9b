"""Finding nodes of the early dialects: a locator that is a multicast group asks there, and connects to who answers.

A client asks every 3 s until it has a session, and again when that is lost. A peer goes on, and connects to all that
it finds. Spec: zenoh-2018 §5.4.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from elea.io.addresses import is_multicast, written
from elea.io.linkerrors import Unreachable
from elea.io.locator import Locator
from elea.io.scoutsockets import ScoutSender
from elea.model.errors import EleaError
from elea.model.logger import logger
from elea.model.qos import Role
from elea.protocol.early.scouting import BROKER, PEER, Scouter

if TYPE_CHECKING:
    from elea.io.scoutsockets import Source
    from elea.node.early.dialect import EarlyDialect

__all__ = ["PeerSeeker", "Seeker", "found_nodes", "is_group"]

_log = logger("elea.node")


def is_group(locator: str) -> bool:
    """Whether a locator is a group, at which nodes are looked for."""
    where = Locator.parse(locator)
    return where.protocol == "udp" and is_multicast(where.host)


class Seeker:
    """Asks a group until it is closed; what was found waits to be taken."""

    def __init__(self, dialect: EarlyDialect, locator: str) -> None:
        where = Locator.parse(locator)
        links = dialect.links
        self._options = locator.partition("#")[0].partition("?")[2]
        self._found: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._loop = links.loop
        own = frozenset(one.partition("?")[0] for one in links.locators(dialect.name))
        mask = BROKER | PEER if links.node.role is Role.PEER else BROKER
        self._scouter = Scouter(dialect.generation, mask, links.loop.now(), own=own)
        names = where.setting("iface") or "auto"
        self._sender = ScoutSender(self._heard, links.loop, group=f"{where.host}:{where.port}", names=names)
        self._ask()

    def next(self, seconds: float) -> str | None:
        """A locator of a node that has answered; None if nobody has within some seconds."""
        try:
            return self._found.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ask no more."""
        self._scouter.is_stopped = True
        self._sender.close()

    def _ask(self) -> None:
        for datagram in self._scouter.to_send(self._loop.now()):
            self._sender.ask(datagram)
        due = self._scouter.next_deadline()
        if due is not None:
            self._loop.at(due, self._ask)

    def _heard(self, data: bytes, source: Source) -> None:
        for one in self._scouter.heard(data, f"udp/{written(source)}"):
            self._found.put(f"{one}?{self._options}")


def found_nodes(dialect: EarlyDialect, locator: str, timeout: float) -> Iterator[str]:
    """Locators of nodes that answer at a group, as they come.

    Raises:
        Unreachable: nobody has answered in time.
    """
    loop = dialect.links.loop
    ends = loop.now() + timeout
    seeker = Seeker(dialect, locator)
    has_some = False
    try:
        while (found := seeker.next(ends - loop.now())) is not None:
            has_some = True
            yield found
    finally:
        seeker.close()
    if not has_some:
        raise Unreachable(locator, f"no node has answered a Scout within {timeout:g} s", "name its address instead")


class PeerSeeker:
    """A peer goes on looking while it has sessions, and connects to everybody it finds."""

    def __init__(self, dialect: EarlyDialect, locator: str) -> None:
        self._dialect = dialect
        self._seeker = Seeker(dialect, locator)
        self._over = threading.Event()
        threading.Thread(target=self._run, name="elea-seek", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._seeker.close()

    def _run(self) -> None:
        known: set[str] = set()
        while not self._over.is_set():
            found = self._seeker.next(1.0)
            here = {one.locator for one in self._dialect.links.connections}
            if found is None or found in known & here:
                continue
            known.add(found)
            try:
                self._dialect.links.connect(found)
            except EleaError as error:
                _log.info("a node that was found cannot be reached: locator=%s problem=%s", found, error)
