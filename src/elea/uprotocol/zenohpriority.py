"""Priorities of uProtocol and the lanes of Zenoh they take."""

from __future__ import annotations

from typing import Final

from elea.model.qos import Priority

__all__ = ["zenoh_priority"]

_LANES: Final = (
    Priority.DATA_LOW,  # unspecified is CS1
    Priority.BACKGROUND,
    Priority.DATA_LOW,
    Priority.DATA,
    Priority.DATA_HIGH,
    Priority.INTERACTIVE_LOW,
    Priority.INTERACTIVE_HIGH,
    Priority.REAL_TIME,
)


def zenoh_priority(priority: int) -> Priority:
    """The lane of a priority.

    >>> zenoh_priority(0), zenoh_priority(5)
    (Priority.DATA_LOW, Priority.INTERACTIVE_LOW)
    """
    return _LANES[priority]
