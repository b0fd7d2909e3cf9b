"""A mode together with history, since or a cursor: the log waits, and gives when it is asked, or in windows."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import elea
from elea import aio
from elea.api import pullsubscriber
from elea.api.logreader import LogReader
from elea.model.errors import Congested, OperationTimeout, SessionClosed, StoreTrimmed
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


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cursors move at once."""
    monkeypatch.setattr(pullsubscriber, "COMMIT_SECONDS", 0.0)


def texts(samples: list[Any]) -> list[str]:
    return [sample.payload.to_string() for sample in samples]


def test_pulls_give_the_log_piece_by_piece(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1", "2", "3", "4")

    with session.declare_subscriber("k/**", mode=elea.Pull(max_samples=2), history=4) as subscriber:
        first, second = subscriber.pull(), subscriber.pull(1)
        keeper.put("5", live=False)
        rest = subscriber.pull(100)
        nothing = subscriber.pull()
        position = subscriber.position  # type: ignore[attr-defined]

    assert [texts(found) for found in (first, second, rest, nothing)] == [["1", "2"], ["3"], ["4", "5"], []]
    assert [sample.position for sample in first] == [1, 2]  # type: ignore[attr-defined]
    assert position == 6


def test_a_pull_ends_where_the_log_ended_when_it_was_asked(
    keeper: LogKeeper, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.api.logreader.FIRST_ROWS", 1)
    keeper.put("0", "1", "2")
    read = LogReader.read

    def read_while_more_comes(self: Any, *given: Any) -> Any:
        keeper.put("more")
        return read(self, *given)

    with session.declare_subscriber("k/**", mode=elea.Pull(), since=0) as subscriber:
        monkeypatch.setattr(LogReader, "read", read_while_more_comes)
        found = subscriber.pull()

    assert texts(found) == ["0", "1", "2", "more"]


def test_between_pulls_nothing_crosses_the_network(keeper: LogKeeper, session: elea.Session) -> None:
    with session.declare_subscriber("k/**", mode=elea.Pull(), since=0) as subscriber:
        with keeper.session.declare_publisher("k/a") as publisher:
            with session.declare_subscriber("k/a", lambda _: None):
                wait_until(lambda: publisher.matching_status.matching, "a subscriber that is told")
            wait_until(lambda: not publisher.matching_status.matching, "none but the sleeper")
            reads = keeper.reads
            keeper.put("0", "1")
        assert keeper.reads == reads
        assert texts(subscriber.pull()) == ["0", "1"]


def test_cursor_moves_when_more_is_asked_for_and_at_an_orderly_end(
    keeper: LogKeeper, session: elea.Session, prompt: None
) -> None:
    keeper.put("0", "1", "2", "3", "4")
    mode = elea.Pull(max_samples=2)

    with session.declare_subscriber("k/**", mode=mode, cursor="c", since=0) as subscriber:
        subscriber.pull()
        before = keeper.log.cursor("c")
        subscriber.pull()
        between = keeper.log.cursor("c")
    after = keeper.log.cursor("c")
    with session.declare_subscriber("k/**", mode=mode, cursor="c") as subscriber:
        last = texts(subscriber.pull())

    assert (before, between, after, last) == (0, 2, 4, ["4"])


def test_who_fails_with_a_sample_gets_the_pull_again(keeper: LogKeeper, session: elea.Session, prompt: None) -> None:
    keeper.put("0", "1", "2")
    mode = elea.Pull(max_samples=1)

    def fail() -> None:
        with session.declare_subscriber("k/**", mode=mode, cursor="c", since=0) as subscriber:
            subscriber.pull()
            subscriber.pull()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with session.declare_subscriber("k/**", mode=mode, cursor="c") as subscriber:
        again = texts(subscriber.pull(10))

    assert again == ["1", "2"]


def test_cursor_moves_only_by_commit_if_wanted_so(keeper: LogKeeper, session: elea.Session, prompt: None) -> None:
    keeper.put("0", "1", "2")

    with session.declare_subscriber("k/**", mode=elea.Pull(), cursor="c", since=0, auto_commit=False) as subscriber:
        subscriber.pull(1)
        subscriber.commit()
        subscriber.pull(1)
        subscriber.pull(1)
    assert keeper.log.cursor("c") == 1


def test_what_is_lost_is_told(keeper: LogKeeper, session: elea.Session) -> None:
    for number in range(8):
        keeper.put(str(number))
    losses: list[elea.Loss] = []
    told = session.declare_subscriber("k/**", mode=elea.Pull(), since=0, on_loss=losses.append)
    plain = session.declare_subscriber("k/**", mode=elea.Pull(), since=0)
    keeper.trim(3)
    keeper.put("8")

    got = texts(told.pull())
    for _ in range(2):
        with pytest.raises(StoreTrimmed):
            plain.pull()
    told.undeclare()
    plain.undeclare()

    assert got == [str(n) for n in range(keeper.log.first, 9)]
    assert [(loss.position, loss.resumed) for loss in losses] == [(0, keeper.log.first)]
    assert keeper.log.first >= 3


def test_trouble_that_passes_loses_nothing(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0", "1")

    with session.declare_subscriber("k/**", mode=elea.Pull(), since=0) as subscriber:
        keeper.failures += [Congested("too much to do")] * 4_000
        with pytest.raises((Congested, OperationTimeout)):
            subscriber.pull(timeout=2.0)
        keeper.failures.clear()

        assert texts(subscriber.pull()) == ["0", "1"]
        assert subscriber.interruptions >= 1  # type: ignore[attr-defined]


def test_pull_of_one_that_has_ended(keeper: LogKeeper, session: elea.Session) -> None:
    subscriber = session.declare_subscriber("k/**", mode=elea.Pull(), since=0)
    subscriber.undeclare()

    with pytest.raises(SessionClosed):
        subscriber.pull()


def test_handler_and_senseless_counts_are_refused(session: elea.Session, keeper: LogKeeper) -> None:
    with pytest.raises(ValueError, match="leave out the handler"):
        session.declare_subscriber("k/**", print, mode=elea.Pull(), history=1)
    with (
        session.declare_subscriber("k/**", mode=elea.Pull(), history=1) as subscriber,
        pytest.raises(ValueError, match="one sample at least"),
    ):
        subscriber.pull(0)


# -- windows


def test_periodic_pull_waits_for_its_window(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put("0")
    mode = elea.Periodic(period=3600, duration=1800, origin=timedelta(seconds=0.5), pull=True)

    with session.declare_subscriber("k/**", mode=mode, since=0) as subscriber:
        begun = time.monotonic()
        found = subscriber.pull()
        waited = time.monotonic() - begun

    assert texts(found) == ["0"]
    assert waited >= 0.4


def test_periodic_pull_gives_up_in_time_and_when_it_is_ended(keeper: LogKeeper, session: elea.Session) -> None:
    mode = elea.Periodic(period=3600, duration=1, origin=timedelta(hours=1), pull=True)
    subscriber = session.declare_subscriber("k/**", mode=mode, since=0)
    errors: list[BaseException] = []

    def pull() -> None:
        try:
            subscriber.pull()
        except Exception as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    with pytest.raises(OperationTimeout, match="window"):
        subscriber.pull(timeout=0.05)
    waiting = threading.Thread(target=pull)
    waiting.start()
    subscriber.undeclare()
    waiting.join(60)

    assert [type(error) for error in errors] == [SessionClosed]


def test_periodic_push_gives_samples_in_windows_only(keeper: LogKeeper, session: elea.Session) -> None:
    keeper.put(*map(str, range(30)))
    at: list[tuple[float, str]] = []
    period, duration, origin = 0.6, 0.2, 0.3
    mode = elea.Periodic(period=period, duration=duration, origin=timedelta(seconds=origin))

    def slowly(sample: Any) -> None:
        at.append((time.monotonic(), sample.payload.to_string()))
        time.sleep(0.02)

    declared = time.monotonic()
    with session.declare_subscriber("k/**", slowly, mode=mode, since=0) as subscriber:
        windows = subscriber._windows  # type: ignore[attr-defined]
        known = time.monotonic()
        wait_until(lambda: len(at) == 30, "all samples")

    assert [text for _, text in at] == [str(n) for n in range(30)]
    assert at[0][0] - declared >= origin
    # One window has room for 10 of them; those that begin in it may have been looked at a little later.
    assert windows is not None
    assert len({(moment - known) // period for moment, _ in at}) >= 3


# -- asyncio


def test_aio_pulls_with_a_cursor(keeper: LogKeeper) -> None:
    keeper.put("0", "1", "2")

    async def main() -> list[list[str]]:
        made = config("client", connect__endpoints=[keeper.locator])
        async with await aio.open(made) as session:
            found = []
            for _ in range(2):
                async with session.declare_subscriber(
                    "k/**", mode=elea.Pull(max_samples=2), cursor="c", since=0
                ) as subscriber:
                    found.append(texts(await subscriber.pull()))
            return found

    assert asyncio.run(main()) == [["0", "1"], ["2"]]


def test_aio_pull_that_is_cancelled_loses_nothing(keeper: LogKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.put(*map(str, range(10)))
    entered, go_on = threading.Event(), threading.Event()
    read = LogReader.read

    def held_up(self: Any, *given: Any) -> Any:
        entered.set()
        assert go_on.wait(60)
        return read(self, *given)

    async def main() -> tuple[list[str], int | None]:
        made = config("client", connect__endpoints=[keeper.locator])
        async with await aio.open(made) as session:
            async with session.declare_subscriber(
                "k/**", mode=elea.Pull(max_samples=4), cursor="c", since=0
            ) as subscriber:
                monkeypatch.setattr(LogReader, "read", held_up)
                task = asyncio.create_task(subscriber.pull())
                await asyncio.to_thread(entered.wait, 60)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                loop = asyncio.get_running_loop()
                loop.call_later(0.05, go_on.set)
                found = texts(await subscriber.pull(3))  # of the cancelled one's
                found += texts(await subscriber.pull(5))  # what it has left, and more
                entered.clear()
                go_on.clear()
                task = asyncio.create_task(subscriber.pull())
                await asyncio.to_thread(entered.wait, 60)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                go_on.set()
                inner: Any = subscriber._inner
                await asyncio.to_thread(wait_until, lambda: inner._next == 10, "the last pull, which nobody waits for")
            return found, keeper.log.cursor("c")

    found, cursor = asyncio.run(main())

    assert found == [str(n) for n in range(8)]
    assert cursor == 8  # not behind what the last pull brought to nobody


def test_aio_plain_pull_that_is_cancelled_loses_nothing(keeper: LogKeeper) -> None:
    mode = elea.Periodic(period=3600, duration=3000, origin=timedelta(seconds=0.3), pull=True)

    async def main() -> list[str]:
        made = config("client", connect__endpoints=[keeper.locator])
        async with await aio.open(made) as session, session.declare_subscriber("k/**", mode=mode) as subscriber:
            with keeper.session.declare_publisher("k/a") as publisher:
                await asyncio.to_thread(wait_until, lambda: publisher.matching_status.matching, "the subscriber")
                publisher.put("0")
                publisher.put("1")
            inner: Any = subscriber._inner
            await asyncio.to_thread(wait_until, lambda: inner.waiting == 2, "the samples")
            task = asyncio.create_task(subscriber.pull())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return texts(await subscriber.pull())

    assert asyncio.run(main()) == ["0", "1"]
