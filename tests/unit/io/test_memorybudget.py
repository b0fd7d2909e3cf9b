"""One budget for all holders: fair, given back, and no share of a queue below a batch."""

from __future__ import annotations

from functools import partial

from elea.io.memorybudget import WORTH, MemoryBudget
from elea.model.limits import BLOCKED_PART, QUEUE_BYTES, QUEUE_LEAST


class Bound:
    """A queue that knows its bound."""

    def __init__(self) -> None:
        self.octets = QUEUE_BYTES

    def limit(self, octets: int) -> None:
        self.octets = octets


def test_holder_of_most_gives_way_until_there_is_room() -> None:
    budget = MemoryBudget(100)
    gone: list[int] = []
    holders = [budget.share(partial(gone.append, number)) for number in range(3)]
    for holder, octets in zip(holders, (30, 50, 20), strict=True):
        assert holder.take(octets)

    assert budget.share().take(25)

    assert gone == [1]
    assert (budget.used, holders[1].granted, budget.revoked, budget.refused) == (75, 0, 1, 0)


def test_nobody_gives_way_to_one_who_would_hold_as_much() -> None:
    budget = MemoryBudget(100)
    first, second = budget.share(lambda: None), budget.share(lambda: None)
    assert first.take(50)
    assert second.take(50)

    assert not first.take(1)
    assert not budget.share(lambda: None).take(50)
    assert budget.refused == 2


def test_what_cannot_be_taken_away_is_not() -> None:
    budget = MemoryBudget(100)
    fixed = budget.share()
    assert fixed.take(100)

    assert not budget.share(lambda: None).take(1)
    fixed.close()
    assert budget.share(lambda: None).take(100)


def test_much_that_is_given_back_is_told_once() -> None:
    budget, told = MemoryBudget(), []
    budget.on_given = lambda: told.append(budget.used)
    share = budget.share(lambda: None)
    assert share.take(2 * WORTH)

    share.give(WORTH - 1)
    assert told == []
    share.give(1)
    share.give(1)

    assert told == [WORTH]
    assert budget.tidy()
    assert not budget.tidy()


def test_many_links_that_take_nothing_have_less_each_and_never_less_than_a_batch() -> None:
    budget = MemoryBudget(8 * BLOCKED_PART * QUEUE_BYTES)
    queues = [Bound() for _ in range(1024)]
    for number, queue in enumerate(queues, 1):
        budget.blocked(queue)
        if number == 8:
            assert {one.octets for one in queues[:8]} == {QUEUE_BYTES}
        if number == 32:
            assert max(one.octets for one in queues[:32]) == QUEUE_BYTES // 4

    assert {one.octets for one in queues} == {QUEUE_LEAST}
    for queue in queues:
        budget.unblocked(queue)
    assert {one.octets for one in queues[:900]} == {QUEUE_BYTES}
    assert budget.blocked_links == 0
