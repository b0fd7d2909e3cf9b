"""What key expressions cost at worst, and that the fast answers are those of a plain one.

The plain one is the definition written down: two rows of chunks meet if their first chunks do and the rest does.
"""

from __future__ import annotations

import random
from functools import lru_cache
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.globs import compile_chunks, glob_covers
from elea.model.keyexpr import canonize, check, includes, intersects
from elea.model.limits import KEY_EXPR_CHUNKS, KEY_EXPR_WILDCARDS
from elea.space.keytree import KeyTree
from tests.property.worstkeys import BOUND, cost, search

Row = tuple[str, ...]

STARS, CHUNKS = KEY_EXPR_WILDCARDS, KEY_EXPR_CHUNKS


# -- the plain answers -----------------------------------------------------------------------------------------


@lru_cache(maxsize=65_536)
def characters_meet(p: str, q: str) -> bool:
    """Whether two texts of characters and `*` (any run) have a text in common."""
    if not p or not q:
        return not (p + q).replace("*", "")
    if p[0] == "*":
        return characters_meet(p[1:], q) or characters_meet(p, q[1:])
    if q[0] == "*":
        return characters_meet(q, p)
    return p[0] == q[0] and characters_meet(p[1:], q[1:])


def chunks_meet(p: str, q: str) -> bool:
    if p[0] == "@" or q[0] == "@":
        return p == q
    return p == "*" or q == "*" or characters_meet(p.replace("$*", "*"), q.replace("$*", "*"))


@lru_cache(maxsize=65_536)
def rows_meet(p: Row, q: Row) -> bool:
    if not p or not q:
        return set(p + q) <= {"**"}
    if p[0] == "**":
        return rows_meet(p[1:], q) or (q[0][0] != "@" and rows_meet(p, q[1:]))
    if q[0] == "**":
        return rows_meet(q, p)
    return chunks_meet(p[0], q[0]) and rows_meet(p[1:], q[1:])


literals = st.sampled_from(["a", "b", "ab", "aab", "@a"])
wilds = st.sampled_from(["*", "**", "**", "a$*", "$*b", "a$*b", "ab$*ab", "$*a$*"])
keys = st.lists(literals, min_size=1, max_size=12).map("/".join)
key_exprs = st.lists(st.one_of(literals, wilds), min_size=1, max_size=12).map("/".join).map(canonize)


@given(key_exprs, key_exprs)
def test_expressions_meet_as_the_definition_says(a: str, b: str) -> None:
    expected = rows_meet(tuple(a.split("/")), tuple(b.split("/")))

    assert intersects(a, b) is expected
    assert intersects(b, a) is expected


@given(key_exprs, keys)
def test_key_matches_as_the_definition_says(a: str, key: str) -> None:
    expected = rows_meet(tuple(a.split("/")), tuple(key.split("/")))

    assert intersects(a, key) is includes(a, key) is expected


@given(key_exprs, key_exprs)
def test_inclusion_is_that_of_the_engine(a: str, b: str) -> None:
    assert includes(a, b) is glob_covers(compile_chunks(a), compile_chunks(b))


@given(st.lists(key_exprs, min_size=1, max_size=12), st.one_of(keys, key_exprs))
def test_tree_finds_what_is_found_one_by_one(stored: list[str], asked: str) -> None:
    tree = KeyTree[str]()
    for key in stored:
        tree.add(key, key)

    assert sorted(tree.intersecting(asked)) == sorted(one for one in set(stored) if intersects(one, asked))
    assert sorted(tree.including(asked)) == sorted(one for one in set(stored) if includes(one, asked))


# -- the worst -------------------------------------------------------------------------------------------------

WORST = {
    "stars, a row": ("/".join(["**/a"] * STARS), "/".join(["a"] * (CHUNKS - 1) + ["b"])),
    "stars, stars": ("/".join(["**/a"] * STARS), "/".join(["**/a"] * (STARS - 1)) + "/b"),
    "dollars, a row": ("/".join(["**"] + ["$*a"] * (STARS - 1)), "/".join(["a"] * CHUNKS)),
    "a row, dollars": ("/".join(["**"] + ["a"] * (CHUNKS - 1)), "/".join(["**"] + ["$*a"] * (STARS - 1))),
    "dollars, dollars": (
        "/".join(["**"] + ["a$*"] * (STARS - 1) + ["a"] * (CHUNKS - STARS)),
        "/".join(["**"] + ["$*a"] * (STARS - 1) + ["a"] * (CHUNKS - STARS)),
    ),
    "a third of each": (
        "/".join(["**/a/a$*/a/$*a"] * 10 + ["a"] * 70),
        "/".join(["**/aa/a$*a/a/$*a"] * 10 + ["a"] * 70),
    ),
}
"""The worst kinds of pairs that `tests.property.worstkeys` comes to, made as long as they may be."""


@pytest.mark.parametrize("name", WORST)
def test_worst_pairs_cost_no_more_than_the_bound(name: str) -> None:
    a, b = WORST[name]
    check(a)
    check(b)
    since = thread_time()
    intersects(a, b)
    includes(a, b)

    assert thread_time() - since < 1.0  # some milliseconds, unless the machine has other things to do
    assert max(cost(a, b), cost(b, a)) <= BOUND


@pytest.mark.parametrize("seed", [1, 3])
def test_search_finds_nothing_above_the_bound(seed: int) -> None:
    worst, stored, asked = search(random.Random(seed), 300)

    assert worst <= BOUND, (stored, asked)


def test_many_patterns_cost_what_there_is_of_them() -> None:
    tree = KeyTree[int]()
    nodes = 0
    for number in range(300):
        chunks = ["**", f"a{number}"] + ["**", "a"] * (STARS - 1)
        tree.add("/".join(chunks), number)
        nodes += len(chunks)

    for asked in ("/".join(["a"] * CHUNKS), "/".join(["**/a"] * STARS), "**"):
        tree.visited = 0
        tree.intersecting(asked)
        assert tree.visited <= nodes + 1
        tree.visited = 0
        tree.including(asked)
        assert tree.visited <= nodes + 1
