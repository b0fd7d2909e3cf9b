"""A running node: it listens, connects, comes back after a lost link, and ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from elea.broker.links import Connection, Links, LinkSettings
from elea.broker.node import Node
from elea.io.errors import LinkError
from elea.io.timers import Keeper, monotonic
from elea.model.errors import EleaError, SessionError
from elea.model.qos import Role
from elea.protocol.zenoh1.backoff import Backoff

if TYPE_CHECKING:
    from elea.broker.discovery import Discovery

__all__ = ["Runtime"]

_log = logging.getLogger("elea.broker")

LASTING = 2.0
"""Seconds after which a session counts as having worked, and its loss is answered by reconnecting at once."""


class Runtime:
    """The life of a node."""

    def __init__(self, node_id: bytes, role: Role, settings: LinkSettings, *, timestamping: bool) -> None:
        self.keeper = Keeper(node_id[:4].hex())
        self.node = Node(node_id, role, self.keeper, timestamping=timestamping)
        self.links = Links(self.node, settings)
        self.links.on_left = self._left
        self.discovery: Discovery | None = None
        self._wanted: dict[str, Connection | None] = {}
        self._opened: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._closed = False
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def listen(self, locators: Sequence[str]) -> None:
        """Accept sessions at all of these."""
        for locator in locators:
            self.links.listen(locator)

    def connect(self, locators: Sequence[str], *, timeout: float | None, must: bool) -> None:
        """Open sessions: a client one, with the first that answers; others one with each.

        Args:
            timeout: seconds to go on trying; None for ever, in the background; 0 for one attempt each.
            must: whether failure is an error; otherwise it is tried again in the background.
        """
        problems: dict[str, EleaError] = {}
        for locator in locators:
            try:
                self._wanted[locator] = self._connect(locator, timeout)
                if self.node.role is Role.CLIENT:
                    return
            except EleaError as error:
                problems[locator] = error
                if self.node.role is not Role.CLIENT and not must:
                    self._wanted[locator] = None
                    self._retry(locator)
        if problems and (must or self.node.role is Role.CLIENT):
            told = "; ".join(f"{locator}: {problem}" for locator, problem in problems.items())
            raise SessionError(f"cannot connect: {told}") from next(iter(problems.values()))

    def _connect(self, locator: str, timeout: float | None) -> Connection:
        backoff = self.links.settings.backoff()
        deadline = monotonic() + (timeout or 0.0)
        while True:
            try:
                return self.links.connect(locator)
            except LinkError:
                pause = backoff.delay()
                if timeout is None or monotonic() + pause >= deadline:
                    raise
                threading.Event().wait(pause)

    def _left(self, connection: Connection) -> None:
        """A link is lost: if we wanted it, we want it back."""
        if self.discovery is not None:
            self.discovery.left(connection)
        for locator, wanted in list(self._wanted.items()):
            if wanted is connection and not self._closed:
                self._wanted[locator] = None
                if monotonic() - self._opened.get(locator, 0.0) >= LASTING:
                    self._backoffs.pop(locator, None)
                self._retry(locator)

    def _retry(self, locator: str) -> None:
        thread = threading.Thread(target=self._come_back, args=(locator,), name="elea-reconnect", daemon=True)
        thread.start()

    def _come_back(self, locator: str) -> None:
        backoff = self._backoffs.setdefault(locator, self.links.settings.backoff())
        while not self._closed:
            try:
                # A session that ended as soon as it began counts as an attempt: no storm of reconnections.
                if monotonic() - self._opened.get(locator, 0.0) < LASTING and self._stopping.wait(backoff.delay()):
                    return
                self._wanted[locator] = self.links.connect(locator)
                self._opened[locator] = monotonic()
                return
            except EleaError as error:
                pause = backoff.delay()
                _log.info("reconnecting failed: locator=%s problem=%s next=%.1f", locator, error, pause)
                if self._stopping.wait(pause):
                    return

    def close(self) -> None:
        """End everything; returns soon, whatever the others do."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._stopping.set()
        if self.discovery is not None:
            self.discovery.close()
        self.links.close()
        self.node.watch.close()
        self.node.round.close()
        self.keeper.close()
