"""A client session with next to nothing above the handshake, so that one process can hold fifteen thousand of them.

It is a machine like those it is made of: bytes in, bytes out, no socket and no clock. Real clients do the same on the
wire: they open with the default offer, declare subscribers and keys, put by number, and keep their lease.
"""

from __future__ import annotations

import os
from typing import Final

from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Agreement, Initiator, Offer
from elea.protocol.zenoh1.terms import CloseReason
from elea.protocol.zenoh1.transport import Receiver
from elea.wire.primitives import write_z
from elea.wire.zenoh1.batch import FIRST_NETWORK_ID, BatchStream
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.messages import (
    Declare,
    DeclareKeyExpr,
    DeclareSubscriber,
    NetworkMessage,
    Push,
    Put,
    WireExpr,
)
from elea.wire.zenoh1.samples import Pushed, read_pushes

__all__ = ["KEEP_ALIVE", "KEEP_ALIVE_EVERY", "LightSession", "key", "put", "subscriber"]

LEASE_MS: Final = 10_000  # the default of both libraries
KEEP_ALIVE_EVERY: Final = LEASE_MS / 1_000 / 4
KEEP_ALIVE: Final = b"\x01\x00\x04"
OPENING: Final = 60.0  # seconds; a crowd at the door may make each of its members wait
RELIABLE_FRAME: Final = 0x25
BLOCK: Final = 0x08 | 5  # congestion control and priority of a put; nothing may be dropped on the way
PAYLOAD: Final = bytes(64)
MESSAGE_ID: Final = 0x1F


def octets(message: NetworkMessage) -> bytes:
    out = bytearray()
    write_network_message(out, message)
    return bytes(out)


def subscriber(number: int, key_expr: str) -> bytes:
    """The declaration of a subscriber."""
    return octets(Declare(DeclareSubscriber(number, WireExpr(0, suffix=key_expr))))


def key(number: int, key_expr: str) -> bytes:
    """The declaration of a number for a key, as a publisher makes it."""
    return octets(Declare(DeclareKeyExpr(number, 0, key_expr)))


def put(number: int) -> bytes:
    """A sample of 64 bytes under a declared key."""
    return octets(Push(WireExpr(number, sender=True), Put(PAYLOAD), qos=BLOCK))


class LightSession:
    """One session, from its first byte on.

    `samples` counts what came; `ended` says why the other node closed the session, if it did.
    """

    __slots__ = ("_machine", "_receiver", "_sn", "_sn_mask", "_stream", "ended", "samples")

    def __init__(self, number: int, now: float) -> None:
        node_id = (number + 1).to_bytes(4, "little") + os.urandom(8)
        self._machine: Initiator | None = Initiator(
            Offer(node_id, Role.CLIENT, lease_ms=LEASE_MS), now, timeout=OPENING
        )
        self._stream = BatchStream()
        self._receiver: Receiver | None = None
        self._sn = 0
        self._sn_mask = 0
        self.samples = 0
        self.ended = ""

    @property
    def opened(self) -> bool:
        return self._receiver is not None

    @property
    def expires_at(self) -> float:
        """When the router will have been silent for its whole lease."""
        return float("inf") if self._receiver is None else self._receiver.expires_at

    def begin(self, now: float) -> bytes:
        """What to send first."""
        assert self._machine is not None
        self._machine.start()
        return self._to_send(now)

    def receive(self, data: bytes, now: float) -> bytes:
        """Take what came; returns what to send, which is nothing once the session is open.

        Raises:
            EleaError: the other node refused us or broke the protocol.
        """
        answer = b""
        for batch in self._stream.feed(data):
            if self._receiver is not None:
                self._receiver.receive(batch, now, self)
                continue
            assert self._machine is not None
            agreement = self._machine.receive(batch, now)
            answer += self._to_send(now)
            if agreement is not None:
                self._run(agreement, now)
        return answer

    def frame(self, messages: bytes) -> bytes:
        """Network messages as a batch of one frame."""
        batch = bytearray((0, 0, RELIABLE_FRAME))
        write_z(batch, self._sn, 32, "sn")
        self._sn = self._sn + 1 & self._sn_mask
        batch += messages
        batch[:2] = (len(batch) - 2).to_bytes(2, "little")
        return bytes(batch)

    def _run(self, agreement: Agreement, now: float) -> None:
        self._machine = None
        self._receiver = Receiver(agreement, now)
        self._sn, self._sn_mask = agreement.own_sn, agreement.sn_mask

    def _to_send(self, now: float) -> bytes:
        assert self._machine is not None
        return b"".join(len(batch).to_bytes(2, "little") + batch for batch in self._machine.to_send(now))

    # -- what the receiver tells ---------------------------------------------------------------------------------------

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        """Count samples, pass over everything else."""
        run: list[Pushed] = []
        while (at := read_pushes(buf, at, run)) < len(buf) and buf[at] & MESSAGE_ID >= FIRST_NETWORK_ID:
            _, at = read_network_message(buf, at)
        self.samples += len(run)
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        """A sample in fragments counts as any other."""
        self.samples += 1

    def closed(self, reason: int, whole_session: bool) -> None:
        """Remember why."""
        self.ended = f"the router closed it: {CloseReason.describe(reason)}"
