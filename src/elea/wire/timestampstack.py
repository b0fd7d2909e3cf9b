"""Timestamp stacks: what a message collects on its way, if its sender asks for that (zenoh-1 §8.7).

They stand beside the details of a sample, not among them: stores keep none, and dialects without a word for them leave
them out. `StackedDetails` are packed details that carry one through a node; whoever knows nothing of it sees bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from elea.model.limits import MAX_STACK_RECORDS

__all__ = ["CUSTOM", "RECEIVE", "ROUTE", "SEND", "CollectedStamps", "StackedDetails", "restacked"]

SEND: Final = 1
ROUTE: Final = 2
RECEIVE: Final = 4
CUSTOM: Final = 0x80
"""Of a record that a callback of the user's has given, not the clock of a node."""

PLAIN_PUT: Final = b"\x01"
"""Packed details that say nothing."""


class CollectedStamps(NamedTuple):
    """The points that were asked for (bits), and what was collected there: (point and `CUSTOM`, bytes)."""

    points: int
    records: tuple[tuple[int, bytes], ...] = ()

    def with_record(self, point: int, stamp: bytes) -> CollectedStamps:
        """One record more; not beyond what any node reads."""
        if not stamp or len(self.records) >= MAX_STACK_RECORDS:
            return self
        return CollectedStamps(self.points, (*self.records, (point, stamp)))


class StackedDetails(bytes):
    """Packed details of a sample that collects timestamps."""

    stack: CollectedStamps

    def __new__(cls, meta: bytes | None, stack: CollectedStamps) -> StackedDetails:
        made = super().__new__(cls, PLAIN_PUT if meta is None else meta)
        made.stack = stack
        return made


def restacked(meta: bytes, before: bytes) -> bytes:
    """Details that were changed, with the stack they had before."""
    return StackedDetails(meta, before.stack) if type(before) is StackedDetails else meta
