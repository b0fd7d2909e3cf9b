"""Zenoh 1.x, as one node speaks it: what it offers, and what all its sessions share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.io.link import Link
from elea.io.sharedmemory import MemoryHandover, Pool, has_memory, shares_machine
from elea.model.logger import logger
from elea.model.qos import Role
from elea.model.values import replaced
from elea.node.connection import Connection
from elea.node.dialect import Dialect, Machine
from elea.node.zenoh1.encoder import Zenoh1Encoder
from elea.node.zenoh1.machine import REASONS, Zenoh1Machine
from elea.node.zenoh1.namedroutes import RememberedNames
from elea.protocol.zenoh1.opening import Acceptor, Initiator
from elea.protocol.zenoh1.terms import Offer

if TYPE_CHECKING:
    from elea.node.discovery import Discovery, DiscoverySettings
    from elea.node.links import Links
    from elea.node.zenoh1.face import Zenoh1Face
    from elea.wire.zenoh1.messages import Oam

__all__ = ["Zenoh1Dialect", "make"]

_log = logger("elea.node")


class Zenoh1Dialect(Dialect):
    """What the 1.x sessions of a node have in common."""

    def __init__(self, links: Links) -> None:
        super().__init__("zenoh1", links)
        node, settings = links.node, links.settings
        self.encoder = Zenoh1Encoder(node.loop, node.stamper)
        self.names = RememberedNames()
        """Names of keys that the sessions remember."""
        self.on_joining: Callable[[Zenoh1Face], None] | None = None
        """Told of a face before it becomes part of the space, which is locked."""
        self.on_oam: Callable[[Zenoh1Face, Oam], None] | None = None
        """Told what neighbours say besides data, queries and declarations."""
        self.pool = Pool(settings.shared_memory)
        self._offer = Offer(
            node.node_id,
            node.role,
            batch_size=settings.batch_size,
            sn_bits=settings.sn_bits,
            qos=settings.qos,
            lowlatency=settings.lowlatency,
            compression=settings.compression,
            lease_ms=int(settings.lease * 1000),
            region_name=settings.region_name,
            credentials=settings.credentials,
        )
        self._cookie_key = links.random.randbytes(32)
        self._handover: MemoryHandover | None = None
        self._shares = settings.shared_memory > 0 and has_memory()
        self._closed = False
        self._lock = threading.Lock()

    def initiate(self, connection: Connection, timeout: float) -> Machine:
        now = self.links.loop.now()
        return Zenoh1Machine(self, connection, Initiator(self._offer_for(connection.link), now, timeout))

    def accept(self, connection: Connection) -> Machine:
        settings = self.links.settings

        def admit(node_id: bytes, role: Role) -> int | None:
            refusal = connection.admit(node_id)
            return None if refusal is None else int(REASONS[refusal])

        acceptor = Acceptor(
            self._offer_for(connection.link),
            self.links.loop.now(),
            cookie_key=self._cookie_key,
            random=self.links.random,
            users=settings.users,
            accept=admit,
            timeout=settings.accept_timeout,
        )
        return Zenoh1Machine(self, connection, acceptor)

    def _offer_for(self, link: Link) -> Offer:
        """What this node wants of a session over a link."""
        offer = self._offer
        return offer if offer.batch_size <= link.mtu else replaced(offer, batch_size=link.mtu)

    def discovery(self, settings: DiscoverySettings) -> Discovery:
        from elea.node.zenoh1.discovery import Zenoh1Discovery

        return Zenoh1Discovery(self, settings)

    def handover_for(self, link: Link) -> MemoryHandover | None:
        """Where other nodes of this machine bring memory, if both ends of a link may be on it; else None."""
        if not self._shares or not shares_machine(link):
            return None
        with self._lock:
            if self._handover is None and self._shares and not self._closed:
                try:
                    self._handover = MemoryHandover(self.links.node.node_id)
                except OSError as problem:
                    self._shares = False
                    _log.info("no shared memory: problem=%s", problem)
            return self._handover

    def close(self) -> None:
        with self._lock:
            self._closed = True
        if self._handover is not None:
            self._handover.close()


def make(links: Links, name: str) -> Zenoh1Dialect:
    """The dialect of a node."""
    return Zenoh1Dialect(links)


def __getattr__(name: str) -> object:
    if name == "Seeker":  # imported when nodes are sought: few programs do
        from elea.node.zenoh1.discovery import Seeker

        return Seeker
    raise AttributeError(name)
