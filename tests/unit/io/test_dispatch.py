"""Mailboxes and the dispatch queue: order, isolation, bounds, and who brings what."""

from __future__ import annotations

import threading

import pytest

from elea.io import dispatch
from elea.io.dispatch import DispatchQueue, Mailbox
from elea.model.limits import MAILBOX, MAILBOX_BYTES
from elea.wire import compiled
from tests.unit.io.ends import until

PATIENCE = 5.0


def test_items_come_in_order_and_once() -> None:
    got: list[int] = []
    box = Mailbox(got.append)

    for item in range(5):
        box.add(item)
    box.empty()
    box.empty()

    assert got == [0, 1, 2, 3, 4]


def test_what_a_handler_adds_to_its_own_mailbox_comes_after_it_returns() -> None:
    got: list[str] = []

    def take(item: str) -> None:
        got.append(f"begin {item}")
        if item == "first":
            box.add("second")
            box.empty()  # somebody is at it already: us
        got.append(f"end {item}")

    box = Mailbox(take)
    box.add("first")
    box.empty()

    assert got == ["begin first", "end first", "begin second", "end second"]


def test_a_handler_that_fails_is_counted_and_the_next_item_comes() -> None:
    got: list[int] = []

    def take(item: int) -> None:
        if item == 1:
            raise ValueError("boom")
        got.append(item)

    box = Mailbox(take)
    for item in (0, 1, 2):
        box.add(item)
    box.empty()

    assert got == [0, 2]
    assert box.failed == 1


def test_a_full_mailbox_drops_and_counts() -> None:
    box = Mailbox(lambda _: None)

    for item in range(MAILBOX + 3):
        box.add(item)

    assert box.dropped == 3


def test_a_mailbox_is_full_when_it_holds_too_many_octets() -> None:
    got: list[str] = []
    box, queue = Mailbox(got.append), DispatchQueue()

    assert queue.add(box, "large", MAILBOX_BYTES + 5)  # one item may stand above the bound
    assert not queue.add(box, "run of seven", 1, 7)
    assert queue.add(box, "end")  # nobody may miss the end of what was lost
    assert (box.dropped, queue.dropped) == (7, 7)
    queue.make()
    assert queue.add(box, "again", MAILBOX_BYTES - 1)
    assert queue.add(box, "more", 1)
    assert not queue.add(box, "too much", 1)
    queue.make()

    assert got == ["large", "end", "again", "more"]
    assert (box.dropped, queue.dropped) == (8, 8)


def test_a_slow_handler_is_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    box = Mailbox(lambda _: None)
    box.add("large", MAILBOX_BYTES)

    for _ in range(1_000):
        box.add("lost", 1, 50)

    assert [record.getMessage().partition(" waiting")[0] for record in caplog.records] == [
        "handler too slow: dropped=50"
    ]


def test_a_held_up_handler_stops_no_other_mailbox() -> None:
    hold = threading.Event()
    others: list[str] = []

    def wait(_: object) -> None:
        hold.wait(PATIENCE)

    slow, quick = Mailbox(wait), Mailbox(others.append)
    queue = DispatchQueue()
    queue.add(slow, 1)
    stuck = threading.Thread(target=queue.make)
    stuck.start()
    while queue:
        pass  # until the first thread has taken the slow one

    queue.add(slow, 2)
    queue.add(quick, "quick")
    queue.make()

    assert others == ["quick"]
    hold.set()
    stuck.join(PATIENCE)
    assert not stuck.is_alive()


def test_every_item_is_delivered_in_order_under_many_threads() -> None:
    got: list[tuple[int, int]] = []
    box = Mailbox(got.append)
    queue = DispatchQueue()

    def add(thread: int) -> None:
        for item in range(500):
            queue.add(box, (thread, item))
            queue.make()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(got) == 2000
    for number in range(4):
        assert [item for thread, item in got if thread == number] == list(range(500))


def test_workers_deliver_for_threads_that_must_not() -> None:
    where: list[str] = []
    done = threading.Event()
    queue = DispatchQueue()

    def take(_: object) -> None:
        where.append(threading.current_thread().name)
        done.set()

    queue.add(Mailbox(take), 1)
    queue.make_soon()

    assert done.wait(PATIENCE)
    assert where == ["elea-dispatch"]
    queue.close()


def test_a_slow_handler_is_run_by_a_worker_until_it_is_quick_again() -> None:
    where: list[str] = []
    queue = DispatchQueue()
    slow = [True]

    def take(_: object) -> None:
        where.append(threading.current_thread().name)
        if slow[0]:
            threading.Event().wait(dispatch.SLOW * 2)

    box = Mailbox(take)
    for number in range(4):
        slow[0] = number == 0
        queue.add(box, number)
        queue.make()
        assert until(lambda number=number: len(where) == number + 1 and not box._busy.locked())  # type: ignore[misc]

    assert where[1] == "elea-dispatch"  # it was slow before
    assert where[0] == where[2] == where[3] == threading.current_thread().name
    queue.close()


def test_slow_handlers_hold_up_neither_the_leader_nor_each_other() -> None:
    hold, begun = threading.Event(), threading.Semaphore(0)
    queue = DispatchQueue()
    quick: list[int] = []

    def wait(_: object) -> None:
        begun.release()
        hold.wait(PATIENCE)

    boxes = [Mailbox(wait) for _ in range(3)]
    for box in boxes:
        box.is_slow = True
        queue.add(box, 1)
    queue.add(Mailbox(quick.append), 1)
    queue.make()

    assert quick == [1]
    assert [begun.acquire(timeout=PATIENCE) for _ in boxes] == [True] * 3  # all at once
    hold.set()
    queue.close()


def test_a_slow_handler_gets_everything_in_order_whoever_brings_it() -> None:
    got: list[int] = []
    queue = DispatchQueue()

    def take(item: int) -> None:
        got.append(item)
        if not item % 50:
            threading.Event().wait(dispatch.SLOW * 1.5)

    box = Mailbox(take)
    for item in range(500):
        queue.add(box, item)
        queue.make()

    assert until(lambda: len(got) == 500)
    assert got == list(range(500))
    queue.close()


@pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-in for the clock")
def test_a_full_mailbox_is_a_closed_gate_while_its_handler_takes_something(monkeypatch: pytest.MonkeyPatch) -> None:
    time = [100.0]
    monkeypatch.setattr(dispatch, "monotonic", lambda: time[0])
    box = Mailbox(lambda _: None)
    assert box.is_open()
    box.add("large", MAILBOX_BYTES)
    box.add("beyond", MAILBOX_BYTES, beyond=True)

    for _ in range(3):
        assert not box.is_open()
        time[0] += dispatch.PATIENCE - 1
        box._brought += 1  # the handler has taken something
    assert not box.is_open()
    time[0] += dispatch.PATIENCE + 1

    assert box.is_open()  # there is no sense in waiting
    assert box.is_full()
    box.empty()
    assert box.is_open()
    assert not box.is_full()


def test_what_is_for_one_channel_only_is_told_from_what_is_for_others() -> None:
    channel, got = object(), list[str]()
    queue = DispatchQueue()
    mine, other = Mailbox(got.append, channel=channel), Mailbox(got.append)

    assert queue.bring_only(channel)
    queue.add(mine, "mine")
    queue.add(mine, "mine too")
    assert queue.is_only_for(channel)
    assert queue.bring_only(channel)
    queue.add(mine, "later")
    queue.add(other, "for another")
    assert not queue.is_only_for(channel)
    assert not queue.bring_only(channel)
    assert got == ["mine", "mine too"]
    queue.make()

    assert got == ["mine", "mine too", "later", "for another"]
