"""Key expressions of Zenoh 1.x: what is one, its canonical form, and how two of them relate.

A key expression is a text of chunks parted by `/`. `*` stands for one chunk, `**` for any number of chunks,
`$*` for any run of characters within a chunk; a chunk that starts with `@` is verbatim, matched only by
itself. A text is valid only in canonical form, of which every set has at most one. The early grammar is
`elea.model.resource`. Spec: zenoh-1.md section 11.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from elea.model.chunkrow import Row, chunk_includes, chunks_intersect
from elea.model.errors import InvalidKeyExpr
from elea.model.globs import compile_chunks
from elea.model.globsearch import find_witness
from elea.model.limits import KEY_EXPR_BYTES, KEY_EXPR_CHUNKS, KEY_EXPR_WILDCARDS

__all__ = [
    "KeyExpr",
    "SetIntersectionLevel",
    "canonize",
    "check",
    "chunks_intersect",
    "includes",
    "intersects",
    "wildcards",
    "witness",
]

_NEEDS_A_LOOK: Final = re.compile(r"[*$?#]|//|\A/|/\Z|\A\Z")
_DOLLARS: Final = re.compile(r"(?:\$\*){2,}")


class SetIntersectionLevel(IntEnum):
    """How two sets of keys relate; each level implies those below it."""

    DISJOINT = 0
    INTERSECTS = 1
    INCLUDES = 2
    EQUALS = 3

    def __repr__(self) -> str:
        return f"SetIntersectionLevel.{self.name}"

    def __str__(self) -> str:
        return repr(self)


# -- texts ---------------------------------------------------------------------------------------------------


def check(text: str) -> None:
    """Accept a key expression in canonical form.

    Raises:
        InvalidKeyExpr: with what is wrong, the chunk where it is, and how to write it.
    """
    if len(text) * 4 > KEY_EXPR_BYTES or not text.isascii():
        _check_size(text)
    if len(text) >= 2 * KEY_EXPR_CHUNKS:  # shorter ones cannot have too many chunks
        _check_count(text, "chunks", text.count("/") + 1, "KEY_EXPR_CHUNKS", KEY_EXPR_CHUNKS)
    if _NEEDS_A_LOOK.search(text) is None:
        return
    _check_count(text, "wildcards", wildcards(text), "KEY_EXPR_WILDCARDS", KEY_EXPR_WILDCARDS)
    previous = ""
    for number, chunk in enumerate(text.split("/"), start=1):
        problem, hint = _chunk_problem(chunk, previous)
        if problem:
            raise InvalidKeyExpr(_shortened(text), f"chunk {number} {_shortened(chunk)!r}: {problem}", hint)
        previous = chunk


def canonize(text: str) -> str:
    """The canonical form of a text that is valid but for the order and repetition of its wildcards.

    # Spec 11.1: `$*$*` inside a longer chunk has a documented canonical form, but eclipse-zenoh 1.10.2 does not
    # survive it. A form that only we accept would not travel, so it is refused, with the form to write.

    >>> canonize("a/**/*/**/$*$*")
    'a/*/*/**'
    """
    chunks: list[str] = []
    any_chunks = False
    for written in text.split("/"):
        chunk = _DOLLARS.sub("$*", written)
        if chunk not in (written, "$*"):
            raise InvalidKeyExpr(text, f"chunk {written!r} repeats '$*'", f"write {chunk!r}")
        if chunk == "**":
            any_chunks = True
            continue
        if chunk == "$*":
            chunk = "*"
        if any_chunks and chunk != "*":  # `**` goes behind every `*` next to it
            chunks.append("**")
            any_chunks = False
        chunks.append(chunk)
    if any_chunks:
        chunks.append("**")
    canonical = "/".join(chunks)
    check(canonical)
    return canonical


def wildcards(text: str) -> int:
    """How many `*`, `**` and `$*` a valid key expression has."""
    return text.count("*") - text.count("**")


def _check_count(text: str, what: str, count: int, name: str, limit: int) -> None:
    if count > limit:
        problem = f"{count} {what} are above the limit of {limit} ({name})"
        raise InvalidKeyExpr(_shortened(text), problem, f"use fewer {what}")


def _check_size(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidKeyExpr(_shortened(text), "half of a surrogate pair is no text") from None
    if size > KEY_EXPR_BYTES:
        problem = f"{size} bytes in UTF-8 are above the limit of {KEY_EXPR_BYTES}"
        raise InvalidKeyExpr(_shortened(text), problem, "use a shorter key")


def _chunk_problem(chunk: str, previous: str) -> tuple[str, str]:
    """What is wrong with a chunk and what to do about it, or two empty texts."""
    if not chunk:
        return "empty chunk", "remove the leading, trailing or doubled '/'"
    if chunk in ("*", "**"):
        return _order_problem(chunk, previous)
    if "#" in chunk or "?" in chunk:
        return (
            "'#' and '?' are forbidden",
            "a '?' starts the parameters of a selector, which is no key expression",
        )
    if chunk == "$*":
        return "'$*' alone is not canonical", "write '*'"
    if "$*$" in chunk:
        return "'$*' is followed by '$'", "write '$*' once"
    plain = chunk.replace("$*", "")
    if "*" in plain:
        return "'*' is not a whole chunk", "write '$*' for a run of characters within a chunk"
    if "$" in plain:
        return "'$' is allowed only in '$*'", ""
    return "", ""


def _order_problem(chunk: str, previous: str) -> tuple[str, str]:
    if previous == "**":
        return (
            f"'**/{chunk}' is not canonical",
            f"write '{'**' if chunk == '**' else '*/**'}', or use autocanonize",
        )
    return "", ""


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:100]}…{text[-80:]}"


# -- sets of keys --------------------------------------------------------------------------------------------


def intersects(a: str, b: str) -> bool:
    """Whether some key belongs to both of two valid key expressions."""
    if a == b:
        return True
    if "*" not in a and "*" not in b:
        return False
    x, y = a.split("/"), b.split("/")
    # Chunks before the first `**` and behind the last one meet one by one, which decides most pairs without
    # the row.
    low, high = 0, 0
    shorter = min(len(x), len(y))
    while low < shorter and x[low] != "**" and y[low] != "**":
        if not chunks_intersect(x[low], y[low]):
            return False
        low += 1
    while high < shorter - low and x[-1 - high] != "**" and y[-1 - high] != "**":
        if not chunks_intersect(x[-1 - high], y[-1 - high]):
            return False
        high += 1
    x, y = x[low : len(x) - high], y[low : len(y) - high]
    if not x or not y:
        return (x or y) in ([], ["**"])
    if x == ["**"] or y == ["**"]:
        return not (_has_verbatim(x) or _has_verbatim(y))
    row = Row(y)
    places = row.start()
    for chunk in x:
        places = row.meet(places, chunk)
        if not places:
            return False
    return places & row.end != 0


def includes(a: str, b: str) -> bool:
    """Whether every key of `b` belongs to `a`, both valid; never yes in error, but sometimes no.

    Spec: as in eclipse-zenoh, a `*` of `a` is not compared with a `**` of `b`, so that `*/**` does not
    include `**/b` although each of its keys has a chunk. `Pattern.missing` compares the sets themselves.
    """
    if a == b:
        return True
    if "*" not in a:
        return False
    x, y = a.split("/"), b.split("/")
    low, high = 0, 0
    shorter = min(len(x), len(y))
    while low < shorter and x[low] != "**":
        if not chunk_includes(x[low], y[low]):
            return False
        low += 1
    while high < shorter - low and x[-1 - high] != "**":
        if not chunk_includes(x[-1 - high], y[-1 - high]):
            return False
        high += 1
    x, y = x[low : len(x) - high], y[low : len(y) - high]
    if not x:
        return not y
    if x == ["**"]:
        return not _has_verbatim(y)
    if not y:
        return False
    row = Row(y)
    places = 1
    for chunk in x:
        places = row.cover(places, chunk)
        if not places:
            return False
    return places & row.end != 0


def witness(a: str, b: str) -> str | None:
    """A shortest key that belongs to both of two valid key expressions, or `None` if they are disjoint.

    >>> witness("a/*/c", "**/b$*/c")
    'a/b/c'
    """
    # The search for a key is slow where there is none, so it starts only where there is one.
    return find_witness(compile_chunks(a), compile_chunks(b)) if intersects(a, b) else None


def _has_verbatim(chunks: list[str]) -> bool:
    return any(chunk[0] == "@" for chunk in chunks)


# -- the value -----------------------------------------------------------------------------------------------


class KeyExpr:
    """A set of keys; equal to, and hashed like, its text.

    >>> KeyExpr("home/*/temp").includes("home/kitchen/temp")
    True
    >>> KeyExpr("home") / "kitchen" == "home/kitchen"
    True
    """

    __slots__ = ("_text",)
    _text: str

    def __init__(self, key_expr: str) -> None:
        check(key_expr)
        self._text = key_expr

    @classmethod
    def autocanonize(cls, key_expr: str) -> KeyExpr:
        """Canonize the text before taking it."""
        return cls(canonize(key_expr))

    def intersects(self, other: KeyExpr | str) -> bool:
        """Whether some key belongs to both."""
        return intersects(self._text, _text_of(other))

    def includes(self, other: KeyExpr | str) -> bool:
        """Whether every key of the other belongs to this one."""
        return includes(self._text, _text_of(other))

    def relation_to(self, other: KeyExpr | str) -> SetIntersectionLevel:
        """How this one relates to the other; INCLUDES means that this one is the larger."""
        return _relation(self._text, _text_of(other))

    def join(self, other: str) -> KeyExpr:
        """Both with a `/` between them, canonized."""
        return KeyExpr.autocanonize(f"{self._text}/{other}")

    def concat(self, other: str) -> KeyExpr:
        """The other text put straight behind this one, which must give a canonical text; prefer `join`."""
        if self._text.endswith("*") and other.startswith("*"):
            # Two `*` put together would become a `**` that neither text has.
            raise InvalidKeyExpr(self._text + other, "'*' behind '*' changes what both mean", "use join")
        return KeyExpr(self._text + other)

    def __truediv__(self, other: str) -> KeyExpr:
        return self.join(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KeyExpr):
            return self._text == other._text
        return self._text == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"KeyExpr({self._text!r})"

    def __reduce__(self) -> tuple[type[KeyExpr], tuple[str]]:
        return KeyExpr, (self._text,)


def _text_of(key_expr: KeyExpr | str) -> str:
    if isinstance(key_expr, str):
        check(key_expr)
        return key_expr
    return str(key_expr)


def _relation(a: str, b: str) -> SetIntersectionLevel:
    if a == b:
        return SetIntersectionLevel.EQUALS
    if includes(a, b):
        return SetIntersectionLevel.INCLUDES
    return SetIntersectionLevel.INTERSECTS if intersects(a, b) else SetIntersectionLevel.DISJOINT
