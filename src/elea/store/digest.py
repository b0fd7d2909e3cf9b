"""What a log has, told in a few numbers, so that two logs find out cheaply in what they differ.

Time is cut into buckets, and every bucket has a fingerprint of its samples (`fingerprints`). Large buckets are made of
small ones: whoever compares begins with the largest and looks only into those that differ.

Fingerprints of buckets of `LEAF` (256 s) are kept, and those of the seconds in the leaves that have changed last: only
seconds to which samples have come are read again. Those of smaller buckets are made when they are asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model.errors import StoreCorrupt
from elea.model.limits import STORE_DIGEST_ROWS
from elea.store.fingerprints import EMPTY, IDENTITIES, Bucket, distinct, folded, joined
from elea.store.log import Log
from elea.store.scope import LEAF, Scope, trimmed_before
from elea.store.shelf import Part, Run

__all__ = ["LEVELS", "Digest", "part_of"]

LEVELS: Final = (52, 46, 40, 32, 24, 16)
"""Lengths of buckets as powers of two, in units of NTP64 (a second is 2**32): 12 days, 4.5 hours, 256 s, 1 s, 4 ms,
15 µs. The numbers of a batch lie in a few microseconds."""

FINE: Final = 32

FINE_LEAVES: Final = 64
"""Leaves whose seconds are remembered: at most 16,384 of them."""

PIECES: Final = 16
"""Into so many pieces a range of times is cut if it has too many samples."""

_SECONDS: Final = range(1 << (LEAF - FINE))


def part_of(table: pa.Table, part: int, parts: int) -> pa.Table:
    """One of `parts` parts of a listing that is too long: by fingerprints, so that two logs cut it in the same way."""
    if parts == 1:
        return table
    chosen = [one % parts == part for one in table.column("fingerprint").to_pylist()]
    return table.filter(pa.array(chosen, pa.bool_()))


class Digest:
    """The digest of one log. Any thread may ask it; they take turns."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._turn = threading.Lock()
        self._noted = 0
        self._leaves: dict[int, Bucket] = {}
        self._fine: OrderedDict[int, dict[int, Bucket]] = OrderedDict()
        """Leaf → its seconds; the leaf that changed last is the last."""
        self._touched: dict[int, set[int]] = {}
        """Leaf → seconds to which samples have come."""
        self._rows: dict[int, int] = {}
        """Leaf → samples that have come, as far as it is touched; how much is to be read."""
        self._old: dict[str, tuple[int, int]] = {}
        """Of the keys whose newest sample is before the floor: where it is, and its fingerprint."""
        self._last: tuple[tuple[int, int, int, Scope], pa.Table] | None = None
        self.read = 0
        """Samples whose fingerprints were made so far."""

    def buckets(self, level: int, scope: Scope, within: Sequence[int] | None = None) -> dict[int, Bucket]:
        """The buckets of a level that have samples, or those of them that lie in some buckets of the level above."""
        above = LEVELS[max(LEVELS.index(level) - 1, 0)]
        with self._turn:
            if level < LEAF:
                return joined(pair for one in within or () for pair in self._inside(one, above, level, scope).items())
            self._refresh()
            leaves = [(leaf << LEAF, one) for leaf, one in self._leaves.items() if leaf << LEAF >= scope.floor]
            leaves += self._refresh_old(scope)
        if within is not None:
            wanted = frozenset(within)
            leaves = [(time, one) for time, one in leaves if time >> above in wanted]
        return joined((time >> level, one) for time, one in leaves)

    def listing(self, level: int, bucket: int, scope: Scope) -> pa.Table:
        """The samples of a bucket, each once, as `IDENTITIES`."""
        with self._turn:
            return self._table(bucket << level, (bucket + 1) << level, scope)

    def _inside(self, bucket: int, above: int, level: int, scope: Scope) -> dict[int, Bucket]:
        """The smaller buckets of one."""
        if level == FINE and bucket << above >= scope.floor:
            self._refresh()
            if bucket in self._fine:
                return {one: found for one, found in self._fine[bucket].items() if found.samples}
        pieces = self._pieces(bucket << above, (bucket + 1) << above)
        return joined(pair for piece in pieces for pair in folded(self._table(*piece, scope), level).items())

    # -- leaves ----------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Take in what has come since the last time."""
        log = self._log
        floor = trimmed_before(log, 0)  # before, samples count only as the newest of their keys
        end = log.end
        self._note(max(self._noted, log.first), end, floor)
        self._noted = end
        for leaf in [leaf for leaf in (*self._leaves, *self._touched) if leaf << LEAF < floor]:
            self._leaves.pop(leaf, None)
            self._fine.pop(leaf, None)
            self._touched.pop(leaf, None)
        for leaf in [leaf for leaf in self._touched if leaf in self._fine]:
            self._make_seconds(leaf, self._touched[leaf], end)
            del self._touched[leaf]
        for group in self._groups():
            self._make_leaves(group, end)
        self._touched, self._rows = {}, {}

    def _note(self, start: int, end: int, floor: int) -> None:
        """Which seconds have changed."""
        for part in self._log.shelf.view.parts:
            for block in part.blocks if part.next > start else ():
                facts = block.facts
                if facts.last < start or facts.first >= end or facts.max_ntp < floor:
                    continue
                low, high = facts.min_ntp >> FINE, facts.max_ntp >> FINE
                if high - low < len(_SECONDS):  # the head of a block tells enough
                    seconds = list(range(low, high + 1))
                else:
                    seconds = pc.unique(pc.shift_right(self._times(part, block), _shift(FINE))).to_pylist()
                for second in seconds:
                    leaf = second >> (LEAF - FINE)
                    self._touched.setdefault(leaf, set()).add(second)
                    self._rows[leaf] = self._rows.get(leaf, 0) + -(-facts.rows // len(seconds))

    def _times(self, part: Part, block: Run) -> pa.Array:
        batch = self._load(part, block)
        return pa.array([], pa.uint64()) if batch is None else batch.column("ntp64")

    def _load(self, part: Part, block: Run) -> pa.RecordBatch | None:
        try:
            return part.load(block)
        except StoreCorrupt as error:
            self._log.shelf.note_damage(error)  # the other log may still have what is lost
            return None

    def _groups(self) -> Iterator[list[int]]:
        """Touched leaves in the order of time, so many at once as fit in memory."""
        group: list[int] = []
        rows = 0
        for leaf in sorted(self._touched):
            if group and rows + self._rows[leaf] > STORE_DIGEST_ROWS:
                yield group
                group, rows = [], 0
            group.append(leaf)
            rows += self._rows[leaf]
        if group:
            yield group

    def _make_leaves(self, leaves: list[int], end: int) -> None:
        """The fingerprints of leaves of which nothing is remembered."""
        wanted = pa.array(leaves, pa.uint64())
        made: dict[int, Bucket] = {}
        for low, high in self._pieces(leaves[0] << LEAF, (leaves[-1] + 1) << LEAF):
            made = joined([*made.items(), *folded(self._between(low, high, end, (LEAF, wanted)), FINE).items()])
        found = joined((second >> (LEAF - FINE), one) for second, one in made.items())
        for leaf in leaves:
            self._leaves[leaf] = found.get(leaf, EMPTY)
        for leaf in leaves[-FINE_LEAVES:]:
            self._remember(leaf, {})
        for second, one in made.items():
            fine = self._fine.get(second >> (LEAF - FINE))
            if fine is not None:
                fine[second] = one

    def _make_seconds(self, leaf: int, seconds: set[int], end: int) -> None:
        """The fingerprint of a leaf whose other seconds are remembered."""
        fine = {second: one for second, one in self._fine[leaf].items() if second not in seconds}
        wanted = pa.array(sorted(seconds), pa.uint64())
        for low, high in self._pieces(min(seconds) << FINE, (max(seconds) + 1) << FINE):
            fine = joined([*fine.items(), *folded(self._between(low, high, end, (FINE, wanted)), FINE).items()])
        self._leaves[leaf] = joined((leaf, one) for one in fine.values()).get(leaf, EMPTY)
        self._remember(leaf, fine)

    def _remember(self, leaf: int, fine: dict[int, Bucket]) -> None:
        self._fine[leaf] = fine
        self._fine.move_to_end(leaf)
        if len(self._fine) > FINE_LEAVES:
            self._fine.popitem(last=False)

    # -- the newest of each key --------------------------------------------------------------------------------------

    def _refresh_old(self, scope: Scope) -> list[tuple[int, Bucket]]:
        found = self._old_entries(scope)
        changed = [key for key, (_, at, _) in found.items() if self._old.get(key, (-1, 0))[0] != at]
        kept = {key: self._old[key] for key in found.keys() - set(changed)}
        table = self._identities([found[key][1] for key in changed])
        rows = (table.column(name).to_pylist() for name in ("key", "position", "fingerprint"))
        kept |= {key: (at, made) for key, at, made in zip(*rows, strict=True)}
        self._old = kept
        return [(found[key][0] >> LEAF << LEAF, Bucket(made, 1)) for key, (_, made) in kept.items()]

    def _old_entries(self, scope: Scope) -> dict[str, tuple[int, int, bool]]:
        if not scope.floor:
            return {}
        found = self._log.newest_before(scope.floor)
        return {key: one for key, one in found.items() if not (one[2] and one[0] < scope.forget)}

    # -- samples -----------------------------------------------------------------------------------------------------

    def _pieces(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """A range of times in pieces whose samples fit in memory, as far as the heads of blocks tell."""
        blocks = (block.facts for part in self._log.shelf.view.parts for block in part.blocks)
        rows = sum(facts.rows for facts in blocks if facts.min_ntp < high and facts.max_ntp >= low)
        if rows <= STORE_DIGEST_ROWS or high - low <= 1 << LEVELS[-1]:
            yield low, high
            return
        step = -(-(high - low) // PIECES)
        for start in range(low, high, step):
            yield from self._pieces(start, min(start + step, high))

    def _table(self, low: int, high: int, scope: Scope) -> pa.Table:
        end = self._log.end
        if self._last is not None:
            (had_low, had_high, had_end, had_scope), table = self._last
            # Drilling down asks for parts of what it has asked for before.
            if had_low <= low and high <= had_high and (had_end, had_scope) == (end, scope):
                return table.filter(_within(table.column("ntp64"), low, high))
        table = IDENTITIES.empty_table()
        if low < scope.floor:
            places = [at for time, at, _ in self._old_entries(scope).values() if low <= time < min(high, scope.floor)]
            table = self._identities(places)
        if high > scope.floor:
            newer = self._between(max(low, scope.floor), high, end)
            table = pa.concat_tables([table, newer]) if table.num_rows else newer
        self._last = (low, high, end, scope), table
        return table

    def _identities(self, positions: Sequence[int]) -> pa.Table:
        return self._counted(distinct(self._log.rows_at(sorted(positions))))

    def _between(self, low: int, high: int, end: int, only: tuple[int, pa.Array] | None = None) -> pa.Table:
        """The samples from a time to another, not included, each once; `only` those in some buckets of a level."""
        return self._counted(distinct(self._batches(low, high, end, only)))

    def _batches(self, low: int, high: int, end: int, only: tuple[int, pa.Array] | None) -> Iterator[pa.RecordBatch]:
        for part in self._log.shelf.view.parts:
            for block in part.blocks:
                facts = block.facts
                if facts.max_ntp < low or facts.min_ntp >= high or facts.first >= end:
                    continue
                batch = self._load(part, block)
                if batch is None:
                    continue
                batch = batch.slice(0, end - facts.first)
                times = batch.column("ntp64")
                mask = _within(times, low, high)
                if only is not None:
                    level, wanted = only
                    mask = pc.and_(mask, pc.is_in(pc.shift_right(times, _shift(level)), value_set=wanted))
                batch = batch.filter(mask)
                if batch.num_rows:
                    yield batch

    def _counted(self, table: pa.Table) -> pa.Table:
        self.read += table.num_rows
        return table


def _shift(level: int) -> pa.Scalar:
    return pa.scalar(level, pa.uint64())


def _within(times: pa.Array | pa.ChunkedArray, low: int, high: int) -> pa.Array | pa.ChunkedArray:
    last = pa.scalar(high - 1, pa.uint64())
    return pc.and_(pc.greater_equal(times, pa.scalar(low, pa.uint64())), pc.less_equal(times, last))
