"""Patterns of LIKE and MATCH as regular expressions that take bounded time, whoever runs them.

`.*a.*a.*b` makes a backtracking engine try every pair of places. What lies between two runs of a pattern has a fixed
length, so its first place is as good as any: an atomic group says so, and the work is at most the length of the text
times that of the pattern. Python and Java have atomic groups; RE2, which Arrow uses, does not backtrack at all.
Spec: zenoh-2018.md section 6 (LIKE), dds.md section 5 (MATCH).
"""

from __future__ import annotations

import re
from typing import Final

from elea.model.values import value_class

__all__ = ["TextPattern", "glob_pattern", "like_pattern"]

_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ONE: Final = "."
"""One character, of any kind: all expressions are read with the flag `s`."""


@value_class
class TextPattern:
    """Alternatives; each is made of segments of fixed length with any characters between them."""

    alternatives: tuple[tuple[str, ...], ...]
    """Segments are regular expressions in the words that Python, Java and RE2 have in common."""

    def matcher(self) -> re.Pattern[str]:
        """For `fullmatch`."""
        return re.compile(f"(?s:{'|'.join(_atomic(one) for one in self.alternatives)})")

    def java(self) -> str:
        """For `rlike` of Spark."""
        return f"\\A(?s:{'|'.join(_atomic(one) for one in self.alternatives)})\\z"

    def re2(self) -> str:
        """For `match_substring_regex` of Arrow."""
        return f"\\A(?s:{'|'.join('.*'.join(one) for one in self.alternatives)})\\z"


def _atomic(segments: tuple[str, ...]) -> str:
    if len(segments) == 1:
        return segments[0]
    first, *middle, last = segments
    return first + "".join(f"(?>.*?{segment})" for segment in middle) + f".*{last}"


def like_pattern(text: str) -> TextPattern:
    """`%` is any run of characters, `_` is one; nothing escapes them.

    >>> like_pattern("a%b_").matcher().fullmatch("axxbc") is not None
    True
    """
    runs = re.sub("%+", "%", text).split("%")
    return TextPattern((tuple("".join(_ONE if c == "_" else _escaped(c) for c in run) for run in runs),))


def glob_pattern(text: str) -> TextPattern:
    """Globs with commas between: `*`, `?`, `[set]`, `[!set]`, and `\\` before a character that stands for itself.

    Raises:
        ValueError: a set does not end, or is the wrong way round.
    """
    alternatives: list[tuple[str, ...]] = []
    segments = [""]
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == ",":
            alternatives.append(tuple(segments))
            segments = [""]
        elif char == "*":
            if len(segments) == 1 or segments[-1]:
                segments.append("")
        elif char == "?":
            segments[-1] += _ONE
        elif char == "[":
            piece, at = _set(text, at)
            segments[-1] += piece
        else:
            if char == "\\" and at < len(text):
                char = text[at]
                at += 1
            segments[-1] += _escaped(char)
    return TextPattern((*alternatives, tuple(segments)))


def _set(text: str, at: int) -> tuple[str, int]:
    """A set whose bracket is open, as an expression, and where it ends."""
    negated = text[at : at + 1] == "!"
    members: list[str] = []
    at += negated
    while at < len(text) and (text[at] != "]" or not members):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        low = high = text[at]
        if text[at + 1 : at + 2] == "-" and text[at + 2 : at + 3] not in ("", "]"):
            high = text[at + 2]
            at += 2
        if low > high:
            raise ValueError(f"the set has nothing from {low!r} to {high!r}")
        members.append(_escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}")
        at += 1
    if at >= len(text):
        raise ValueError("the set does not end with ']'")
    return f"[{'^' if negated else ''}{''.join(members)}]", at + 1


def _escaped(char: str) -> str:
    return f"\\{char}" if char in _PUNCTUATION else char
