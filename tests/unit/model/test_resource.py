"""Resources and selections of the early dialects: grammar, canonical text, matching."""

from __future__ import annotations

import json
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from elea.model import globsearch
from elea.model.errors import InvalidResource, InvalidSelector
from elea.model.limits import RESOURCE_BYTES, RESOURCE_PATTERN_CHARS
from elea.model.qos import Durability
from elea.model.resource import (
    XRCE_SCHEME,
    ZENOH_SCHEME,
    Resource,
    Selection,
    path_includes,
    paths_intersect,
    resources_match,
    tags_agree,
)

VECTORS: list[dict[str, Any]] = [
    vector
    for dialect in ("zenoh2018", "xrce2017")
    for vector in json.loads((Path(__file__).parents[2] / f"vectors/{dialect}/semantics.json").read_text())
]
SCHEMES = {"zenoh2018": ZENOH_SCHEME, "xrce2017": XRCE_SCHEME}


def of_category(category: str) -> list[Any]:
    found = [vector for vector in VECTORS if vector["category"] == category]
    return [pytest.param(vector, id=f"{vector['dialect']}-{vector['name']}") for vector in found]


@pytest.mark.parametrize("vector", of_category("match"))
def test_paths_intersect_as_the_vectors_say(vector: dict[str, Any]) -> None:
    a, b = (text.removeprefix(SCHEMES[vector["dialect"]]) for text in vector["input"])

    assert paths_intersect(a, b) is paths_intersect(b, a) is vector["expected"]


@pytest.mark.parametrize("vector", of_category("selection-parse"))
def test_selection_is_parsed_as_the_vectors_say(vector: dict[str, Any]) -> None:
    selection = Selection.parse(vector["input"], SCHEMES[vector["dialect"]])

    assert {
        "path": selection.path,
        "markers": list(selection.tags),
        "predicate": selection.predicate,
        "canonical": str(selection),
    } == vector["expected"]
    assert Selection.parse(str(selection)) == selection


@pytest.mark.parametrize("vector", of_category("dds-resource"))
def test_names_given_to_dds_topics_are_canonical(vector: dict[str, Any]) -> None:
    name = vector["expected"] or "zenoh://a"

    assert str(Resource.parse(name)) == name


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("zenoh://a/b#", "zenoh://a/b"),
        (" zenoh://a/b # { transient , x } ", "zenoh://a/b#{transient,x}"),
        ("zenoh://a/b#{x}", "zenoh://a/b#x"),
        ("zenoh:///T", "zenoh:///T"),
        ("xrce://a-._~!&'()+,;=:@/%C3%a9", "xrce://a-._~!&'()+,;=:@/%C3%a9"),
        ("zenoh://a/b$ls", "zenoh://a/b$ls"),
        ("zenoh://a/b${ls}", "zenoh://a/b$ls"),
        ("zenoh://a/b\\${s}", "zenoh://a/b$ls"),
        ("zenoh://a/b\\$id", "zenoh://a/b$id"),
        ("zenoh://a/b${id}#transient", "zenoh://a/b$id#transient"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Resource.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a/b", "does not start with zenoh:// or xrce://"),
        ("zenoh://", "the path is empty"),
        ("zenoh:///", "name 1 of the path is empty"),
        ("zenoh://a/", "name 2 of the path is empty"),
        ("zenoh://a//b", "name 2 of the path is empty"),
        ("zenoh:////b", "name 2 of the path is empty"),
        ("zenoh://a b", "name 1 of the path, 'a b', has a character that is not allowed"),
        ("zenoh://a/é", "name 2 of the path, 'é', has"),
        ("zenoh://a/%4", "name 2 of the path, '%4', has"),
        ("zenoh://a$ls/b", "name 1 of the path, 'a$ls', has"),
        ("zenoh://a$xy", "name 1 of the path, 'a$xy', has"),
        ("zenoh://$ls", "the path is empty"),
        ("xrce://a$ls", "xrce2017 has no meta resources"),
        ("zenoh://a#{}", "tag '' is not made of"),
        ("zenoh://a#x y", "tag 'x y' is not made of"),
        ("zenoh://a#{x", "tag '{x' is not made of"),
        ("zenoh://a#x#y", "tag 'x#y' is not made of"),
    ],
)
def test_refusal_says_where_the_text_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(InvalidResource) as caught:
        Resource.parse(text)

    assert caught.value.problem.startswith(problem)


def test_scheme_of_the_other_dialect_is_refused() -> None:
    assert Resource.parse("xrce://a", XRCE_SCHEME).scheme == XRCE_SCHEME
    with pytest.raises(InvalidResource, match="does not start with zenoh://"):
        Resource.parse("xrce://a", ZENOH_SCHEME)


@pytest.mark.parametrize("size", [RESOURCE_BYTES + 1, 100 * RESOURCE_BYTES])
def test_text_above_the_size_limit_is_refused(size: int) -> None:
    fits = "zenoh://" + "a" * (RESOURCE_BYTES - len("zenoh://"))

    assert Resource.parse(fits).trivial
    with pytest.raises(InvalidResource, match="above the limit of 65535"):
        Resource.parse(fits.ljust(size, "a"))


