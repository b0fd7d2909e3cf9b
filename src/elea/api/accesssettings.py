"""`access_control`, `downsampling` and `low_pass_filter` of a configuration, as a node's guard takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from elea.api.config import Config
from elea.api.json5 import Json
from elea.model.errors import ConfigError
from elea.model.node_id import NodeId
from elea.space.access import ACTIONS, Access, AccessRules, Action, Policy, Rule, SubjectRule
from elea.space.face import Flow
from elea.space.guard import GuardRules
from elea.space.interception import Downsampling, LowPass, Rate, Scope

__all__ = ["GUARDED", "changed", "guard_rules"]

GUARDED = ("access_control", "downsampling", "low_pass_filter")
"""The entries that are read here; they can be changed while a node runs."""

_FLOWS = {flow.label: flow for flow in Flow}

Form = Mapping[str, Any]


def guard_rules(config: Config) -> GuardRules:
    """What a configuration says of what may pass.

    Raises:
        ConfigError: rules contradict themselves.
    """
    rules = GuardRules(
        _access(cast("dict[str, Json]", config._at("access_control"))),
        tuple(_downsampling(form) for form in _unique(config, "downsampling")),
        tuple(_low_pass(form) for form in _unique(config, "low_pass_filter")),
    )
    if rules.access is not None:
        Access(rules.access)  # what is wrong with it is said now
    return rules


def changed(rules: GuardRules, entry: str, text: bytes | None) -> GuardRules:
    """The rules with one of the entries replaced by JSON5, or by its default.

    Raises:
        ConfigError: it is no such entry, or makes no sense.
    """
    if entry not in GUARDED:
        hint = f"restart the node with another configuration; changed can be {', '.join(GUARDED)}"
        raise ConfigError(entry, "it cannot be changed while a node runs", hint)
    config = Config()
    if text is not None:
        config.insert_json5(entry, text.decode("utf-8", "replace"))
    new = guard_rules(config)
    return GuardRules(
        new.access if entry == "access_control" else rules.access,
        new.downsampling if entry == "downsampling" else rules.downsampling,
        new.low_pass if entry == "low_pass_filter" else rules.low_pass,
    )


def _access(form: Form) -> AccessRules | None:
    if not form["enabled"]:
        return None
    for name in ("rules", "subjects", "policies"):
        if form[name] is None:
            hint = f"write {name}: [], or enabled: false"
            raise ConfigError(f"access_control/{name}", "it is missing, and access control is enabled", hint)
    for number, policy in enumerate(form["policies"]):
        if not policy["rules"] or not policy["subjects"]:
            at = f"access_control/policies[{number}]"
            raise ConfigError(at, "it has no rules, or no subjects", "name at least one of each")
    return AccessRules(
        form["default_permission"] == "allow",
        tuple(_rule(rule) for rule in form["rules"]),
        tuple(_subject(number, subject) for number, subject in enumerate(form["subjects"])),
        tuple(
            Policy(tuple(policy["rules"]), tuple(policy["subjects"]), policy.get("id")) for policy in form["policies"]
        ),
    )


def _rule(form: Form) -> Rule:
    return Rule(
        form["id"],
        tuple(form["key_exprs"]),
        _actions(form["messages"]),
        _flows(form),
        form["permission"] == "allow",
    )


def _subject(number: int, form: Form) -> SubjectRule:
    def names(entry: str) -> tuple[str, ...]:
        found = tuple(form.get(entry) or ())
        if any(not name.strip() for name in found):
            raise ConfigError(f"access_control/subjects[{number}]/{entry}", "a name is empty", "leave it out")
        return found

    return SubjectRule(
        form["id"],
        names("interfaces"),
        names("cert_common_names"),
        names("usernames"),
        names("link_protocols"),
        tuple(NodeId.parse(text).data for text in names("zids")),
    )


def _downsampling(form: Form) -> Downsampling:
    rates = tuple(Rate(rate["key_expr"], float(rate["freq"])) for rate in form["rules"])
    return Downsampling(_scope(form), rates)


def _low_pass(form: Form) -> LowPass:
    return LowPass(_scope(form), tuple(form["key_exprs"]), form["size_limit"])


def _scope(form: Form) -> Scope:
    return Scope(
        _actions(form["messages"]),
        _flows(form),
        tuple(form.get("interfaces") or ()),
        tuple(form.get("link_protocols") or ()),
    )


def _actions(names: Iterable[str]) -> frozenset[Action]:
    return frozenset(ACTIONS[name] for name in names)


def _flows(form: Form) -> frozenset[Flow]:
    return frozenset(_FLOWS[name] for name in form.get("flows") or _FLOWS)


def _unique(config: Config, path: str) -> list[Form]:
    forms = cast("list[dict[str, Json]]", config._at(path))
    ids = [form["id"] for form in forms if form.get("id") is not None]
    for id in ids:
        if ids.count(id) > 1:
            raise ConfigError(path, f"the id {id!r} is given twice", "give each an id of its own, or none")
    return list(forms)
