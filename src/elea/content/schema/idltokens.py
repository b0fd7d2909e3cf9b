"""The tokens of IDL, with their places. Comments and lines for the preprocessor are passed over."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from elea.model.errors import InvalidSchema
from elea.model.limits import SCHEMA_BYTES

__all__ = ["IDL", "Token", "Tokens"]

IDL: Final = "IDL"

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+ | //[^\n]* | /\*[^*]*\*+(?:[^/*][^*]*\*+)*/ | \#[^\n]*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>0[xX][0-9A-Fa-f]+ | [0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<mark>:: | [{}()\[\]<>;,:=@+*-] | /(?!\*))
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """One token; `kind` is name, number, text, mark or end."""

    kind: str
    value: str
    at: int


class Tokens:
    """The tokens of a text, one after the other."""

    def __init__(self, text: str) -> None:
        """Cut a text.

        Raises:
            InvalidSchema: it is too long, or something in it is no token.
        """
        self._text = text
        if len(text) > SCHEMA_BYTES:
            self.fail(f"{len(text)} characters are above the limit of {SCHEMA_BYTES} (SCHEMA_BYTES)", 0)
        self._all: list[Token] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                what = "a comment that does not end" if text.startswith("/*", at) else f"unexpected {text[at]!r}"
                self.fail(what, at)
            if found.lastgroup != "space":
                self._all.append(Token(found.lastgroup or "", found[0], at))
            at = found.end()
        self._all.append(Token("end", "", at))
        self._next = 0

    @property
    def now(self) -> Token:
        """The next token, which stays."""
        return self._all[self._next]

    def take(self) -> Token:
        """The next token; the end is never passed."""
        token = self._all[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def accept(self, *values: str) -> Token | None:
        """The next token if it is one of some marks or words."""
        return self.take() if self.now.value in values and self.now.kind in ("mark", "name") else None

    def expect(self, value: str) -> Token:
        """The next token, which has to be this."""
        return self.accept(value) or self.fail(f"expected {value!r}, not {_shown(self.now)}")

    def name(self, what: str) -> Token:
        """The next token, which has to be a name."""
        return self.take() if self.now.kind == "name" else self.fail(f"expected {what}, not {_shown(self.now)}")

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        """Say what is wrong at a place; unless given, at the next token."""
        place = self.now.at if at is None else at
        line = self._text.count("\n", 0, place) + 1
        raise InvalidSchema(IDL, problem, line, place - (self._text.rfind("\n", 0, place) + 1) + 1)


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.value[:40])
