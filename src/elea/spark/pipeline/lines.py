"""Where things stand in a TOML text: `tomllib` reads the values, this finds the line of every key and value.

A small scanner for texts that `tomllib` has accepted. Of a text it remembers where every character came from, so that
the third line of an SQL statement is known as a line of the file.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import Final, NamedTuple

__all__ = ["Lines", "Path", "Place", "scan"]

Path = tuple[str | int, ...]
"""Names of tables and keys, and numbers of items."""

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS: Final = re.compile(r"[ \t]*")
_NOTHING: Final = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BARE_VALUE: Final = re.compile(r"[^,\]}#\n]*")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\n[ \t\n]*)")
_ESCAPES: Final = {"b": 1, "t": 1, "n": 1, "f": 1, "r": 1, "e": 1, '"': 1, "\\": 1, "x": 3, "u": 5, "U": 9}
"""How many characters stand behind the backslash for one."""


class Place(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class Lines:
    """The places of a text; `scan` makes them."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(at + 1 for at, octet in enumerate(text) if octet == "\n")]
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        self._characters: dict[Path, list[int]] = {}

    def key(self, path: Path) -> Place:
        """Where the name stands; of one that is not there, the table it is missing from."""
        while path and path not in self._keys:
            path = path[:-1]
        return self._place(self._keys[path]) if path else Place(1, 1)

    def value(self, path: Path) -> Place:
        """Where the value begins."""
        return self._place(self._values[path]) if path in self._values else self.key(path)

    def character(self, path: Path, at: int) -> Place:
        """Where character `at` of a text stands, from 0; the end, if there are not so many."""
        found = self._characters.get(path)
        return self._place(found[min(at, len(found) - 1)]) if found else self.value(path)

    def file_of(self, path: Path) -> str | None:
        """The file that has an entry; None for the one that was asked for."""
        return None

    def moved(self, path: Path, places: list[int]) -> None:
        """Character n of a text is what was character `places[n]`: something in it was replaced."""
        found = self._characters.get(path)
        if found:
            self._characters[path] = [found[min(at, len(found) - 1)] for at in places]

    def _place(self, at: int) -> Place:
        line = bisect_right(self._starts, at)
        return Place(line, at - self._starts[line - 1] + 1)


def scan(text: str) -> Lines:
    """The places of a text that is good TOML, with `\\n` at the end of its lines.

    >>> found = scan('[a]\\nb = "x"\\nc.d = [1,\\n  {e = 2}]')
    >>> found.key(("a", "b")), found.value(("a", "b")), found.value(("a", "c", "d", 1, "e")).line
    (Place(line=2, column=1), Place(line=2, column=5), 4)
    """
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found = Lines(text)
        self._items: dict[Path, int] = {}
        """Of `[[…]]`: how many there are so far."""

    def run(self) -> Lines:
        base: Path = ()
        while True:
            self._match(_NOTHING)
            if self._at >= len(self._text):
                return self._found
            if self._text.startswith("[[", self._at):
                self._at += 2
                path = self._resolved(self._key(()))
                self._at += 2
                self._items[path] = self._items.get(path, 0) + 1
                base = (*path, self._items[path] - 1)
                self._found._keys[base] = self._found._keys[path]
            elif self._text[self._at] == "[":
                self._at += 1
                base = self._resolved(self._key(()))
                self._at += 1
            else:
                self._entry(base)

    def _resolved(self, path: Path) -> Path:
        """With the number of the last item behind the name of every `[[…]]` on the way."""
        found: Path = ()
        for at, name in enumerate(path):
            found = (*found, name)
            if found in self._items and at < len(path) - 1:
                found = (*found, self._items[found] - 1)
        return found

    def _entry(self, base: Path) -> None:
        path = self._key(base)
        self._at += 1  # the sign of equality
        self._match(_BLANKS)
        self._value(path)

    def _key(self, base: Path) -> Path:
        """A name, or several with dots between; ends at what follows them."""
        path = base
        while True:
            self._match(_BLANKS)
            start = self._at
            if self._text[self._at] in "\"'":
                self._quoted()
                path = (*path, tomllib.loads(f"name = {self._text[start : self._at]}")["name"])
            else:
                path = (*path, self._match(_BARE_KEY))
            self._found._keys.setdefault(path, start)
            self._match(_BLANKS)
            if self._text[self._at] != ".":
                return path
            self._at += 1

    def _value(self, path: Path) -> None:
        first = self._text[self._at]
        self._found._values.setdefault(path, self._at)
        if first in "\"'":
            self._found._characters[path] = self._quoted()
        elif first == "[":
            self._at += 1
            self._items_of(path)
        elif first == "{":
            self._at += 1
            self._match(_NOTHING)
            while self._text[self._at] != "}":
                self._entry(path)
                self._match(_NOTHING)
                if self._text[self._at] == ",":
                    self._at += 1
                    self._match(_NOTHING)
            self._at += 1
        else:
            self._match(_BARE_VALUE)

    def _items_of(self, path: Path) -> None:
        number = 0
        self._match(_NOTHING)
        while self._text[self._at] != "]":
            self._found._keys.setdefault((*path, number), self._at)
            self._value((*path, number))
            number += 1
            self._match(_NOTHING)
            if self._text[self._at] == ",":
                self._at += 1
                self._match(_NOTHING)
        self._at += 1

    def _quoted(self) -> list[int]:
        """Where each character of a text stands, and its end."""
        quote = self._text[self._at]
        mark = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._at += len(mark)
        if len(mark) == 3 and self._text[self._at] == "\n":
            self._at += 1
        places: list[int] = []
        while not self._text.startswith(mark, self._at):
            if quote == '"' and self._text[self._at] == "\\":
                follows = _REST_OF_LINE.match(self._text, self._at + 1)
                if follows is not None:  # joins two lines: stands for nothing
                    self._at = follows.end()
                    continue
                places.append(self._at)
                self._at += 1 + _ESCAPES[self._text[self._at + 1]]
            else:
                places.append(self._at)
                self._at += 1
        # Up to two quotes before the end of a long text belong to it.
        while len(mark) == 3 and self._text.startswith(quote, self._at + 3):
            places.append(self._at)
            self._at += 1
        places.append(self._at)
        self._at += len(mark)
        return places

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]
