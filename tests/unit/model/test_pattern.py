"""Patterns of both kinds: matching, intersection and inclusion across the grammars."""

from __future__ import annotations

from time import thread_time

import pytest

from elea.model import globsearch
from elea.model.errors import InvalidKeyExpr, LimitReached
from elea.model.keyexpr import KeyExpr
from elea.model.pattern import Pattern, PatternKind
from elea.model.resource import Resource, Selection


def early(path: str) -> Pattern:
    return Pattern(path, PatternKind.CHARACTERS)


def test_pattern_is_made_of_whatever_names_keys() -> None:
    assert Pattern.of("a/*") == Pattern.of(KeyExpr("a/*")) == Pattern("a/*")
    assert Pattern.of(Resource.parse("zenoh://a/*#x")) == early("a/*")
    assert Pattern.of(Selection.parse("zenoh://a/*?{x=1}")) == early("a/*")
    with pytest.raises(InvalidKeyExpr):
        Pattern.of("a//b")


def test_pattern_without_wildcard_is_one_key() -> None:
    assert Pattern("a/b").concrete
    assert early("a/b").concrete
    assert not Pattern("a/$*b").concrete
    assert not early("a/b?").concrete


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        (Pattern("a/b"), "a/b", True),
        (Pattern("a/**"), "a", True),
        (Pattern("a/**"), "a/", False),
        (Pattern("a/**/b"), "a//b", False),
        (Pattern("**"), "/T", False),
        (Pattern("**"), "a/@b", False),
        (Pattern("x$*"), "x@", True),
        (Pattern("$*@"), "@", False),
        (early("a/**"), "a", False),
        (early("**"), "a/@b", True),
        (early("**/T"), "/T", True),
        (early("?"), "é", True),
        (early("a/?"), "a/bc", False),
    ],
)
def test_pattern_has_key(pattern: Pattern, key: str, matches: bool) -> None:
    assert pattern.matches(key) is matches


@pytest.mark.parametrize(
    ("chunks", "characters", "intersect"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/*", "a/b?", True),
        ("a/*", "a?b", False),
        ("a/**", "a", True),
        ("a/**", "a**", True),
        ("a", "a/**", False),
        ("*", "**", True),
        ("**", "/T", False),
        ("**", "**/T", True),
        ("**", "@x/*", False),
        ("**", "?x/*", True),
        ("*", "*@", True),
        ("$*@", "?", False),
        ("$*@", "@", False),
        ("$*@", "??", True),
        ("$*@b", "*@b", True),
        ("@a", "*", True),
        ("@a", "?a", True),
        ("@a/**", "**b", True),
        ("a/**/c", "a/@b/c", False),
        ("a/**/c", "a/*@b/c", True),
        ("**/x", "a**", True),
        ("a$*b/*", "a?b/??", True),
        ("a/*/c", "a/*c", False),
        ("a/*/c", "a/**c", True),
        ("a/*/c", "a?????", False),
        ("a/**/c", "a/?/*/c", True),
    ],
)
def test_kinds_intersect_exactly(chunks: str, characters: str, intersect: bool) -> None:
    a, b = Pattern(chunks), early(characters)

    assert a.intersects(b) is b.intersects(a) is intersect
    shared = a.witness(b)
    assert (shared is not None) is intersect
    assert shared is None or (a.matches(shared) and b.matches(shared))


def test_two_patterns_of_one_kind_follow_their_own_rule() -> None:
    assert Pattern("a/*").intersects(Pattern("*/b"))
    assert Pattern("a/**").includes(Pattern("a/*"))
    assert early("a/*b").intersects(early("a/c*"))
    assert early("a/**").includes(early("a/b*"))


@pytest.mark.parametrize(
    ("outer", "inner", "included"),
    [
        (Pattern("a$*"), early("a*"), True),
        (early("a*"), Pattern("a$*"), True),
        (early("**"), Pattern("**"), True),
        (Pattern("**"), early("**"), False),
        (early("*"), Pattern("*"), True),
        (Pattern("*"), early("*"), False),
        (Pattern("*"), early("a*"), True),
        (early("a/**"), Pattern("a/*/**"), True),
        (early("a/**"), Pattern("a/**"), False),
        (early("a**"), Pattern("a/**"), True),
        (Pattern("a/*"), early("a/b"), True),
        (early("?"), Pattern("a"), True),
        (Pattern("a/**"), early("a/b/**"), False),
        (Pattern("a/b$*/**"), early("a/b*/c*"), True),
    ],
)
def test_kinds_include_each_other_exactly(outer: Pattern, inner: Pattern, included: bool) -> None:
    assert outer.includes(inner) is included

    lacking = outer.missing(inner)
    assert (lacking is None) is included
    assert lacking is None or (inner.matches(lacking) and not outer.matches(lacking))


def test_inclusion_above_the_limit_of_sets_is_answered_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globsearch, "INCLUSION_SETS", -10_000)

    assert not early("**").includes(Pattern("**"))
    with pytest.raises(LimitReached):
        early("**").missing(Pattern("**"))


def test_fresh_character_of_a_search_is_in_neither_text() -> None:
    assert early("x*y").missing(early("*")) == "z"


def test_kinds_written_to_be_slow_are_compared_at_once() -> None:
    many = 2000
    stars = Pattern("/".join(["**/a"] * many) + "/b"), early("/".join(["**/a"] * many))
    runs = Pattern("/".join(["a$*/*/**"] * many)), early("*?" * many + "/" + "**?/" * many + "x")
    since = thread_time()

    assert not stars[0].intersects(stars[1])
    assert not stars[0].includes(stars[1])
    assert runs[0].intersects(runs[1])
    assert not runs[0].includes(runs[1])

    assert thread_time() - since < 2.0
