"""Mailboxes, rounds and the watch: order, isolation, take-over."""

from __future__ import annotations

import threading

import pytest

from elea.broker.delivery import Mailbox, Round, Watch
from elea.io.timers import monotonic
from elea.model.limits import MAILBOX, MAILBOX_BYTES

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
    box, made = Mailbox(got.append), Round()

    assert made.add(box, "large", MAILBOX_BYTES + 5)  # one item may stand above the bound
    assert not made.add(box, "run of seven", 1, 7)
    assert made.add(box, "end")  # nobody may miss the end of what was lost
    assert (box.dropped, made.dropped) == (7, 7)
    made.make()
    assert made.add(box, "again", MAILBOX_BYTES - 1)
    assert made.add(box, "more", 1)
    assert not made.add(box, "too much", 1)
    made.make()

    assert got == ["large", "end", "again", "more"]
    assert (box.dropped, made.dropped) == (8, 8)


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
    made = Round()
    made.add(slow, 1)
    stuck = threading.Thread(target=made.make)
    stuck.start()
    while made:
        pass  # until the first thread has taken the slow one

    made.add(slow, 2)
    made.add(quick, "quick")
    made.make()

    assert others == ["quick"]
    hold.set()
    stuck.join(PATIENCE)
    assert not stuck.is_alive()


def test_every_item_is_delivered_in_order_under_many_threads() -> None:
    got: list[tuple[int, int]] = []
    box = Mailbox(got.append)
    made = Round()

    def add(thread: int) -> None:
        for item in range(500):
            made.add(box, (thread, item))
            made.make()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(got) == 2000
    for number in range(4):
        assert [item for thread, item in got if thread == number] == list(range(500))


def test_couriers_deliver_for_threads_that_must_not() -> None:
    where: list[str] = []
    done = threading.Event()
    made = Round()

    def take(_: object) -> None:
        where.append(threading.current_thread().name)
        done.set()

    made.add(Mailbox(take), 1)
    made.make_soon()

    assert done.wait(PATIENCE)
    assert where == ["elea-deliver"]
    made.close()


def test_the_watch_takes_over_from_who_is_held_up_and_from_nobody_else() -> None:
    class Reader:
        busy_since = 0.0

        def __init__(self) -> None:
            self.taken = threading.Event()

        def take_over(self) -> None:
            self.busy_since = 0.0
            self.taken.set()

    held_up, idle = Reader(), Reader()
    watch = Watch()
    watch.add(held_up)
    watch.add(idle)
    held_up.busy_since = monotonic()
    watch.look()

    assert held_up.taken.wait(PATIENCE)
    assert not idle.taken.is_set()
    assert watch.takeovers == 1
    watch.close()
