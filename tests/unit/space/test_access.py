"""Access rules against a reading of them that is slow and plain; what is wrong with rules; filters."""

from __future__ import annotations

import itertools
import random

import pytest

from elea.model import keyexpr
from elea.model.errors import ConfigError
from elea.model.qos import Role
from elea.space.access import STORE_VERBS, Access, AccessRules, Action, Policy, Rule, SubjectRule, request_action
from elea.space.face import Flow, Subject
from elea.space.interception import Downsampling, LowPass, Rate, Sampler, Scope, size_limit

BOTH = frozenset(Flow)
KEYS = ("a", "a/b", "a/*", "**", "a/**", "*/b", "a/b/c", "a/$*", "b", "@a/b", "@a/**")


def subject(user: str | None = None, certificate: str | None = None, link: str = "tcp/1:1") -> Subject:
    return Subject(b"\x07", Role.CLIENT, user, certificate, link)


def plain(rules: AccessRules, who: Subject, interfaces: set[str], flow: Flow, action: Action, key: str) -> bool:
    """The same as eclipse-zenoh writes it down: for each combination of names, denials, the default, allowances."""
    combinations: dict[tuple[str | None, ...], set[str]] = {}
    for item in rules.subjects:
        for interface, certificate, user, protocol in itertools.product(
            item.interfaces or (None,), item.certificates or (None,), item.users or (None,), item.protocols or (None,)
        ):
            fits = (
                interface in (None, *interfaces)
                and certificate in (None, who.certificate)
                and user in (None, who.user)
                and protocol in (None, who.link.partition("/")[0])
            )
            if fits:
                combinations.setdefault((interface, certificate, user, protocol), set()).add(item.id)
    policies: dict[tuple[str | None, ...], list[Rule] | None] = dict.fromkeys(combinations)
    by_id = {rule.id: rule for rule in rules.rules}
    for policy in rules.policies:
        for combination, ids in combinations.items():
            if ids & set(policy.subjects):
                policies[combination] = [*(policies[combination] or []), *(by_id[id] for id in policy.rules)]
    verdicts = []
    for found in policies.values():
        if found is None:
            verdicts.append(rules.default_allow)
            continue
        about = [
            rule.allow
            for rule in found
            if flow in rule.flows and action in rule.actions and any(keyexpr.includes(k, key) for k in rule.key_exprs)
        ]
        verdicts.append(False not in about and (rules.default_allow or True in about))
    return any(verdicts) if verdicts else rules.default_allow


def some_rules(chance: random.Random) -> AccessRules:
    def some(items: tuple[str, ...], least: int = 0) -> tuple[str, ...]:
        return tuple(chance.sample(items, chance.randint(least, len(items))))

    rules = tuple(
        Rule(
            f"r{number}",
            some(KEYS[:6], 1),
            frozenset(chance.sample(list(Action), 2)),
            frozenset(chance.sample(list(Flow), chance.randint(1, 2))),
            chance.random() < 0.5,
        )
        for number in range(4)
    )
    subjects = tuple(
        SubjectRule(f"s{number}", some(("lo", "eth0")), some(("x", "y")), some(("ann", "bob")), some(("tcp", "tls")))
        for number in range(3)
    )
    policies = tuple(Policy(some(("r0", "r1", "r2", "r3"), 1), some(("s0", "s1", "s2"), 1)) for _ in range(3))
    return AccessRules(chance.random() < 0.5, rules, subjects, policies)


