"""Reading a log: which blocks a range touches, which of their rows it wants, and rows by their positions.

Blocks outside the range are left out by what their heads say; inside, Arrow does the choosing, column by column. No row
becomes a Python object unless somebody asks for records.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model import keyexpr
from elea.model.errors import StoreCorrupt, StoreTrimmed
from elea.model.limits import STORE_BLOCK_BYTES, STORE_CACHED_BLOCKS, STORE_CACHED_BYTES, STORE_KEYED_BYTES
from elea.model.pattern import Pattern, PatternKind
from elea.model.timerange import TimeRange
from elea.model.timestamp import ntp64_from_ns
from elea.store.columns import SCHEMA
from elea.store.shelf import Part, Run, Shelf, View

__all__ = ["Keys", "Range", "Reader", "ntp_bounds"]

_TOP: Final = (1 << 64) - 1
_AT_ONCE: Final = 4096
_OCTETS_AT_ONCE: Final = 1 << 20
"""Rows and octets that are fetched by their positions at a time: each is in memory several times meanwhile."""

_HELD_AT_ONCE: Final = 16 << 20
"""Bytes of the blocks they lie in, which are in memory as well: scattered rows may each be in another block."""

_SMALL: Final = 1024
"""Blocks with fewer rows are joined before they are handed out."""


_Stretch = tuple[Part, Sequence[Run], int, int]
"""A part, its blocks as they were, the number of the first that is touched, and that behind the last."""


@dataclass(frozen=True, slots=True)
class Range:
    """What to read. Everything left out is no restriction.

    `start` and `end` are positions, the end not included. `time` is about timestamps, and must be resolved. The order
    is that of arrival, or with `by_time` that of timestamps, oldest or `newest_first`; `limit` counts in that order.
    """

    keys: str | Pattern | tuple[str, ...] | None = None
    """A key expression, or several: then every sample that has a key of any of them."""

    start: int | None = None
    end: int | None = None
    time: TimeRange | None = None
    limit: int | None = None
    newest_first: bool = False
    by_time: bool = False
    skip_damaged: bool = False
    """Pass over samples that cannot be read, instead of raising StoreCorrupt."""

    kind: int | None = None
    """PUT or DEL, if only those are wanted."""

    @property
    def is_plain(self) -> bool:
        """Whether it is all samples between two positions, in their order."""
        return self == Range(start=self.start, end=self.end, skip_damaged=self.skip_damaged)


class Keys:
    """The keys of an expression, as a test that is quick for the usual shapes."""

    def __init__(self, source: str | Pattern | tuple[str, ...] | None) -> None:
        if isinstance(source, tuple):
            tests = [_test(Pattern.of(one)) for one in source]
            self.all, self.one = False, None
            self.has: Callable[[str], bool] = lambda key: any(test(key) for test in tests)
            return
        pattern = Pattern.of(source) if isinstance(source, str) else source
        self.all = pattern is None
        self.one = pattern.text if pattern is not None and pattern.concrete else None
        self.has = _test(pattern)

    def mask(self, column: pa.Array) -> pa.Array | None:
        """Which rows have a key of the set; None if all do."""
        if self.all:
            return None
        if self.one is not None:
            return pc.equal(column, pa.scalar(self.one))
        # Far fewer keys than rows, as a rule: each is tested once.
        distinct = pc.unique(column)
        wanted = [key for key in distinct.to_pylist() if self.has(key)]
        if len(wanted) == len(distinct):
            return None
        return pc.is_in(column, value_set=pa.array(wanted, pa.string()))


def _test(pattern: Pattern | None) -> Callable[[str], bool]:
    if pattern is None:
        return lambda key: True
    if pattern.concrete or pattern.kind is PatternKind.CHARACTERS:
        return pattern.matches
    text = pattern.text
    if text == "**":
        return lambda key: not key.startswith("@") and "/@" not in key
    literal = text[: text.index("*")].removesuffix("$")
    if text[len(literal) - 1 :] == "/**":
        # `a/b/**`: the key itself or anything below, but nothing verbatim below.
        stem, verbatim = literal[:-1], len(literal) - 1
        return lambda key: key == stem or (key.startswith(literal) and key.find("/@", verbatim) < 0)
    return lambda key: key.startswith(literal.removesuffix("/")) and keyexpr.includes(text, key)


def ntp_bounds(time: TimeRange | None) -> tuple[int, int]:
    """The least and the greatest NTP64 time of a resolved range."""
    low, high = 0, _TOP
    if time is not None and time.start is not None:
        low = _ntp(time.start.at.resolve(0) - (1 if time.start.inclusive else 0)) + 1
    if time is not None and time.end is not None:
        high = _ntp(time.end.at.resolve(0) - (0 if time.end.inclusive else 1))
    return low, high


def _ntp(ns: int) -> int:
    """The greatest time that is not after `ns`; -1 if there is none."""
    if ns < 0:
        return -1
    try:
        return ntp64_from_ns(ns)
    except ValueError:  # after 2106
        return _TOP


class Reader:
    """Reads the parts of a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._cache: OrderedDict[tuple[Part, int], pa.RecordBatch] = OrderedDict()
        self._cached_octets = 0
        self._cache_lock = threading.Lock()
        self._keyed: OrderedDict[Part, int] = OrderedDict()  # bytes of what is known of keys, the latest used last

    def forget(self) -> None:
        """Let go of everything decoded."""
        with self._cache_lock:
            self._cache.clear()
            self._cached_octets = 0
            self._keyed.clear()

    # -- ranges ------------------------------------------------------------------------------------------------

    def resolve(self, wanted: Range) -> Range:
        """The range with both ends, inside the log.

        Raises:
            StoreTrimmed: it starts before the first sample that is left.
        """
        first, after = self._shelf.view.first, self._shelf.next
        if wanted.start is not None and wanted.start < first:
            raise StoreTrimmed(wanted.start, first)
        start = first if wanted.start is None else wanted.start
        return replace(wanted, start=start, end=after if wanted.end is None else min(wanted.end, after))

    def batches(self, wanted: Range, view: View | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a range in the order of positions, none of the batches empty. Both its ends must be given."""
        keys = Keys(wanted.keys)
        low, high = ntp_bounds(wanted.time)
        left = wanted.limit
        for part, block in self.blocks(wanted, view, keys.one):
            if left == 0:
                return
            if block.facts.max_ntp < low or block.facts.min_ntp > high:
                continue
            batch = self._read(part, block, skip=wanted.skip_damaged)
            if batch is None:
                continue
            batch = _chosen(batch, block, wanted, keys, low, high)
            if not batch.num_rows:
                continue
            if wanted.newest_first:
                batch = batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch

    def joined(self, wanted: Range, view: View | None = None) -> Iterator[pa.RecordBatch]:
        """The same, with small batches joined: a block of a single put costs as much as one of a thousand."""
        small: list[pa.RecordBatch] = []
        rows = octets = 0
        for batch in self.batches(wanted, view):
            if batch.num_rows >= _SMALL and not small:
                yield batch
                continue
            small.append(batch)
            rows += batch.num_rows
            octets += batch.nbytes
            if rows >= _AT_ONCE or octets >= STORE_BLOCK_BYTES:
                yield pa.concat_batches(small)
                small, rows, octets = [], 0, 0
        if small:
            yield pa.concat_batches(small) if len(small) > 1 else small[0]

    def blocks(self, wanted: Range, view: View | None = None, key: str | None = None) -> Iterator[tuple[Part, Run]]:
        """The blocks that a range of positions touches, without those that cannot have a sample of `key`.

        Raises:
            StoreCorrupt: positions between them are missing, and the range does not say to pass over that.
        """
        start, end = wanted.start or 0, wanted.end or 0
        due = end if wanted.newest_first else start
        name = ""
        parts = (view or self._shelf.view).parts
        for part, blocks, first, after in _touched(parts, start, end, newest_first=wanted.newest_first):
            name = part.name
            for begin, stop, chosen in self._chosen_blocks(part, first, after, key, newest_first=wanted.newest_first):
                low, high = blocks[begin].facts, blocks[stop - 1].facts
                gap = (high.last + 1, due) if wanted.newest_first else (due, low.first)
                if gap[0] < gap[1] and not wanted.skip_damaged:
                    raise StoreCorrupt(name, gap[0], last=gap[1] - 1, why="samples are missing")
                due = low.first if wanted.newest_first else high.last + 1
                for number in chosen:
                    yield part, blocks[number]
        gap = (start, due) if wanted.newest_first else (due, end)
        if gap[0] < gap[1] and not wanted.skip_damaged:
            raise StoreCorrupt(name or "(none)", gap[0], last=gap[1] - 1, why="samples are missing")

    def _chosen_blocks(
        self, part: Part, first: int, after: int, key: str | None, *, newest_first: bool
    ) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Runs of blocks without gaps between them: the first, that behind the last, and those to look at."""
        keyed = None if key is None else part.blocks_with(key)
        if keyed is None:
            numbers = range(first, after)
            yield from ((at, at + 1, (at,)) for at in (reversed(numbers) if newest_first else numbers))
            return
        self._remember_keyed(part, keyed.octets)
        edges = [first, *(gap for gap in keyed.gaps if first < gap < after), after]
        runs = list(pairwise(edges))
        for begin, stop in reversed(runs) if newest_first else runs:
            chosen = keyed.numbers[bisect_left(keyed.numbers, begin) : bisect_left(keyed.numbers, stop)]
            yield begin, stop, chosen[::-1] if newest_first else chosen

    def _remember_keyed(self, part: Part, octets: int) -> None:
        with self._cache_lock:
            self._keyed.pop(part, None)
            self._keyed[part] = octets
            whole = sum(self._keyed.values())
            while whole > STORE_KEYED_BYTES and len(self._keyed) > 1:
                old, freed = self._keyed.popitem(last=False)
                old.forget_keys()
                whole -= freed

    def _read(self, part: Part, block: Run, *, skip: bool) -> pa.RecordBatch | None:
        try:
            return part.load(block)
        except StoreCorrupt as error:
            self._shelf.note_damage(error)
            if not skip:
                raise
            return None

    # -- single rows -------------------------------------------------------------------------------------------

    def find(self, position: int, view: View | None = None) -> tuple[pa.RecordBatch, int]:
        """The block and row of a position, which may be one that only the base has.

        Raises:
            StoreCorrupt: it is lost.
        """
        first, parts, base = view or self._shelf.view
        if position < first and base is not None:
            block = base.block_of(position)
            if block is not None:
                batch = self._cached(base, block)
                column = batch.column("position")
                row = bisect_left(range(batch.num_rows), position, key=lambda at: column[at].as_py())
                if row < batch.num_rows and column[row].as_py() == position:
                    return batch, row
            raise StoreCorrupt(base.name, position, why="the sample is missing")
        at = bisect_right(parts, position, key=lambda part: part.first) - 1
        block = parts[at].block_of(position) if at >= 0 else None
        if block is None:
            raise StoreCorrupt(parts[at].name if at >= 0 else "(none)", position, why="the sample is missing")
        return self._cached(parts[at], block), position - block.facts.first

    def fetch(self, positions: Sequence[int], view: View | None = None) -> Iterator[pa.RecordBatch]:
        """Rows by their positions, in the order given, a few thousand or some megabytes at a time."""
        begin = 0
        while begin < len(positions):
            chunk = positions[begin : begin + _AT_ONCE]
            groups: dict[int, tuple[pa.RecordBatch, list[int], list[int], int]] = {}
            place = octets = held = 0
            while place < len(chunk) and octets < _OCTETS_AT_ONCE and held < _HELD_AT_ONCE:
                batch, row = self.find(chunk[place], view)
                known = groups.get(id(batch))
                if known is None:
                    held += batch.nbytes
                    known = groups[id(batch)] = (batch, [], [], batch.nbytes // batch.num_rows + 1)
                _, rows, places, each = known
                after = min(_same_block(chunk, place, row, batch), place + _OCTETS_AT_ONCE // each + 1)
                rows.extend([row + position - chunk[place] for position in chunk[place:after]])
                places.extend(range(place, after))
                octets += each * (after - place)
                place = after
            begin += place
            taken = [batch.take(pa.array(rows, pa.int64())) for batch, rows, _, _ in groups.values()]
            order = [place for _, _, places, _ in groups.values() for place in places]
            joined = pa.concat_batches(taken)
            if order != sorted(order):
                back = sorted(range(len(order)), key=order.__getitem__)
                joined = joined.take(pa.array(back, pa.int64()))
            yield joined

    def _cached(self, part: Part, block: Run) -> pa.RecordBatch:
        key = (part, block.facts.first)
        with self._cache_lock:
            batch = self._cache.get(key)
            if batch is not None and batch.num_rows == block.facts.rows:
                self._cache.move_to_end(key)
                return batch
        batch = self._read(part, block, skip=False)
        assert batch is not None
        octets = batch.nbytes
        with self._cache_lock:
            before = self._cache.pop(key, None)
            self._cached_octets += octets - (0 if before is None else before.nbytes)
            self._cache[key] = batch
            while len(self._cache) > STORE_CACHED_BLOCKS or (
                self._cached_octets > STORE_CACHED_BYTES and len(self._cache) > 1
            ):
                _, gone = self._cache.popitem(last=False)
                self._cached_octets -= gone.nbytes
        return batch


def _same_block(positions: Sequence[int], place: int, row: int, batch: pa.RecordBatch) -> int:
    """Where in `positions` those end that go on from `place` upwards within the block that has it in `row`."""
    column = batch.column("position")
    last: int = column[batch.num_rows - 1].as_py()
    if last - positions[place] != batch.num_rows - 1 - row:
        return place + 1  # a block of the base, whose positions have gaps
    at = place + 1
    while at < len(positions) and positions[at - 1] < positions[at] <= last:
        at += 1
    return at


def _touched(parts: Sequence[Part], start: int, end: int, *, newest_first: bool) -> Iterator[_Stretch]:
    """The parts that a range touches."""
    if start >= end:
        return
    low = max(bisect_right(parts, start, key=lambda part: part.first) - 1, 0)
    high = bisect_left(parts, end, key=lambda part: part.first)
    chosen = parts[low:high]
    for part in reversed(chosen) if newest_first else chosen:
        blocks = part.blocks
        begin = max(bisect_right(blocks, start, key=lambda block: block.facts.first) - 1, 0)
        stop = bisect_left(blocks, end, key=lambda block: block.facts.first)
        if begin < stop and blocks[begin].facts.last < start:
            begin += 1
        if begin < stop:
            yield part, blocks, begin, stop


def _chosen(batch: pa.RecordBatch, block: Run, wanted: Range, keys: Keys, low: int, high: int) -> pa.RecordBatch:
    """The rows of a block that a range wants, in the order of positions."""
    first = block.facts.first
    begin = max((wanted.start or 0) - first, 0)
    stop = min((wanted.end or 0) - first, batch.num_rows)
    if begin or stop < batch.num_rows:
        batch = batch.slice(begin, max(stop - begin, 0))
    mask = keys.mask(batch.column("key"))
    times = batch.column("ntp64")
    if block.facts.min_ntp < low:
        mask = _both(mask, pc.greater_equal(times, pa.scalar(low, pa.uint64())))
    if block.facts.max_ntp > high:
        mask = _both(mask, pc.less_equal(times, pa.scalar(high, pa.uint64())))
    if wanted.kind is not None:
        mask = _both(mask, pc.equal(batch.column("kind"), pa.scalar(wanted.kind, pa.uint8())))
    return batch if mask is None else batch.filter(mask)


def _both(a: pa.Array | None, b: pa.Array) -> pa.Array:
    return b if a is None else pc.and_(a, b)


def empty() -> pa.RecordBatch:
    """No samples."""
    return pa.RecordBatch.from_pylist([], schema=SCHEMA)
