"""Laws of key expressions and early paths, against matchers made of regular expressions.

Counting keys of a small universe can refute a no of ours but not confirm it, and the reverse holds for a yes;
so a yes is checked by the key that is shown for it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr
from elea.model.globs import Glob, compile_characters, compile_chunks, glob_covers, globs_intersect
from elea.model.globsearch import find_witness
from elea.model.keyexplain import explain
from elea.model.keyexpr import KeyExpr, canonize, includes, intersects, witness
from elea.model.keytext import cover
from elea.model.pattern import Pattern, PatternKind
from elea.model.resource import Resource, path_includes, paths_intersect
from elea.space.keytree import KeyTree

CHUNKS = ["".join(chars) for size in (1, 2) for chars in product("ab@", repeat=size)]
KEYS = ["/".join(chunks) for size in (1, 2, 3) for chunks in product(CHUNKS, repeat=size)]
KEYS += ["/" + key for key in KEYS if key.count("/") < 2]


def chunk_regex(chunk: str) -> str:
    if chunk == "**":
        return "(?:/(?!@)[^/]+)*"
    if chunk[0] == "@":
        return "/" + re.escape(chunk)
    if chunk == "*":
        return "/(?!@)[^/]+"
    return "/(?!@)" + "[^/]*".join(re.escape(part) for part in chunk.split("$*"))


def character_regex(path: str) -> str:
    tokens = re.findall(r"\*+|[^*]", path)
    return "/" + "".join(
        ".*" if token.startswith("**") else {"*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token)) for token in tokens
    )


@lru_cache(maxsize=4096)
def regex_of(pattern: Pattern) -> re.Pattern[str]:
    if pattern.kind is PatternKind.CHUNKS:
        return re.compile("".join(chunk_regex(chunk) for chunk in pattern.text.split("/")))
    return re.compile(character_regex(pattern.text), re.DOTALL)


def has(pattern: Pattern, key: str) -> bool:
    return regex_of(pattern).fullmatch("/" + key) is not None


@lru_cache(maxsize=4096)
def keys_of(pattern: Pattern) -> frozenset[str]:
    return frozenset(key for key in KEYS if has(pattern, key))


def glob_of(pattern: Pattern) -> Glob:
    compiled = compile_chunks if pattern.kind is PatternKind.CHUNKS else compile_characters
    return compiled(pattern.text)


def is_valid(text: str) -> bool:
    try:
        keyexpr.check(text)
    except InvalidKeyExpr:
        return False
    return True


def early(path: str) -> Pattern:
    return Pattern(path, PatternKind.CHARACTERS)


in_chunk = st.lists(st.sampled_from(["a", "b", "@", "$*"]), min_size=1, max_size=4).map("".join)
chunks = st.one_of(st.sampled_from(["*", "**", "a", "@a", "@", "a$*", "$*b"]), in_chunk)
raw_texts = st.lists(chunks, min_size=1, max_size=4).map("/".join)
key_exprs = raw_texts.map(lambda text: canonize(text) if is_valid(_canonical_or(text)) else "a")
names = st.lists(st.sampled_from(["a", "b", "@", "?", "*", "**"]), min_size=1, max_size=3).map("".join)
paths = st.tuples(st.sampled_from(["", "", "", "/"]), st.lists(names, min_size=1, max_size=3).map("/".join)).map(
    "".join
)
patterns = st.one_of(key_exprs.map(Pattern), paths.map(early))
small_keys = st.sampled_from(KEYS)


def _canonical_or(text: str) -> str:
    try:
        return canonize(text)
    except InvalidKeyExpr:
        return ""


# -- key expressions -----------------------------------------------------------------------------------------


@given(key_exprs, key_exprs)
def test_intersection_agrees_with_counting_and_is_symmetric(a: str, b: str) -> None:
    answer = intersects(a, b)

    assert answer is intersects(b, a)
    assert answer or not keys_of(Pattern(a)) & keys_of(Pattern(b))
    shared = find_witness(compile_chunks(a), compile_chunks(b))
    assert witness(a, b) == shared
    assert (shared is not None) is answer
    assert shared is None or (has(Pattern(a), shared) and has(Pattern(b), shared))


@given(key_exprs, key_exprs)
def test_inclusion_is_confirmed_by_every_key(a: str, b: str) -> None:
    if includes(a, b):
        assert keys_of(Pattern(b)) <= keys_of(Pattern(a))
        assert intersects(a, b)


@given(key_exprs, key_exprs)
def test_refused_inclusion_has_a_key_that_is_lacking(a: str, b: str) -> None:
    assume(not includes(a, b))
    lacking = Pattern(a).missing(Pattern(b))

    # The rule of the network does not compare a `*` with a `**`; only there may it miss an inclusion.
    if lacking is None:
        assert {"*", "**"} <= set(a.split("/"))
        assert "**" in b.split("/")
    else:
        assert has(Pattern(b), lacking)
        assert not has(Pattern(a), lacking)


@given(key_exprs, key_exprs)
def test_walk_over_chunks_and_engine_agree(a: str, b: str) -> None:
    globs = compile_chunks(a), compile_chunks(b)

    assert globs_intersect(*globs) is intersects(a, b)
    assert glob_covers(*globs) is includes(a, b)


@given(key_exprs)
def test_inclusion_is_reflexive(a: str) -> None:
    assert includes(a, a)
    assert glob_covers(compile_chunks(a), compile_chunks(a))


@given(key_exprs, key_exprs, key_exprs)
def test_inclusion_is_transitive_and_keeps_intersections(a: str, b: str, c: str) -> None:
    if includes(a, b) and includes(b, c):
        assert includes(a, c)
    if includes(a, b) and intersects(b, c):
        assert intersects(a, c)


@given(key_exprs, small_keys.filter(lambda key: key[0] != "/"))
def test_key_is_included_where_it_matches(a: str, key: str) -> None:
    assert includes(a, key) is intersects(a, key) is Pattern(a).matches(key) is has(Pattern(a), key)


@given(raw_texts)
def test_canonical_form_is_valid_stays_and_keeps_the_keys(text: str) -> None:
    canonical = _canonical_or(text)
    assume(canonical)

    assert is_valid(canonical)
    assert canonize(canonical) == canonical
    if "$*$*" not in text and "$*" not in text.split("/"):
        assert keys_of(Pattern(text)) == keys_of(Pattern(canonical))


@given(key_exprs, key_exprs)
def test_join_and_concat_are_those_of_texts(a: str, b: str) -> None:
    assert KeyExpr(a) / b == KeyExpr(a).join(b) == canonize(f"{a}/{b}")
    assert KeyExpr(a).concat("/x") == f"{a}/x"


@given(key_exprs, key_exprs)
def test_explanation_says_what_is_so(a: str, b: str) -> None:
    said = explain(a, b)

    assert (" disjoint: " in said) is not intersects(a, b)
    assert (" includes " in said or "same text" in said) is (includes(a, b) or includes(b, a))
    pair = re.search(r": '([^'/]+)' (matches|does not match) '([^'/]+)'", said)
    if pair is not None and "**" not in pair.groups():
        assert intersects(pair[1], pair[3]) is (pair[2] == "matches")


# -- early paths and both kinds ------------------------------------------------------------------------------


@given(paths)
def test_paths_are_valid_and_include_themselves(path: str) -> None:
    assert Resource.parse(f"zenoh://{path}").path == path
    assert path_includes(path, path)


@given(paths, paths)
def test_paths_intersect_as_counted(a: str, b: str) -> None:
    answer = paths_intersect(a, b)

    assert answer is paths_intersect(b, a) is globs_intersect(compile_characters(a), compile_characters(b))
    assert answer or not keys_of(early(a)) & keys_of(early(b))


@given(patterns, patterns)
def test_patterns_of_any_kind_intersect_exactly(a: Pattern, b: Pattern) -> None:
    answer = a.intersects(b)

    assert answer is b.intersects(a)
    assert answer or not keys_of(a) & keys_of(b)
    shared = find_witness(glob_of(a), glob_of(b))
    assert a.witness(b) == shared
    assert (shared is not None) is answer
    assert shared is None or (has(a, shared) and has(b, shared))


@given(patterns, patterns)
def test_patterns_of_any_kind_include_exactly(a: Pattern, b: Pattern) -> None:
    lacking = a.missing(b)

    assert lacking is not None or keys_of(b) <= keys_of(a)
    assert lacking is None or (has(b, lacking) and not has(a, lacking))
    if a.kind is not PatternKind.CHUNKS or b.kind is not PatternKind.CHUNKS:
        assert a.includes(b) is (lacking is None)


@given(patterns, small_keys)
def test_pattern_has_the_keys_counted(pattern: Pattern, key: str) -> None:
    assert pattern.matches(key) is has(pattern, key)


@given(paths)
def test_what_a_1x_node_is_told_has_every_key_that_its_wildcards_can_have(path: str) -> None:
    told = Pattern(cover(f"zenoh://{path}"))

    assert is_valid(told.text)
    verbatim = {key for key in KEYS if "@" in key}
    assert {key for key in keys_of(early(path)) - verbatim if is_valid(key)} <= keys_of(told)


@given(st.lists(patterns, max_size=8), patterns)
def test_a_tree_of_both_grammars_answers_as_its_patterns(stored: list[Pattern], asked: Pattern) -> None:
    def written(pattern: Pattern) -> str:
        return pattern.text if pattern.kind is PatternKind.CHUNKS else f"zenoh://{pattern.text}"

    tree: KeyTree[str] = KeyTree()
    for pattern in stored:
        tree.add(written(pattern), written(pattern))
    distinct = {written(pattern): pattern for pattern in stored}

    assert sorted(tree) == sorted(distinct)
    assert len(tree) == len(distinct)
    found, including = tree.intersecting(written(asked)), tree.including(written(asked))
    assert sorted(found) == sorted(text for text, pattern in distinct.items() if pattern.intersects(asked))
    assert sorted(including) == sorted(text for text, pattern in distinct.items() if pattern.includes(asked))
    for text in distinct:
        assert tree.get(text) == text
        tree.remove(text)
    assert not len(tree)
