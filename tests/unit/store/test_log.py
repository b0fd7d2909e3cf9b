"""What a log promises its users, whether it is in memory or on disk."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import LimitReached, StoreCorrupt, StoreError, StoreReadOnly, StoreTrimmed
from elea.model.pattern import Pattern
from elea.model.resource import Resource
from elea.store import DEL, SCHEMA, Log, Range, Record, Retention, State, Stored, memory_log, open_log
from elea.store.logreads import Keys, ntp_bounds
from tests.unit.store.samples import SECOND, filled, sample, stored


@pytest.fixture(params=["memory", "disk"])
def log(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[Log]:
    with memory_log() if request.param == "memory" else open_log(memory_path / "log", segment_bytes=20_000) as log:
        yield log


# -- append ----------------------------------------------------------------------------------------------------


def test_every_field_comes_back_as_it_went_in(log: Log) -> None:
    full = Record(
        "a/é/b", b"\x00\xff", (1 << 64) - 1, b"\x01\x02", (1 << 62) + 1, DEL, (1 << 31) - 1, b"", b"\x00",
        b"\x10" * 16, (1 << 32) - 1, (1 << 64) - 1, True, 255,
    )  # fmt: skip
    plain = Record("a", b"", 0, b"\x01", 0)

    log.append([full, plain])

    assert stored(log) == [Stored(0, full), Stored(1, plain)]
    assert log.latest("a") == Stored(1, plain)
    assert log.latest("a/é/b", deleted=True) == Stored(0, full)


def test_nothing_appended_is_nothing_stored(log: Log) -> None:
    assert log.append([]).positions() == []
    assert stored(log) == []
    assert list(log.read_arrow()) == []
    assert list(log.latest_matching("**")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        sample()._replace(key="a/*"),
        sample()._replace(key=""),
        sample()._replace(key="\ud800"),
        sample()._replace(ntp64=-1),
        sample()._replace(ntp64=1 << 64),
        sample()._replace(payload=None),  # type: ignore[arg-type]
        sample()._replace(payload=7),  # type: ignore[arg-type]
        sample()._replace(kind=256),
        sample()._replace(once=True),
    ],
)
def test_sample_that_cannot_be_stored_is_refused_and_nothing_of_its_batch_is_stored(log: Log, wrong: Record) -> None:
    with pytest.raises(StoreError):
        log.append([sample(1), wrong])

    assert log.end == 0
    assert log.append([sample(2)]).first == 0


def test_arrow_batch_is_appended_with_positions_of_this_log(log: Log) -> None:
    log.append([sample(0)])
    with memory_log() as other:
        other.append([sample(number) for number in range(5)])
        (batch,) = other.read_arrow()

    receipt = log.append_arrow(batch)

    assert (receipt.first, receipt.rows) == (1, 5)
    assert [one.record for one in log.read(Range(start=1))] == [sample(number) for number in range(5)]


def test_arrow_batch_of_other_columns_is_refused(log: Log) -> None:
    batch = pa.record_batch({"key": ["a"], "payload": [b"x"]})
    with pytest.raises(StoreError, match="no column 'ntp64'"):
        log.append_arrow(batch)
    rows = [{**sample(0)._asdict(), "position": 0, "arrival": 0, "key": None}]
    with pytest.raises(StoreError, match="'key' has 1 nulls"):
        log.append_arrow(pa.RecordBatch.from_pylist(rows, schema=pa.schema([f.with_nullable(True) for f in SCHEMA])))

    assert log.end == 0


def test_arrow_batch_with_lying_offsets_is_refused(log: Log) -> None:
    with memory_log() as other:
        other.append([sample(number) for number in range(3)])
        (batch,) = other.read_arrow()
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 5, 1 << 30, 7)))
    column = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, pa.py_buffer(bytes(16))])

    with pytest.raises(StoreError, match="does not fit"):
        log.append_arrow(batch.set_column(2, "payload", column))


def test_large_batch_and_large_samples_are_cut_into_blocks(log: Log) -> None:
    log.append([sample(number) for number in range(40_000)])
    log.append([sample(number, payload=bytes([number]) * (3 << 20)) for number in range(5)])

    facts = [block.facts for part in log.shelf.view.parts for block in part.blocks]
    assert max(fact.rows for fact in facts) <= 16_384
    assert log.end == 40_005
    assert [one.record.payload[0] for one in log.read(Range(start=40_000))] == [0, 1, 2, 3, 4]
    assert log.latest(sample(3).key) == Stored(39_998, sample(39_998))


# -- once ------------------------------------------------------------------------------------------------------


def numbered(first: int, count: int, *, entity: int = 1) -> pa.RecordBatch:
    """Samples whose numbers count up."""
    with memory_log() as other:
        other.append([sample(number, source=(b"w", entity, number)) for number in range(first, first + count)])
        return pa.concat_batches(list(other.read_arrow()))


def test_a_batch_that_counts_up_is_stored_once_however_it_is_cut(log: Log) -> None:
    assert log.append_arrow(numbered(0, 100)).positions() == list(range(100))
    assert log.append_arrow(numbered(100, 50)).positions() == list(range(100, 150))
    assert log.append_arrow(numbered(0, 100)).positions() == list(range(100))
    assert log.append_arrow(numbered(140, 20)).positions() == [*range(140, 150), *range(150, 160)]
    assert log.append_arrow(numbered(0, 3, entity=2)).positions() == [160, 161, 162]
    # Behind a gap, and then the gap itself.
    assert log.append_arrow(numbered(170, 5)).positions() == list(range(163, 168))
    assert log.append_arrow(numbered(160, 10)).positions() == list(range(168, 178))
    assert log.append([sample(172, source=(b"w", 1, 172))]).positions() == [165]

    assert log.end == 178


def test_batches_that_do_not_count_up_are_stored_once_too(log: Log) -> None:
    batch = numbered(0, 10)
    backwards = batch.take(pa.array(range(9, -1, -1)))
    assert log.append_arrow(backwards).positions() == list(range(10))
    assert log.append_arrow(batch).positions() == list(range(9, -1, -1))
    two = pa.concat_batches([numbered(10, 2), numbered(10, 2)])
    assert log.append_arrow(two).positions() == [10, 11, 10, 11]
    mixed = pa.concat_batches([numbered(20, 2), numbered(22, 2, entity=2)])
    assert log.append_arrow(mixed).positions() == [12, 13, 14, 15]
    assert log.append_arrow(mixed).positions() == [12, 13, 14, 15]


def test_retry_is_stored_once_and_told_where_it_is(log: Log) -> None:
    batch = [sample(number, source=(b"w", 1, number)) for number in range(3)]
    assert log.append(batch).positions() == [0, 1, 2]

    again = log.append([*batch, sample(9, source=(b"w", 1, 3)), batch[0]])

    assert again.positions() == [0, 1, 2, 3, 0]
    assert log.end == 4


def test_same_numbers_of_other_sources_or_without_the_promise_are_other_samples(log: Log) -> None:
    log.append([sample(0, source=(b"w", 1, 7))])

    log.append([sample(0, source=(b"w", 2, 7)), sample(0, source=(b"v", 1, 7))])
    log.append([sample(0, source=(b"w", 1, 7))._replace(once=False)])

    assert log.end == 4


def test_numbers_may_come_out_of_order(log: Log) -> None:
    for number in (5, 3, 4, 3, 5, 0):
        log.append([sample(number, source=(b"w", 1, number))])

    assert [one.record.source_sn for one in stored(log)] == [5, 3, 4, 0]


def test_numbers_far_below_the_newest_count_as_stored_at_an_unknown_place(log: Log) -> None:
    # Two sources in turn, so that no two numbers of one lie side by side.
    log.append([sample(0, source=(b"w", entity, number)) for number in range(1100) for entity in (0, 1)])

    assert log.append([sample(0, source=(b"w", 0, 3))]).positions() == [None]
    assert log.append([sample(0, source=(b"w", 0, 1099))]).positions() == [2198]


def test_numbers_are_known_after_reopening_with_and_without_the_index(tmp_path: Path) -> None:
    batch = [sample(0, source=(b"w", 0, number)) for number in (1, 2, 3, 7, 2**63)]
    with open_log(tmp_path) as log:
        log.append(batch)
    for index in (True, False):
        if not index:
            (tmp_path / "index").unlink()
        with open_log(tmp_path) as log:
            assert log.append(batch).positions() == [0, 1, 2, 3, 4]


# -- newest ----------------------------------------------------------------------------------------------------


def test_late_sample_of_an_old_time_is_history_but_not_the_newest(log: Log) -> None:
    log.append([sample(0, key="k", time=10), sample(1, key="k", time=5)])

    newest = log.latest("k")

    assert newest is not None
    assert newest.position == 0
    assert log.end == 2


def test_late_put_does_not_undo_a_deletion(log: Log) -> None:
    log.append([sample(0, key="k", time=10, kind=DEL)])
    log.append([sample(1, key="k", time=9)])

    assert log.latest("k") is None
    assert log.latest("k", deleted=True) == Stored(0, sample(0, key="k", time=10, kind=DEL))
    assert list(log.latest_matching("**")) == []


def test_same_time_of_two_nodes_has_the_same_winner_in_any_order() -> None:
    one, two = sample(1, key="k", time=3, node=b"\x01"), sample(2, key="k", time=3, node=b"\x02")
    for order in ([one, two], [two, one]):
        for apart in (False, True):
            with memory_log() as log:
                for batch in [[record] for record in order] if apart else [order]:
                    log.append(batch)
                newest = log.latest("k")
                assert newest is not None
                assert newest.record == two


def test_state_as_of_a_time_or_position(log: Log) -> None:
    log.append(
        [
            sample(0, key="a", time=1),
            sample(1, key="b", time=2),
            sample(2, key="a", time=3, kind=DEL),
            sample(3, key="a", time=5),
        ]
    )

    def state(time_ns: int | None = None, position: int | None = None) -> list[int]:
        return [one.position for one in log.as_of("*", time_ns=time_ns, position=position)]

    assert state(time_ns=2 * 10**9) == [0, 1]
    assert state(time_ns=3 * 10**9) == [1]
    assert state(time_ns=9 * 10**9) == [1, 3]
    assert state(position=1) == [0]
    assert state(time_ns=9 * 10**9, position=3) == [1]
    assert state(time_ns=0) == []


# -- ranges ----------------------------------------------------------------------------------------------------


def test_range_reads_as_an_arrow_stream_of_plain_messages(log: Log) -> None:
    log.append([sample(number) for number in range(3000)])
    log.append([sample(number, time=3010 - number) for number in range(3000, 3010)])
    for wanted in (
        Range(),
        Range(start=5, end=3005),
        Range(keys="room/1/**"),
        Range(limit=7, newest_first=True),
        Range(by_time=True),
    ):
        data = b"".join(log.read_ipc(wanted))

        table = pa.ipc.open_stream(data).read_all()

        assert table.schema == SCHEMA
        assert table.column("position").to_pylist() == [one.position for one in log.read(wanted)]
        assert b"EleaBlk" not in data


def test_messages_of_a_range_say_what_is_behind_them(log: Log) -> None:
    for size in (1, 3, 2000, 5, 1, 1500, 2):  # large blocks go out as they are, small ones are joined
        end = log.end
        log.append([sample(end + number) for number in range(size)])
    for start, end in ((0, log.end), (2, log.end - 1), (500, 900), (1000, 3000), (7, 7)):
        schema, end_of_stream = SCHEMA.serialize().to_pybytes(), b"\xff\xff\xff\xff\0\0\0\0"
        due = start
        for message, behind in log.read_messages(Range(start=start, end=end)):
            table = pa.ipc.open_stream(schema + message + end_of_stream).read_all()
            assert table.column("position").to_pylist() == list(range(due, behind))
            due = behind
        assert due == end


def test_messages_of_small_blocks_with_much_in_them_stay_small(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(40):
            log.append([sample(number, payload=bytes(200_000))])

        sizes = [len(message) for message, _ in log.read_messages(Range(start=0, end=40))]

    assert len(sizes) > 2
    assert max(sizes) < 4 << 20


def test_segment_file_is_an_arrow_stream(tmp_path: Path) -> None:
    everything = filled(tmp_path, [3, 2000, 1])
    (segment,) = tmp_path.glob("*.arrows")

    table = pa.ipc.open_stream(segment.read_bytes()).read_all()

    assert table.column("position").to_pylist() == list(range(2004))
    assert table.column("payload").to_pylist() == [one.record.payload for one in everything]


def test_range_before_the_first_sample_left_is_an_error_and_no_range_is_all_there_is(log: Log) -> None:
    for start in (0, 10, 20, 30):
        log.append([sample(start + number) for number in range(10)])
        log.shelf.roll()
    first = log.retain(Retention(samples=15), now_ns=0).first
    assert first == 20

    with pytest.raises(StoreTrimmed) as caught:
        list(log.read(Range(start=first - 1)))

    assert (caught.value.position, caught.value.first) == (first - 1, first)
    assert next(iter(log.read())).position == first


def test_reader_sees_what_was_there_when_it_began(log: Log) -> None:
    log.append([sample(number) for number in range(10)])
    reader = log.read()
    first = next(reader)
    log.append([sample(number) for number in range(10, 20)])

    assert [first, *reader] == stored(log)[:10]


def test_early_wildcards_choose_by_character(log: Log) -> None:
    log.append([sample(0, key="a/b1"), sample(1, key="a/b22"), sample(2, key="@x/y")])

    assert [one.position for one in log.read(Range(Pattern.of(Resource.parse("zenoh://a/b?"))))] == [0]
    assert [one.position for one in log.latest_matching(Pattern.of(Resource.parse("zenoh://**")))] == [0, 1, 2]
    assert [one.position for one in log.latest_matching("**")] == [0, 1]


@pytest.mark.parametrize(
    "text", ["**", "a/**", "a/*", "a/b", "a/*/c", "**/c", "a$*/**", "a/**/c", "@x/**", "*", "a/@x/**"]
)
def test_keys_of_an_expression_are_those_it_includes(text: str) -> None:
    from elea.model.keyexpr import includes

    keys = ("a", "a/b", "a/b/c", "ab", "ab/c", "c", "@x", "@x/c", "a/@x", "a/@x/c", "a/b/@x/c", "b/a")
    wanted = Keys(text)

    assert [key for key in keys if wanted.has(key)] == [key for key in keys if includes(text, key)]


def test_bounds_of_time_are_exact_to_the_nanosecond() -> None:
    from elea.model.timerange import TimeRange
    from elea.model.timestamp import ns_from_ntp64, ntp64_from_ns

    for ns in (0, 1, 999_999_999, 10**9, 1_700_000_000_123_456_789):
        at = ntp64_from_ns(ns)
        text = str(TimeRange.parse("[now()..now()]").resolve(ns))
        for shape, inside in ((text, True), (text.replace("[", "]", 1), False), (text[:-1] + "[", False)):
            low, high = ntp_bounds(TimeRange.parse(shape))
            for time in range(max(at - 9, 0), at + 9):
                within = ns_from_ntp64(time) == ns and inside
                assert (low <= time <= high) == within, (shape, time - at)


def test_bounds_outside_what_a_timestamp_can_say_are_no_bounds() -> None:
    from elea.model.timerange import TimeRange

    assert ntp_bounds(TimeRange.parse("[1960-01-01T00:00:00Z..2200-01-01T00:00:00Z]")) == (0, (1 << 64) - 1)
    assert ntp_bounds(TimeRange.parse("[..1960-01-01T00:00:00Z]"))[1] == -1
    assert ntp_bounds(None) == (0, (1 << 64) - 1)


# -- cursors and threads -----------------------------------------------------------------------------------------


def test_cursor_outside_the_log_or_without_a_name_is_refused(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append([sample(0)])
    with pytest.raises(ValueError, match="ends at 1"):
        log.move_cursor("spark", 2)
    with pytest.raises(StoreTrimmed):
        log.move_cursor("spark", -1)
    with pytest.raises(ValueError, match="1 to 255"):
        log.move_cursor("", 0)
    monkeypatch.setattr("elea.store.log.STORE_CURSORS", 1)
    log.move_cursor("spark", 1)
    with pytest.raises(LimitReached):
        log.move_cursor("another", 1)

    log.move_cursor("spark", 0)

    assert log.cursor("spark") == 0
    assert log.cursor("another") is None


def test_closed_log_takes_nothing(log: Log) -> None:
    log.append([sample(0)])
    log.close()

    with pytest.raises(StoreReadOnly):
        log.append([sample(1)])
    log.close()
    assert log.state is State.CLOSED


def test_readers_beside_a_writer_see_whole_prefixes(log: Log) -> None:
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            end = log.end
            found = [one.position for one in log.read(Range(end=end))]
            if found != list(range(end)):
                problems.append(f"{len(found)} of {end}")
            newest = log.latest("room/0/temp")
            if end and (newest is None or newest.position < end - 5):
                problems.append(f"newest {newest} at {end}")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(0, 600, 5):
        log.append([sample(number + index) for index in range(5)])
        if number % 150 == 0:
            log.compact()
            log.checkpoint()
    done.set()
    for reader in readers:
        reader.join()

    assert problems == []
    assert log.end == 600


def test_times_in_the_future_of_the_format_are_stored(log: Log) -> None:
    log.append([sample(0, key="k", time=(1 << 32) - 1)])

    assert log.latest("k") == Stored(0, sample(0, key="k", time=(1 << 32) - 1))
    assert ((1 << 32) - 1) * SECOND < 1 << 64


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("end", [998, 999, 1000, 1001, 1002])
def test_range_that_ends_beside_the_last_row_of_a_large_block(tmp_path: Path, end: int, newest_first: bool) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(number) for number in range(1000)])
        log.append([sample(number) for number in range(1000, 1002)])

        found = [one.position for one in log.read(Range(start=997, end=end, newest_first=newest_first))]
        ipc = list(log.read_ipc(Range(start=0, end=end)))

    wanted = list(range(997, end))
    assert found == (wanted[::-1] if newest_first else wanted)
    assert pa.ipc.open_stream(b"".join(ipc)).read_all().num_rows == end


def test_repeats_within_a_batch_are_stored_once() -> None:
    one, two = (sample(number, source=(b"\x07", 1, number)) for number in (1, 2))
    with memory_log() as log:
        receipt = log.append([one, two, one, one])

        assert (receipt.rows, receipt.repeated) == (2, {2: 0, 3: 0})
        assert [stored.record.source_sn for stored in log.read()] == [1, 2]


def test_equal_stamps_of_one_node_are_decided_by_position() -> None:
    with memory_log() as log:
        log.append([sample(1, key="k", time=5, payload=b"first"), sample(2, key="k", time=5, payload=b"second")])
        newest = log.latest("k")

    assert newest is not None
    assert (newest.position, newest.record.payload) == (1, b"second")


def test_reading_by_time_does_not_hold_the_payloads_of_the_range(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        for number in range(40):
            log.append([sample(number, payload=bytes(1_000_000))])
        tracemalloc.start()

        first = next(iter(log.read(Range("**", by_time=True))))

        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert first.position == 0
    assert most < 12_000_000


def test_scattered_rows_do_not_hold_all_the_blocks_they_lie_in(memory_path: Path) -> None:
    with open_log(memory_path / "log") as log:
        for number in range(60):
            others = [sample(number, key="other", payload=bytes(1_000)) for _ in range(999)]
            log.append([sample(number, key="small"), *others])
        tracemalloc.start()

        found = [stored.position for stored in log.read(Range("small", by_time=True, newest_first=True))]

        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == list(range(59_000, -1, -1_000))
    assert most < 40_000_000


# -- what a slow reader keeps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", ["latest", "rows", "history"])
def test_a_reader_that_stops_after_one_sample_keeps_a_small_part_of_the_log(slow: str) -> None:
    """40 MB: Arrow's copies and Python's values together."""
    with memory_log() as log:
        log.append([sample(number, key=f"a/{number}", payload=bytes(10_000)) for number in range(4_000)])
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        if slow == "rows":
            rows = log.rows_at(range(4_000))
            next(rows)
        else:
            reader = log.latest_matching("**") if slow == "latest" else log.read()
            next(reader)

        held = pa.total_allocated_bytes() - before + tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < 6_000_000


def test_the_newest_values_come_whole_when_some_have_been_overtaken_on_the_way(tmp_path: Path) -> None:
    """Retention takes old values while a slow reader is in the middle: each key comes, as it was or as it is."""
    with open_log(tmp_path / "log", segment_bytes=300_000) as log:
        for number in range(60):
            log.append([sample(number, key=f"a/{number}", payload=bytes(100_000))])
        reader = log.latest_matching("**")
        found = [next(reader) for _ in range(5)]
        for number in range(60):
            log.append([sample(number + 1_000, key=f"a/{number}", payload=bytes(100_000))])
        log.retain(Retention(samples=60), now_ns=0)
        found += reader

        assert {one.record.key for one in found} == {f"a/{number}" for number in range(60)}
        assert any(one.position >= 60 for one in found)
        assert any(one.position < 60 for one in found)


def test_the_newest_values_come_whole_however_often_retention_overtakes_who_reads_them(tmp_path: Path) -> None:
    """The second time while what it had left is read, the third while what came instead is read."""
    with open_log(tmp_path / "log", segment_bytes=300_000) as log:
        for number in range(60):
            log.append([sample(number, key=f"a/{number}", payload=bytes(100_000))])
        reader = log.latest_matching("**")
        found = [next(reader)]
        for again, kept in enumerate((90, 60, 60), 1):
            for number in range(60):
                log.append([sample(number + 1_000 * again, key=f"a/{number}", payload=bytes(100_000))])
            log.retain(Retention(samples=kept), now_ns=0)
            before = found[-1].position
            while found[-1].position < before + 25:
                found.append(next(reader))
        found += reader

        assert {one.record.key for one in found} == {f"a/{number}" for number in range(60)}


def test_samples_that_are_found_and_yet_not_fetched_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    with memory_log() as log:
        log.append([sample(0)])

        def fetch(positions: list[int]) -> Iterator[pa.RecordBatch]:
            raise StoreCorrupt("some", positions[0], why="of a test")

        monkeypatch.setattr(log._reader, "fetch", fetch)
        with pytest.raises(StoreCorrupt, match="of a test"):
            list(log.latest_arrow())
