"""Looking for nodes: a Scout every 3 seconds, and the locators of those that answer Hello. Spec: zenoh-2018 §5.4."""

from __future__ import annotations

from typing import Final

from elea.model.errors import DecodeError
from elea.protocol.early.generation import Generation
from elea.protocol.early.terms import value_of

__all__ = [
    "BROKER",
    "CLIENT",
    "DIALECT_PROPERTY",
    "DURABILITY",
    "NODE_PROPERTY",
    "PEER",
    "SCOUT_SECONDS",
    "Scouter",
]

BROKER, DURABILITY, PEER, CLIENT = 1, 2, 4, 8
"""What a node is or looks for (Z18-SCO-01)."""

SCOUT_SECONDS: Final = 3.0
"""Between two Scouts (Z18-SCO-05)."""

DIALECT_PROPERTY: Final = 5
"""Our own property of a Scout: the dialect that is spoken, since the rest of it is the same in both."""

NODE_PROPERTY: Final = 5
"""Of a Hello to such a Scout: the pid of who answers, so that nobody connects to a node it has a session with."""

MOST_LOCATORS: Final = 16
"""Of one Hello that are looked at."""


class Scouter:
    """Asks until it is stopped; what it is told is where nodes are."""

    def __init__(self, generation: Generation, mask: int, now: float, *, own: frozenset[str] = frozenset()) -> None:
        """Args:
        own: locators of this node, whose Hello is passed over.
        """
        self._generation = generation
        self._mask = mask
        self._own = own
        self._due = now
        self.is_stopped = False
        """A client that has a session asks no more; a peer goes on."""
        self.ignored = 0

    def to_send(self, now: float) -> list[bytes]:
        """The Scout, if it is time."""
        if self.is_stopped or now < self._due:
            return []
        self._due = now + SCOUT_SECONDS
        m = self._generation.messages
        told = (m.Property(DIALECT_PROPERTY, self._generation.name.encode()),)
        return [self._generation.encode(m.Scout(self._mask, told))]

    def next_deadline(self) -> float | None:
        """When the next one is due."""
        return None if self.is_stopped else self._due

    def heard(self, datagram: bytes, source: str) -> tuple[bytes, list[str]]:
        """Who answers, if it says so, and its locators: those it tells, and where the answer came from (Z18-SCO-04).

        Addresses only: nobody else says which devices or files of this machine are opened.
        """
        try:
            said = [one.message for one in self._generation.codec.messages(datagram)]
        except DecodeError:
            said = []
        for one in said:
            if type(one).__name__ == "Hello" and one.mask & self._mask:
                said_so = [locator.decode("ascii", "replace") for locator in one.locators[:MOST_LOCATORS]]
                told = [locator for locator in said_so if locator.startswith(("tcp/", "tls/", "udp/"))]
                if not self._own.intersection(told):
                    pid = value_of(one.properties, NODE_PROPERTY)
                    return pid or b"", list(dict.fromkeys([*told, source]))
        self.ignored += 1
        return b"", []
