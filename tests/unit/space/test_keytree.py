"""The index of key expressions."""

from __future__ import annotations

import pytest

from elea.space.keytree import KeyTree


def tree_of(*keys: str) -> KeyTree[str]:
    tree = KeyTree[str]()
    for key in keys:
        tree.add(key, key)
    return tree


def test_wildcards_on_both_sides_meet() -> None:
    tree = tree_of("a/b/c", "a/*/c", "a/**", "**/c", "a/b$*/c", "x/y", "@a/b", "a/@v/c")

    assert set(tree.intersecting("a/b/c")) == {"a/b/c", "a/*/c", "a/**", "**/c", "a/b$*/c"}
    assert set(tree.intersecting("**")) == {"a/b/c", "a/*/c", "a/**", "**/c", "a/b$*/c", "x/y"}
    assert set(tree.intersecting("x$*/y")) == {"x/y"}
    assert set(tree.intersecting("@a/*")) == {"@a/b"}
    assert set(tree.intersecting("a/@v/*")) == {"a/@v/c"}
    assert set(tree.including("a/*/c")) == {"a/*/c", "a/**", "**/c"}
    assert set(tree.including("a/b/c")) == {"a/b/c", "a/*/c", "a/**", "**/c", "a/b$*/c"}


def test_verbatim_chunk_with_dollar_is_matched_by_itself_only() -> None:
    tree = tree_of("@a$*", "*")

    assert tree.intersecting("@a$*") == ["@a$*"]
    assert tree.including("@a$*") == ["@a$*"]
    assert tree.intersecting("@ab") == []


def test_value_under_the_same_key_is_replaced() -> None:
    tree = tree_of("a")

    tree.add("a", "new")

    assert (len(tree), tree.get("a"), list(tree)) == (1, "new", ["new"])


def test_get_finds_exactly_the_key() -> None:
    tree = tree_of("a/b", "a/*")

    assert (tree.get("a/*"), tree.get("a/b"), tree.get("a"), tree.get("a/c"), tree.get("b/**"), tree.get("a/b/c")) == (
        "a/*",
        "a/b",
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("key", ["a", "b", "a/b/c", "a/*", "**"])
def test_remove_refuses_what_is_not_stored(key: str) -> None:
    with pytest.raises(KeyError):
        tree_of("a/b").remove(key)


def test_removing_everything_leaves_nothing_behind() -> None:
    tree = tree_of("a/b", "a/b/c", "a/*", "a/*/**", "a/b$*")

    for key in ("a/b", "a/*", "a/b/c", "a/*/**", "a/b$*"):
        tree.remove(key)

    assert (len(tree), list(tree)) == (0, [])
    assert tree._root.literal is None
    assert tree._root.wild is None


def test_many_double_stars_take_no_exponential_time() -> None:
    tree = tree_of(*("/".join(["**/a"] * times) for times in range(1, 60)))

    assert len(tree.intersecting("/".join(["a"] * 60))) == 59
    assert len(tree.intersecting("/".join(["**/a"] * 60))) == 59
    assert len(tree.including("/".join(["**/a"] * 60))) == 59


def test_lookup_does_not_look_at_everything() -> None:
    tree = tree_of(*(f"fleet/{number // 100}/{number % 100}/**" for number in range(10_000)))

    assert tree.intersecting("fleet/7/8/speed") == ["fleet/7/8/**"]
