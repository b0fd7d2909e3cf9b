"""What AckNack and Synch of the early dialects say about serial numbers.

Pure translations between numbers and masks; when to send either message is decided elsewhere.
Spec: zenoh-2018 §5.10 and §7.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from elea.model.limits import ACKNACK_SPAN
from elea.protocol.early.serial import distance, successor

__all__ = ["AckNackFields", "acknack", "requested", "synch_available"]


class AckNackFields(NamedTuple):
    """The fields of an AckNack: everything before `sn` has arrived; without `mask` nothing is asked for."""

    sn: int
    mask: int | None


def requested(sn: int, mask: int | None, snsize: int) -> list[int]:
    """The serial numbers an AckNack asks for, oldest first.

    >>> requested(5, 5, 14)
    [5, 6, 8]
    """
    if mask is None:
        return []
    wanted = 2 * mask + 1
    return [successor(sn, snsize, steps=i) for i in range(_span(snsize)) if wanted >> i & 1]


def acknack(expected: int, missing: Iterable[int], snsize: int) -> AckNackFields:
    """The AckNack of a receiver that has everything before `expected` and lacks `missing`.

    A number further ahead than a mask reaches is left for a later AckNack.

    Raises:
        ValueError: something is missing, but not `expected` itself, which by its meaning is.

    >>> acknack(5, [5, 6, 8], 14)
    AckNackFields(sn=5, mask=5)
    """
    span = _span(snsize)
    bits = 0
    for sn in missing:
        ahead = distance(expected, sn, snsize)
        if ahead < span:
            bits |= 1 << ahead
    if not bits:
        return AckNackFields(expected, None)
    if not bits & 1:
        raise ValueError(f"{expected} is the first number not received and must be among the missing ones")
    return AckNackFields(expected, bits >> 1)


def synch_available(sn: int, count: int | None, snsize: int) -> Iterator[int]:
    """The serial numbers the sender of a Synch still holds, oldest first.

    An iterator and not a list, because the other node chooses `count` and may choose 2^62.

    >>> list(synch_available(2, 5, 14))
    [16381, 16382, 16383, 0, 1]
    """
    for step in range(-(count or 0), 0):
        yield successor(sn, snsize, steps=step)


def _span(snsize: int) -> int:
    # Spec: a mask always has 64 bits, but with numbers of 6 bits or less it would go round the circle and
    # name one message twice. What lies half a circle ahead or more is never in a window: the mask ends there.
    return min(ACKNACK_SPAN, 1 << (snsize - 1))
