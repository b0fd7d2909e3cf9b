"""Access rules: who may do what on which keys, as `access_control` of eclipse-zenoh says it.

    rule      some actions on some key expressions, in one direction or both, are allowed or denied
    subject   neighbours by user, certificate, interface, link protocol and node id; what is not named is any
    policy    which rules hold for which subjects

A rule applies to a message whose key expression it *includes*: of the keys of a wildcard, all. For one combination of
names a denial stands above an allowance, and the default below both. A neighbour that several combinations fit may do
what any of them may. The store's requests are actions like the others (`STORE_VERBS`).

Nothing here counts, remembers or logs: `elea.space.guard` does. Spec: docs/readings.md, *access rules*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import product
from typing import Final, TypeVar

from elea.model.errors import ConfigError
from elea.model.values import value_class
from elea.space.face import Flow, Subject
from elea.space.keytree import KeyTree

__all__ = [
    "ACTIONS",
    "STORE_VERBS",
    "Access",
    "AccessRules",
    "Action",
    "Policy",
    "Rule",
    "SubjectRule",
    "Verdict",
    "request_action",
]


class Action(IntEnum):
    """What a message does; the first nine are those of eclipse-zenoh."""

    PUT = 0
    DELETE = 1
    DECLARE_SUBSCRIBER = 2
    QUERY = 3
    DECLARE_QUERYABLE = 4
    REPLY = 5
    LIVELINESS_TOKEN = 6
    DECLARE_LIVELINESS_SUBSCRIBER = 7
    LIVELINESS_QUERY = 8
    STORE_READ = 9
    """Read what a store keeps besides the newest values: a history, a time, positions. Outward: each sample of it."""
    STORE_CURSOR = 10
    """Read, move and drop cursors."""
    STORE_STAGE = 11
    """Stage and commit batches."""
    STORE_ADMIN = 12
    """Compare and align logs."""

    @property
    def label(self) -> str:
        """As rules name it."""
        return self.name.lower()


ACTIONS: Final = {action.label: action for action in Action}

STORE: Final = "@store/"
STORE_VERBS: Final = {
    "read": Action.STORE_READ,
    "cursor": Action.STORE_CURSOR,
    "stage": Action.STORE_STAGE,
    "commit": Action.STORE_STAGE,
    "align": Action.STORE_ADMIN,
    "put": Action.PUT,
    "puts": Action.PUT,
    "batch": Action.PUT,
}
"""Requests `@store/<verb>/<key expression>` are judged by what they do with the key, not as queries on `@store/…`."""


def request_action(key: str, parameters: str = "") -> tuple[Action, str] | None:
    """What a query on `key` does and with which key; None if it brings samples, whose keys the store judges.

    >>> request_action("a/*"), request_action("@store/read/a/*"), request_action("@store/batch/a/**")
    ((<Action.QUERY: 3>, 'a/*'), (<Action.STORE_READ: 9>, 'a/*'), None)
    """
    if key.startswith(STORE):
        verb, _, subject = key[len(STORE) :].partition("/")
        action = STORE_VERBS.get(verb)
        if action is not None and subject:
            if verb == "put":
                return (Action.DELETE if "kind=del" in parameters.split(";") else Action.PUT), subject
            return None if action is Action.PUT else (action, subject)
    return Action.QUERY, key


@value_class
class Rule:
    """Some actions on some key expressions are allowed, or denied."""

    id: str
    key_exprs: tuple[str, ...]
    actions: frozenset[Action]
    flows: frozenset[Flow]
    allow: bool


@value_class
class SubjectRule:
    """Neighbours by name; an empty tuple is any, also one that has no such name."""

    id: str
    interfaces: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    nodes: tuple[bytes, ...] = ()

    def combinations(self) -> Iterator[Combination]:
        """Each of its interfaces with each of its certificates, and so on."""
        names = (self.interfaces, self.certificates, self.users, self.protocols)
        for interface, certificate, user, protocol in product(*(one or (None,) for one in names)):
            for node in self.nodes or (None,):
                yield interface, certificate, user, protocol, node


Combination = tuple[str | None, str | None, str | None, str | None, bytes | None]
"""Interface, certificate, user, protocol, node id; None is any."""


@value_class
class Policy:
    """The rules that hold for some subjects, by their ids."""

    rules: tuple[str, ...]
    subjects: tuple[str, ...]
    id: str | None = None


@value_class
class AccessRules:
    """All rules of a node, as they are written."""

    default_allow: bool = False
    rules: tuple[Rule, ...] = ()
    subjects: tuple[SubjectRule, ...] = ()
    policies: tuple[Policy, ...] = ()


@value_class
class Verdict:
    """Whether something is allowed, and the ids of the rules that say so; none if it is the default."""

    allowed: bool
    rules: tuple[str, ...] = ()


T = TypeVar("T", Rule, SubjectRule)

_Slot = tuple[Flow, Action, bool]


class Access:
    """The rules, made ready to judge.

    Raises:
        ConfigError: an id is empty, given twice, or names nothing.
    """

    def __init__(self, rules: AccessRules, path: str = "access_control") -> None:
        self.default_allow = rules.default_allow
        by_id = _by_id(f"{path}/rules", rules.rules)
        subjects = _by_id(f"{path}/subjects", rules.subjects)
        self._trees: dict[Combination, dict[_Slot, KeyTree[list[str]]]] = {}
        self._combinations: dict[Combination, None] = {}
        for subject in subjects.values():
            self._combinations.update(dict.fromkeys(subject.combinations()))
        seen: set[str] = set()
        for number, policy in enumerate(rules.policies):
            at = f"{path}/policies[{number}]"
            if policy.id is not None and policy.id in seen:
                raise ConfigError(at, f"the id {policy.id!r} is given twice", "give each policy an id of its own")
            seen.add(policy.id or "")
            for id in policy.subjects:
                for combination in _named(at, "subject", id, subjects).combinations():
                    for rule in policy.rules:
                        self._add(combination, _named(at, "rule", rule, by_id))

    def _add(self, combination: Combination, rule: Rule) -> None:
        slots = self._trees.setdefault(combination, {})
        for flow, action in product(rule.flows, rule.actions):
            tree = slots.setdefault((flow, action, rule.allow), KeyTree())
            for key in rule.key_exprs:
                tree.add(key, [*(tree.get(key) or []), rule.id])

    @property
    def uses_interfaces(self) -> bool:
        """Whether the interface of a link matters."""
        return any(interface is not None for interface, *_ in self._combinations)

    def combinations(self, subject: Subject, interfaces: Iterable[str] = ()) -> tuple[Combination, ...]:
        """The combinations of names that fit a neighbour: what `judge` takes, worked out once for each."""
        has = (
            frozenset(interfaces),
            frozenset(() if subject.certificate is None else (subject.certificate,)),
            frozenset(() if subject.user is None else (subject.user,)),
            frozenset((subject.link.partition("/")[0],)),
            frozenset((subject.node_id,)),
        )

        def fits(combination: Combination) -> bool:
            return all(name is None or name in had for name, had in zip(combination, has, strict=True))

        return tuple(filter(fits, self._combinations))

    def judge(
        self, combinations: Iterable[Combination], flow: Flow, action: Action, key: str, *, every: bool = False
    ) -> Verdict:
        """Whether neighbours that these combinations fit may do something with a key expression.

        With `every`, with each of its keys: a denial of some of them counts.
        """
        denied: list[str] = []
        is_judged = False
        for combination in combinations:
            slots = self._trees.get(combination)
            if slots is None:
                verdict = Verdict(self.default_allow)
            else:
                verdict = self._of(slots, flow, action, key, every)
            if verdict.allowed:
                return verdict
            is_judged = True
            denied += verdict.rules
        return Verdict(False, tuple(denied)) if is_judged else Verdict(self.default_allow)

    def _of(
        self, slots: Mapping[_Slot, KeyTree[list[str]]], flow: Flow, action: Action, key: str, every: bool
    ) -> Verdict:
        denying = _including(slots.get((flow, action, False)), key, every)
        if denying:
            return Verdict(False, denying)
        allowing = _including(slots.get((flow, action, True)), key)
        return Verdict(self.default_allow or bool(allowing), allowing)


def _including(tree: KeyTree[list[str]] | None, key: str, some: bool = False) -> tuple[str, ...]:
    if tree is None:
        return ()
    found = tree.intersecting(key) if some else tree.including(key)
    return tuple(sorted({id for ids in found for id in ids}))


def _by_id(path: str, items: Iterable[T]) -> dict[str, T]:
    found: dict[str, T] = {}
    for number, item in enumerate(items):
        if not item.id.strip():
            raise ConfigError(f"{path}[{number}]/id", "it is empty", "give it a name, by which policies know it")
        if item.id in found:
            raise ConfigError(f"{path}[{number}]/id", f"{item.id!r} is given twice", "give each an id of its own")
        found[item.id] = item
    return found


def _named(path: str, what: str, id: str, known: Mapping[str, T]) -> T:
    if id not in known:
        raise ConfigError(path, f"there is no {what} {id!r}", f"known are {', '.join(known) or 'none'}")
    return known[id]
