"""A multicast conduit, towards several nodes: one row of numbers, one window, and an acknowledgement from each.

What is sent goes to all members at once; a message is held until every one of them has it. A member that leaves, or is
given up by its session, holds up nobody any more. Spec: zenoh-2018 Z18-CON-05.
"""

from __future__ import annotations

from elea.protocol.early.acknack import requested
from elea.protocol.early.sending import Sender
from elea.protocol.early.serial import distance

__all__ = ["MulticastSender"]


class MulticastSender:
    """The reliable channel of a conduit that several nodes receive on; `sender` is what fills packets."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.ignored = 0
        """Acknowledgements of nodes that are no members, or of numbers that are not under way."""
        self._first: dict[bytes, int] = {}  # by member: the first number that it has not got

    def __len__(self) -> int:
        return len(self._first)

    def join(self, member: bytes) -> int:
        """A node receives from now on: the number that it begins with, which a Synch tells it."""
        return self._first.setdefault(member, self.sender.next)

    def leave(self, member: bytes, now: float) -> None:
        """A node receives no more: what only it had not acknowledged is let go."""
        if self._first.pop(member, None) is not None:
            self._release(now)

    def missing(self, member: bytes) -> int:
        """How many messages a member has not acknowledged."""
        return distance(self._first[member], self.sender.next, self.sender.sn_bits)

    def acknowledged(self, member: bytes, sn: int, mask: int | None, now: float, timeout: float) -> list[bytes] | None:
        """An AckNack of one member: packets to be sent again, to all; None if a Synch has to tell it where we are.

        Args:
            timeout: seconds after which what was sent must have arrived; what one member asks for, others do, too.
        """
        before = self._first.get(member)
        bits = self.sender.sn_bits
        if before is None or distance(before, sn, bits) > self.missing(member):
            self.ignored += 1
            return None
        self._first[member] = sn
        self._release(now)
        under_way = self.missing(member)
        wanted = [one for one in requested(sn, mask, bits) if distance(sn, one, bits) < under_way]
        return self.sender.resend(wanted, now, timeout)

    def _release(self, now: float) -> None:
        """Let go of what every member has."""
        sender = self.sender
        most = max((self.missing(one) for one in self._first), default=0)
        least = (sender.next - most) % (1 << sender.sn_bits)
        sender.acknowledged(least, None, now, 0.0)