@pytest.mark.parametrize("wildcard", ["?", "*", "**"])
def test_pattern_above_its_size_limit_is_refused(wildcard: str) -> None:
    fits = "a" * (RESOURCE_PATTERN_CHARS - len(wildcard)) + wildcard

    assert not Resource.parse(f"zenoh://{fits}").trivial
    for path in ("a" + fits, "a" * 60_000 + wildcard):
        with pytest.raises(InvalidResource, match="RESOURCE_PATTERN_CHARS") as caught:
            Resource.parse(f"zenoh://{path}")
        assert len(str(caught.value)) < 500


def test_longest_key_is_found_in_a_pattern_written_to_be_slow() -> None:
    key = "a" * 60_000
    for pattern in ("*a" * 510 + "b", "a?" * 500, "**a" * 340 + "b"):
        since = thread_time()

        assert not path_includes(pattern, key)
        assert path_includes("*" + pattern[:100] + "**", key)
        assert thread_time() - since < 2.0  # 0.1 s on an idle machine


@pytest.mark.parametrize(
    ("tags", "durability"),
    [
        ("", Durability.VOLATILE),
        ("#x", Durability.VOLATILE),
        ("#transient", Durability.TRANSIENT),
        ("#{persistent,transient}", Durability.PERSISTENT),
    ],
)
def test_durability_comes_from_the_tags(tags: str, durability: Durability) -> None:
    assert Resource.parse("zenoh://a" + tags).durability is durability


def test_resource_without_wildcard_is_trivial() -> None:
    assert Resource.parse("zenoh://a/b#x").trivial
    assert not Resource.parse("zenoh://a/b?").trivial
    assert not Resource.parse("zenoh://a/*").trivial


def test_tags_agree_in_one_direction_only() -> None:
    assert tags_agree((), ("x",))
    assert tags_agree(("x", "y"), ("y", "z"))
    assert not tags_agree(("x",), ())


@pytest.mark.parametrize(
    ("expression", "resource", "match"),
    [
        ("zenoh://**#{transient,persistent}", "zenoh://a/b#persistent", True),
        ("zenoh://**#{transient,persistent}", "zenoh://a/b", False),
        ("zenoh://a/*", "zenoh://a/b#persistent", True),
        ("zenoh://a/*", "zenoh://b", False),
        ("zenoh://**", "zenoh://a$ls", False),
        ("zenoh://a$ls", "zenoh://a$ls", True),
        ("zenoh://**/T", "zenoh:///T", True),
        ("zenoh://**/T", "zenoh://T", False),
        ("zenoh://myhouse/**/LightStatus", "zenoh://myhouse/floor/*/bedroom/*/LightStatus", True),
    ],
)
def test_expression_takes_resource(expression: str, resource: str, match: bool) -> None:
    assert resources_match(Resource.parse(expression), Resource.parse(resource)) is match


@pytest.mark.parametrize(
    ("outer", "inner", "included"),
    [
        ("a/*", "a/*", True),
        ("a/**", "a/*/b", True),
        ("*?", "?*", True),
        ("?*", "*?", True),
        ("?*", "*", True),  # no key is empty
        ("a/?*", "a/*", True),  # no chunk is empty
        ("x?*", "x*", False),
        ("*", "**", False),
        ("**?", "**", True),  # a key does not end in a slash
        ("a/*", "a/b", True),
        ("a/b", "a/*", False),
        ("**a**", "*a*", True),
    ],
)
def test_inclusion_of_paths_is_exact(outer: str, inner: str, included: bool) -> None:
    assert path_includes(outer, inner) is included


def test_inclusion_above_the_limit_of_sets_is_answered_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globsearch, "INCLUSION_SETS", -10_000)

    assert not path_includes("**", "a*")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("zenoh://a?{}", "zenoh://a"),
        ("zenoh://a#{x,y}?{ x=1 }", "zenoh://a#{x,y}?{x=1}"),
        ("zenoh://a#{name LIKE 'x(%'}", "zenoh://a?{name LIKE 'x(%'}"),
        ("zenoh://a#{f(x)}", "zenoh://a?{f(x)}"),
        ("zenoh://a$ls?{x=1}", "zenoh://a$ls?{x=1}"),
    ],
)
def test_selection_text_is_canonical(text: str, canonical: str) -> None:
    assert str(Selection.parse(text)) == canonical


def test_blank_before_the_brace_makes_the_question_mark_a_wildcard() -> None:
    with pytest.raises(InvalidResource, match="not allowed"):
        Selection.parse("zenoh://a? {x=1}")


@pytest.mark.parametrize(
    "text",
    [
        "zenoh://a?{x=1",
        "zenoh://a#{}",
        "zenoh://a#{x y}",
        "zenoh://a#{x='1}",
        "zenoh://a#{(x=1}",
        "zenoh://a#{)x=1(}",
        "zenoh://a#{x = }",
    ],
)
def test_selection_with_a_broken_predicate_is_refused(text: str) -> None:
    with pytest.raises(InvalidSelector):
        Selection.parse(text)


def test_selection_with_a_predicate_keeps_its_tags_tags() -> None:
    with pytest.raises(InvalidResource, match="tag"):
        Selection.parse("zenoh://a#{x>1}?{y=1}")


def test_paths_written_to_be_slow_are_compared_at_once() -> None:
    since = thread_time()

    assert not paths_intersect("*a?" * 2000 + "b", "**?a" * 2000 + "c")
    assert path_includes("**/" + "a*/" * 2000 + "b", "**/" + "a?*/" * 2000 + "b")

    assert thread_time() - since < 2.0