@pytest.mark.parametrize("seed", range(20))
def test_rules_agree_with_the_plain_reading(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        rules = some_rules(chance)
        access = Access(rules)
        who = subject(
            chance.choice((None, "ann", "bob")), chance.choice((None, "x")), chance.choice(("tcp/1", "tls/1"))
        )
        interfaces = chance.choice((set(), {"lo"}, {"lo", "eth0"}))
        combinations = access.combinations(who, interfaces)
        for flow, action, key in itertools.product(Flow, list(Action)[:4], KEYS):
            wanted = plain(rules, who, interfaces, flow, action, key)
            assert access.judge(combinations, flow, action, key).allowed is wanted, (rules, who, flow, action, key)


def test_verdict_names_the_rules_that_decide() -> None:
    no = Rule("no", ("a/**",), frozenset({Action.PUT}), BOTH, False)
    yes = Rule("yes", ("**",), frozenset({Action.PUT}), BOTH, True)
    access = Access(AccessRules(False, (no, yes), (SubjectRule("all"),), (Policy(("no", "yes"), ("all",)),)))
    who = access.combinations(subject("ann"))

    def rules(action: Action, key: str) -> tuple[bool, tuple[str, ...]]:
        verdict = access.judge(who, Flow.INGRESS, action, key)
        return verdict.allowed, verdict.rules

    assert rules(Action.PUT, "a/b") == (False, ("no",))
    assert rules(Action.PUT, "b") == (True, ("yes",))
    assert rules(Action.DELETE, "b") == (False, ())


def test_node_ids_are_names_too() -> None:
    subjects = (SubjectRule("this", nodes=(b"\x07",)), SubjectRule("other", nodes=(b"\x08",)))
    access = Access(AccessRules(False, (), subjects, ()))

    assert access.combinations(subject()) == ((None, None, None, None, b"\x07"),)


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        (AccessRules(rules=(Rule(" ", (), frozenset(), BOTH, True),)), "access_control/rules[0]/id"),
        (AccessRules(subjects=(SubjectRule("a"), SubjectRule("a"))), "access_control/subjects[1]/id"),
        (AccessRules(subjects=(SubjectRule("a"),), policies=(Policy(("r",), ("a",)),)), "access_control/policies[0]"),
        (AccessRules(policies=(Policy((), ("a",)),)), "access_control/policies[0]"),
        (AccessRules(policies=(Policy((), (), "p"), Policy((), (), "p"))), "access_control/policies[1]"),
    ],
    ids=["empty id", "id twice", "unknown rule", "unknown subject", "policy twice"],
)
def test_rules_that_make_no_sense_are_refused(rules: AccessRules, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Access(rules)

    assert caught.value.path == path
    assert caught.value.hint


@pytest.mark.parametrize(
    ("key", "parameters", "found"),
    [
        ("a", "", (Action.QUERY, "a")),
        ("@store/info/**", "", (Action.QUERY, "@store/info/**")),
        ("@store/read", "", (Action.QUERY, "@store/read")),
        ("@store/cursor/a/**", "name=x", (Action.STORE_CURSOR, "a/**")),
        ("@store/commit/a", "", (Action.STORE_STAGE, "a")),
        ("@store/align/a", "", (Action.STORE_ADMIN, "a")),
        ("@store/put/a", "src=1", (Action.PUT, "a")),
        ("@store/put/a", "src=1;kind=del", (Action.DELETE, "a")),
        ("@store/puts/a", "", None),
    ],
)
def test_requests_of_the_store_are_judged_by_what_they_do(key: str, parameters: str, found: object) -> None:
    assert request_action(key, parameters) == found


def test_scope_of_a_filter() -> None:
    scope = Scope(frozenset({Action.PUT}), frozenset({Flow.EGRESS}), ("lo",), ("tcp", "tls"))

    assert scope.fits(Flow.EGRESS, Action.PUT, ("lo",), "tcp")
    assert not scope.fits(Flow.INGRESS, Action.PUT, ("lo",), "tcp")
    assert not scope.fits(Flow.EGRESS, Action.DELETE, ("lo",), "tcp")
    assert not scope.fits(Flow.EGRESS, Action.PUT, ("eth0",), "tcp")
    assert not scope.fits(Flow.EGRESS, Action.PUT, ("lo",), "udp")


def test_first_rate_that_meets_a_key_holds_and_the_smallest_limit() -> None:
    scope = Scope(frozenset({Action.PUT}), BOTH)
    item = Downsampling(scope, (Rate("a/*", 1.0), Rate("a/b", 5.0)))
    filters = [LowPass(scope, ("a/**",), 10), LowPass(scope, ("a/b",), 5), LowPass(scope, ("c",), 1)]

    assert (item.rate_of("a/b"), item.rate_of("a/**"), item.rate_of("b")) == (0, 0, None)
    assert (size_limit(filters, "a/b"), size_limit(filters, "a/c"), size_limit(filters, "d")) == (5, 10, None)
    assert size_limit(filters, "a/*") == 10


def test_no_rate_at_all_lets_nothing_through() -> None:
    assert not any(Sampler(0.0).passes(now) for now in (0.0, 1e9))


def test_every_request_to_a_store_has_an_action() -> None:
    from elea.node.storage.service import VERBS

    assert {*VERBS, "align"} == set(STORE_VERBS)
