"""The tokens of a predicate, with the column of each.

Spec: zenoh-2018.md section 6. A sign belongs to a number, because the language has no arithmetic.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from elea.model.errors import InvalidPredicate
from elea.model.limits import PREDICATE_CHARS
from elea.model.predicate.syntax import KEYWORDS

__all__ = ["Token", "tokens_of"]

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:0[xX][0-9A-Fa-f]+|[0-9]+(?P<float>(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)))(?![A-Za-z0-9_.])
    | '(?P<string>(?:[^'\n\0]|'')*)'
    | "(?P<quoted>(?:[^"\n\0]|"")+)"
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | %(?P<parameter>[0-9]{1,2})(?![0-9])
    | (?P<mark><>|!=|<=|>=|[=<>(),.\[\]])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
_SHOWN: Final = 200
"""Characters of a text that is too long that an error quotes."""


class Token(NamedTuple):
    """One token: `kind` is number, string, quoted, name, parameter, mark, keyword or end; `column` counts from 1."""

    kind: str
    value: str | int | float
    column: int


def tokens_of(text: str) -> list[Token]:
    """All tokens, the end too.

    Raises:
        InvalidPredicate: the text is too long, or something in it is no token.
    """
    if len(text) > PREDICATE_CHARS:
        problem = f"{len(text)} characters are above the limit of {PREDICATE_CHARS} (PREDICATE_CHARS)"
        raise InvalidPredicate(f"{text[:_SHOWN]}…", PREDICATE_CHARS + 1, problem)
    tokens: list[Token] = []
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _no_token(text, at)
        kind = found.lastgroup or ""
        start = found.start(kind)
        column = start + 1 - (kind in ("string", "quoted", "parameter"))
        tokens.append(_token(text, kind, found[kind], found["float"], column))
        if kind == "end":
            return tokens
        at = found.end()


def _token(text: str, kind: str, value: str, fraction: str | None, column: int) -> Token:
    if kind == "number":
        return Token(kind, _number(text, value, bool(fraction), column), column)
    if kind == "string":
        return Token(kind, value.replace("''", "'"), column)
    if kind == "quoted":
        return Token(kind, value.replace('""', '"'), column)
    if kind == "parameter":
        return Token(kind, int(value), column)
    if kind == "name" and value.upper() in KEYWORDS:
        return Token("keyword", value.upper(), column)
    return Token(kind, "<>" if value == "!=" else value, column)


def _number(text: str, digits: str, is_float: bool, column: int) -> int | float:
    if is_float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise InvalidPredicate(text, column, f"{digits} is beyond the range of a double")
        return value
    whole = int(digits, 0) if "x" in digits.lower() else int(digits)
    if not -(1 << 63) <= whole < 1 << 64:
        raise InvalidPredicate(text, column, f"{digits} is beyond 64 bits")
    return whole


def _no_token(text: str, at: int) -> InvalidPredicate:
    while at < len(text) and text[at].isspace():
        at += 1
    rest = text[at:]
    problem = f"unexpected {rest[0]!r}"
    if rest[0] in "'\"":
        problem = "the string" if rest[0] == "'" else "the name in quotes"
        problem += " does not end" if rest[:2] != '""' else " is empty"
    elif rest[0] == "%":
        problem = "a parameter is %0 to %99"
    elif rest[0].isdigit() or rest[0] in "+-":
        problem = f"no number: {rest.split()[0][:20]!r}"
    elif rest[0] == ";":
        problem = "there is text behind the predicate: ';'"
    return InvalidPredicate(text, at + 1, problem)
