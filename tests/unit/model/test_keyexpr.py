"""Key expressions: validity, canonical form, relations, and pairs written to be slow."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from time import thread_time

import pytest

from elea.model.errors import InvalidKeyExpr
from elea.model.keyexplain import explain
from elea.model.keyexpr import KeyExpr, SetIntersectionLevel, canonize, check, includes, intersects, witness
from elea.model.limits import KEY_EXPR_BYTES, KEY_EXPR_CHUNKS, KEY_EXPR_WILDCARDS
from elea.model.pattern import Pattern
from elea.space.keytree import KeyTree

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/zenoh1/keyexpr.json").read_text())
GENEROUS = 2.0  # seconds; every case takes some ten milliseconds at most


def is_valid(text: str) -> bool:
    try:
        check(text)
    except InvalidKeyExpr:
        return False
    return True


@pytest.mark.parametrize(("text", "valid"), VECTORS["valid"].items())
def test_validity_agrees_with_the_recorded_one(text: str, valid: bool) -> None:
    assert is_valid(text) is valid


@pytest.mark.parametrize(("text", "canonical"), VECTORS["autocanonize"].items())
def test_canonical_form_agrees_with_the_recorded_one(text: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(InvalidKeyExpr):
            canonize(text)
    else:
        assert canonize(text) == canonical


@pytest.mark.parametrize("pair", VECTORS["pairs"], ids=lambda pair: f"{pair['a']} {pair['b']}")
def test_relations_agree_with_the_recorded_ones(pair: dict[str, str | bool]) -> None:
    a, b = str(pair["a"]), str(pair["b"])

    assert intersects(a, b) is intersects(b, a) is pair["intersects"]
    assert includes(a, b) is pair["a_includes_b"]
    assert includes(b, a) is pair["b_includes_a"]
    assert (witness(a, b) is not None) is pair["intersects"]


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("a//b", "chunk 2 '': empty chunk", "remove the leading, trailing or doubled '/'"),
        ("a/x?y", "chunk 2 'x?y': '#' and '?' are forbidden", ""),
        ("a/$*", "chunk 2 '$*': '$*' alone is not canonical", "write '*'"),
        ("a$*$*", "chunk 1 'a$*$*': '$*' is followed by '$'", "write '$*' once"),
        (
            "a/b*",
            "chunk 2 'b*': '*' is not a whole chunk",
            "write '$*' for a run of characters within a chunk",
        ),
        ("a$b", "chunk 1 'a$b': '$' is allowed only in '$*'", ""),
        ("**/*", "chunk 2 '*': '**/*' is not canonical", "write '*/**', or use autocanonize"),
        ("**/**", "chunk 2 '**': '**/**' is not canonical", "write '**', or use autocanonize"),
    ],
)
def test_refusal_names_the_chunk_and_the_remedy(text: str, problem: str, hint: str) -> None:
    with pytest.raises(InvalidKeyExpr) as caught:
        KeyExpr(text)

    assert caught.value.text == text
    assert caught.value.problem == problem
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("size", [KEY_EXPR_BYTES + 1, 10 * KEY_EXPR_BYTES])
def test_text_above_the_size_limit_is_refused(size: int) -> None:
    check("a" * KEY_EXPR_BYTES)
    check("é" * (KEY_EXPR_BYTES // 2))

    with pytest.raises(InvalidKeyExpr, match="above the limit of 65535"):
        check("a" * size)
    with pytest.raises(InvalidKeyExpr, match="above the limit of 65535"):
        check("é" * (size // 2 + 1))


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidKeyExpr, match="surrogate"):
        check("a/\ud800")


def test_value_equals_and_hashes_like_its_text() -> None:
    key = KeyExpr("a/b")

    assert key == "a/b" == key
    assert key == KeyExpr("a/b")
    assert key != KeyExpr("a")
    assert key != 7
    assert {key: 1}["a/b"] == 1  # type: ignore[index]
    assert str(key) == "a/b"
    assert repr(key) == "KeyExpr('a/b')"
    assert pickle.loads(pickle.dumps(key)) == key


def test_join_canonizes_and_concat_does_not() -> None:
    assert KeyExpr("a/**").join("*") == "a/*/**"
    assert KeyExpr("a") / "b" / "c" == "a/b/c"
    assert KeyExpr("a").concat("b/c") == "ab/c"
    with pytest.raises(InvalidKeyExpr):
        KeyExpr("a").join("/b")
    with pytest.raises(InvalidKeyExpr):
        KeyExpr("a/**").concat("/*")


def test_concat_does_not_make_two_chunks_of_stars_one() -> None:
    with pytest.raises(InvalidKeyExpr, match="use join"):
        KeyExpr("a/*").concat("*/b")


def test_autocanonize_gives_a_valid_value() -> None:
    assert KeyExpr.autocanonize("a/**/$*/**/b") == "a/*/**/b"


def test_methods_take_texts_and_values_and_refuse_invalid_texts() -> None:
    key = KeyExpr("a/**")

    assert key.intersects("**/b")
    assert key.intersects(KeyExpr("a"))
    assert key.includes(KeyExpr("a/*"))
    with pytest.raises(InvalidKeyExpr):
        key.includes("a/")


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        ("a/*", "a/*", SetIntersectionLevel.EQUALS),
        ("a/*", "a/b", SetIntersectionLevel.INCLUDES),
        ("a/b", "a/*", SetIntersectionLevel.INTERSECTS),
        ("a/*", "@a", SetIntersectionLevel.DISJOINT),
    ],
)
def test_relation_is_seen_from_the_first(a: str, b: str, level: SetIntersectionLevel) -> None:
    assert KeyExpr(a).relation_to(b) is level


def test_star_is_not_compared_with_double_star() -> None:
    # As in eclipse-zenoh: an inclusion that holds for every key is not seen.
    assert not includes("*/**", "**")
    assert not includes("*/*/**", "**/a/*")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("a", "a", "'a' and 'a' are the same text"),
        ("a/b", "a/*", "'a/*' includes 'a/b': chunk 2: '*' matches 'b'"),
        ("a/**", "a", "'a/**' includes 'a': chunk 2: '**' matches no chunk at all"),
        ("a/**/d", "a/b/c/d", "'a/**/d' includes 'a/b/c/d': chunk 2: '**' matches 'b/c'"),
        (
            "**/@b/**",
            "a/@b",
            "'**/@b/**' includes 'a/@b': chunk 1: '**' matches any number of chunks, none of them verbatim",
        ),
        (
            "a/**/b",
            "a/**/c/b",
            "'a/**/b' includes 'a/**/c/b': chunk 2: '**' matches any number of chunks, none of them verbatim",
        ),
        (
            "**",
            "**/a",
            "'**' includes '**/a': chunk 1: '**' matches any number of chunks, none of them verbatim",
        ),
        ("a/*", "*/b", "'a/*' and '*/b' intersect: chunk 1: 'a' matches '*'; both have the key 'a/b'"),
        ("a/b", "a/c", "'a/b' and 'a/c' are disjoint: chunk 2: 'b' does not match 'c'"),
        ("a/b", "a", "'a/b' and 'a' are disjoint: one has 2 chunks, the other 1 chunk"),
        ("a/*/**", "a", "'a/*/**' and 'a' are disjoint: one has at least 2 chunks, the other 1 chunk"),
        ("**/c", "a/c/d", "'**/c' and 'a/c/d' are disjoint: chunk 1 from the end: 'c' does not match 'd'"),
        (
            "a/*",
            "a/@b",
            "'a/*' and 'a/@b' are disjoint: chunk 2: verbatim chunk '@b' is matched only by itself",
        ),
        ("**", "a/@b", "'**' and 'a/@b' are disjoint: verbatim chunk '@b' is matched only by itself"),
        (
            "**/a/**",
            "b/c/**/d",
            "'**/a/**' and 'b/c/**/d' intersect: chunk 1: '**' matches any number of chunks, none of them "
            "verbatim; both have the key 'b/c/a/d'",
        ),
        (
            "**/a/**",
            "b/c",
            "'**/a/**' and 'b/c' are disjoint: no number of chunks for '**' makes the others meet",
        ),
        (
            "**/@a/b/**",
            "@a/c/**",
            "'**/@a/b/**' and '@a/c/**' are disjoint: no number of chunks for '**' makes the others meet",
        ),
    ],
)
def test_explanation_names_what_decides(a: str, b: str, expected: str) -> None:
    assert explain(a, b) == expected


# -- pairs written to be slow --------------------------------------------------------------------------------

STARS, CHUNKS = KEY_EXPR_WILDCARDS, KEY_EXPR_CHUNKS
LONG = 60_000
SLOW_ON_PURPOSE = {
    "stars against a row of a": ("/".join(["**/a"] * STARS) + "/b", "/".join(["a"] * CHUNKS)),
    "stars against stars": ("/".join(["**/a"] * STARS), "/".join(["**/a"] * STARS) + "/b"),
    "dollars in one chunk": ("a$*" * STARS + "b", "a" * LONG),
    "dollars that almost fit": ("a" * 1000 + ("$*" + "a" * 1000 + "b") * STARS, "a" * LONG),
    "dollars against dollars": ("a$*" * STARS + "b", "$*a" * (STARS - 1) + "c$*a"),
    "different dollars": (
        "/".join(f"**/a{n}$*" for n in range(STARS // 2)),
        "/".join(f"b{n}$*/**" for n in range(STARS // 2)) + "/c",
    ),
    "dollars against every chunk": (
        "**/" + "/".join("$*" + "a" * 480 + f"{n}x$*" for n in range(STARS // 2 - 1)) + "/**",
        "/".join("a" * 500 + f"{n}" for n in range(CHUNKS - 1)) + "/**",
    ),
    "a star in each second chunk": (
        "/".join(["**/a"] * STARS + ["x"]),
        "/".join(["a/*"] * (STARS - 1) + ["**", "y"]),
    ),
    "one long piece": ("**/" + "a/" * (CHUNKS - 3) + "b/**", "a/" * (CHUNKS - 1) + "a"),
}


@pytest.mark.parametrize("name", SLOW_ON_PURPOSE)
def test_pair_written_to_be_slow_is_answered_at_once(name: str) -> None:
    a, b = SLOW_ON_PURPOSE[name]
    check(a)
    check(b)
    since = thread_time()

    assert intersects(a, b) is intersects(b, a)
    assert not includes(a, b)
    assert not includes(b, a)

    assert thread_time() - since < GENEROUS


# -- texts too complex ---------------------------------------------------------------------------------------

TOO_COMPLEX = {
    "chunks": ("/".join(["a"] * (CHUNKS + 1)), "KEY_EXPR_CHUNKS", CHUNKS + 1),
    "chunks, far": ("/".join(["a"] * 30_000), "KEY_EXPR_CHUNKS", 30_000),
    "double stars": ("/".join(["**/a"] * (STARS + 1)), "KEY_EXPR_WILDCARDS", STARS + 1),
    "stars": ("/".join(["*"] * (STARS + 1)), "KEY_EXPR_WILDCARDS", STARS + 1),
    "dollars in one chunk": ("a$*" * (STARS + 1), "KEY_EXPR_WILDCARDS", STARS + 1),
    "dollars in one chunk, far": ("a$*" * 20_000, "KEY_EXPR_WILDCARDS", 20_000),
    "all of them": ("a$*/*/**/" * 11 + "b", "KEY_EXPR_WILDCARDS", 33),
}


@pytest.mark.parametrize("name", TOO_COMPLEX)
def test_too_complex_text_is_refused_with_the_limit(name: str) -> None:
    text, limit, count = TOO_COMPLEX[name]

    for refuse in (check, KeyExpr, canonize):
        with pytest.raises(InvalidKeyExpr) as caught:
            refuse(text)
        assert f"({limit})" in caught.value.problem
        assert caught.value.problem.startswith(f"{count} ")
        assert len(str(caught.value)) < 500


def test_text_at_the_limits_is_taken() -> None:
    check("/".join(["a"] * CHUNKS))
    check("/".join(["*"] * STARS))
    check("/".join(["**/a"] * STARS))
    check("a$*" * STARS)
    check("/".join(["**/aa$*"] * (STARS // 2) + ["a"] * (CHUNKS - STARS)))


@pytest.mark.parametrize(
    ("pattern", "chunk", "matches"),
    [
        ("ab$*bc", "abc", False),  # the fixed ends would overlap
        ("ab$*bc", "abbc", True),
        ("ab$*bc", "abxbc", True),
        ("a$*a", "a", False),
        ("a$*a", "aa", True),
        ("ab$*b$*bc", "abbc", False),  # the middle would overlap an end
        ("ab$*b$*bc", "abbbc", True),
    ],
)
def test_fixed_parts_of_a_chunk_do_not_overlap(pattern: str, chunk: str, matches: bool) -> None:
    tree = KeyTree[str]()
    tree.add(pattern, pattern)
    tree.add(f"**/{pattern}/x", "deep")

    assert intersects(pattern, chunk) is matches
    assert intersects(chunk, pattern) is matches
    assert includes(pattern, chunk) is matches
    assert Pattern.of(pattern).matches(chunk) is matches
    assert (tree.intersecting(chunk) == [pattern]) is matches
    assert (tree.intersecting(f"y/{chunk}/x") == ["deep"]) is matches
