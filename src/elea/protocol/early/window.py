"""The time windows of periodic subscriptions. Times are milliseconds on the clock of the subscription.

Spec: zenoh-2018 Z18-DCL-17, DEC-15.
"""

from __future__ import annotations

from elea.protocol.pacing import Windows

__all__ = ["next_opening", "window_open"]


def window_open(origin: int, period: int, duration: int, t: int) -> bool:
    """Whether `t` is in one of the windows [origin + n·period, origin + n·period + duration), n = 0, 1, …

    >>> window_open(500, 1000, 100, 1599), window_open(500, 1000, 100, 1600)
    (True, False)
    """
    return Windows(origin, period, duration).open_at(t)


def next_opening(origin: int, period: int, duration: int, t: int) -> int:
    """The first time at or after `t` that is in a window: `t` itself while one is open.

    >>> next_opening(500, 1000, 100, 1600)
    2500
    """
    return Windows(origin, period, duration).opening(t)
