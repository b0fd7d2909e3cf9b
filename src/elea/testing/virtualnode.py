"""The parts of `elea.node` and `elea.io` that have threads, without them.

Nothing here knows a rule of the protocol; those are inherited. A thread that would wait becomes something to be done on
the timeline.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import cast

from elea.io.link import Link
from elea.model.errors import EleaError, SessionClosed
from elea.model.qos import Role
from elea.node.connection import Connection
from elea.node.dialect import DEFAULT, Dialect
from elea.node.links import Links, LinkSettings
from elea.node.node import Node
from elea.node.reconnect import Reconnect
from elea.node.runtime import Runtime
from elea.testing.flows import DialAttempt
from elea.testing.linkend import End
from elea.testing.networktrace import form_of
from elea.testing.timeline import Timeline, VirtualLoop
from elea.testing.wire import Wire

__all__ = ["VirtualRuntime", "Wish"]


class VirtualConnection(Connection):
    """A link that is read when something has arrived, and whose end is told to who wished for it."""

    def __init__(self, links: Links, link: Link, dialect: Dialect, accepted: bool, timeout: float) -> None:
        self._serial = cast(VirtualLinks, links).next_serial()
        super().__init__(links, link, dialect, accepted=accepted, timeout=timeout)
        self.timeline = cast(VirtualLinks, links).timeline
        self.opened_at: float | None = None
        self.on_end: Callable[[], None] = lambda: None

    def __hash__(self) -> int:
        """Sets of connections are walked in an order that does not depend on where they are in memory."""
        return self._serial

    def _serve(self) -> None:
        cast(VirtualLoop, self.loop).lead(super()._serve)

    def _opened(self) -> None:
        self.opened_at = self.timeline.now
        cast(End, self.link).form = form_of(self.face)
        super()._opened()

    def end(self, error: EleaError) -> None:
        first = not self.ended.is_set()
        super().end(error)
        if first:
            self.on_end()


class VirtualLinks(Links):
    """The links of a node, made over wires."""

    def __init__(self, node: Node, settings: LinkSettings, timeline: Timeline, chance: Random) -> None:
        super().__init__(node, settings, chance=chance)
        self.timeline = timeline
        self.next_serial = count(1).__next__

    def _made(
        self, link: Link, dialect: Dialect, accepted: bool, timeout: float, locator: str = ""
    ) -> VirtualConnection:
        return VirtualConnection(self, link, dialect, accepted, timeout)

    def accept(self, end: End, dialect: str = DEFAULT) -> bool:
        """Take a link somebody makes to this node; False when the node is closed."""
        if self._closed:
            return False
        self._accept(end, self.dialect(dialect))
        return True

    def open(self, end: End, dialect: str = DEFAULT) -> VirtualConnection:
        """Begin a session over a link of ours; nobody waits for it."""
        connection = self._made(end, self.dialect(dialect), False, self.settings.open_timeout)
        self._start(connection)
        return connection

    def all(self) -> list[Connection]:
        """Those with a session and those on their way to one, the oldest first."""
        return sorted([*self.connections, *self._opening], key=hash)

    def close(self) -> None:
        self._closed = True
        connections = self.all()
        for connection in connections:
            connection.say_goodbye()
        for connection in connections:
            connection.end(SessionClosed(text="closed by this node"))


class VirtualRuntime(Runtime):
    """The life of a simulated node."""

    def __init__(
        self,
        node_id: bytes,
        role: Role,
        settings: LinkSettings,
        *,
        timestamping: bool,
        timeline: Timeline,
        chance: Random,
    ) -> None:
        # Not the constructor of `Runtime`: it keeps what must be closed before the process ends, and this need not.
        self.discovery = None
        self._closed = False
        self.loop = VirtualLoop(timeline, node_id[:4].hex())
        self.node = Node(node_id, role, self.loop, timestamping=timestamping)
        self.links: VirtualLinks = VirtualLinks(self.node, settings, timeline, chance)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.links.close()
            self.loop.close()

    def kill(self) -> None:
        """End without a word, as a process that is killed: its machine closes what it had open."""
        self._closed = True
        self.links._closed = True
        for connection in self.links.all():
            connection.link.close()
        self.loop.close()


class Wish:
    """What one node wants: a session with another over a wire, again and again."""

    def __init__(self, runtime: VirtualRuntime, wire: Wire, dialect: str = DEFAULT) -> None:
        self.connection: VirtualConnection | None = None
        self._dialect = dialect
        self._runtime = runtime
        self._wire = wire
        self._reconnect = Reconnect(runtime.links.settings.backoff)
        runtime.links.timeline.soon(self._attempt)

    @property
    def is_open(self) -> bool:
        """Whether there is a session now."""
        connection = self.connection
        return connection is not None and connection.ready.is_set() and not connection.ended.is_set()

    def _attempt(self) -> None:
        if not self._runtime.is_closed:
            settings = self._runtime.links.settings
            self._wire.dial(DialAttempt(self._linked, lambda error: self._failed(), settings.open_timeout))

    def _linked(self, end: End) -> None:
        if self._runtime.is_closed:
            end.close()
            return
        connection = self.connection = self._runtime.links.open(end, self._dialect)
        connection.on_end = lambda: self._ended(connection)

    def _ended(self, connection: VirtualConnection) -> None:
        now = self._runtime.links.timeline.now
        if connection.opened_at is None:
            self._failed()
        else:
            self._reconnect.opened(connection.opened_at)
            self._again(self._reconnect.lost(now))

    def _failed(self) -> None:
        self._again(self._reconnect.failed())

    def _again(self, pause: float) -> None:
        if not self._runtime.is_closed:
            self._runtime.links.timeline.after(pause, self._attempt)
