"""The two early dialects, as one node speaks them: one code, two rows of a table (`protocol.early.generation`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from elea.model.limits import MAX_PACKET
from elea.model.qos import Role
from elea.node.connection import Connection
from elea.node.dialect import Dialect, Machine
from elea.node.early.catalogue import Catalogue
from elea.node.early.machine import EarlyMachine
from elea.node.early.options import options_of
from elea.node.early.scouting import EarlyDiscovery
from elea.node.early.seeking import PeerSeeker, found_nodes, is_group
from elea.protocol.early.generation import GENERATIONS, ZENOH2018
from elea.space.face import Entity

if TYPE_CHECKING:
    from elea.node.discovery import Discovery, DiscoverySettings
    from elea.node.links import Links

__all__ = ["EarlyDialect", "make"]


class EarlyDialect(Dialect):
    """What the sessions of one early dialect have in common; both dialects of a node share a catalogue."""

    def __init__(self, links: Links, name: str) -> None:
        super().__init__(name, links)
        self.generation = GENERATIONS[name]
        self.catalogue: Catalogue
        self._discovery: EarlyDiscovery | None = None
        self._seekers: dict[str, PeerSeeker] = {}
        if name == ZENOH2018.name:
            self.catalogue = Catalogue()
        else:
            other = links.dialect(ZENOH2018.name)
            assert isinstance(other, EarlyDialect)
            self.catalogue = other.catalogue

    def check(self, locator: str) -> None:
        options_of(locator)

    def found(self, locator: str, timeout: float) -> Iterator[str] | None:
        """Nodes that answer Scouts, if the locator is a multicast group."""
        return self._found(locator, timeout) if is_group(locator) else None

    def _found(self, locator: str, timeout: float) -> Iterator[str]:
        try:
            yield from found_nodes(self, locator, timeout)
        finally:  # a peer goes on, not at the same time: it would connect to the same node twice
            if self.links.node.role is Role.PEER and locator not in self._seekers:
                self._seekers[locator] = PeerSeeker(self, locator)

    def initiate(self, connection: Connection, timeout: float) -> Machine:
        return self._machine(connection, timeout)

    def accept(self, connection: Connection) -> Machine:
        return self._machine(connection, self.links.settings.accept_timeout)

    def _machine(self, connection: Connection, timeout: float) -> Machine:
        options = options_of(connection.locator)
        node = self.links.node
        is_durable = node.durable is not None
        lease = self.links.settings.lease
        offer = options.offer(node.node_id, connection.link, lease, node.role, is_durable=is_durable)
        if connection.accepted:
            offer = replace(
                offer, admit=lambda pid: machine.admit(pid), authenticate=lambda pid, data: machine.authenticate(data)
            )
        else:
            offer = replace(offer, nonce=self.links.random.randbytes(4), authentication=self._credentials())
        machine = EarlyMachine(self, connection, offer, options.mtu or MAX_PACKET, timeout)
        return machine

    def _credentials(self) -> bytes | None:
        """What Open says of us: user and password, in the clear (property 12)."""
        given = self.links.settings.credentials
        return None if given is None else b":".join(given)

    def discovery(self, settings: DiscoverySettings) -> Discovery:
        """That of 2018 answers for both: a Scout does not say which dialect it is of."""
        home = self.links.dialect(ZENOH2018.name)
        assert isinstance(home, EarlyDialect)
        if home._discovery is None:
            home._discovery = EarlyDiscovery(self.links, settings)
        return home._discovery

    def close(self) -> None:
        for seeker in self._seekers.values():
            seeker.close()
        if self._discovery is not None:
            self._discovery.close()

    def told_locators(self) -> tuple[bytes, ...]:
        """What a Hello tells: addresses alone, as the papers write them."""
        return tuple(one.partition("?")[0].encode() for one in self.links.locators(self.name))

    def declared_keys(self) -> list[str]:
        """Keys without wildcards that are declared in the space."""
        with self.links.node.lock:
            found = self.links.node.space.declared(Entity.SUBSCRIBER)
        return [key for key in found if "*" not in key and "?" not in key]


def make(links: Links, name: str) -> EarlyDialect:
    """The dialect of a node."""
    return EarlyDialect(links, name)
