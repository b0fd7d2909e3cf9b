"""The index of key expressions."""

from __future__ import annotations

import sys
import threading

import pytest

from elea.model import globs, keyexpr
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


def test_double_star_asked_for_is_included_by_a_double_star_only() -> None:
    tree = tree_of("a", "a/b", "a/*/b", "a/**", "a/**/b")

    assert set(tree.including("a/**/b")) == {"a/**", "a/**/b"}
    assert set(tree.including("a/**")) == {"a/**"}
    assert set(tree.intersecting("a/**")) == {"a", "a/b", "a/*/b", "a/**", "a/**/b"}


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


def test_walk_goes_on_while_the_tree_changes() -> None:
    kept = [f"a/{number}/{chunk}" for number in range(50) for chunk in ("b", "*", "b$*", "**/c", "**")]
    tree = tree_of(*kept)
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            for key in (f"a/{number % 60}/x{number}", f"a/{number % 60}/$*{number}", f"x{number}/**", f"a/*/{number}"):
                tree.add(key, "passing")
                tree.remove(key)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(300):
            for asked in ("a/7/b", "a/*/b", "**", "a/7/z/c"):
                found = set(tree.intersecting(asked)) - {"passing"}
                assert found == {key for key in kept if keyexpr.intersects(key, asked)}
            assert set(tree.including("a/7/*")) - {"passing"} == {"a/7/*", "a/7/**"}
    finally:
        stop.set()
        changing.join()
        sys.setswitchinterval(interval)


def test_early_patterns_are_compiled_once_however_many_keys_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []

    class Counted(globs.Glob):
        def __init__(self, steps: list[str], per_character: bool) -> None:
            compiled.append(len(steps))
            super().__init__(steps, per_character)

    monkeypatch.setattr(globs, "Glob", Counted)
    patterns = [f"zenoh://fleet/*/speed{number}?" for number in range(2_000)]  # more than any cache by text holds
    tree = tree_of(*patterns, *(f"zenoh://other{number}/*" for number in range(2_000)), *(f"a/{n}" for n in range(100)))

    found = [tree.intersecting(f"fleet/{number}/speed7x") for number in range(5)]

    assert found == [["zenoh://fleet/*/speed7?"]] * 5
    assert len(compiled) == 2_000  # and none that begins in another way
    assert tree.intersecting("zenoh://b/7?") == []
    assert sorted(tree.intersecting("zenoh://a/?")) == [f"a/{number}" for number in range(10)]
    assert len(compiled) == 4_002  # a pattern meets all others, once, and keys need no more than itself


def test_lookup_does_not_look_at_everything() -> None:
    tree = tree_of(*(f"fleet/{number // 100}/{number % 100}/**" for number in range(10_000)))

    assert tree.intersecting("fleet/7/8/speed") == ["fleet/7/8/**"]
