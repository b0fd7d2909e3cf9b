"""Backpressure: something that has no room, and for which the links wait that send to it."""

from __future__ import annotations

from elea.model.values import mypyc_attr

__all__ = ["Gate"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Gate:
    """Closed while there is no room; the loop looks at it now and then (`Loop.hold`)."""

    __slots__ = ()

    def is_open(self) -> bool:
        """Whether there is room again, or no sense in waiting."""
        return True
