"""Several links of one session: reliable messages over one, best effort over another. Spec: Z18-SES-11.

The first link is that of the session's connection. A further one belongs to the session from the first KeepAlive that
comes over it, since that names the node. What is left goes on when a link is lost; when the last is, the session ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from elea.io.link import Link, Octets
from elea.io.linkerrors import LinkClosed
from elea.io.outbox import Batch
from elea.model.errors import EleaError, SessionClosed
from elea.model.limits import EARLY_LINKS
from elea.model.logger import logger
from elea.node.dialect import Dialect, Machine
from elea.node.early.framing import PacketReader, sized

if TYPE_CHECKING:
    from elea.io.batchreader import BatchReader
    from elea.node.connection import Connection
    from elea.node.early.machine import EarlyMachine

__all__ = ["FurtherLink", "JoiningDialect", "Paths"]

_log = logger("elea.node")

JOIN_SECONDS: Final = 0.5
"""How often a link is offered to the other node until something comes over it: a datagram may be lost."""

KEEP_ALIVES: Final = 3
"""Within a lease, over each link: an address that a router in between has given is forgotten otherwise."""


class FirstLink:
    """The first link of a session that has others: its loss is told, and is no end."""

    held = False

    def __init__(self, link: Link, survives: Callable[[], bool], lost: Callable[[], None]) -> None:
        self.under = link
        self.is_lost = False
        self._survives = survives
        self._lost = lost
        self.local, self.remote, self.mtu = link.local, link.remote, link.mtu
        self.streamed, self.reliable, self.drains = link.streamed, link.reliable, link.drains

    @property
    def closed(self) -> bool:
        return self.under.closed and not self.is_lost

    @property
    def on_arrival(self) -> Callable[[], None] | None:
        return self.under.on_arrival

    @on_arrival.setter
    def on_arrival(self, call: Callable[[], None] | None) -> None:
        self.under.on_arrival = call

    def send(self, data: Octets | Sequence[Octets]) -> None:
        self.try_send(data)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        """What is lost with the link counts as sent: the reliable channel sends it again, over another."""
        size = len(data) if isinstance(data, bytes | bytearray | memoryview) else sum(map(len, data))
        if self.is_lost:
            return size
        try:
            return self.under.try_send(data)
        except LinkClosed:
            if not self.lose():
                raise
            return size

    def receive_ready(self, view: memoryview) -> int:
        if self.is_lost:
            return -1
        try:
            count = self.under.receive_ready(view)
        except LinkClosed:
            if not self.lose():
                raise
            return -1
        return -1 if not count and self.lose() else count

    def lose(self) -> bool:
        """It brings nothing more: whether the session goes on without it."""
        if self.is_lost or not self._survives():
            return self.is_lost
        self.is_lost = True
        self._lost()
        self.under.close()
        return True

    def fileno(self) -> int:
        return self.under.fileno()

    def close(self) -> None:
        self.under.close()


class Paths:
    """The links of one session."""

    def __init__(self, machine: EarlyMachine, connection: Connection) -> None:
        self._machine = machine
        self._connection = connection
        self._further: list[FurtherLink] = []
        self.first = FirstLink(connection.link, lambda: any(one.is_heard for one in self._further), self._first_lost)
        outbox = machine.outbox
        assert outbox is not None
        connection.link = machine.reader.link = self.first
        outbox.go_over(self.first)

    def __len__(self) -> int:
        return len(self._further) + (not self.first.is_lost)

    def add(self, further: FurtherLink) -> None:
        """One more link. Of datagrams, that which a pid has come over last is where the node is (Z18-SES-10)."""
        before = [one for one in self._further if not one.is_reliable]
        self._further.append(further)
        if further.is_reliable or self._machine.initiates:
            return
        for one in before:
            one.end("its node has another address now")
        if not self.first.reliable:
            self.first.lose()

    def remove(self, further: FurtherLink) -> None:
        """One link less; the session ends with its last."""
        if further in self._further:
            self._further.remove(further)
        if not len(self):
            self._connection.end(SessionClosed(text="the last link of the session is gone"))

    def of(self, reliable: bool) -> FurtherLink | None:
        """Over which a channel is sent: one like the channel if there is one, the latest; None for the first link."""
        alive = [one for one in self._further if one.is_heard]
        alike = [one for one in alive if one.is_reliable is reliable]
        if alike:
            return alike[-1]
        if not self.first.is_lost:
            return None
        return alive[-1] if alive else None

    @property
    def is_paused(self) -> bool:
        """Whether one of them is not read now."""
        return any(one.is_paused for one in list(self._further))

    def end(self, text: str) -> None:
        """The session is over."""
        for one in list(self._further):
            one.end(text)

    def _first_lost(self) -> None:
        connection = self._connection
        connection.loop.remove(connection)
        connection.descriptor = -1
        if self._machine.outbox is not None:
            connection.loop.soon(self._machine.outbox.on_writable)  # it may have waited for that of the lost link
        _log.info("link of a session lost: link=%s left=%d", self.first.remote, len(self))


class FurtherLink(Machine):
    """One more link of a session."""

    def __init__(self, reader: BatchReader, home: EarlyMachine, connection: Connection, *, is_heard: bool) -> None:
        super().__init__(reader)
        self.joined = True
        self.is_heard = is_heard
        """Whether the other node has used it; nothing but KeepAlive is sent before."""
        self.is_reliable = connection.link.reliable
        self._streamed = connection.link.streamed
        self._home = home
        self._connection = connection
        self._due = 0.0
        self.refused = 0
        self.outbox = connection.make_outbox(_nothing, room=connection.link.mtu, told=True)

    def start(self, now: float) -> None:
        self._home.joined_by(self)
        if self._home.connection.ended.is_set():  # before there was anything to be ended with it
            self.end("the session has ended")
        else:
            self._alive(now)

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        self.is_heard = True
        home = self._home
        try:
            home.receive(batch, now)
        except EleaError as error:
            home.connection.end(error)
            raise
        if home.closed:
            home.connection.end(SessionClosed(text="the other node closed the session"))

    @property
    def is_paused(self) -> bool:
        """Whether it is not read now."""
        return self._connection.is_paused

    @property
    def has_room(self) -> bool:
        """Whether it takes more now."""
        return self.outbox is not None and self.outbox.error is None and self.outbox.flush(0.0)

    def say(self, packets: Sequence[bytes]) -> None:
        """Send packets; what has no room is lost, as on any link that loses."""
        assert self.outbox is not None
        for packet in sized(packets, self._streamed):
            if not self._streamed and len(packet) > self._connection.link.mtu:
                self.refused += 1  # made when there was a link that would have taken it
                continue
            try:
                self.refused += not self.outbox.control(packet)
            except LinkClosed:
                return

    def next_deadline(self) -> float | None:
        return self._due

    def on_deadline(self, now: float) -> None:
        if now >= self._due:
            self._alive(now)

    def _alive(self, now: float) -> None:
        lease = self._home.session.offer.lease
        self._due = now + (lease / KEEP_ALIVES if lease and self.is_heard else JOIN_SECONDS)
        if not lease and self.is_heard:
            self._due = now + 3600.0
        self.say([self._home.keep_alive])

    def end(self, text: str) -> None:
        """It is of no use any more."""
        self._connection.end(SessionClosed(text=text))

    def on_end(self) -> None:
        self._home.left_by(self)


class JoiningDialect(Dialect):
    """What a connection of ours is made with that is to be one more link of a session."""

    def __init__(self, home: EarlyMachine, base: Dialect) -> None:
        super().__init__(base.name, base.links)
        self._home = home

    def initiate(self, connection: Connection, timeout: float) -> Machine:
        home = self._home
        reader = PacketReader(connection.link, home.session.generation, home.packet_limit)
        return FurtherLink(reader, home, connection, is_heard=False)


def may_join(home: EarlyMachine) -> bool:
    """Whether a session takes one more link: not without end, and not where nodes must know a password.

    A KeepAlive proves nothing but that somebody knows a pid; who does can end the session as well (Z18-SES-03), but
    where there are passwords that is not enough to get what another node is sent.
    """
    paths = home.paths
    return home.connection.links.settings.users is None and (paths is None or len(paths) < EARLY_LINKS)


def _nothing(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[Batch], int, int]:
    """A further link has no queues of its own."""
    return [], 0, 0
