"""`elea key`: relations with reasons, both grammars, exit codes."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Elea


@pytest.mark.parametrize(
    ("a", "b", "relation", "status"),
    [
        ("a/*", "a/b", "includes", 0),
        ("a/b", "a/*", "included", 0),
        ("a/b", "a/b", "equals", 0),
        ("a/*/c", "*/b/c", "intersects", 0),
        ("a/b", "b/a", "disjoint", 1),
        ("**", "@x/b", "disjoint", 1),
        ("a/**", "zenoh://a/?b", "intersects", 0),
        ("zenoh://**", "@x/b", "includes", 0),
        ("zenoh://a/*", "xrce://a/b", "includes", 0),
        ("zenoh://a/?", "xrce://a/bb", "disjoint", 1),
        ("zenoh://a/**", "zenoh://a/***", "equals", 0),
        ("zenoh://a#x", "zenoh://a#y", "disjoint", 1),
        ("zenoh://a#x", "zenoh://a", "equals", 0),
        ("zenoh://a$ls", "zenoh://a", "disjoint", 1),
    ],
)
def test_two_keys_are_related(elea: Elea, a: str, b: str, relation: str, status: int) -> None:
    result = elea("key", "--json", a, b)

    answer = json.loads(result.out)
    assert (answer["relation"], result.status) == (relation, status)
    assert answer["reason"]
    assert (answer["witness"] is None) == (relation == "disjoint")
    assert result.err == ""


def test_human_answer_has_relation_reason_and_witness(elea: Elea) -> None:
    result = elea("key", "home/*/temp", "home/kitchen/**")

    assert result.lines[0] == "home/*/temp  intersects  home/kitchen/**"
    assert result.lines[1].startswith("reason   chunk 2")
    assert result.lines[2] == "witness  home/kitchen/temp"


def test_one_key_is_checked(elea: Elea) -> None:
    assert elea("key", "a/b").status == 0
    assert elea("key", "zenoh://a/b#t").status == 0


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("a/**/*", "a/*/**"), ("zenoh://a#{x,x}", "zenoh://a#x"), ("zenoh://a#", "zenoh://a")],
)
def test_one_key_that_is_not_canonical_gets_its_canonical_form(elea: Elea, text: str, canonical: str) -> None:
    result = elea("key", "--json", text)

    assert result.status == 1
    assert json.loads(result.out)["canonical"] == canonical
    assert canonical in elea("key", text).out


@pytest.mark.parametrize("text", ["", "a//b", "/a", "a/#", "zenoh://", "zenoh://a b", "zenoh://a?{x"])
@pytest.mark.parametrize("other", [[], ["a/b"]])
def test_invalid_key_is_usage_with_a_hint(elea: Elea, text: str, other: list[str]) -> None:
    result = elea("key", text, *other)

    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("try: ")


def test_invalid_key_of_two_names_its_canonical_form(elea: Elea) -> None:
    result = elea("key", "--json", "a", "**/*")

    assert result.status == 2
    assert json.loads(result.out)["error"] == "INVALID_KEY"
    assert "'*/**'" in result.err
