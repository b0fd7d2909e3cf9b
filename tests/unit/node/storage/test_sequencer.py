"""Who came first is served first, however quick the others are."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from elea.api.session import Session
from elea.model.errors import Congested
from elea.node.storage.sequencer import Sequencer
from tests.unit.node.storage.serving import batch, broker, failure, told

WAIT = 30.0


def test_turns_come_in_the_order_in_which_they_were_taken() -> None:
    turns, order = Sequencer(), list[int]()
    taken = [turns.take() for _ in range(20)]

    def work(number: int) -> None:
        with taken[number] as turn:
            turn.wait(WAIT)
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in reversed(range(20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)

    assert order == list(range(20))


def test_who_fails_before_its_turn_holds_nobody_up() -> None:
    turns = Sequencer()
    first, second, third = (turns.take() for _ in range(3))
    with pytest.raises(ValueError, match="no sense"), second:
        raise ValueError("no sense")
    with pytest.raises(Congested), third:
        third.wait(0.01)
    with first:
        first.wait(WAIT)
    with turns.take() as last:
        last.wait(WAIT)


def test_a_part_of_a_batch_waits_for_the_one_before_it() -> None:
    with broker(None, home={"key_expr": "home/**", "volume": "memory"}) as made, made.client() as session:
        early = _put(session, "src=b1.1.2;after=b1.1.1")
        first = told(session, "@store/batch/home/**?src=b1.1.0", payload=batch([("home/1", b"x"), ("home/2", b"y")]))
        late = told(session, "@store/batch/home/**?src=b1.1.2;after=b1.1.1", payload=batch([("home/3", b"z")]))

        assert early["error"] == "Congested"
        assert "b1.1.1" in early["text"]
        assert (first["first"], late["first"]) == (0, 2)
        assert _put(session, "src=b1.1.9;after=nobody")["error"] == "InvalidSelector"


def _put(session: Session, parameters: str) -> dict[str, Any]:
    return failure(session, f"@store/batch/home/**?{parameters}", payload=batch([("home/3", b"z")]))
