"""Verdicts on queries and answers: remembered where they are allowed, judged and counted anew where they are not."""

from __future__ import annotations

import pytest

from elea.model.limits import CACHED_KEY_CHARS
from elea.model.qos import Role
from elea.space import guard as module
from elea.space.access import AccessRules, Action, Policy, Rule, SubjectRule
from elea.space.face import Flow, Region
from elea.space.guard import Guard, GuardRules
from elea.space.interception import LowPass, Scope
from elea.space.questions import QueryBody
from tests.unit.space.fakes import FakeFace, Node

IN, OUT = Flow.INGRESS, Flow.EGRESS
BOTH = frozenset(Flow)
ASKS = frozenset({Action.QUERY, Action.REPLY, Action.DELETE, Action.PUT})
RULES = AccessRules(
    False,
    (Rule("all", ("a/**", "@store/**"), ASKS, BOTH, True), Rule("not", ("a/secret",), ASKS, BOTH, False)),
    (SubjectRule("everybody"),),
    (Policy(("all", "not"), ("everybody",)),),
)


def neighbour() -> FakeFace:
    return FakeFace(Node(Role.ROUTER), "x", Region.CLIENTS)


def made(**filters: object) -> Guard:
    return Guard(GuardRules(RULES, **filters), now=lambda: 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("flow", [IN, OUT])
def test_what_is_allowed_is_allowed_again_and_what_is_denied_is_counted_each_time(flow: Flow) -> None:
    guard, face = made(), neighbour()

    for _ in range(3):
        assert guard.takes_query(face, flow, "a/1", QueryBody())
        assert not guard.takes_query(face, flow, "a/secret", QueryBody())
        assert guard.takes_answer(face, flow, "a/1", b"")
        assert not guard.takes_answer(face, flow, "a/secret", b"")

    assert guard.denied == {("query", flow.label): 3, ("reply", flow.label): 3}


def test_flows_neighbours_and_parameters_do_not_share_a_verdict() -> None:
    inward = AccessRules(
        False,
        (Rule("in", ("**", "@store/**"), ASKS - {Action.DELETE}, frozenset({IN}), True),),
        (SubjectRule("everybody"),),
        (Policy(("in",), ("everybody",)),),
    )
    guard, face = Guard(GuardRules(inward), now=lambda: 0.0), neighbour()

    assert guard.takes_query(face, IN, "a", QueryBody())
    assert not guard.takes_query(face, OUT, "a", QueryBody())
    assert guard.takes_answer(face, IN, "a", b"")
    assert not guard.takes_answer(face, OUT, "a", b"")
    # The same key is a put or a deletion by its parameters.
    assert guard.takes_query(face, IN, "@store/put/a", QueryBody("src=1"))
    assert not guard.takes_query(face, IN, "@store/put/a", QueryBody("src=1;kind=del"))


def test_a_filter_looks_at_each_message() -> None:
    small = LowPass(Scope(frozenset({Action.QUERY, Action.REPLY}), BOTH), ("a/**",), 10)
    guard, face = made(low_pass=(small,)), neighbour()

    for _ in range(2):
        assert guard.takes_query(face, IN, "a/1", QueryBody(payload=bytes(10)))
        assert not guard.takes_query(face, IN, "a/1", QueryBody(payload=bytes(11)))
        assert guard.takes_answer(face, IN, "a/1", bytes(10))
        assert not guard.takes_answer(face, IN, "a/1", bytes(11))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_ROUTES", 4)
    guard, face = made(), neighbour()

    for number in range(50):
        assert guard.takes_query(face, IN, f"a/{number}", QueryBody(f"n={number}"))
        assert guard.takes_answer(face, IN, f"a/{number}", b"")
    judged = guard._of(face)
    assert all(len(known) <= 4 for known in (*judged.asked, *judged.answered))

    before = len(judged.asked[0])
    assert guard.takes_query(face, IN, "a/b", QueryBody("x" * (CACHED_KEY_CHARS + 1)))
    assert len(judged.asked[0]) == before


def test_a_neighbour_that_has_gone_is_forgotten() -> None:
    guard, face = made(), neighbour()
    assert guard.takes_query(face, IN, "a/1", QueryBody())

    guard.forget(face)

    assert not guard._judged
