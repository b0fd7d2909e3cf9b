"""Updates of many keys at once: a put or deletion on an expression counts for samples that are older and come later.

Spec: zenoh-1 section 20.
"""

from __future__ import annotations

from typing import Final

from elea.model.pattern import Pattern
from elea.store import Record

__all__ = ["Wild"]

REMEMBERED: Final = 1_000
"""Updates remembered, in memory only; the oldest give way."""


class Wild:
    """The updates of one storage."""

    def __init__(self) -> None:
        self._updates: list[tuple[Pattern, Record]] = []

    def remember(self, record: Record) -> None:
        """Take in an update, whose key is an expression."""
        self._updates = [*self._updates[-REMEMBERED + 1 :], (Pattern.of(record.key), record)]

    def applied(self, records: list[Record]) -> list[Record]:
        """The records, each followed by what newer updates make of its key."""
        updates = self._updates
        if not updates:
            return records
        found: list[Record] = []
        for record in records:
            found.append(record)
            stamp = (record.ntp64, record.stamp_id)
            newest = max(
                (update for pattern, update in updates if stamp < _stamp(update) and pattern.matches(record.key)),
                key=_stamp,
                default=None,
            )
            if newest is not None:
                found.append(newest._replace(key=record.key))
        return found


def _stamp(record: Record) -> tuple[int, bytes]:
    return record.ntp64, record.stamp_id
