"""From batches of a session to what lies in mailboxes; compiled where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.broker.zenoh1 import Zenoh1Session
from elea.io.reading import LARGE, BatchReader
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.protocol.zenoh1.transport import Receiver

if TYPE_CHECKING:
    from elea.broker.node import Node

__all__ = ["Intake"]

_log = logger("elea.broker")


class Intake:
    """What one link brings for its session; used by the thread that reads it."""

    __slots__ = ("_node", "_receiver", "_session", "_told_of_size", "reader", "round")

    def __init__(self, node: Node, session: Zenoh1Session, receiver: Receiver, reader: BatchReader) -> None:
        self.reader = reader
        self.round = node.round
        self._node = node
        self._session = session
        self._receiver = receiver
        self._told_of_size = False

    def take(self, batch: bytes | memoryview) -> bool:
        """Take a batch; what is to be delivered is left in the mailboxes.

        Whether the other node has closed the session with it.
        """
        node, receiver, session = self._node, self._receiver, self._session
        more: bytes | memoryview | None = batch
        # And those behind it, as long as nothing is to be delivered: fragments, and samples that only pass.
        while more is not None:
            receiver.receive(more, node.keeper.now(), session)
            if node.scanner is not None:
                self._take_frames()
            more = None if self.round else self.reader.cut()
        if receiver.oversized and not self._told_of_size:
            self._told_of_size = True
            limit = receiver.max_message
            _log.warning("message too large, dropped: node=%s limit=%d", NodeId(session.node_id), limit)
        return receiver.closed

    def _take_frames(self) -> None:
        """Take the frames that have arrived behind a batch, all at once: somebody makes columns of them."""
        waiting = self.reader.waiting
        size = self._receiver.frames_in(waiting)
        if size >= LARGE:
            octets = bytes(waiting[:size])
            self.reader.pass_over(size)
            self._receiver.receive_frames(octets, self._node.keeper.now(), self._session)
