"""Why two key expressions relate as they do, in words: what `elea key` prints.

Spec: zenoh-1.md section 11.
"""

from __future__ import annotations

from elea.model.keyexpr import chunks_intersect, includes, intersects, witness

__all__ = ["explain"]


def explain(a: str, b: str) -> str:
    """Why two valid key expressions relate as they do, in one line.

    >>> explain("a/*", "a/b")
    "'a/*' includes 'a/b': chunk 2: '*' matches 'b'"
    >>> explain("*/b", "@x/b")
    "'*/b' and '@x/b' are disjoint: chunk 1: verbatim chunk '@x' is matched only by itself"
    """
    if a == b:
        return f"{a!r} and {b!r} are the same text"
    if includes(a, b):
        return f"{a!r} includes {b!r}: {_meeting(a, b)}"
    if includes(b, a):
        return f"{b!r} includes {a!r}: {_meeting(b, a)}"
    if intersects(a, b):
        return f"{a!r} and {b!r} intersect: {_meeting(a, b)}; both have the key {witness(a, b)!r}"
    return f"{a!r} and {b!r} are disjoint: {_conflict(a.split('/'), b.split('/'))}"


def _meeting(a: str, b: str) -> str:
    """The first chunks that differ and yet meet."""
    x, y = a.split("/"), b.split("/")
    at = 0
    while at < min(len(x), len(y)) and x[at] == y[at] != "**":  # behind a `**` places no longer correspond
        at += 1
    where = f"chunk {at + 1}: "
    if "**" not in (*x[at : at + 1], *y[at : at + 1]):
        return where + f"{x[at]!r} matches {y[at]!r}"
    if x.count("**") == 1 and "**" not in y:
        held = y[at : len(y) - (len(x) - at - 1)]
        return where + (f"'**' matches {'/'.join(held)!r}" if held else "'**' matches no chunk at all")
    return where + "'**' matches any number of chunks, none of them verbatim"


def _conflict(x: list[str], y: list[str]) -> str:
    """The chunks that keep two key expressions apart, or their number."""
    for at, (p, q) in enumerate(zip(x, y, strict=False), start=1):
        if "**" in (p, q):
            break
        if not chunks_intersect(p, q):
            return f"chunk {at}: {_clash(p, q)}"
    for at, (p, q) in enumerate(zip(reversed(x), reversed(y), strict=False), start=1):
        if "**" in (p, q):
            break
        if not chunks_intersect(p, q) and "**" in (*x, *y):
            return f"chunk {at} from the end: {_clash(p, q)}"
    return _odd_number(x, y) or _odd_verbatim(x, y) or "no number of chunks for '**' makes the others meet"


def _odd_number(x: list[str], y: list[str]) -> str:
    least = [len(chunks) - chunks.count("**") for chunks in (x, y)]
    exact = ["**" not in chunks for chunks in (x, y)]
    if least[0] == least[1] or not any(
        exact[one] and (exact[1 - one] or least[one] < least[1 - one]) for one in (0, 1)
    ):
        return ""
    words = [f"{'' if exact[one] else 'at least '}{_count(least[one])}" for one in (0, 1)]
    return f"one has {words[0]}, the other {words[1]}"


def _count(chunks: int) -> str:
    return "1 chunk" if chunks == 1 else f"{chunks} chunks"


def _odd_verbatim(x: list[str], y: list[str]) -> str:
    of_x, of_y = ([chunk for chunk in chunks if chunk[0] == "@"] for chunks in (x, y))
    for chunk in (*of_x, *of_y):
        if of_x.count(chunk) != of_y.count(chunk):
            return f"verbatim chunk {chunk!r} is matched only by itself"
    return ""


def _clash(p: str, q: str) -> str:
    for chunk in (p, q):
        if chunk[0] == "@":
            return f"verbatim chunk {chunk!r} is matched only by itself"
    return f"{p!r} does not match {q!r}"
