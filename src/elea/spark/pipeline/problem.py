"""One thing that is wrong in a pipeline file: where, what, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = ["Problem", "Wrong", "listed", "nearest"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake; `line` and `column` count from 1, line 0 is the file as a whole."""

    line: int
    column: int
    what: str
    fix: str
    is_warning: bool = False
    file: str | None = None
    """A file that is included; None is the one that includes it."""

    def __str__(self) -> str:
        place = f"{self.line}: " if self.line else " "
        place = place if self.file is None else f" {self.file}:{place}"
        return f"{place}{'warning: ' if self.is_warning else ''}{self.what} — {self.fix}"

    def form(self, file: str) -> dict[str, object]:
        """The JSON form."""
        return {
            "file": self.file or file,
            "line": self.line or None,
            "column": self.column or None,
            "level": "warning" if self.is_warning else "error",
            "what": self.what,
            "fix": self.fix,
        }


class Wrong(ValueError):
    """A value that does not do; `at` is the character of the text where it goes wrong, from 0."""

    def __init__(self, what: str, fix: str, at: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.at = at


def nearest(name: str, names: Iterable[str], otherwise: str = "there are") -> str:
    """What to write instead of a name that nobody knows.

    >>> nearest("watermrak", ["watermark", "schema"]), nearest("x", ["b", "a"]), nearest("x", [])
    ('did you mean "watermark"?', 'there are a, b', 'there is none')
    """
    known = {one.lower(): one for one in names}
    found = get_close_matches(name.lower(), known, 1, 0.6)
    if found:
        return f'did you mean "{known[found[0]]}"?'
    return f"{otherwise} {listed(sorted(known.values()))}" if known else "there is none"


def listed(names: Iterable[str]) -> str:
    """Names with commas between."""
    return ", ".join(names)
