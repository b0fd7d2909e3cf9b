"""The one rule for timestamps on every way into a storage, and the clock that is never behind what is stored.

A timestamp may be as old as it likes; one that is further ahead of this broker's time than the drift is replaced by one
of its own, and counted. What the broker stamps is above everything it has given, accepted or stored, so a get after the
acknowledgement sees it, wherever the time of the machine is set meanwhile.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.limits import CLOCK_DRIFT_NS
from elea.model.timestamp import datetime_from_ns, ns_from_ntp64
from elea.store.stamps import check_stamps, counted, restamped

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.store import Record

__all__ = ["Stamping"]

_log: Final = logging.getLogger("elea.node")


class Stamping:
    """The timestamps of what comes to one storage."""

    def __init__(self, node: Node, storage: str) -> None:
        self._clock = node.clock
        self._id = node.node_id
        self._storage = storage
        self.restamped = 0
        """Samples that came with a timestamp too far ahead, and were given another."""

    def begin(self, newest: int, now_ns: int) -> None:
        """Be above what the storage has."""
        self._clock.follow(newest)
        ahead_ns = ns_from_ntp64(newest) - now_ns
        if ahead_ns > CLOCK_DRIFT_NS:
            _log.warning(
                "clock is behind the store: storage=%s seconds=%.1f newest=%s; timestamps go on from there until the "
                "time of this machine has caught up; check it",
                self._storage, ahead_ns / 1e9, datetime_from_ns(ns_from_ntp64(newest)).isoformat(),
            )  # fmt: skip

    def arrival(self, now_ns: int) -> int:
        """When something arrives that has been stamped or judged now."""
        return self._clock.arrival(now_ns)

    def one(self, stamp: tuple[int, bytes] | None, now_ns: int) -> tuple[int, bytes, bool]:
        """The timestamp of a sample that came with this one, or with none; and whether it is another."""
        if stamp is None:
            return self._clock.reserve(now_ns, 1), self._id, False
        if stamp[1].strip(b"\0") and self._clock.accepts(stamp[0], now_ns):
            return *stamp, False
        self.count(1)
        return self._clock.reserve(now_ns, 1), self._id, True

    def checked(self, records: list[Record], now_ns: int) -> list[Record]:
        """Samples that arrived on their own, as they may be stored."""
        newest = max(record.ntp64 for record in records)
        if self._clock.accepts(newest, now_ns):  # one look for all: nearly always
            return records
        found: list[Record] = []
        for record in records:
            ntp64, id, _ = self.one((record.ntp64, record.stamp_id), now_ns)
            found.append(record._replace(ntp64=ntp64, stamp_id=id))
        return found

    def columns(self, given: pa.RecordBatch | None, rows: int, now_ns: int) -> tuple[Any, Any, int]:
        """Times and nodes for a batch that came with these, or with none; and how many are others.

        Raises:
            StoreError: what it came with are no timestamps.
        """
        if given is None:
            times = counted("Q", pa.uint64(), self._clock.reserve(now_ns, max(rows, 1)), rows)
            return times, pa.repeat(pa.scalar(self._id, pa.binary()), rows), 0
        times, ids = check_stamps(given)
        limit = self._clock.limit(now_ns)
        accepted = pc.max(times.filter(pc.less_equal(times, pa.scalar(limit, pa.uint64())))).as_py()
        if accepted is not None:
            self._clock.follow(accepted)  # before others are given new ones, which are newer
        times, ids, count = restamped(times, ids, limit, lambda count: self._clock.reserve(now_ns, count), self._id)
        self.count(count)
        return times, ids, count

    def count(self, count: int) -> None:
        """Samples were given another timestamp."""
        before = self.restamped
        self.restamped += count
        if self.restamped.bit_length() > before.bit_length():  # said the 1st, 2nd, 4th … time
            _log.warning(
                "timestamps too far ahead replaced: storage=%s restamped=%d; check the clocks of the writers",
                self._storage, self.restamped,
            )  # fmt: skip
