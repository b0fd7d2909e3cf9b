"""A sample as the store keeps it: flat, so that a batch of them turns into columns without a call per field."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["DEL", "PUT", "Receipt", "Record", "Stored"]

PUT: Final = 0
DEL: Final = 1

DEFAULT_QOS: Final = 5


class Record(NamedTuple):
    """A sample and what is known of its origin. Every one has a timestamp: the broker gives it one if need be."""

    key: str
    """A key, never an expression with wildcards: a deletion of many keys is one tombstone for each."""

    payload: bytes
    ntp64: int
    """The time of the hybrid logical clock; with `stamp_id` it is unique and orders all samples of a system."""

    stamp_id: bytes
    """The node that gave the timestamp, as `NodeId.data`."""

    arrival_ns: int
    """Nanoseconds since 1970 when the broker received the sample."""

    kind: int = PUT
    encoding: int = 0
    schema: bytes | None = None
    attachment: bytes | None = None
    source_id: bytes | None = None
    source_eid: int | None = None
    source_sn: int | None = None
    once: bool = False
    """Whether (source, number) names the sample for good, so that it is stored once however often it comes.

    Only for writers whose numbers never start again under the same source: an acknowledged put, a Spark sink.
    """

    qos: int = DEFAULT_QOS
    """The octet of the 1.x QoS extension: priority, congestion control, express."""


class Stored(NamedTuple):
    """A record and its place in the log."""

    position: int
    record: Record


class Receipt(NamedTuple):
    """What became of a batch: `rows` new samples at `first`, `first + 1`, … and the ones that were there already."""

    first: int
    rows: int
    repeated: dict[int, int | None]
    """Index in the batch of each sample that was stored before → its position (None: known, but not where)."""

    def positions(self) -> list[int | None]:
        """The position of every sample of the batch, in its order."""
        found: list[int | None] = []
        fresh = self.first
        for index in range(self.rows + len(self.repeated)):
            if index in self.repeated:
                found.append(self.repeated[index])
            else:
                found.append(fresh)
                fresh += 1
        return found
