"""A running node: it listens, connects, comes back after a lost link, and ends."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from elea.io.linkerrors import LinkError, LocatorError
from elea.io.loop import Loop
from elea.io.timers import monotonic
from elea.model.errors import EleaError, SessionError
from elea.model.logger import logger
from elea.model.qos import Role
from elea.node.connection import Connection
from elea.node.dialect import dialect_of
from elea.node.links import Links, LinkSettings
from elea.node.node import Node
from elea.node.reconnect import Reconnect

if TYPE_CHECKING:
    from elea.node.discovery import Discovery
    from elea.node.storage.service import Storages

__all__ = ["Runtime"]

_log = logger("elea.node")


_running: set[Runtime] = set()
"""The nodes of this process that nobody has closed."""


@atexit.register
def _close_forgotten() -> None:
    """A program that ends without closing still sends what it put, and its neighbours learn at once that it left."""
    for runtime in list(_running):
        runtime.close()


def _after_fork() -> None:
    """In a child: its sessions are its parent's, whose threads and links it does not have."""
    for runtime in list(_running):
        runtime.node.forked()
    _running.clear()


os.register_at_fork(after_in_child=_after_fork)


class Runtime:
    """The life of a node."""

    def __init__(self, node_id: bytes, role: Role, settings: LinkSettings, *, timestamping: bool) -> None:
        self.loop = Loop(node_id[:4].hex(), settings.spin)
        self.node = Node(node_id, role, self.loop, timestamping=timestamping)
        self.links = Links(self.node, settings)
        self.links.on_left = self._left
        self.discovery: Discovery | None = None
        self.storages: Storages | None = None
        self._wanted: dict[str, Connection | None] = {}
        self._reconnects: dict[str, Reconnect] = {}
        self._lost_at: dict[str, float] = {}
        self._closed = False
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process = os.getpid()
        _running.add(self)

    def listen(self, locators: Sequence[str]) -> None:
        """Accept sessions at all of these."""
        for locator in locators:
            self.links.listen(locator)

    def connect(self, locators: Sequence[str], *, timeout: float | None, must: bool) -> None:
        """Open sessions: a client one, with the first that answers; others one with each.

        Args:
            timeout: seconds to go on trying; 0 for one attempt each, None for ever: where failure is no error, in the
                background.
            must: whether failure is an error, as it always is for a client; otherwise it is tried again in the
                background.
        """
        for locator in locators:
            # An unknown one, or an option of it, is a mistake, which trying again does not mend.
            self.links.dialect(dialect_of(locator)).check(locator)
        is_client = self.node.role is Role.CLIENT
        fails = must or is_client
        problems: dict[str, EleaError] = {}
        for group in [locators] if is_client and locators else [[locator] for locator in locators]:
            found = self._connect(group, timeout if fails or timeout is not None else 0.0)
            problems |= found
            for locator in () if fails else found:
                self._wanted[locator] = None
                self._lost_at[locator] = monotonic()
                self._retry(locator)
        if problems and fails:
            told = "; ".join(f"{locator}: {problem}" for locator, problem in problems.items())
            raise SessionError(f"cannot connect: {told}") from next(iter(problems.values()))

    @property
    def is_configured(self) -> bool:
        """Whether a session has been opened by `connect`: if it is lost, it comes back by itself."""
        return bool(self._wanted)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The locators that sessions were opened to by `connect`."""
        with self._lock:
            return tuple(self._wanted)

    def standing(self, locator: str | None = None) -> tuple[Connection, ...] | None:
        """The links that `connect` was told of, or the one of a locator; None if one of them is away.

        Who gets the same ones before a question and behind its last answer has heard everybody.
        """
        with self._lock:
            wanted = [one for at, one in self._wanted.items() if locator in (None, at)]
            found = tuple(one for one in wanted if one is not None and not one.ended.is_set())
            return found if len(found) == len(wanted) else None

    def away(self) -> dict[str, float]:
        """The locators that `connect` was told of and that have no link now, with the seconds since it was lost."""
        now = monotonic()
        with self._lock:
            gone = [locator for locator, one in self._wanted.items() if one is None or one.ended.is_set()]
            return {locator: now - self._lost_at.get(locator, now) for locator in gone}

    def locator_of(self, node_id: bytes) -> str | None:
        """The locator that led to a neighbour; None if `connect` was told of none."""
        with self._lock:
            wanted = [(locator, one.face) for locator, one in self._wanted.items() if one is not None]
        return next((at for at, face in wanted if face is not None and face.subject.node_id == node_id), None)

    def _connect(self, locators: Sequence[str], timeout: float | None) -> dict[str, EleaError]:
        """Open a session with the first node that answers; the problems with all of them if none did in time."""
        backoff = self.links.settings.backoff()
        deadline = inf if timeout is None else monotonic() + timeout
        while True:
            problems: dict[str, EleaError] = {}
            for locator in locators:
                try:
                    self._want(locator, self.links.connect(locator))
                except EleaError as error:
                    problems[locator] = error
                else:
                    return {}
            # What is no matter of the link, a wrong password say, is the same the next time.
            passing = any(isinstance(one, LinkError) and not isinstance(one, LocatorError) for one in problems.values())
            pause = backoff.delay()
            if not passing or monotonic() + pause >= deadline or self._stopping.wait(pause):
                return problems

    def _left(self, connection: Connection) -> None:
        """A link is lost: if we wanted it, we want it back."""
        if self.discovery is not None:
            self.discovery.left(connection)
        self._want_back(connection)

    def _want(self, locator: str, connection: Connection) -> None:
        self._wanted[locator] = connection
        if connection.ended.is_set():
            self._want_back(connection)  # it ended before anybody knew that it was wanted

    def _want_back(self, connection: Connection) -> None:
        with self._lock:
            lost = [locator for locator, wanted in self._wanted.items() if wanted is connection and not self._closed]
            for locator in lost:
                self._wanted[locator] = None
                self._lost_at[locator] = monotonic()
        for locator in lost:
            self._retry(locator, self._reconnect_of(locator).lost(monotonic()))

    def _retry(self, locator: str, pause: float = 0.0) -> None:
        thread = threading.Thread(target=self._reconnect, args=(locator, pause), name="elea-reconnect", daemon=True)
        thread.start()

    def _reconnect(self, locator: str, pause: float) -> None:
        reconnect = self._reconnect_of(locator)
        while not self._stopping.wait(pause):
            try:
                connection = self.links.connect(locator)
                reconnect.opened(monotonic())
                self._want(locator, connection)
                return
            except EleaError as error:
                pause = reconnect.failed()
                _log.info("reconnecting failed: locator=%s problem=%s next=%.1f", locator, error, pause)

    def _reconnect_of(self, locator: str) -> Reconnect:
        return self._reconnects.setdefault(locator, Reconnect(self.links.settings.backoff))

    def close(self) -> None:
        """End everything; returns soon, whatever the others do."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        _running.discard(self)
        if self._process != os.getpid():
            return  # a copy made by fork(): its threads are the parent's, and so is the session
        self._stopping.set()
        if self.discovery is not None:
            self.discovery.close()
        if self.storages is not None:
            self.storages.close()  # before the links: what is stored is still acknowledged
        self.links.close()
        self.loop.close()
