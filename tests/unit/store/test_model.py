"""After any sequence of operations a log answers like a plain list: in memory, on disk, and opened again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elea.model.timerange import TimeBound, TimeExpr, TimeRange
from elea.model.timestamp import ns_from_ntp64
from elea.store import DEL, PUT, Log, Range, Record, Retention, Stored, memory_log, open_log
from tests.unit.store.samples import SECOND, matching, memory_directory, newest, stored, time_of, values

KEYS = ("a", "a/b", "a/b/c", "a/@v/c", "d/c", "d")
EXPRESSIONS = ("**", "a/**", "a/*/c", "*", "a/b", "**/c", "a/@v/**", "d$*/**", "nothing/**")
TIMES = st.integers(0, 12)
NODES = st.sampled_from([b"\x01", b"\x02"])
SOURCES = st.one_of(st.none(), st.tuples(st.sampled_from([b"x", b"y"]), st.integers(0, 1), st.integers(0, 12)))


@st.composite
def records(draw: st.DrawFn) -> Record:
    source = draw(SOURCES)
    kind = draw(st.sampled_from([PUT, PUT, DEL]))
    return Record(
        draw(st.sampled_from(KEYS)),
        draw(st.binary(max_size=4)),
        draw(TIMES) * SECOND,
        draw(NODES),
        draw(TIMES) * 10**9,
        kind,
        draw(st.integers(0, 3)),
        draw(st.one_of(st.none(), st.binary(max_size=2))),
        draw(st.one_of(st.none(), st.binary(max_size=2))),
        source_id=None if source is None else source[0],
        source_eid=None if source is None else source[1],
        source_sn=None if source is None else source[2],
        once=source is not None,
    )


class LogMachine(RuleBasedStateMachine):
    """A log beside a list of what was appended."""

    log: Log

    @initialize(on_disk=st.booleans(), segment_bytes=st.sampled_from([1, 6000, 1 << 20]))
    def start(self, on_disk: bool, segment_bytes: int) -> None:
        self.path = Path(tempfile.mkdtemp(dir=memory_directory())) if on_disk else None
        self.options: dict[str, Any] = {"segment_bytes": segment_bytes}
        self.log = memory_log() if self.path is None else open_log(self.path, **self.options)
        self.all: list[Stored] = []
        self.base: list[Stored] = []
        self.numbers: dict[tuple[bytes | None, int | None, int | None], int] = {}
        self.first = 0
        self.marks: dict[str, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            if self.path is not None:
                shutil.rmtree(self.path)

    def expect(self, batch: list[Record]) -> list[int | None]:
        """What appending should give; the model takes it in."""
        positions: list[int | None] = []
        for record in batch:
            name = (record.source_id, record.source_eid, record.source_sn)
            if record.once and name in self.numbers:
                positions.append(self.numbers[name])
                continue
            position = self.first + len(self.all)
            if record.once:
                self.numbers[name] = position
            self.all.append(Stored(position, record))
            positions.append(position)
        return positions

    @rule(batch=st.lists(records(), max_size=6))
    def append(self, batch: list[Record]) -> None:
        receipt = self.log.append(batch)

        assert receipt.positions() == self.expect(batch)

    @rule(batch=st.lists(records(), min_size=1, max_size=6))
    def append_arrow(self, batch: list[Record]) -> None:
        with memory_log() as other:
            other.append([record._replace(once=False) for record in batch])
            columns = next(other.read_arrow())
        once = [record.once for record in batch]
        columns = columns.set_column(columns.schema.get_field_index("once"), "once", pa.array(once, pa.bool_()))

        receipt = self.log.append_arrow(columns)

        assert receipt.positions() == self.expect(batch)

    @precondition(lambda self: self.path is not None)
    @rule(without_index=st.booleans())
    def reopen(self, without_index: bool) -> None:
        assert self.path is not None
        epoch = self.log.epoch
        self.log.close()
        if without_index:
            (self.path / "index").unlink(missing_ok=True)
        self.log = open_log(self.path, **self.options)

        assert (self.log.epoch, self.log.damage) == (epoch, [])

    @rule()
    def checkpoint(self) -> None:
        self.log.checkpoint()

    @rule()
    def compact(self) -> None:
        self.log.shelf.roll()
        self.log.compact()

    @rule(name=st.sampled_from(["p", "q"]), share=st.integers(0, 4))
    def move_cursor(self, name: str, share: int) -> None:
        position = self.first + len(self.all) * share // 4
        self.log.move_cursor(name, position)
        self.marks[name] = position

    @rule(name=st.sampled_from(["p", "q"]))
    def drop_cursor(self, name: str) -> None:
        assert self.log.drop_cursor(name) == (self.marks.pop(name, None) is not None)

    @rule(samples=st.integers(0, 10), past=st.booleans())
    def retain(self, samples: int, past: bool) -> None:
        everything = [*self.base, *self.all]

        trimmed = self.log.retain(Retention(samples=samples), now_ns=0, past_cursors=past)

        assert trimmed.first == self.log.first >= self.first
        assert past or not self.marks or self.log.first <= max(min(self.marks.values()), self.first)
        if trimmed.samples:
            self.first = trimmed.first
            self.base = [one for one in newest(everything).values() if one.position < self.first]
            self.all = [one for one in self.all if one.position >= self.first]

    @rule(
        keys=st.sampled_from([None, *EXPRESSIONS]), start=st.integers(0, 4), end=st.integers(0, 5),
        limit=st.integers(0, 9),
        times=st.one_of(st.none(), st.tuples(TIMES, TIMES, st.booleans(), st.booleans())), newest_first=st.booleans(),
        by_time=st.booleans(),
    )  # fmt: skip
    def read(
        self, keys: str | None, start: int, end: int, limit: int, times: tuple[int, int, bool, bool] | None,
        newest_first: bool, by_time: bool,
    ) -> None:  # fmt: skip
        since, until = self.first + len(self.all) * start // 4, self.first + len(self.all) * end // 4
        expected = [one for one in self.all if since <= one.position < until]
        when = None
        if times is not None:
            low, high = (TimeBound(TimeExpr(at * 10**9), edge) for at, edge in zip(times[:2], times[2:], strict=True))
            when = TimeRange(low, high)
            expected = [one for one in expected if when.contains(ns_from_ntp64(one.record.ntp64))]
        if keys is not None:
            expected = matching(expected, keys)
        if by_time:
            expected.sort(key=lambda one: (one.record.ntp64, one.record.stamp_id, one.position))
        if newest_first:
            expected.reverse()
        wanted = Range(keys, since, until, when, limit or None, newest_first, by_time)

        assert list(self.log.read(wanted)) == expected[: limit or None]
        assert sum(batch.num_rows for batch in self.log.read_arrow(wanted)) == len(expected[: limit or None])
        stream = pa.ipc.open_stream(b"".join(self.log.read_ipc(wanted))).read_all()
        assert stream.column("position").to_pylist() == [one.position for one in expected[: limit or None]]

    @rule(keys=st.sampled_from(EXPRESSIONS), time=TIMES, share=st.integers(0, 4))
    def as_of(self, keys: str, time: int, share: int) -> None:
        before = self.first + len(self.all) * share // 4
        known = [one for one in [*self.base, *self.all] if one.position < before and time_of(one) <= time * SECOND]

        found = list(self.log.as_of(keys, time_ns=time * 10**9, position=before))

        assert found == matching(values(known), keys)

    @rule(keys=st.sampled_from(EXPRESSIONS))
    def latest_matching(self, keys: str) -> None:
        assert list(self.log.latest_matching(keys)) == matching(values([*self.base, *self.all]), keys)

    @invariant()
    def holds_the_same(self) -> None:
        if not hasattr(self, "log"):
            return
        assert stored(self.log) == self.all
        assert self.log.end == self.first + len(self.all)
        assert self.log.cursors() == self.marks
        known = newest([*self.base, *self.all])
        for key in KEYS:
            expected = known.get(key)
            assert self.log.latest(key, deleted=True) == expected
            assert self.log.latest(key) == (expected if expected and expected.record.kind == PUT else None)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=30)
