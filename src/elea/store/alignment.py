"""Bringing one log what another has and it lacks: every sample of their common scope, deletions too.

It goes one way; two logs that do it to each other end up with the same samples, and then find nothing to bring. What is
brought keeps its timestamp, its source and its number, so that it counts as old where it is old, and a retry of its
writer is known. Nothing here knows how the other log is reached: it is a `Far`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from elea.model.errors import StoreReplaced
from elea.model.limits import STORE_ALIGN_BYTES, STORE_ALIGN_ROWS
from elea.store.columns import records_of
from elea.store.digest import LEVELS, Digest, part_of
from elea.store.fingerprints import EMPTY, IDENTITIES, Bucket, fingerprint
from elea.store.log import Log
from elea.store.record import Record
from elea.store.scope import Scope

__all__ = ["Aligned", "Far", "Head", "Listing", "Near", "align"]

ROWS_AT_ONCE: Final = 4096
"""Samples fetched in one go at most."""

_ROW_BYTES: Final = 256
"""What a sample takes beside its payload, about."""


class Head(NamedTuple):
    """What a log says of itself, and its largest buckets."""

    node: str
    """The broker it belongs to."""

    epoch: str
    floor: int
    """Since when it has everything, and the asker too (`Scope`)."""

    buckets: dict[int, Bucket]


class Listing(NamedTuple):
    """Samples of a bucket, and the epoch of their positions."""

    epoch: str
    table: pa.Table


class Far(Protocol):
    """The other log."""

    def head(self, scope: Scope) -> Head: ...
    def buckets(self, level: int, scope: Scope, within: Sequence[int]) -> dict[int, Bucket]: ...
    def listing(self, level: int, bucket: int, part: int, parts: int, scope: Scope) -> Listing: ...
    def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]: ...


class Near:
    """A log as a `Far` of another: what a broker answers with."""

    def __init__(self, log: Log, digest: Digest, floor: int = 0, node: str = "") -> None:
        self._log = log
        self._digest = digest
        self._floor = floor
        self._node = node

    def head(self, scope: Scope) -> Head:
        scope = scope._replace(floor=max(scope.floor, self._floor))
        return Head(self._node, self._log.epoch, scope.floor, self._digest.buckets(LEVELS[0], scope))

    def buckets(self, level: int, scope: Scope, within: Sequence[int]) -> dict[int, Bucket]:
        return self._digest.buckets(level, scope, within)

    def listing(self, level: int, bucket: int, part: int, parts: int, scope: Scope) -> Listing:
        return Listing(self._log.epoch, part_of(self._digest.listing(level, bucket, scope), part, parts))

    def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            StoreReplaced: the positions are those of another log.
        """
        if epoch != self._log.epoch:
            raise StoreReplaced(self._node, self._log.epoch, epoch)
        return self._log.rows_at(positions)


class Aligned(NamedTuple):
    """What became of one round."""

    differences: int
    """Buckets that were looked into."""

    missing: int
    brought: int
    """Fewer than were missing, if the other log could not read some any more."""

    ahead: int = 0
    """Samples of the other log whose time is still to come: they wait for it."""


Bring = Callable[[list[Record]], object]
"""Stores samples."""


def align(
    log: Log, digest: Digest, far: Far, scope: Scope, bring: Bring, *, until: int = 1 << 64, ahead: int = 1 << 64
) -> Aligned:
    """One round: whatever `far` has and `log` lacks is given to `bring`, the oldest first.

    Args:
        scope: of this log; the other may have a later floor.
        until: samples from this time on are left for the next round: they may be on their way.
        ahead: those from this time on, later than that, are counted: who stamped them has a clock that is ahead.

    Raises:
        StoreError: this log cannot take them. What was brought before stays; the next round goes on from there.
    """
    head = far.head(scope)
    return _Round(log, digest, far, scope._replace(floor=head.floor), bring, until, ahead).run(head.buckets)


class _Round:
    def __init__(self, log: Log, digest: Digest, far: Far, scope: Scope, bring: Bring, until: int, ahead: int) -> None:
        self._log = log
        self._digest = digest
        self._far = far
        self._scope = scope
        self._bring = bring
        self._until = until
        self._limit = ahead
        self._differences = self._missing = self._brought = self._ahead = 0

    def run(self, theirs: dict[int, Bucket]) -> Aligned:
        self._compare(0, theirs, self._digest.buckets(LEVELS[0], self._scope))
        return Aligned(self._differences, self._missing, self._brought, self._ahead)

    def _compare(self, depth: int, theirs: dict[int, Bucket], ours: dict[int, Bucket]) -> None:
        for bucket in sorted(theirs):
            mine = ours.get(bucket, EMPTY)
            if theirs[bucket] == mine:
                continue
            samples = max(theirs[bucket].samples, mine.samples)
            if samples <= STORE_ALIGN_ROWS or depth + 1 == len(LEVELS):
                self._look(LEVELS[depth], bucket, -(-samples // STORE_ALIGN_ROWS))
                continue
            level = LEVELS[depth + 1]
            inner = self._digest.buckets(level, self._scope, [bucket])
            self._compare(depth + 1, self._far.buckets(level, self._scope, [bucket]), inner)

    def _look(self, level: int, bucket: int, parts: int) -> None:
        self._differences += 1
        for part in range(parts):
            epoch, table = self._far.listing(level, bucket, part, parts, self._scope)
            have = part_of(self._digest.listing(level, bucket, self._scope), part, parts)
            wanted = self._wanted(table, set(have.column("fingerprint").to_pylist()))
            self._missing += len(wanted)
            for group in _groups(wanted):
                self._fetch(epoch, group)

    def _wanted(self, table: pa.Table, have: set[int]) -> list[tuple[int, bytes, int, int, int]]:
        """What is missing: (time, node, position, size, fingerprint), in the order of time."""
        names = [field.name for field in IDENTITIES]
        found = []
        for row in zip(*(table.column(name).to_pylist() for name in names), strict=True):
            key, time, stamp_id, _, position, size, made = row
            if made in have:
                continue
            if time >= self._until:
                self._ahead += time >= self._limit
                continue
            # Of what lies before the floor only the newest counts, and ours may be newer, before it or behind.
            if time < self._scope.floor and (self._log.newest_time(key) or 0) > time:
                continue
            found.append((time, stamp_id, position, size, made))
        return sorted(found)

    def _fetch(self, epoch: str, group: list[tuple[int, bytes, int, int, int]]) -> None:
        expected = {made for *_, made in group}
        octets = sum(size + _ROW_BYTES for _, _, _, size, _ in group)
        for batch in self._far.rows(epoch, [position for _, _, position, _, _ in group], octets):
            records = [stored.record for stored in records_of(batch)]
            # Nothing is taken that was not asked for: the other log may have changed, or be none of ours.
            chosen = [one for one in records if fingerprint(one.key, one.ntp64, one.stamp_id, one.kind) in expected]
            if chosen:
                self._bring(chosen)
                self._brought += len(chosen)


def _groups(wanted: list[tuple[int, bytes, int, int, int]]) -> Iterator[list[tuple[int, bytes, int, int, int]]]:
    """Samples to be fetched together."""
    group: list[tuple[int, bytes, int, int, int]] = []
    octets = 0
    for one in wanted:
        size = one[3] + _ROW_BYTES
        if group and (len(group) == ROWS_AT_ONCE or octets + size > STORE_ALIGN_BYTES):
            yield group
            group, octets = [], 0
        group.append(one)
        octets += size
    if group:
        yield group
