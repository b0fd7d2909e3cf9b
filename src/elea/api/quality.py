"""The quality of service that the arguments of a call ask for."""

from __future__ import annotations

from functools import lru_cache

from elea.model.qos import CongestionControl, Priority, Qos

__all__ = ["qos_for_store", "qos_of"]


def qos_of(
    congestion_control: CongestionControl | None,
    priority: Priority | None,
    express: bool | None,
    default: CongestionControl,
) -> Qos:
    """What was given, and else a default.

    Raises:
        TypeError: something else was given.
    """
    for value, kind in ((congestion_control, CongestionControl), (priority, Priority)):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"a {kind.__name__} is needed, not {type(value).__name__}")
    return Qos(
        Priority.DATA if priority is None else priority,
        default if congestion_control is None else congestion_control,
        bool(express),
    )


@lru_cache(typed=True)
def qos_for_store(congestion_control: CongestionControl | None, priority: Priority | None, express: bool | None) -> int:
    """The same as a byte, for samples that a store acknowledges."""
    return qos_of(congestion_control, priority, express, CongestionControl.BLOCK).raw
