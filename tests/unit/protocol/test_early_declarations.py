"""Transactions of declarations, and pulls."""

from __future__ import annotations

from typing import Any

import pytest

from elea.model.errors import RuleBroken
from elea.protocol.early.declarations import Declarations
from elea.protocol.early.declarer import Declarer
from elea.protocol.early.generation import XRCE2017, ZENOH2018
from elea.protocol.early.pulls import Pulls, mode_of
from elea.protocol.pacing import PULL

m = ZENOH2018.messages


def commit(table: Declarations, *listed: Any, id: int = 1) -> tuple[int, int | None, list[Any]]:
    changes, result, _ = table.receive(0, 0, m.Declare(0, (*listed, m.CommitDecl(id))))
    table.answered(0)
    return result.status, result.id, changes


def test_a_transaction_holds_as_a_whole_or_not_at_all() -> None:
    table = Declarations(ZENOH2018)
    good, bad = m.ResourceDecl(2, b"zenoh://a"), m.ResourceDecl(4, b"no scheme")

    assert commit(table, good, bad) == (5, 4, [])
    assert not table.space(0).resources

    status, _, changes = commit(table, good, m.PublisherDecl(2))
    assert status == 0
    assert [change.kind for change in changes] == ["resource", "publisher"]


def test_resources_are_immutable_and_declared_twice_without_effect() -> None:
    table = Declarations(ZENOH2018)
    commit(table, m.ResourceDecl(2, b"zenoh://a"))

    assert commit(table, m.ResourceDecl(2, b"zenoh://a")) == (0, None, [])
    assert commit(table, m.ResourceDecl(2, b"zenoh://b")) == (2, 2, [])


def test_nothing_happens_before_the_commit() -> None:
    table = Declarations(ZENOH2018)

    assert table.receive(0, 0, m.Declare(0, (m.ResourceDecl(2, b"zenoh://a"),))) == ([], None, [])
    assert table.pending == 1
    assert not table.spaces


def test_what_is_committed_and_wrong_ends_the_session() -> None:
    table = Declarations(ZENOH2018)
    with pytest.raises(RuleBroken) as caught:
        table.receive(0, 0, m.Declare(0, (m.ResourceDecl(3, b"zenoh://a"),), committed=True))
    assert caught.value.reaction == "close-6"


def test_a_binding_names_a_selection_and_forgetting_drops_its_users() -> None:
    table = Declarations(ZENOH2018)
    query = m.SelectionDecl(1, b"zenoh://a/*")
    subscriber = m.SubscriberDecl(3, m.SubscriptionModeId.PushModeId)

    assert commit(table, m.BindingDecl(1, 3)) == (5, 1, [])
    assert commit(table, query, m.BindingDecl(1, 3), subscriber)[0] == 0
    _, _, changes = commit(table, m.ForgetSelectionDecl(3))

    assert [(change.kind, change.now) for change in changes] == [("subscriber", None), ("selection", None)]


def test_an_id_in_anonymous_use_gets_no_name() -> None:
    table = Declarations(ZENOH2018)
    assert commit(table, m.PublisherDecl(6))[0] == 0
    assert commit(table, m.ResourceDecl(6, b"zenoh://a")) == (2, 6, [])


@pytest.mark.requirement("Z18-DCL-19")
def test_too_many_pending_declarations_are_refused() -> None:
    table = Declarations(ZENOH2018)
    for number in range(5000):
        table.receive(0, 0, m.Declare(0, (m.PublisherDecl(2 + 2 * number),)))

    assert commit(table)[0] == 3
    assert table.pending == 0


def test_too_much_declared_is_refused() -> None:
    table = Declarations(ZENOH2018, limit=2)
    commit(table, m.PublisherDecl(2), m.PublisherDecl(4))

    assert commit(table, m.PublisherDecl(6)) == (1, 6, [])


def test_a_declarer_waits_for_results_as_the_mode_says() -> None:
    declarer = Declarer(ZENOH2018, mode=0)
    told: list[Any] = []
    for id in (2, 4):
        declarer.declare([m.PublisherDecl(id)], told.append)

    assert len(declarer.take()) == 1
    assert declarer.take() == []
    declarer.result(m.ResultDecl(9, 0))  # of no commit of ours
    declarer.result(m.ResultDecl(1, 2, 2))

    assert told[0].status == 2
    assert len(declarer.take()) == 1


def test_a_pull_is_answered_as_the_example_says() -> None:
    """zenoh-2018 §7.6."""
    pulls: Pulls[int] = Pulls(ZENOH2018)
    pulls.subscribe(0, 3, PULL, 0.0)
    pulls.add(0, 3, range(5), 0.0)

    def pull(**fields: Any) -> list[tuple[list[int], bool]]:
        assert pulls.pull(0, 0, m.Pull(0, 3, **fields), 0.0) is None
        return [(due.samples, due.ends) for due in pulls.due(0.0)]

    assert pull(maxSamples=2) == [([0, 1], False)]
    assert pull(maxSamples=5) == [([2, 3, 4], True)]
    assert pull(final=True) == [([], True)]
    assert pull() == [([], True)]


def test_a_pull_without_a_subscriber_is_filled_from_the_store() -> None:
    pulls: Pulls[int] = Pulls(XRCE2017)
    name = pulls.pull(0, 0, XRCE2017.messages.Pull(0, 2, 1), 0.0)
    assert name is not None
    assert pulls.due(0.0) == []

    pulls.fill(name, [7, 8], 0.0)
    (due,) = pulls.due(0.0)

    assert (due.samples, due.ends, len(pulls)) == ([7, 8], False, 0)


def test_periodic_push_waits_for_its_window() -> None:
    params = m.SubscriberDeclParams(500, 1000, 100)
    mode = mode_of(m.SubscriberDecl(2, m.SubscriptionModeId.PeriodicPushModeId, params))
    pulls: Pulls[int] = Pulls(ZENOH2018)
    pulls.subscribe(0, 2, mode, 10.0)
    pulls.add(0, 2, [1], 10.0)

    assert pulls.due(10.4) == []
    assert pulls.next_deadline(10.4) == pytest.approx(10.5)
    assert pulls.due(10.5)[0].samples == [1]


@pytest.mark.requirement("Z18-PUL-10")
def test_pulls_of_several_ids_take_turns() -> None:
    pulls: Pulls[int] = Pulls(ZENOH2018)
    for id in (2, 4):
        pulls.subscribe(0, id, PULL, 0.0)
        pulls.add(0, id, [id * 10 + number for number in range(4)], 0.0)
        assert pulls.pull(0, 0, m.Pull(0, id), 0.0) is None

    turns = [[(due.id, due.samples, due.ends) for due in pulls.due(0.0, 2)] for _ in range(2)]

    assert turns == [[(2, [20, 21], False), (4, [40, 41], False)], [(2, [22, 23], True), (4, [42, 43], True)]]


def test_too_many_pulls_end_the_session() -> None:
    pulls: Pulls[int] = Pulls(ZENOH2018)
    for id in range(2, 130, 2):
        pulls.pull(0, 0, m.Pull(0, id), 0.0)

    with pytest.raises(RuleBroken):
        pulls.pull(0, 0, m.Pull(0, 130), 0.0)
