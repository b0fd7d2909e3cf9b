"""Finding nodes of the early dialects: a locator that is a multicast group asks there, and connects to who answers.

A client asks every 3 s until it has a session, and again when that is lost. A peer goes on, and connects to all that
it finds. Spec: zenoh-2018 §5.4.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from elea.io.addresses import is_multicast, written
from elea.io.linkerrors import Unreachable
from elea.io.locator import Locator
from elea.io.scoutsockets import ScoutSender
from elea.model.errors import EleaError
from elea.model.logger import logger
from elea.model.qos import Role
from elea.node.early.machine import node_id_of
from elea.protocol.early.scouting import BROKER, PEER, Scouter

if TYPE_CHECKING:
    from elea.io.scoutsockets import Source
    from elea.node.early.dialect import EarlyDialect

__all__ = ["PeerSeeker", "Seeker", "found_nodes", "is_group"]

_log = logger("elea.node")

Answer = tuple[bytes, list[str]]
"""The pid of a node, empty if it does not say it, and its locators."""

WAITING: Final = 256
"""Answers that wait while a node is connected to."""

UNREACHED_SECONDS: Final = 60.0
"""Until a locator that did not connect is tried again."""


def is_group(locator: str) -> bool:
    """Whether a locator is a group, at which nodes are looked for."""
    where = Locator.parse(locator)
    return where.protocol == "udp" and is_multicast(where.host)


def _is_address(told: str) -> bool:
    """Whether what a Hello tells is where one node is: a group would be asked in turn."""
    try:
        return not is_group(told)
    except EleaError:
        return False


class Seeker:
    """Asks a group until it is closed; what was found waits to be taken."""

    def __init__(self, dialect: EarlyDialect, locator: str) -> None:
        where = Locator.parse(locator)
        links = dialect.links
        self._options = locator.partition("#")[0].partition("?")[2]
        self._found: queue.Queue[Answer] = queue.Queue(WAITING)
        self._loop = links.loop
        own = frozenset(one.partition("?")[0] for one in links.locators(dialect.name))
        mask = BROKER | PEER if links.node.role is Role.PEER else BROKER
        self._scouter = Scouter(dialect.generation, mask, links.loop.now(), own=own)
        names = where.setting("iface") or "auto"
        self._sender = ScoutSender(self._heard, links.loop, group=f"{where.host}:{where.port}", names=names)
        self._ask()

    def next(self, seconds: float) -> Answer | None:
        """A node that has answered; None if nobody has within some seconds."""
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
        pid, told = self._scouter.heard(data, f"udp/{written(source)}")
        locators = [f"{one}?{self._options}" for one in told if _is_address(one)]
        if locators:
            with contextlib.suppress(queue.Full):  # it answers again
                self._found.put_nowait((pid, locators))


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
            yield from found[1]
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
        links = self._dialect.links
        waited: set[bytes] = set()
        again: dict[str, float] = {}  # when those that could not be reached are tried once more
        while not self._over.is_set():
            found = self._seeker.next(1.0)
            if found is None:
                continue
            pid, locators = found
            if pid and links.session_with(node_id_of(pid)) is not None:
                continue
            if pid > links.node.node_id and pid not in waited:
                waited.add(pid)  # if both look, one of them connects; if only this node does, it answers again
                continue
            if {one.locator for one in list(links.connections)}.intersection(locators):
                continue
            for locator in locators:
                if again.get(locator, 0.0) > links.loop.now():
                    continue
                try:
                    links.connect(locator)
                    break
                except EleaError as error:
                    again[locator] = links.loop.now() + UNREACHED_SECONDS
                    _log.info("a node that was found cannot be reached: locator=%s problem=%s", locator, error)
