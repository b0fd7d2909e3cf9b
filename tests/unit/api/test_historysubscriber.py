"""Subscribers that begin in the past: where they begin, no gap and no repetition, cursors, and what cannot be had."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import elea
from elea import aio
from elea.api import historysubscriber, logreader
from elea.api.historysubscriber import FollowingSubscriber
from elea.api.logprogress import Progress
from elea.model.errors import Congested, NotStored, OperationTimeout, StoreCorrupt, StoreReplaced, StoreTrimmed
from elea.model.timestamp import ns_from_ntp64
from tests.unit.api.logkeeper import LogKeeper, clients, config, wait_until


@pytest.fixture
def keeper() -> Iterator[LogKeeper]:
    made = LogKeeper()
    yield made
    made.close()


@pytest.fixture
def session(keeper: LogKeeper) -> Iterator[elea.Session]:
    with clients(keeper.locator) as made:
        yield made


def take(subscriber: Any, count: int) -> list[tuple[int, str]]:
    """The next samples: position and text."""
    return [seen(subscriber.recv()) for _ in range(count)]


def seen(sample: Any) -> tuple[int, str]:
    return sample.position, sample.payload.to_string()


# -- where it begins


def test_history_gives_the_last_samples_then_what_comes(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3")

    with session.declare_subscriber("k/**", history=2) as subscriber:
        old = take(subscriber, 2)
        keeper.put("4", "5")
        new = take(subscriber, 2)

    assert old + new == [(2, "2"), (3, "3"), (4, "4"), (5, "5")]


def test_history_of_more_than_there_is_gives_all(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1")

    with session.declare_subscriber("k/**", history=100) as subscriber:
        assert take(subscriber, 2) == [(0, "0"), (1, "1")]


def test_history_counts_samples_of_the_key_expression_only(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", key="k/a")
    keeper.put("1", "2", "3", key="k/b")
    keeper.put("4", key="k/a")

    with session.declare_subscriber("k/a", history=2) as subscriber:
        assert take(subscriber, 2) == [(0, "0"), (4, "4")]


@pytest.mark.parametrize(("since", "first"), [(0, 0), (2, 2), (4, 4)])
def test_since_a_position(keeper: LogKeeper, session: elea.Session, since: int, first: int) -> None:
    keeper.put("0", "1", "2", "3")

    with session.declare_subscriber("k/**", since=since) as subscriber:
        keeper.put("4")
        assert take(subscriber, 5 - first) == [(n, str(n)) for n in range(first, 5)]


def test_since_a_time(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2")
    time = datetime.fromtimestamp(ns_from_ntp64(keeper.clock) / 1e9 - 1.5, UTC)

    with session.declare_subscriber("k/**", since=time) as subscriber:
        assert take(subscriber, 2) == [(1, "1"), (2, "2")]


def test_since_some_time_ago(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("old")
    keeper.clock = session.new_timestamp().value.ntp64
    keeper.put("new")

    with session.declare_subscriber("k/**", since=timedelta(hours=1)) as subscriber:
        assert take(subscriber, 1) == [(1, "new")]


def test_the_oldest_sample_left_is_where_position_0_begins(keeper: LogKeeper, session: elea.Session) -> None:
    fill(keeper)
    first = keeper.trim(10)
    assert first > 0

    with session.declare_subscriber("k/**", since=0) as subscriber:
        assert subscriber.recv().position == first
    with pytest.raises(StoreTrimmed):
        session.declare_subscriber("k/**", since=1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"since": 9}, "behind the end"),
        ({"since": -1}, "not negative"),
        ({"history": 1, "since": 0}, "give one of them"),
        ({"history": 1, "allowed_origin": elea.Locality.REMOTE}, "where samples came from"),
        ({"since": datetime(2024, 1, 1)}, "no time zone"),
    ],
)
def test_a_beginning_without_sense_is_refused(session: elea.Session, options: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        session.declare_subscriber("k/**", **options)


def test_nobody_keeps_the_key(session: elea.Session) -> None:
    with pytest.raises(NotStored, match="elsewhere"):
        session.declare_subscriber("elsewhere/**", history=1)


# -- going on


def test_a_stored_sample_has_everything_it_was_put_with(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0")

    with session.declare_subscriber("k/**", since=0) as subscriber:
        sample = subscriber.recv()

    assert isinstance(sample, elea.StoredSample)
    assert (str(sample.key_expr), sample.kind, str(sample.encoding)) == ("k/a", elea.SampleKind.PUT, "zenoh/bytes")
    assert sample.timestamp is not None
    assert sample.timestamp.value.ntp64 == keeper.clock
    assert (sample.attachment, sample.source_info) == (None, None)


def test_a_live_sample_says_that_there_is_more_to_read(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(historysubscriber, "LEAST_PAUSE", 3600.0)
    monkeypatch.setattr(historysubscriber, "LONGEST_PAUSE", 3600.0)
    got: list[Any] = []
    with session.declare_subscriber("k/**", got.append, history=0):
        wait_until(lambda: keeper.reads == 2, "it has looked where to begin, and for more")

        keeper.put("0")

        wait_until(lambda: got, "the sample is read")
    assert list(map(seen, got)) == [(0, "0")]


def test_a_sample_that_nobody_told_of_is_found(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(historysubscriber, "LONGEST_PAUSE", 0.05)
    with session.declare_subscriber("k/**", since=0) as subscriber:
        keeper.put("0", live=False)

        assert take(subscriber, 1) == [(0, "0")]


def test_a_read_that_fails_for_a_while_is_repeated(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1")
    with session.declare_subscriber("k/**", since=0) as subscriber:
        assert take(subscriber, 2) == [(0, "0"), (1, "1")]
        keeper.failures = [Congested("not now"), OperationTimeout("too slow"), OperationTimeout("still")]

        keeper.put("2")

        assert take(subscriber, 1) == [(2, "2")]
        assert isinstance(subscriber, FollowingSubscriber)
        assert (keeper.failures, subscriber.interruptions) == ([], 2)


def test_a_slow_consumer_loses_nothing(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put(*map(str, range(600)))
    with session.declare_subscriber("k/**", elea.handlers.FifoChannel(3), since=0) as subscriber:
        subscriber.handler.patience = 0.0  # as if it had taken nothing for too long
        wait_until(lambda: len(subscriber.handler) == 3, "the channel is full")

        assert take(subscriber, 600) == [(n, str(n)) for n in range(600)]
        assert subscriber.dropped == 0


def test_large_samples_are_read_a_few_at_a_time(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logreader, "FIRST_ROWS", 10_000)
    monkeypatch.setattr(logreader, "STEP_BYTES", 1000)
    for _ in range(3):
        keeper.put(*["x"] * 1100, live=False)

    with session.declare_subscriber("k/**", since=0) as subscriber:
        assert [subscriber.recv().position for _ in range(3300)] == list(range(3300))
    assert keeper.reads >= 4


def test_a_function_is_called_in_order_and_may_end_the_subscriber(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put(*map(str, range(500)))
    got: list[int] = []

    def note(sample: Any) -> None:
        got.append(sample.position)
        if len(got) == 300:
            subscriber.undeclare()

    subscriber = session.declare_subscriber("k/**", (note, None), cursor="c", since=0)

    wait_until(lambda: keeper.log.cursor("c"), "the cursor is moved")
    wait_until(lambda: len(got) >= 300, "the function is called")
    assert got == list(range(300))


# -- cursors


def test_a_new_cursor_begins_at_the_end_and_is_kept_at_once(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1")

    session.declare_subscriber("k/**", cursor="c").undeclare()
    keeper.put("2")

    assert keeper.log.cursor("c") == 2
    with session.declare_subscriber("k/**", cursor="c") as subscriber:
        assert take(subscriber, 1) == [(2, "2")]


def test_a_consumer_that_leaves_in_good_order_goes_on_behind_the_last_it_took(
    keeper: LogKeeper, session: elea.Session
) -> None:
    keeper.put("0", "1", "2", "3")

    with session.declare_subscriber("k/**", since=0, cursor="c") as subscriber:
        take(subscriber, 3)

    with session.declare_subscriber("k/**", cursor="c") as subscriber:
        assert take(subscriber, 1) == [(3, "3")]


def test_a_session_that_is_closed_moves_the_cursor_first(keeper: LogKeeper) -> None:
    keeper.put("0", "1", "2", "3")
    with clients(keeper.locator) as session:
        take(session.declare_subscriber("k/**", since=0, cursor="c"), 3)

    assert keeper.log.cursor("c") == 3


def test_a_consumer_that_fails_gets_the_last_sample_again(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3")

    def fail() -> None:
        with session.declare_subscriber("k/**", since=0, cursor="c") as subscriber:
            take(subscriber, 3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert keeper.log.cursor("c") == 2


def test_a_cursor_moves_while_the_consumer_works(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3")
    with session.declare_subscriber("k/**", since=0, cursor="c") as subscriber:
        take(subscriber, 3)

        wait_until(lambda: keeper.log.cursor("c") == 2, "all but the sample at hand are done")
        threading.Event().wait(3 * historysubscriber.COMMIT_SECONDS)
        assert keeper.log.cursor("c") == 2


def test_a_cursor_also_moves_behind_samples_of_other_keys(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", key="k/a")
    keeper.put("1", "2", key="k/b")
    got: list[Any] = []
    with session.declare_subscriber("k/a", got.append, since=0, cursor="c"):
        wait_until(lambda: keeper.log.cursor("c") == 3, "the cursor is behind what is of no interest")

    assert list(map(seen, got)) == [(0, "0")]


def test_a_consumer_may_say_itself_when_it_is_done(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3")
    with session.declare_subscriber("k/**", since=0, cursor="c", auto_commit=False) as subscriber:
        take(subscriber, 2)
        subscriber.commit()
        assert keeper.log.cursor("c") == 2
        take(subscriber, 2)
        subscriber.commit(3)

    assert keeper.log.cursor("c") == 3


def test_a_subscriber_without_cursor_cannot_commit(keeper: LogKeeper, session: elea.Session) -> None:
    for options in ({}, {"history": 1}):
        with pytest.raises(TypeError, match="cursor"):
            session.declare_subscriber("k/**", **options).commit()  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.lists(st.booleans(), max_size=6), st.integers(0, 9)), max_size=8), st.data())
def test_progress_is_that_of_a_plain_list(steps: list[tuple[list[bool], int]], data: st.DataObject) -> None:
    """Each step is a run of positions, of which some are ours."""
    progress, position = Progress(0), 0
    ours: list[int] = []
    forgotten = 0
    for run, forget in steps:
        found = [position + at for at, wanted in enumerate(run) if wanted]
        position += len(run)
        ours += found
        progress.add(found, position)
        forgotten = max(forgotten, min(forget, len(ours)))
        progress.forget(forget)
        count = data.draw(st.integers(forgotten, len(ours)))
        behind = progress.behind(count)
        assert all(one < behind for one in ours[:count])
        assert not ours[count:] or behind <= ours[count]
        assert count < len(ours) or behind == position


# -- what cannot be had any more


def fill(keeper: LogKeeper) -> None:
    """More than is read at once."""
    for number in range(100):
        keeper.put(*[str(number)] * 1000, live=False, step=1)


def test_samples_that_retention_has_taken_end_the_subscriber_with_the_reason(
    keeper: LogKeeper, session: elea.Session
) -> None:
    keeper.put("0")
    with session.declare_subscriber("k/**", since=0) as subscriber:
        take(subscriber, 1)
        keeper.failures = [StoreTrimmed(1, 7)]

        keeper.put("1")

        with pytest.raises(StoreTrimmed) as caught:
            subscriber.recv()
        assert (caught.value.position, caught.value.first) == (1, 7)
        with pytest.raises(StoreTrimmed):
            list(subscriber)
        with pytest.raises(StoreTrimmed):
            subscriber.try_recv()
        assert isinstance(subscriber, FollowingSubscriber)
        assert isinstance(subscriber.error, StoreTrimmed)


def test_who_wants_to_know_of_losses_is_told_and_gets_the_rest(keeper: LogKeeper, session: elea.Session) -> None:
    fill(keeper)
    losses: list[elea.Loss] = []
    with session.declare_subscriber(
        "k/**", elea.handlers.FifoChannel(1), since=1000, on_loss=losses.append
    ) as subscriber:
        assert subscriber.recv().position == 1000
        first = keeper.trim(10)
        assert first > 90_000

        positions: list[int] = []
        while not positions or positions[-1] < 99_999:
            positions.append(subscriber.recv().position)

    (loss,) = losses
    assert isinstance(loss.cause, StoreTrimmed)
    assert (loss.resumed, loss.positions) == (first, first - loss.position)
    assert positions == [*range(1001, loss.position), *range(first, 100_000)]


def test_damage_is_told_and_passed_by(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put(*map(str, range(9)))
    keeper.damaged = range(3, 6)
    losses: list[elea.Loss] = []

    with session.declare_subscriber("k/**", since=0, on_loss=losses.append) as subscriber:
        assert take(subscriber, 6) == [(n, str(n)) for n in (0, 1, 2, 6, 7, 8)]

    (loss,) = losses
    assert isinstance(loss.cause, StoreCorrupt)
    assert (loss.position, loss.resumed, loss.positions) == (3, 6, 3)


def test_damage_ends_the_subscriber_behind_what_can_be_read(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put(*map(str, range(9)))
    keeper.damaged = range(3, 6)

    with session.declare_subscriber("k/**", since=0) as subscriber:
        assert take(subscriber, 3) == [(0, "0"), (1, "1"), (2, "2")]
        with pytest.raises(StoreCorrupt):
            subscriber.recv()


def test_another_log_in_its_place_ends_the_subscriber(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2")
    with session.declare_subscriber("k/**", since=0) as subscriber:
        take(subscriber, 3)
        epoch = keeper.log.epoch

        keeper.replace()
        keeper.put("other 0", "other 1", "other 2", "other 3")

        with pytest.raises(StoreReplaced) as caught:
            subscriber.recv()
        assert (caught.value.was, caught.value.epoch) == (epoch, keeper.log.epoch)


def test_another_log_in_its_place_is_read_from_its_start_if_wanted(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2")
    losses: list[elea.Loss] = []
    with session.declare_subscriber("k/**", since=0, cursor="c", on_loss=losses.append) as subscriber:
        take(subscriber, 3)
        wait_until(lambda: keeper.log.cursor("c") == 2, "the cursor is moved")

        keeper.replace()
        keeper.put("other 0", "other 1")

        assert take(subscriber, 2) == [(0, "other 0"), (1, "other 1")]
        assert isinstance(losses[0].cause, StoreReplaced)
        assert (losses[0].position, losses[0].resumed) == (3, 0)
    assert keeper.log.cursor("c") == 2


# -- replay


def test_replay_gives_samples_in_the_order_of_their_times(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("late", step=1 << 40)
    keeper.clock -= 1 << 41
    keeper.put("early", "middle")

    assert [seen(sample) for sample in session.replay("k/**", pace=None)] == [(1, "early"), (2, "middle"), (0, "late")]


def test_replay_keeps_the_pace_of_the_timestamps(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2")
    begun = session._node.loop.now()

    samples = list(session.replay("k/**", pace=20.0))

    assert len(samples) == 3
    assert session._node.loop.now() - begun >= 2 / 20


def test_replay_of_a_range_in_pieces_gives_each_sample_once(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where more samples have one time than fit a piece."""
    monkeypatch.setattr(logreader, "MOST_ROWS", 4)
    monkeypatch.setattr("elea.api.replay.FIRST_ROWS", 4)
    keeper.put(*map(str, range(5)))
    keeper.put(*map(str, range(5, 30)), step=0)
    keeper.put(*map(str, range(30, 40)))

    assert [seen(sample) for sample in session.replay("k/**", pace=None)] == [(n, str(n)) for n in range(40)]


