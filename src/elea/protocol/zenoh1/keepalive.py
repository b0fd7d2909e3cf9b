"""How a link of Zenoh 1.x stays alive, and when it is given up. Spec: zenoh-1 §6.4.

Each node promises in its OPEN never to be silent for longer than its own lease. These are functions of when something
was last sent and heard; who owns the link keeps those two numbers.
"""

from __future__ import annotations

from typing import Final

from elea.model.errors import LeaseExpired
from elea.protocol.zenoh1.terms import Agreement, CloseReason

__all__ = ["KEEP_ALIVES", "keep_alive_due", "lease_ends", "next_deadline", "next_keep_alive"]

KEEP_ALIVES: Final = 4
"""Keep-alives in one lease, so that three of them may be lost (`keep_alive`)."""


def next_keep_alive(last_sent: float, own_lease: float, *, per_lease: int = KEEP_ALIVES) -> float:
    """When to send KEEP_ALIVE if nothing else is sent before.

    >>> next_keep_alive(100.0, 10.0)
    102.5
    """
    return last_sent + own_lease / per_lease


def lease_ends(last_heard: float, peer_lease: float) -> float:
    """When a node that says nothing more is taken for dead."""
    return last_heard + peer_lease


def next_deadline(agreement: Agreement, *, last_sent: float, last_heard: float, per_lease: int = KEEP_ALIVES) -> float:
    """When to ask `keep_alive_due` again."""
    return min(
        next_keep_alive(last_sent, agreement.own_lease, per_lease=per_lease),
        lease_ends(last_heard, agreement.peer_lease),
    )


def keep_alive_due(
    agreement: Agreement, now: float, *, last_sent: float, last_heard: float, per_lease: int = KEEP_ALIVES
) -> bool:
    """Whether KEEP_ALIVE is to be sent now.

    Raises:
        LeaseExpired: the other node was silent for its whole lease; the link is closed without a CLOSE.
    """
    if now >= lease_ends(last_heard, agreement.peer_lease):
        silence = f"nothing heard for {now - last_heard:.3f} s, the lease is {agreement.peer_lease:.3f} s"
        raise LeaseExpired(CloseReason.EXPIRED, silence)
    return now >= next_keep_alive(last_sent, agreement.own_lease, per_lease=per_lease)
