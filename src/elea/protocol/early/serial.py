"""Serial numbers of the early dialects: arithmetic modulo 2^snsize.

Owns order and distance on the circle of serial numbers; which channel a number belongs to is not known here.
Spec: zenoh-2018 §5.9, Z18-SES-06, Z18-REL-02.
"""

from __future__ import annotations

__all__ = ["distance", "serial_less", "successor", "window_limit"]


def distance(a: int, b: int, snsize: int) -> int:
    """How many steps forward lead from `a` to `b`."""
    return (b - a) % (1 << snsize)


def successor(sn: int, snsize: int, *, steps: int = 1) -> int:
    """The number `steps` after `sn`; negative steps go back."""
    return (sn + steps) % (1 << snsize)


def serial_less(a: int, b: int, snsize: int) -> bool | None:
    """Whether `a` comes before `b`; None when they are half the circle apart and have no order.

    >>> serial_less(15, 0, 4), serial_less(0, 15, 4), serial_less(0, 8, 4)
    (True, False, None)
    """
    ahead = distance(a, b, snsize)
    half = 1 << (snsize - 1)
    if ahead == half:
        return None
    return 0 < ahead < half


def window_limit(snsize: int) -> int:
    """The most messages a reliable sender may have unacknowledged.

    Two below half the circle: neither the window nor the number after it ever meets an unordered number.
    """
    return (1 << (snsize - 1)) - 2
