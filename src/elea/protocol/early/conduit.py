"""A conduit: a reliable and a best-effort channel in each direction, and traffic that moves here from another one.

Spec: zenoh-2018 §5.8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from elea.model.errors import RuleBroken
from elea.protocol.early.numbered import conduit_marker
from elea.protocol.early.reassembly import Reassembly
from elea.protocol.early.receiving import BestEffortReceiver, Receiver
from elea.protocol.early.sending import Sender
from elea.protocol.early.serial import distance, successor
from elea.protocol.early.terms import Agreement, Offer

__all__ = ["Arrived", "Conduit"]


class Arrived(NamedTuple):
    """A message of a channel, whole and in its turn: Declare, Pull, WriteData, StreamData or BatchedData."""

    conduit: int
    space: int
    sn: int
    reliable: bool
    message: Any


class Conduit:
    """One conduit of a session."""

    def __init__(self, agreement: Agreement, offer: Offer, id: int) -> None:
        bits = agreement.sn_bits
        self.id = id
        self.marker = conduit_marker(id)
        self.best_effort = Sender(
            bits,
            reliable=False,
            mtu=agreement.mtu or offer.mtu,
            marker=self.marker,
            lifetime=offer.lifetime,
            batches=agreement.takes_batches,
            alone=offer.profile.one_message,
        )
        self.reliable = Sender(
            bits,
            reliable=True,
            mtu=agreement.mtu or offer.mtu,
            marker=self.marker,
            window=offer.window,
            window_bytes=offer.window_bytes,
            lifetime=offer.lifetime,
            batches=agreement.takes_batches,
            alone=offer.profile.one_message,
            holds=offer.profile.acknowledges,
        )
        self._trusts = not offer.profile.acknowledges
        self.receiver: Receiver[tuple[Any, Any, int]] = Receiver(bits)
        self.best_effort_receiver = BestEffortReceiver(bits)
        self.queues: tuple[list[bytes], list[bytes]] = ([], [])
        self.synched = 0.0
        """When the other node was told last what is under way."""
        self.probes = 0
        """How often since then it was told so and said nothing."""
        self.heard = 0.0
        """When it last acknowledged something."""
        self.migrating: tuple[Any, Conduit] | None = None
        """A Migrate that stood before the message that comes next, and the conduit it names."""
        self.has_followers = False
        """Whether other conduits may wait for this one to get on."""
        self._bits = bits
        self._pieces = Reassembly(bits, strict=True)
        self._loose_pieces = Reassembly(bits, strict=False)
        self._moved: dict[int, int] = {}

    def queue(self, reliable: bool) -> list[bytes]:
        return self.queues[reliable]

    def sender(self, reliable: bool) -> Sender:
        return self.reliable if reliable else self.best_effort

    def sent(self, reliable: int, now: float) -> None:
        """Something has just left, so that there is time until the next Synch."""
        if reliable:
            self.synched = now

    def synch(self, message: Any) -> None:
        """The other node says where it is."""
        if message.reliable:
            self.receiver.synch(message.sn, message.count or 0, message.sync)
        else:
            self.best_effort_receiver.synch(message.sn)

    # -- arrivals -----------------------------------------------------------------------------------------------------

    def arrive(self, message: Any, frag: Any, space: int) -> list[Arrived]:
        """A numbered message: what can be delivered now."""
        migrating, self.migrating = self.migrating, None
        if getattr(message, "reliable", True):  # Declare and Pull are, and have no flag for it
            if migrating is not None:
                self._move(message.sn, *migrating)
            if self._trusts:
                return self._whole(self._pieces, message.sn, message, frag, space, True)
            if self.receiver.passes(message.sn, message.sync):
                return self._whole(self._pieces, message.sn, message, frag, space, True)
            size = _size(getattr(message, "payload", b""))
            self.receiver.arrive(message.sn, message.sync, (message, frag, space), size)
            return self.ready()
        if not self.best_effort_receiver.takes(message.sn) or self._has_moved(message):
            return []
        return self._whole(self._loose_pieces, message.sn, message, frag, space, False)

    def ready(self) -> list[Arrived]:
        """What the reliable channel has in order."""
        found: list[Arrived] = []
        for sn, (message, frag, space) in self.receiver.ready():
            found += self._whole(self._pieces, sn, message, frag, space, True)
        return found

    def _whole(self, pieces: Reassembly, sn: int, message: Any, frag: Any, space: int, reliable: bool) -> list[Arrived]:
        done = pieces.whole(sn, message) if frag is None else pieces.fragment(sn, frag, message)
        return [Arrived(self.id, space, sn, reliable, one) for one in done]

    # -- migration ----------------------------------------------------------------------------------------------------

    def _move(self, sn: int, migrate: Any, old: Conduit) -> None:
        """From number `sn` on this conduit has what the old one had: not before that has brought its last message."""
        if old is self:
            raise RuleBroken("MIGRATE", "close-255", f"conduit {self.id} cannot migrate to itself")
        receiver = self.receiver
        if distance(receiver.expected, sn, self._bits) >= 1 << (self._bits - 1) or sn in receiver.barriers:
            return  # it has been delivered, or is known: said again because it was sent again
        behind = successor(migrate.rchLastSN, self._bits)

        def is_open() -> bool:
            left = distance(old.receiver.expected, behind, self._bits)
            return left == 0 or left >= 1 << (self._bits - 1)

        receiver.barriers[sn] = is_open
        old.has_followers = True
        if migrate.id is None:
            old.best_effort_receiver.synch(successor(migrate.bechLastSN, self._bits))
        else:
            old._moved[migrate.id] = migrate.bechLastSN

    def _has_moved(self, message: Any) -> bool:
        """Whether a best-effort message is of a resource that has been moved, and was overtaken by that."""
        last = self._moved.get(getattr(message, "id", 0)) if self._moved else None
        return last is not None and distance(message.sn, last, self._bits) < 1 << (self._bits - 1)


def _size(payload: Any) -> int:
    """Octets of a payload, of all payloads of a batch, or of those that have the ids of their resources."""
    if isinstance(payload, bytes):
        return len(payload)
    return sum(len(one if isinstance(one, bytes) else one.payload) for one in payload)
