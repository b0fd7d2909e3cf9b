"""Batches on their way in pieces: two at a time, and never a piece without the one before it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import elea
from elea import aio
from elea.api import batches
from elea.model.errors import OperationTimeout, StoreFull
from tests.unit.api.stores import Scripted, broker, client, config, locator_of

pytest.importorskip("pyarrow")

PATIENCE = 60.0
PAIRS = [(f"home/{number}", str(number)) for number in range(20)]

Put = Callable[..., elea.Receipt]


def answered(query: elea.Query, **changes: object) -> None:
    """An acknowledgement of two samples by a store that keeps pieces in their order."""
    answer = {"log": "fake", "epoch": "e", "first": 0, "rows": 2, "repeated": 0, "in_turn": True, **changes}
    query.reply(query.key_expr, json.dumps(answer), encoding="application/json")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PIECE_ROWS", 2)


@pytest.fixture
def router() -> Iterator[elea.Session]:
    with broker() as session:
        yield session


@pytest.fixture(params=["threads", "loop"])
def put(router: elea.Session, request: pytest.FixtureRequest) -> Iterator[Put]:
    """`put_batch` of a client of either kind."""
    if request.param == "threads":
        with client(router) as session:
            yield session.put_batch
            assert session._storing.calls == set()
            assert not session._storing.numbers._open
        return

    def put_in_loop(*about: Any, **options: Any) -> elea.Receipt:
        async def main() -> elea.Receipt:
            async with aio.open(config("client", connect__endpoints=[locator_of(router)])) as session:
                try:
                    receipt: elea.Receipt = await session.put_batch(*about, **options)
                    return receipt
                finally:
                    assert session._inner._storing.calls == set()
                    assert not session._inner._storing.numbers._open

        return asyncio.run(main())

    yield put_in_loop


def after(store: Scripted) -> list[str | None]:
    """The numbers of first samples, and of those that were to be stored before."""
    pairs = [dict(part.split("=") for part in parameters.split(";")) for _, parameters in store.asked]
    return [f"{pair['src'].split('.')[2]}<{pair['after'].split('.')[2] if 'after' in pair else ''}" for pair in pairs]


def test_the_second_piece_is_sent_while_the_first_is_being_stored(router: elea.Session, put: Put) -> None:
    second = threading.Event()

    def answer(query: elea.Query) -> None:
        if "after" not in str(query.parameters):  # the very first one, which says what the store can do
            answered(query)
        elif ".2;" in str(query.parameters):
            waiting.append(query)
        else:
            second.set()
            for one in (*waiting, query):
                answered(one)
            waiting.clear()

    waiting: list[elea.Query] = []
    store = Scripted(router, answer)
    receipt = put(PAIRS[:6], timeout=PATIENCE)

    assert second.is_set()
    assert receipt.rows == 6
    assert after(store) == ["0<", "2<1", "4<3"]


def test_pieces_go_one_by_one_to_a_store_that_does_not_say_so(router: elea.Session, put: Put) -> None:
    store = Scripted(router, lambda query: answered(query, in_turn=False))

    assert put(PAIRS[:6], timeout=PATIENCE).rows == 6
    assert after(store) == ["0<", "2<", "4<"]


def test_what_was_stored_before_a_refusal_is_said(router: elea.Session, put: Put) -> None:
    full = Scripted.failing(error="StoreFull", text="no room")
    again = Scripted.failing(error="Congested", text="what comes before is not stored")
    Scripted(router, answered, full, again)

    with pytest.raises(StoreFull) as raised:
        put(PAIRS, timeout=PATIENCE)
    assert raised.value.__notes__ == ["2 samples of the batch had been acknowledged before"]


def test_a_store_that_falls_silent_is_not_waited_for_any_longer(router: elea.Session, put: Put) -> None:
    store = Scripted(router, answered, lambda query: store.keep(query))

    with pytest.raises(OperationTimeout):
        put(PAIRS, timeout=0.3)
    store.kept.clear()


def test_pieces_are_stored_in_their_order_and_once() -> None:
    with broker(home="home/**") as keeper, client(keeper) as session:
        for _ in range(5):
            assert session.put_batch(PAIRS, durability=None).rows == len(PAIRS)
        found = session.read("home/**").read_all()

    assert found.column("payload").to_pylist() == [value.encode() for _, value in PAIRS] * 5
    assert found.column("source_sn").to_pylist() == list(range(100))
