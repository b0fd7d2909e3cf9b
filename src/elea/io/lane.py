"""What waits in one conduit of a link; how long what may be dropped waits for room, and what is not read meanwhile.

As in eclipse-zenoh: `wait_before_drop`, and for each fragment after the first as long again, then twice as long and so
on, up to `max_wait_before_drop_fragments` more. Who has waited in vain is dropped, and so is at once whatever follows,
until the other end has taken something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.io.backpressure import Gate

if TYPE_CHECKING:
    from elea.io.outbox import Batch, Outbox

__all__ = ["Lane", "Patience", "SourceGate"]


class Patience:
    """The seconds that droppable messages of a link may wait.

    >>> patience = Patience(0.001, 0.05)
    >>> [round(patience.of(size, 2, 65_000), 3) for size in (100, 100_000, 190_000, 1_000_000)]
    [0.001, 0.002, 0.004, 0.051]
    """

    __slots__ = ("_fragments", "_wait")

    def __init__(self, wait: float, fragments: float) -> None:
        self._wait = wait
        self._fragments = fragments

    def of(self, size: int, parts: int, room: int) -> float:
        """For messages of two parts each and so many bytes in all; one that exceeds `room` is sent in fragments."""
        wait = self._wait
        if parts > 2 or size <= room or room <= 0:
            return wait
        # The increments double, so that the bound is reached after some steps, however large the message is.
        longer, more, left = 0.0, wait, size - room
        while left > 0 and longer < self._fragments and more > 0.0:
            longer += more
            more += more
            left -= room
        return wait + min(longer, self._fragments)


class SourceGate(Gate):
    """Closed for the links whose droppable samples wait for room in one conduit of a neighbour."""

    __slots__ = ("_conduit", "_deadline", "_outbox", "spent_at")

    def __init__(self, outbox: Outbox, conduit: int) -> None:
        self._outbox = outbox
        self._conduit = conduit
        self._deadline = 0.0  # until when links wait; 0 while none does
        self.spent_at = -1
        """Bytes written when somebody had waited in vain."""

    def is_spent(self) -> bool:
        """Whether nothing has left since somebody waited in vain: there is no sense in waiting again."""
        return self.spent_at == self._outbox.octets

    def hold(self, wait: float) -> bool:
        """Have the link that is read now wait; False if it has no sense, or this thread reads none."""
        outbox = self._outbox
        if wait <= 0.0 or self.is_spent() or not outbox.loop.hold(self):
            return False
        if not self._deadline:
            self._deadline = outbox.loop.now() + wait
            outbox.count_wait()
        return True

    def is_open(self) -> bool:
        """Whether the links that wait may be read again: there is room, or they have waited long enough."""
        outbox = self._outbox
        if outbox.error is None and outbox.is_full(self._conduit):
            if outbox.loop.now() < self._deadline:
                return False
            self.spent_at = outbox.octets
        self._deadline = 0.0
        return True


class Lane(Gate):
    """What waits in one conduit: `queue` is a flat list of parts, two for each message; `framed` are batches of it."""

    __slots__ = ("_outbox", "framed", "full_since", "key", "patience", "queue", "queued", "seen", "shut")

    def __init__(self, outbox: Outbox, key: int) -> None:
        self.key = key
        self.full_since = 0.0
        """Since when links wait for room here and nothing leaves; 0 while none waits."""
        self.seen = 0  # bytes written, when that was looked at last
        self.shut = False  # the other end is behind, and who frames will say when it is not
        self.patience = SourceGate(outbox, key)
        self._outbox = outbox
        self.queue: list[bytes] = []
        self.framed: list[Batch] = []
        # Changed in one line without a call, which the interpreter does not interrupt (a test hammers on it).
        self.queued = 0

    def is_open(self) -> bool:
        return self._outbox.has_room(self)
