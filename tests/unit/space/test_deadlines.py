"""Deadlines and ids."""

from __future__ import annotations

from elea.space.deadlines import Deadlines
from elea.space.neighbour import Ids


def test_due_items_come_in_order_and_once() -> None:
    deadlines = Deadlines[str]()
    for when, item in ((3.0, "c"), (1.0, "a"), (2.0, "b")):
        deadlines.add(when, item)

    assert deadlines.due(2.0) == ["a", "b"]
    assert deadlines.due(2.0) == []
    assert deadlines.next() == 3.0


def test_called_off_items_are_skipped_and_swept() -> None:
    deadlines = Deadlines[int]()
    tickets = [deadlines.add(float(number), number) for number in range(1000)]

    for ticket in tickets[:990]:
        deadlines.call_off(ticket)

    assert len(deadlines) == 10
    assert len(deadlines._queue) <= 64
    assert deadlines.next() == 990.0
    deadlines.call_off(tickets[990])
    assert deadlines.due(991.0) == [991]


def test_empty_queue_has_no_deadline() -> None:
    assert Deadlines[int]().next() is None


def test_ids_wrap_and_leave_out_zero_and_those_in_use() -> None:
    ids = Ids(last=(1 << 32) - 2)

    assert [ids.fresh({1, 2}), ids.fresh({1, 2}), ids.fresh({(1 << 32) - 1})] == [(1 << 32) - 1, 3, 4]
    assert Ids(last=(1 << 32) - 2).fresh({(1 << 32) - 1}) == 1
