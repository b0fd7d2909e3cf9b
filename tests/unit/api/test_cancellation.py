"""`CancellationToken`: every action once, and nobody returns before all are done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import elea
import elea.aio
from elea.api.cancellation import CancellationToken


def test_cancelling_runs_every_action_once() -> None:
    token, done = CancellationToken(), list[str]()
    token._add(lambda: done.append("a"))
    removed = token._add(lambda: done.append("b"))
    token._add(lambda: done.append("c"))
    token._remove(removed)

    assert not token.is_cancelled
    token.cancel()
    token.cancel()

    assert done == ["a", "c"]
    assert token.is_cancelled
    assert repr(token) == "CancellationToken(is_cancelled=True)"


def test_an_action_added_later_runs_at_once() -> None:
    token, done = CancellationToken(), list[str]()
    token.cancel()

    number = token._add(lambda: done.append("late"))
    token._remove(number)

    assert done == ["late"]


def test_an_action_may_look_at_and_cancel_its_token() -> None:
    token, seen = CancellationToken(), list[bool]()

    def action() -> None:
        token.cancel()
        seen.append(token.is_cancelled)

    token._add(action)
    token.cancel()

    assert seen == [True]


def test_another_thread_waits_until_all_actions_are_done() -> None:
    token = CancellationToken()
    started, go, returned = threading.Event(), threading.Event(), threading.Event()

    def action() -> None:
        started.set()
        go.wait(10)

    def second() -> None:
        token.cancel()
        returned.set()

    token._add(action)
    first = threading.Thread(target=token.cancel)
    first.start()
    started.wait(10)
    other = threading.Thread(target=second)
    other.start()

    assert not returned.wait(0.02)
    go.set()
    first.join(10)
    other.join(10)
    assert returned.is_set()


# -- queries -----------------------------------------------------------------------------------------------------------

ALONE = "{scouting: {multicast: {enabled: false}}, listen: {endpoints: []}}"


@pytest.fixture
def session() -> Iterator[elea.Session]:
    """A session that answers k/* with two replies and never ends its answer."""
    kept: list[elea.Query] = []

    def answer(query: elea.Query) -> None:
        query.reply("k/1", "1")
        query.reply("k/2", "2")
        kept.append(query)

    with elea.open(elea.Config.from_json5(ALONE)) as opened:
        opened.declare_queryable("k/*", answer)
        opened.liveliness().declare_token("alive/1")
        yield opened


def cancelled() -> CancellationToken:
    token = CancellationToken()
    token.cancel()
    return token


def test_a_query_with_a_cancelled_token_raises_as_in_eclipse_zenoh(session: elea.Session) -> None:
    querier = session.declare_querier("k/*")

    with pytest.raises(elea.ZError, match="query was cancelled"):
        session.get("k/*", cancellation_token=cancelled())
    with pytest.raises(elea.ZError, match="query was cancelled"):
        querier.get(cancellation_token=cancelled())
    with pytest.raises(elea.ZError, match="query was cancelled"):
        session.liveliness().get("alive/*", cancellation_token=cancelled())


def test_cancel_returns_when_the_running_callback_has_ended_and_nothing_comes_after(session: elea.Session) -> None:
    token, log = CancellationToken(), list[str]()
    begun, go = threading.Event(), threading.Event()

    def take(reply: elea.Reply) -> None:
        log.append(f"begin {reply.ok.key_expr}")  # type: ignore[union-attr]
        begun.set()
        go.wait(10)
        log.append("end")

    session.get("k/*", take, consolidation=elea.ConsolidationMode.NONE, cancellation_token=token)
    assert begun.wait(10)

    def cancel() -> None:
        token.cancel()
        log.append("cancelled")

    other = threading.Thread(target=cancel)
    other.start()
    other.join(0.05)
    assert log == ["begin k/1"]
    go.set()
    other.join(10)
    session.put("other", "")  # whoever delivers has had its turn
    assert list(session.get("nobody")) == []

    assert log == ["begin k/1", "end", "cancelled"]


def test_replies_held_back_for_consolidation_are_forgotten(session: elea.Session) -> None:
    token = CancellationToken()
    replies = session.get("k/*", consolidation=elea.ConsolidationMode.LATEST, cancellation_token=token)
    list(session.get("nobody"))  # behind it: the replies have come

    token.cancel()

    assert list(replies) == []


def test_a_callback_may_cancel_its_own_query(session: elea.Session) -> None:
    token, done = CancellationToken(), threading.Event()
    seen: list[str] = []

    def take(reply: elea.Reply) -> None:
        seen.append(str(reply.ok.key_expr))  # type: ignore[union-attr]
        token.cancel()
        done.set()

    session.get("k/*", take, consolidation=elea.ConsolidationMode.NONE, cancellation_token=token)

    assert done.wait(10)
    assert list(session.get("nobody")) == []
    assert seen == ["k/1"]


def test_the_handler_is_told_once_that_nothing_more_comes(session: elea.Session) -> None:
    token, ends = CancellationToken(), list[int]()
    callback: elea.handlers.Callback[elea.Reply] = elea.handlers.Callback(lambda _: None, lambda: ends.append(1))

    session.get("k/*", callback, cancellation_token=token)
    token.cancel()
    token.cancel()

    assert ends == [1]


def test_ended_queries_leave_nothing_in_the_token(session: elea.Session) -> None:
    token = CancellationToken()

    for _ in range(3):
        list(session.get("nobody", cancellation_token=token))
        list(session.liveliness().get("alive/*", cancellation_token=token))

    assert token._actions == {}


def test_asyncio_raises_and_ends_alike() -> None:
    async def run() -> None:
        async with await elea.aio.open(elea.Config.from_json5(ALONE)) as session:
            with pytest.raises(elea.ZError, match="query was cancelled"):
                await session.get("k/*", cancellation_token=cancelled())

            token = CancellationToken()
            held: list[object] = []
            async with await session.declare_queryable("k/*", held.append):
                replies = await session.get("k/1", cancellation_token=token)
                token.cancel()
                assert [reply async for reply in replies] == []
            assert token._actions == {}

    asyncio.run(run())
