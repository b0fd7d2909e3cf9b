"""A face whose messages go to an outbox: what every dialect's face has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from elea.io.linkerrors import LinkClosed
from elea.io.outbox import FORWARDED, FULL, REFUSED
from elea.model.qos import Role
from elea.model.values import mypyc_attr
from elea.node.outflow import Outflow
from elea.space.face import Control, Region, Subject
from elea.space.way import Encoder

if TYPE_CHECKING:
    from elea.io.outbox import Outbox
    from elea.node.node import Node

__all__ = ["OutboxFace"]

REGIONS = {Role.CLIENT: Region.CLIENTS, Role.PEER: Region.PEERS, Role.ROUTER: Region.ROUTERS}


@mypyc_attr(allow_interpreted_subclasses=True)
class OutboxFace:
    """A neighbour (`Face`) that is reached through an outbox. A conduit is a lane of that, and twice its priority."""

    def __init__(self, node: Node, subject: Subject, outbox: Outbox, encoder: Encoder) -> None:
        self.node = node
        self.outbox = outbox
        self.room = outbox.room
        self.outflow = Outflow(node)
        """What this neighbour brings, on its way to others."""
        self.joined = 0  # samples that went to the outbox as part of another
        self.on_stalled: Callable[[], None] = lambda: None
        """What to do when the other node takes nothing more."""
        self._subject = subject
        self._encoder = encoder

    @property
    def subject(self) -> Subject:
        return self._subject

    @property
    def region(self) -> Region:
        return REGIONS[self._subject.role]

    @property
    def encoder(self) -> Encoder:
        return self._encoder

    @property
    def has_priorities(self) -> bool:
        return False

    @property
    def lacks(self) -> Mapping[str, str]:
        return {}

    def send(self, message: Control) -> None:
        """Queue a control message."""

    def conduit(self, qos: int, reliable: bool) -> int:
        """The lane for messages of a quality of service."""
        return (qos & 7) << 1 | reliable

    def await_room(self, qos: int, timeout: float) -> bool:
        return self.outbox.await_room(self.conduit(qos, True), timeout)

    def counters(self) -> Mapping[str, int]:
        outbox = self.outbox
        return {
            "sent_batches": outbox.batches,
            "sent_bytes": outbox.octets,
            "sent_messages": outbox.messages + self.joined,
            "waits": outbox.waited,
        }

    def push(self, conduit: int, message: bytes) -> None:
        """Queue a message that must not be lost: a neighbour that has no room for it is given up (zenoh-1 §6.5)."""
        if not self.outbox.push(conduit, (message, b""), len(message)):
            self.node.later(self.on_stalled)

    def wait_for_room(self, conduit: int) -> None:
        """Wait until the other node has taken what is queued beyond the bound; one that does not is given up."""
        if not self.outbox.hold_back(conduit):
            with contextlib.suppress(LinkClosed):
                self.outbox.wait_for_room(conduit)

    def forward(
        self, parts: Sequence[bytes], size: int, conduit: int, droppable: bool, samples: int, led: bool
    ) -> None:
        """Queue encoded samples. Those that may be dropped wait for room a moment, and then are; the others wait on.

        The link the samples came from is not read meanwhile, which is what their publisher asked for with BLOCK; a
        neighbour that takes nothing for `wait_before_close` is given up (zenoh-1 §6.5). What nobody waits for, since it
        came from a store, is queued beyond the bound, and such a neighbour is given up too.

        Args:
            led: whether this thread may not wait, since it leads the loop or stores: asked once for all neighbours.
        """
        outbox = self.outbox
        taken = True
        if droppable and led:
            taken = outbox.pass_on(conduit, parts, size, samples)
        elif led:
            pushed = outbox.push(conduit, parts, size, FORWARDED)
            if pushed == REFUSED:
                taken = False
                self.node.later(self.on_stalled)
            elif pushed == FULL and not outbox.hold_back(conduit):
                outbox.watch(conduit)
        else:
            try:
                taken = outbox.put(conduit, parts, size, droppable, samples)
            except LinkClosed:
                return  # this neighbour's end is not the fault of the one we read from
        if taken:
            self.joined += samples - (len(parts) >> 1)