def test_replay_ends_at_a_time(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3")

    def at(seconds_before_the_last: float) -> datetime:
        return datetime.fromtimestamp(ns_from_ntp64(keeper.clock) / 1e9 - seconds_before_the_last, UTC)

    assert [seen(sample) for sample in session.replay("k/**", at(2.5), at(0.5), None)] == [(1, "1"), (2, "2")]


def test_replay_does_not_run_after_its_own_tail(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logreader, "MOST_ROWS", 2)
    monkeypatch.setattr("elea.api.replay.FIRST_ROWS", 2)
    keeper.put("0", "1", "2", "3")
    got = []
    for sample in session.replay("k/**", pace=None):
        got.append(seen(sample))
        keeper.put("again")

    assert got == [(n, str(n)) for n in range(4)]


@pytest.mark.parametrize("pace", [0, -1.0])
def test_a_pace_must_go_forward(session: elea.Session, pace: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        session.replay("k/**", pace=pace)


# -- asyncio


def in_loop(keeper: LogKeeper, work: Any) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(60), aio.open(config("client", connect__endpoints=[keeper.locator])) as session:
            return await work(session)

    return asyncio.run(run())


def test_aio_follows_and_moves_its_cursor(keeper: LogKeeper) -> None:
    keeper.put("0", "1", "2")

    async def work(session: aio.Session) -> list[tuple[int, str]]:
        async with session.declare_subscriber("k/**", since=0, cursor="c", capacity=2) as subscriber:
            found = [seen(await subscriber.recv()) for _ in range(3)]
            keeper.put("3")
            async for sample in subscriber:
                return [*found, seen(sample)]
        return found

    assert in_loop(keeper, work) == [(n, str(n)) for n in range(4)]
    assert keeper.log.cursor("c") == 4


def test_aio_function_gets_everything_however_slow_it_is(keeper: LogKeeper) -> None:
    keeper.put(*map(str, range(300)))
    got: list[int] = []

    async def note(sample: Any) -> None:
        await asyncio.sleep(0)
        got.append(sample.position)

    async def work(session: aio.Session) -> None:
        async with session.declare_subscriber("k/**", note, since=0, cursor="c", capacity=2) as subscriber:
            subscriber._inbox._channel.patience = 0.0
            while len(got) < 300 or keeper.log.cursor("c") != 300:
                await asyncio.sleep(0.01)

    in_loop(keeper, work)
    assert got == list(range(300))


def test_aio_raises_why_it_ended(keeper: LogKeeper) -> None:
    keeper.put("0")

    async def work(session: aio.Session) -> None:
        async with session.declare_subscriber("k/**", since=0) as subscriber:
            await subscriber.recv()
            keeper.failures = [StoreTrimmed(1, 7)]
            keeper.put("1")
            with pytest.raises(StoreTrimmed):
                await subscriber.recv()
            with pytest.raises(StoreTrimmed):
                async for _ in subscriber:
                    pass

    in_loop(keeper, work)


def test_aio_replays(keeper: LogKeeper) -> None:
    keeper.put("0", "1", "2")

    async def work(session: aio.Session) -> list[tuple[int, str]]:
        return [seen(sample) async for sample in session.replay("k/**", pace=100)]

    assert in_loop(keeper, work) == [(0, "0"), (1, "1"), (2, "2")]


def test_aio_pulls(keeper: LogKeeper) -> None:
    async def work(session: aio.Session) -> list[str]:
        async with session.declare_subscriber("k/**", mode=elea.Pull(1)) as subscriber:
            found: list[elea.Sample] = []
            while len(found) < 2:
                await session.put("k/x", "x")
                found += await subscriber.pull()
            return [sample.payload.to_string() for sample in found]

    assert in_loop(keeper, work) == ["x", "x"]
