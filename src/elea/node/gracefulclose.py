"""How a node leaves: what was put before the end still goes out, for as long as the neighbours take it.

`close()` must lose nothing that a living neighbour would have taken, and must return although a neighbour is stuck. So
what is bounded is time without progress: bytes leave the outbox, and the kernel hands them over. All neighbours are
waited for at once, so a thousand stuck ones cost no more than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from elea.io.link import undelivered
from elea.io.linkerrors import LinkError
from elea.io.timers import monotonic

if TYPE_CHECKING:
    from elea.node.connection import Connection

__all__ = ["FAREWELL_SECONDS", "LONGEST_SECONDS", "STALLED_SECONDS", "close_gracefully"]

STALLED_SECONDS: Final = 1.0
"""A neighbour that takes nothing for so long, while something waits for it, gets no more."""

FAREWELL_SECONDS: Final = 0.5
"""How long a neighbour that has everything may take to leave first."""

LONGEST_SECONDS: Final = 10.0
"""How long leaving takes at most, however well it goes on; eclipse-zenoh gives up after the same time."""

_SHORTEST_LOOK: Final = 0.0005
_LONGEST_LOOK: Final = 0.02


def close_gracefully(connections: Iterable[Connection]) -> None:
    """Send what waits, and CLOSE behind it, and let the others leave first; returns when all have or had their time."""
    ends = monotonic() + LONGEST_SECONDS
    leaving = [_ClosingLink(connection) for connection in connections]
    pause = _SHORTEST_LOOK
    while (leaving := [one for one in leaving if not one.done()]) and monotonic() < ends:
        leaving[0].wait(pause)
        pause = min(2 * pause, _LONGEST_LOOK)


class _ClosingLink:
    """One link that is being left."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._said_goodbye = False
        self._progress = (0, 0)
        self._since = monotonic()

    def done(self) -> bool:
        """Whether there is nothing more to wait for."""
        connection = self._connection
        if connection.face is None or connection.ended.is_set():
            return True
        outbox = connection.machine.outbox
        if outbox is None:
            return True
        written = outbox.flush(0.0) and (self._said_goodbye or connection.machine.is_settled)
        if outbox.error is not None:
            return True
        if written and not self._said_goodbye:
            self._said_goodbye = True
            try:
                connection.say_goodbye()
            except LinkError:
                return True  # it is gone already, which is what is wanted
            written = outbox.flush(0.0)
        waiting = undelivered(connection.link)
        if (outbox.octets, waiting) != self._progress:
            self._progress, self._since = (outbox.octets, waiting), monotonic()
        # Leaving first could lose data: a socket closed with something unread in it, or written to after that, resets
        # the connection, and a node whose connection is reset may not read what it has got already.
        everything = written and not waiting
        if everything and (not connection.link.streamed or connection.loop.is_led_here()):
            return True  # who leaves a datagram link says nothing, and what this thread reads nobody else would see
        return monotonic() - self._since >= (FAREWELL_SECONDS if everything else STALLED_SECONDS)

    def wait(self, seconds: float) -> None:
        """Until something may have happened."""
        outbox = self._connection.machine.outbox
        if outbox is not None and outbox.flush(seconds):
            self._connection.ended.wait(seconds)
