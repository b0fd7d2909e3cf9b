"""Searches over two globs that find a key to show: one that both have, or one that the other lacks.

Slower than `elea.model.globs`, which only answers yes or no: a witness takes time in proportion to the
product of the two sizes, and exact inclusion keeps sets of places, bounded by `limits.INCLUSION_SETS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from elea.model.errors import LimitReached
from elea.model.globs import FRESH, Glob
from elea.model.limits import INCLUSION_SETS

__all__ = ["find_counterexample", "find_witness"]

# Spec: the keys considered are those some dialect can name: non-empty chunks parted by single slashes, with
# no slash at the end, where only the first chunk may be empty and only before another (DEC-32: `zenoh:///T`
# is the key `/T`).
_FIRST: Final = 0  # nothing read yet
_SLASH: Final = 1  # a chunk must start
_INSIDE: Final = 2  # in a chunk: the key may end here

_Node = tuple[int, int, int]


def find_witness(a: Glob, b: Glob) -> str | None:
    """A shortest key that belongs to both, or `None`."""
    start = [(i, j, _FIRST) for i in _each(a.read(a.start, "/")) for j in _each(b.read(b.start, "/"))]
    came: dict[_Node, tuple[_Node, str] | None] = dict.fromkeys(start)
    level = start
    filler = _unused("x", a, b)
    while level:
        following: list[_Node] = []
        for pair in level:
            i, j, shape = pair
            if shape == _INSIDE and 1 << i & a.end and 1 << j & b.end:
                return _spell(came, pair)
            for char in (_literal(a, i), _literal(b, j), filler, "/"):
                after = _shape(shape, char)
                if after is None:
                    continue
                for onward in _pairs(a.read(1 << i, char), b.read(1 << j, char), after):
                    if onward not in came:
                        came[onward] = (pair, char)
                        following.append(onward)
        level = following
    return None


def find_counterexample(outer: Glob, inner: Glob) -> str | None:
    """A key of `inner` that is not one of `outer`, or `None` if there is none: then `outer` includes `inner`.

    Each node is a place of the inner glob with all the places the outer may be in. A node is dropped when one
    with fewer places of the outer is known, because what escapes the larger set escapes the smaller one too.

    Raises:
        LimitReached: the texts are made to need more sets than `INCLUSION_SETS`.
    """
    limit = INCLUSION_SETS + 16 * len(inner.tokens)
    sets = outer.read(outer.start, "/")
    stack = [(j, _FIRST, sets) for j in _each(inner.read(inner.start, "/"))]
    came: dict[_Node, tuple[_Node, str] | None] = dict.fromkeys(stack)
    least: dict[tuple[int, int], list[int]] = {}
    filler = _unused("x", outer, inner)
    while stack:
        node = stack.pop()
        j, shape, places = node
        if shape == _INSIDE and 1 << j & inner.end and not places & outer.end:
            return _spell(came, node)
        if not _is_least(least.setdefault((j, shape), []), places):
            continue
        if len(came) > limit:
            raise LimitReached("INCLUSION_SETS", limit)
        # A character that the outer text does not mention is read by the fewest of its places; only '@' and
        # '/', which some wildcards refuse, can be read by fewer still.
        for char in (_literal(inner, j), filler, "@", "/"):
            after = _shape(shape, char)
            reached = inner.read(1 << j, char)
            if after is None or not reached:
                continue
            remaining = outer.read(places, char)
            for k in _each(reached):
                onward = (k, after, remaining)
                if onward not in came:
                    came[onward] = (node, char)
                    stack.append(onward)
    return None


def _pairs(left: int, right: int, shape: int) -> Iterator[_Node]:
    if left and right:
        for i in _each(left):
            for j in _each(right):
                yield i, j, shape


def _each(places: int) -> Iterator[int]:
    while places:
        lowest = places & -places
        yield lowest.bit_length() - 1
        places ^= lowest


def _literal(glob: Glob, place: int) -> str:
    """The character a place asks for, or `FRESH`, which no key contains and no search reads."""
    token = glob.tokens[place] if place < len(glob.tokens) else FRESH
    return token if len(token) == 1 else FRESH


def _shape(shape: int, char: str) -> int | None:
    if char == FRESH:
        return None
    if char != "/":
        return _INSIDE
    return None if shape == _SLASH else _SLASH


def _unused(wish: str, a: Glob, b: Glob) -> str:
    """A character neither text mentions, the wished one if possible."""
    code = ord(wish)
    while chr(code) in a.literal or chr(code) in b.literal:
        code += 1
    return chr(code)


def _is_least(known: list[int], places: int) -> bool:
    """Whether no known set is within `places`; if so, it takes the place of the larger ones."""
    if any(one & places == one for one in known):
        return False
    known[:] = [one for one in known if one & places != places]
    known.append(places)
    return True


def _spell(came: dict[_Node, tuple[_Node, str] | None], last: _Node) -> str:
    chars: list[str] = []
    step = came[last]
    while step is not None:
        chars.append(step[1])
        step = came[step[0]]
    return "".join(reversed(chars))
