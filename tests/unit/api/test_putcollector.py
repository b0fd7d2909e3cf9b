"""Acknowledged puts of several threads: those that wait at the same time go together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import elea
from elea.api import putcollector
from elea.api.putcollector import LEADERS
from elea.model.errors import SessionClosed, StoreFull
from elea.node.storage.putsrequest import PutsRequests
from elea.wire.puts import read_puts
from tests.unit.api.stores import Scripted, broker, client
from tests.unit.api.test_putgroups import grouped, services, teaching

pytest.importorskip("pyarrow")

PATIENCE = 60.0


@pytest.fixture
def router() -> Iterator[elea.Session]:
    with broker() as session:
        yield session


@pytest.fixture
def session(router: elea.Session) -> Iterator[elea.Session]:
    with client(router) as made:
        yield made


class Puts:
    """A thread for each key, and what became of its put."""

    def __init__(self, session: elea.Session, *keys: str) -> None:
        self.outcomes: dict[str, Any] = {}
        self._session = session
        self._threads = [threading.Thread(target=self._put, args=(key,), daemon=True) for key in keys]
        for thread in self._threads:
            thread.start()

    def _put(self, key: str) -> None:
        try:
            self.outcomes[key] = self._session.put(key, key, ack=True, timeout=PATIENCE)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.outcomes[key] = error

    def join(self) -> dict[str, Any]:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return self.outcomes


def wait_until(true: Any) -> None:
    for _ in range(int(PATIENCE / 0.01)):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it has not come to that")


class Busy(Scripted):
    """A store with as many requests as threads send by themselves; it answers when it is told to."""

    def __init__(self, router: elea.Session, session: elea.Session, *answers: Any) -> None:
        kept = [self.keep] * LEADERS
        super().__init__(router, teaching, *kept, *(answers or [grouped]))
        session.put("home/0", "x", ack=True)
        self.first = []
        for number in range(LEADERS):
            self.first.append(Puts(session, f"home/first/{number}"))
            wait_until(lambda wanted=number + 1: len(self.kept) == wanted)

    def answer(self) -> None:
        for query in self.kept:
            grouped(query)
        self.kept.clear()


def waiting(session: elea.Session, count: int) -> None:
    wait_until(lambda: len(session._storing._collector._due) == count)


def test_threads_that_wait_are_sent_together(router: elea.Session, session: elea.Session) -> None:
    sizes: list[int] = []

    def remember(query: elea.Query) -> None:
        assert query.payload is not None
        sizes.append(len(read_puts(query.payload.to_bytes())))
        grouped(query)

    store = Busy(router, session, remember)
    puts = Puts(session, *(f"home/{number}" for number in range(10)))
    waiting(session, 10)
    store.answer()
    outcomes = puts.join()

    assert sizes == [10]
    assert sorted(receipt.position for receipt in outcomes.values()) == list(range(10))
    assert [first.join().popitem()[1].position for first in store.first] == [0] * LEADERS
    assert session._storing._collector._leaders == 0
    assert not session._storing.numbers._open


def test_one_error_is_one_threads(router: elea.Session, session: elea.Session) -> None:
    refused = {"1": {"error": "StoreFull", "text": "no room"}}
    store = Busy(router, session, lambda query: grouped(query, refused=refused))
    puts = Puts(session, "home/1", "home/2", "home/3")
    waiting(session, 3)
    store.answer()
    outcomes = list(puts.join().values())

    assert sum(isinstance(outcome, StoreFull) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, elea.Receipt) for outcome in outcomes) == 2


def test_those_of_a_group_that_was_cut_off_are_sent_one_by_one(router: elea.Session, session: elea.Session) -> None:
    store = Busy(router, session, Scripted.silent, teaching)
    puts = Puts(session, "home/1", "home/2")
    waiting(session, 2)
    store.answer()

    assert [receipt.position for receipt in puts.join().values()] == [7, 7]
    assert services(store) == ["put", "puts", "puts", "puts", "put", "put"]


def test_a_busy_store_gets_the_group_once_more(router: elea.Session, session: elea.Session) -> None:
    store = Busy(router, session, Scripted.failing(error="Congested", text="later"), grouped)
    puts = Puts(session, "home/1", "home/2")
    waiting(session, 2)
    store.answer()

    assert sorted(receipt.position for receipt in puts.join().values()) == [0, 1]


def test_samples_that_cannot_go_together_go_one_after_the_other(router: elea.Session, session: elea.Session) -> None:
    store = Busy(router, session)
    puts = [Puts(session, "home/1")]
    waiting(session, 1)
    other = threading.Thread(target=lambda: session.put("home/2", "b", ack=True, timeout=PATIENCE / 2), daemon=True)
    other.start()
    waiting(session, 2)
    puts.append(Puts(session, "home/3"))
    waiting(session, 3)
    store.answer()
    other.join(PATIENCE)

    assert [one.join().popitem()[1].position for one in puts] == [0, 0]
    assert services(store) == ["put", *["puts"] * (LEADERS + 3)]


def test_closing_the_session_ends_the_waits(router: elea.Session, session: elea.Session) -> None:
    store = Busy(router, session)
    puts = Puts(session, "home/1", "home/2")
    waiting(session, 2)
    session.close()

    outcomes = [*puts.join().values(), *(first.join().popitem()[1] for first in store.first)]
    assert all(isinstance(outcome, SessionClosed) for outcome in outcomes)
    with pytest.raises(SessionClosed):
        session.put("home/1", "a", ack=True)


class Interrupted:
    """A lock of somebody who presses control-C while waiting for it."""

    def acquire(self) -> bool:
        raise KeyboardInterrupt


def test_who_is_interrupted_leaves_the_others(
    router: elea.Session, session: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Busy(router, session)
    collector = session._storing._collector
    puts = Puts(session, "home/1")
    waiting(session, 1)
    plain = putcollector._Waiter

    def interrupted(*about: Any) -> Any:
        made = plain(*about)
        made.turn = Interrupted()  # type: ignore[assignment]
        return made

    monkeypatch.setattr(putcollector, "_Waiter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.put("home/2", "b", ack=True)
    monkeypatch.undo()
    waiting(session, 1)
    store.answer()

    assert puts.join().popitem()[1].position == 0
    for first in store.first:
        first.join()
    assert collector._leaders == 0
    assert not session._storing.numbers._open


def test_many_threads_store_everything_once() -> None:
    sizes: list[int] = []
    whole = PutsRequests.group

    def counted(self: PutsRequests, *about: Any) -> Any:
        found = whole(self, *about)
        sizes.append(len(found.places))
        return found

    with broker(home="home/**") as keeper, client(keeper) as session:
        PutsRequests.group = counted  # type: ignore[method-assign, assignment]
        try:
            session.put("home/first", "x", ack=True)
            rounds = [Puts(session, *(f"home/{turn}/{number}" for number in range(30))) for turn in range(4)]
            receipts = {key: receipt.position for one in rounds for key, receipt in one.join().items()}
        finally:
            PutsRequests.group = whole  # type: ignore[method-assign]
        found = session.read("home/**").read_all()

    stored = dict(zip(found.column("key").to_pylist(), found.column("position").to_pylist(), strict=True))
    assert stored.pop("home/first") == 0
    assert stored == receipts
    assert sum(sizes) == 120
    assert len(sizes) < 120  # some did go together
