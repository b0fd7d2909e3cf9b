"""Being found by nodes of the early dialects: a Scout to the group is answered with Hello. Spec: zenoh-2018 §5.4.

One Scout has the same bytes in both dialects, so there is one answer for both: the locators of all early listeners,
those of 2018 first; to a Scout of an Elea node, which says what it speaks, those of its dialect (`seeking`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.io.scoutsockets import ScoutListener
from elea.model.errors import DecodeError
from elea.model.qos import Role
from elea.protocol.early.generation import XRCE2017, ZENOH2018
from elea.protocol.early.scouting import BROKER, CLIENT, DIALECT_PROPERTY, DURABILITY, NODE_PROPERTY, PEER
from elea.protocol.early.terms import value_of

if TYPE_CHECKING:
    from elea.io.scoutsockets import Source
    from elea.node.connection import Connection
    from elea.node.discovery import DiscoverySettings
    from elea.node.links import Links

__all__ = ["EARLY_GROUP", "EarlyDiscovery", "mask_of"]

EARLY_GROUP: Final = "239.255.0.1:7447"
"""Where early nodes scout (Z18-SCO-03)."""


def mask_of(role: Role, *, is_durable: bool) -> int:
    """What a node is, as a Hello says it (Z18-SCO-01)."""
    kind = {Role.ROUTER: BROKER, Role.PEER: PEER, Role.CLIENT: CLIENT}[role]
    return kind | DURABILITY if is_durable else kind


class EarlyDiscovery:
    """Answers Scouts for one node."""

    def __init__(self, links: Links, settings: DiscoverySettings) -> None:
        self.answered = 0
        self.ignored = 0
        """Datagrams that were no Scout, or asked for something else."""
        self._links = links
        self._settings = settings
        self._listener: ScoutListener | None = None

    def start(self) -> None:
        """Begin to answer, if others are to find this node at all."""
        settings = self._settings
        if settings.answers and settings.group is not None and self._listener is None:
            self._listener = ScoutListener(self.heard, self._links.loop, group=EARLY_GROUP, names=settings.interface)

    def heard(self, data: bytes, source: Source) -> None:
        """A datagram to the group."""
        answer = self.answer(data)
        if answer is None:
            self.ignored += 1
        elif self._listener is not None:
            self.answered += self._listener.send_to(answer, source)

    def answer(self, data: bytes) -> bytes | None:
        """The Hello that answers a packet; None if nothing does."""
        try:
            asked = [one.message for one in ZENOH2018.codec.messages(data)]
        except DecodeError:
            return None
        node = self._links.node
        own = mask_of(node.role, is_durable=node.durable is not None)
        scouts = [one for one in asked if type(one).__name__ == "Scout" and one.mask & own]
        if not scouts:
            return None
        spoken = value_of(scouts[0].properties, DIALECT_PROPERTY)
        locators = [
            locator.partition("?")[0].encode()
            for name in (ZENOH2018.name, XRCE2017.name)
            if spoken in (None, name.encode())
            for locator in self._links.locators(name)
        ]
        m = ZENOH2018.messages
        told = None if spoken is None else (m.Property(NODE_PROPERTY, node.node_id),)
        return ZENOH2018.encode(m.Hello(own, tuple(locators), told))

    def find_one(self) -> None:
        """Nobody is looked for."""

    def wait(self, *, expected: bool) -> None:
        """Nobody is waited for."""

    def left(self, connection: Connection) -> None:
        """A session has ended, which changes nothing."""

    def close(self) -> None:
        """Answer no more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
