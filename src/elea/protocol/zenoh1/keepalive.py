"""How a link of Zenoh 1.x stays alive, and when it is given up. Spec: zenoh-1 §6.4.

Each node promises in its OPEN never to be silent for longer than its own lease. These are functions of when something
was last sent and heard; who owns the link keeps those two numbers.
"""

from __future__ import annotations

from math import floor
from typing import Final

__all__ = ["KEEP_ALIVES", "lease_ends", "next_keep_alive", "phase_of"]

KEEP_ALIVES: Final = 4
"""Keep-alives in one lease, so that three of them may be lost (`keep_alive`)."""

ROUNDING: Final = 1e-6  # what was sent at a point of the grid was not sent before it


def next_keep_alive(last_sent: float, own_lease: float, *, per_lease: int = KEEP_ALIVES, phase: float = 0.0) -> float:
    """When to send KEEP_ALIVE if nothing else is sent before: after at most `own_lease / per_lease` of silence.

    It is a point of the link's own grid, which has a point each half of that time, one of them at `phase`. Else ten
    thousand links that have sent the same sample at one moment would all be due at one moment, again and again.

    >>> next_keep_alive(100.0, 10.0)
    102.5
    >>> next_keep_alive(100.0, 10.0, phase=0.5)
    101.75
    """
    step = own_lease / per_lease / 2
    point = floor((last_sent - phase) / step + ROUNDING)
    return phase + (point + 2) * step


def phase_of(peer_id: bytes, own_lease: float) -> float:
    """The phase of a link: ids are random, so the phases of many links are evenly spread.

    >>> phase_of(bytes([1, 2, 0, 0, 0, 128]), 10.0)
    5.0
    """
    return own_lease * int.from_bytes(peer_id[-4:], "little") / (1 << 32)


def lease_ends(last_heard: float, peer_lease: float) -> float:
    """When a node that says nothing more is taken for dead."""
    return last_heard + peer_lease
