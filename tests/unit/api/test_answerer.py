"""Queryables over a real link: when an answer leaves, and when a query ends."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.api.apierrors import ChannelClosed
from tests.unit.node.test_backpressure import config

PATIENCE = 60.0
"""Seconds for what should take milliseconds; also the timeout of the queries, so that none ends by it."""


def quiet(mode: str, side: str, locator: str) -> elea.Config:
    """A session that says nothing by itself: a keep alive would make the other node look what there is to do."""
    made = config(mode, side, locator)
    made.insert_json5("transport/link/tx/lease", "3600000")
    return made


@pytest.fixture
def sessions() -> Iterator[tuple[elea.Session, elea.Session]]:
    """Who answers and who asks."""
    with elea.open(quiet("router", "listen", "tcp/127.0.0.1:0")) as answering:
        locator = answering._runtime.links.locators()[0]
        with elea.open(quiet("client", "connect", locator)) as asking:
            yield answering, asking


def ask(session: elea.Session) -> Any:
    return session.get("ask", timeout=2 * PATIENCE)


def payloads(replies: Any) -> list[str]:
    """All replies until the end, which must come."""
    found: list[str] = []
    while True:
        try:
            found.append(replies.recv(timeout=PATIENCE).ok.payload.to_string())
        except ChannelClosed:
            return found


def test_a_query_nobody_kept_ends_when_the_function_returns(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions

    with answering.declare_queryable("ask", lambda query: query.reply("ask", "yes")):
        assert [payloads(ask(asking)) for _ in range(20)] == [["yes"]] * 20


def test_a_query_that_was_kept_ends_with_its_last_reference(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions
    kept: list[elea.Query] = []
    arrived = threading.Event()

    def keep(query: elea.Query) -> None:
        kept.append(query)
        arrived.set()

    with answering.declare_queryable("ask", keep):
        replies = ask(asking)
        assert arrived.wait(PATIENCE)
        assert not replies.is_closed

        kept[0].reply("ask", "later")
        kept.clear()

        assert payloads(replies) == ["later"]


def test_a_query_in_a_cycle_ends_when_the_garbage_collector_finds_it(
    sessions: tuple[elea.Session, elea.Session],
) -> None:
    answering, asking = sessions
    arrived = threading.Event()

    def tie(query: elea.Query) -> None:
        knot: list[object] = [query]
        knot.append(knot)
        query.reply("ask", "tied")
        arrived.set()

    with answering.declare_queryable("ask", tie):
        replies = ask(asking)
        assert arrived.wait(PATIENCE)

        gc.collect()

        assert payloads(replies) == ["tied"]


def test_a_query_ends_although_the_function_failed(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions

    def fail(query: elea.Query) -> None:
        query.reply("ask", "before")
        raise RuntimeError("wanted")

    with answering.declare_queryable("ask", fail):
        assert payloads(ask(asking)) == ["before"]


def test_a_dropped_query_ends_at_once(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions
    kept: list[elea.Query] = []

    def drop(query: elea.Query) -> None:
        kept.append(query)
        query.reply("ask", "said")
        query.drop()

    with answering.declare_queryable("ask", drop):
        assert payloads(ask(asking)) == ["said"]


def test_a_query_handed_to_another_thread_ends_there(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions
    threads: list[threading.Thread] = []

    def answer(queries: list[elea.Query]) -> None:
        queries.pop().reply("ask", "elsewhere")

    def hand_over(query: elea.Query) -> None:
        threads.append(threading.Thread(target=answer, args=([query],)))
        threads[-1].start()

    with answering.declare_queryable("ask", hand_over):
        assert [payloads(ask(asking)) for _ in range(20)] == [["elsewhere"]] * 20
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("late", [False, True], ids=["at-once", "after-a-while"])
def test_a_reply_waits_for_no_function_that_goes_on(sessions: tuple[elea.Session, elea.Session], late: bool) -> None:
    """Answers are held back to leave together, but not for longer than the thread is held up."""
    answering, asking = sessions
    release = threading.Event()

    def go_on(query: elea.Query) -> None:
        # Later it is another thread that leads and brings what came, and this one is like any of the user's.
        while late and answering._node.delivers() and not release.is_set():
            threading.Event().wait(0.005)
        query.reply("ask", "now")
        release.wait(PATIENCE)

    with answering.declare_queryable("ask", go_on):
        replies = asking.get("ask", timeout=2 * PATIENCE, consolidation=elea.ConsolidationMode.NONE)
        first = replies.recv(timeout=PATIENCE / 2).ok.payload.to_string()
        held_up = not release.is_set()
        release.set()

        assert (first, held_up) == ("now", True)
        assert payloads(replies) == []


def test_a_blocked_function_holds_up_no_answer_of_another(sessions: tuple[elea.Session, elea.Session]) -> None:
    """Both questions come in one batch; the one behind is answered while the other's function blocks."""
    answering, asking = sessions
    release = threading.Event()

    with (
        answering.declare_queryable("slow", lambda query: release.wait(PATIENCE) and query.reply("slow", "slow")),
        answering.declare_queryable("fast", lambda query: query.reply("fast", "fast")),
    ):
        slow = asking.get("slow", timeout=2 * PATIENCE)
        fast = asking.get("fast", timeout=2 * PATIENCE)
        assert payloads(fast) == ["fast"]
        assert not slow.is_closed
        release.set()

        assert payloads(slow) == ["slow"]


def test_a_query_to_several_ends_when_all_have_answered(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions
    kept: list[elea.Query] = []
    arrived = threading.Event()

    def keep(query: elea.Query) -> None:
        kept.append(query)
        arrived.set()

    with (
        answering.declare_queryable("ask", lambda query: query.reply("ask", "quick")),
        answering.declare_queryable("**", keep),
    ):
        replies = asking.get("ask", timeout=2 * PATIENCE, consolidation=elea.ConsolidationMode.NONE)
        assert replies.recv(timeout=PATIENCE).ok.payload.to_string() == "quick"
        assert arrived.wait(PATIENCE)

        kept.pop().reply("ask", "slow")

        assert payloads(replies) == ["slow"]


def test_questions_and_answers_within_one_session_need_no_link() -> None:
    with (
        elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as session,
        session.declare_queryable("ask", lambda query: query.reply("ask", "here")),
    ):
        assert payloads(ask(session)) == ["here"]


def test_a_query_that_nobody_answers_in_time_gets_an_error(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions
    kept: list[elea.Query] = []

    with answering.declare_queryable("ask", kept.append):
        replies = list(asking.get("ask", timeout=0.2))

    # The router says so too, and may be first; then there are two.
    assert {reply.err.payload.to_string() for reply in replies} == {"Timeout"}
    assert len(replies) <= 2


def test_thousands_of_queries_leave_nothing_behind(sessions: tuple[elea.Session, elea.Session]) -> None:
    answering, asking = sessions

    with answering.declare_queryable("ask", lambda query: query.reply("ask", b"x")):
        room = threading.Semaphore(64)
        seen: list[bytes] = []
        for _ in range(3000):
            assert room.acquire(timeout=PATIENCE)
            callback: elea.handlers.Callback[Any] = elea.handlers.Callback(
                lambda reply: seen.append(reply.ok.payload.to_bytes()), room.release
            )
            asking.get("ask", callback, timeout=2 * PATIENCE)
        for _ in range(64):
            assert room.acquire(timeout=PATIENCE)

    assert seen == [b"x"] * 3000
    for session in sessions:
        assert len(session._node.space._queries) == 0
        assert (len(session._node.local._asking), len(session._node.local._left)) == (0, 0)
