"""Declared keys as text, in either grammar: `a/*` of 1.x, `zenoh://a/b?` of the early dialects.

The space holds both kinds and lets them meet exactly (`elea.model.pattern`, imported when an early one is there, since
most nodes never see one). No 1.x expression has two slashes, so a text is of one kind or the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr

if TYPE_CHECKING:
    from elea.model.pattern import Pattern

__all__ = ["EARLY", "check", "cover", "includes", "intersects", "pattern_of"]

EARLY: Final = "zenoh://"
"""How the text of an early pattern begins."""


def check(text: str) -> None:
    """Raise unless it is a text of one of the grammars.

    Raises:
        InvalidKeyExpr, InvalidResource: it is not.
    """
    if text.startswith(EARLY):
        pattern_of(text)
    else:
        keyexpr.check(text)


def pattern_of(text: str) -> Pattern:
    """The set of keys that a text stands for.

    >>> pattern_of("zenoh://a/b?").kind, pattern_of("a/*").kind
    (<PatternKind.CHARACTERS: 'characters'>, <PatternKind.CHUNKS: 'chunks'>)
    """
    from elea.model.pattern import Pattern
    from elea.model.resource import Resource

    return Pattern.of(Resource.parse(text) if text.startswith(EARLY) else text)


def intersects(a: str, b: str) -> bool:
    """Whether some key belongs to both."""
    if a.startswith(EARLY) or b.startswith(EARLY):
        return pattern_of(a).intersects(pattern_of(b))
    return keyexpr.intersects(a, b)


def includes(a: str, b: str) -> bool:
    """Whether every key of the second belongs to the first."""
    if a.startswith(EARLY) or b.startswith(EARLY):
        return pattern_of(a).includes(pattern_of(b))
    return keyexpr.includes(a, b)


def cover(text: str) -> str:
    """A 1.x expression that has every key that 1.x wildcards can have: what a 1.x node is told.

    It may have more; where samples go is decided with the pattern itself.

    >>> cover("zenoh://a/b?/c*"), cover("zenoh://a/x**/y"), cover("a/*")
    ('a/b$*/c$*', 'a/**', 'a/*')
    """
    if not text.startswith(EARLY):
        return text
    found: list[str] = []
    for chunk in pattern_of(text).text.split("/"):
        if "**" in chunk:  # it reads slashes, too
            found.append("**")
            break
        found.append(_cover_chunk(chunk))
    try:
        return str(keyexpr.KeyExpr.autocanonize("/".join(found)))
    except InvalidKeyExpr:  # keys that only the early dialects can name
        return "**"


def _cover_chunk(chunk: str) -> str:
    if "*" not in chunk and "?" not in chunk:
        return chunk
    made = chunk.replace("?", "*")
    while "**" in made:
        made = made.replace("**", "*")
    return "*" if made == "*" else made.replace("*", "$*")
