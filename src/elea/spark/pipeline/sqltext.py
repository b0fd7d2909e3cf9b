"""What can be seen in an SQL text without Spark: its words, the names it reads, and what it makes of a stream.

No parser: Spark has one. This knows strings, comments, names and brackets, which is enough to draw the flow, to find
names that do not exist, and to see aggregations; what it does not understand it leaves to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from elea.spark.pipeline.problem import Wrong

__all__ = ["Mention", "Statement", "Token", "statement", "tokens"]

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<text>[rR]?(?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))"""
    r"""|(?P<quoted>`(?:[^`]|``)*`)"""
    r"""|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<number>\d[\w.]*)"""
    r"""|(?P<mark>.)""",
    re.DOTALL,
)
_OPEN: Final = {")": "(", "]": "[", "}": "{"}
_ENDS_FROM: Final = frozenset(
    "WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION INTERSECT EXCEPT MINUS WINDOW QUALIFY".split()
)
_NOT_A_NAME: Final = frozenset("LATERAL VALUES SELECT TABLE ONLY STREAM UNNEST".split())
_STARTS: Final = frozenset("SELECT WITH FROM VALUES TABLE".split())
_TIME_WINDOWS: Final = frozenset("WINDOW SESSION_WINDOW".split())
_AGGREGATES: Final = frozenset(
    "ANY_VALUE APPROX_COUNT_DISTINCT APPROX_PERCENTILE ARRAY_AGG AVG BIT_AND BIT_OR BIT_XOR BOOL_AND BOOL_OR "
    "COLLECT_LIST COLLECT_SET CORR COUNT COUNT_IF COVAR_POP COVAR_SAMP EVERY FIRST FIRST_VALUE KURTOSIS LAST "
    "LAST_VALUE LISTAGG MAX MAX_BY MEAN MEDIAN MIN MIN_BY MODE PERCENTILE PERCENTILE_APPROX SKEWNESS SOME STD "
    "STDDEV STDDEV_POP STDDEV_SAMP STRING_AGG SUM TRY_AVG TRY_SUM VARIANCE VAR_POP VAR_SAMP".split()
)
"""Functions that make one row of many, also without GROUP BY."""


class Token(NamedTuple):
    """A piece of SQL: `kind` is text, name (quoted), word, number or mark; `at` is where, from 0."""

    kind: str
    text: str
    at: int
    depth: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these words, whatever its case."""
        return self.kind == "word" and self.text.upper() in words


class Mention(NamedTuple):
    """A name behind FROM or JOIN."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Statement:
    """What is known of a SELECT."""

    reads: tuple[Mention, ...]
    columns: tuple[str | None, ...] | None
    """Names of the result, None for one that has no name; None as a whole if there is a star, or it is unclear."""

    unnamed_at: int | None
    """Where the first column without a name stands."""

    window_at: int | None
    """A time window: `window(…)`, `session_window(…)`."""

    group_at: int | None
    """An aggregation: GROUP BY, SELECT DISTINCT, or a function such as `count(*)` over all rows."""

    grouped: frozenset[str]
    """The words that name what it groups by, in small letters; all there are if it only says ALL, 1 or DISTINCT."""

    over_at: int | None
    """A window over rows: OVER."""

    sort_at: int | None
    """ORDER BY of the whole result."""

    distinct_at: int | None
    """An aggregation of distinct values: `count(DISTINCT x)`."""

    outer_at: int | None
    """A LEFT, RIGHT or FULL JOIN."""

    has_join: bool


def tokens(sql: str) -> list[Token]:
    """The pieces, without comments.

    Raises:
        Wrong: a string, comment or bracket does not end.
    """
    found: list[Token] = []
    open_at: list[tuple[str, int]] = []
    for match in _TOKEN.finditer(sql):
        kind, text, at = str(match.lastgroup), match[0], match.start()
        if kind == "skip":
            continue
        if kind == "mark" and (text in "'\"`" or sql.startswith("/*", at)):
            what = "comment" if text == "/" else "name" if text == "`" else "string"
            raise Wrong(f"a {what} does not end", f"close it with {'*/' if text == '/' else text}", at)
        if text in _OPEN.values() and kind == "mark":
            open_at.append((text, at))
        depth = len(open_at)
        if text in _OPEN and kind == "mark":
            if not open_at or open_at[-1][0] != _OPEN[text]:
                raise Wrong(f"a {text} has no {_OPEN[text]} before it", f"take it away, or open a {_OPEN[text]}", at)
            open_at.pop()
        found.append(Token("name" if kind == "quoted" else kind, text, at, depth))
    if open_at:
        text, at = open_at[-1]
        raise Wrong(f"a {text} is never closed", "close it", at)
    return found


def statement(sql: str) -> Statement:
    """Look at a SELECT.

    >>> found = statement("SELECT key, count(*) AS n FROM lights GROUP BY key")
    >>> [one.name for one in found.reads], found.columns, found.group_at is not None
    (['lights'], ('key', 'n'), True)

    Raises:
        Wrong: it is something else, several statements, or a string, comment or bracket does not end.
    """
    found = tokens(sql)
    while found and found[-1].text == ";":
        found.pop()
    if not found:
        raise Wrong("there is no SQL in it", 'write e.g. sql = "SELECT key, timestamp FROM lights"')
    if not found[0].says(*_STARTS) and found[0].text != "(":
        word = found[0].text.upper()
        raise Wrong(f"a step begins with SELECT, not with {word}", "write a SELECT; tables are written by [table.…]")
    for token in found:
        if token.text == ";":
            raise Wrong("there are several statements", "make a step of each", token.at)
    columns, unnamed = _columns(found)
    return Statement(
        reads=tuple(_reads(found)),
        columns=columns,
        unnamed_at=unnamed,
        window_at=_calls(found, _TIME_WINDOWS),
        group_at=_group(found),
        grouped=_grouped(found),
        over_at=_calls(found, frozenset({"OVER"})),
        sort_at=next((one.at for one, then in _pairs(found) if one.says("ORDER") and one.depth == 0), None),
        distinct_at=next((then.at for one, then in _pairs(found) if one.text == "(" and then.says("DISTINCT")), None),
        outer_at=_outer(found),
        has_join=any(one.says("JOIN") for one in found),
    )


# -- names -------------------------------------------------------------------------------------------------------------


def _reads(found: list[Token]) -> Iterator[Mention]:
    """Names behind FROM, JOIN, and commas of a FROM; not those of WITH, of functions, or with dots."""
    own = _with_names(found)
    seen: set[str] = set()
    lists: dict[int, bool] = {}  # by depth: whether a comma parts relations here
    selects: dict[int, bool] = {}  # by depth: whether the bracket holds a SELECT, or the arguments of a function
    for at, token in enumerate(found):
        if token.text == "(":
            lists[token.depth] = selects[token.depth] = False
        if token.says("SELECT"):
            lists[token.depth], selects[token.depth] = False, True
        elif token.says(*_ENDS_FROM):
            lists[token.depth] = False
        starts = token.says("JOIN")
        if token.says("FROM"):
            # `extract(hour FROM at)` and `IS DISTINCT FROM` read nothing.
            of_function = token.depth > 0 and not selects.get(token.depth) and not _opens_from(found, at)
            starts = not of_function and not (at and found[at - 1].says("DISTINCT"))
            lists[token.depth] = starts
        if not starts and not (token.text == "," and lists.get(token.depth)):
            continue
        mention = _named(found, at + 1)
        if mention is not None and mention.name.lower() not in own | seen:
            seen.add(mention.name.lower())
            yield mention


def _opens_from(found: list[Token], at: int) -> bool:
    """Whether FROM is the first word of its bracket: `(FROM lights SELECT …)`."""
    return at > 0 and found[at - 1].text == "("


def _named(found: list[Token], at: int) -> Mention | None:
    if at >= len(found) or found[at].kind not in ("word", "name") or found[at].says(*_NOT_A_NAME):
        return None
    token = found[at]
    follows = found[at + 1].text if at + 1 < len(found) else ""
    if follows in (".", "("):  # of a catalogue, or a function that makes rows
        return None
    return Mention(_plain(token), token.at)


def _with_names(found: list[Token]) -> set[str]:
    """Names that WITH gives: `name AS (`, behind WITH or a comma."""
    if not any(one.says("WITH") for one in found):
        return set()
    return {
        _plain(name).lower()
        for before, name, word, bracket in zip(found, found[1:], found[2:], found[3:], strict=False)
        if (before.says("WITH", "RECURSIVE") or before.text == ",") and word.says("AS") and bracket.text == "("
    }


def _plain(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns(found: list[Token]) -> tuple[tuple[str | None, ...] | None, int | None]:
    """The names of the first SELECT outside of brackets, and where one without a name stands."""
    begin = next((at for at, one in enumerate(found) if one.depth == 0 and one.says("SELECT")), None)
    if begin is None or any(one.text == "|" for one in found):
        return None, None
    items: list[list[Token]] = [[]]
    for token in found[begin + 1 :]:
        if token.depth == 0 and token.says("FROM", *(_ENDS_FROM - {"WINDOW"})):  # a column may be called window
            break
        if token.depth == 0 and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    if items[0] and items[0][0].says("DISTINCT", "ALL"):
        items[0] = items[0][1:]
    if any(not item for item in items):
        return None, None
    if any(item[-1].text == "*" or (item[0].text == "*" and len(item) > 1) for item in items):
        return None, _unnamed(items)
    return tuple(_column(item) for item in items), _unnamed(items)


def _unnamed(items: list[list[Token]]) -> int | None:
    return next((item[0].at for item in items if item[-1].text != "*" and _column(item) is None), None)


def _column(item: list[Token]) -> str | None:
    """The name of a column of the result: an alias, or the last part of a name with dots."""
    last = item[-1]
    if len(item) > 1 and item[-2].says("AS") and last.kind in ("word", "name"):
        return _plain(last)  # whatever it is: AS end
    if last.kind not in ("word", "name") or last.depth > 0 or last.says("END", "NULL", "TRUE", "FALSE"):
        # A time window has a name of its own.
        first = item[0]
        return first.text.lower() if first.says(*_TIME_WINDOWS) and last.text == ")" else None
    if len(item) == 1 or item[-2].text == "." or item[-2].says("AS"):
        return _plain(last)
    return _plain(last) if item[-2].text in (")", "]") or item[-2].kind != "mark" else None


# -- what becomes of a stream ------------------------------------------------------------------------------------------


def _pairs(found: list[Token]) -> Iterator[tuple[Token, Token]]:
    return pairwise(found)


def _first(found: list[Token], word: str, then: str) -> int | None:
    return next((one.at for one, two in _pairs(found) if one.says(word) and two.says(then)), None)


def _calls(found: list[Token], names: frozenset[str]) -> int | None:
    return next((one.at for one, two in _pairs(found) if one.says(*names) and two.text == "("), None)


def _group(found: list[Token]) -> int | None:
    """Where an aggregation stands; one that begins the text is at 0."""
    places = (_first(found, "GROUP", "BY"), _first(found, "SELECT", "DISTINCT"), _aggregates(found))
    return next((at for at in places if at is not None), None)


def _aggregates(found: list[Token]) -> int | None:
    """Where an aggregation over all rows is called, outside of statements in brackets and of windows over rows."""
    brackets: list[bool] = []
    for at, (one, two) in enumerate(pairwise(found)):
        if one.text == "(":
            brackets.append(two.says(*_STARTS))
        elif one.text == ")" and brackets:
            brackets.pop()
        elif one.says(*_AGGREGATES) and two.text == "(" and not any(brackets) and not _is_over(found, at + 1):
            return one.at
    return None


def _is_over(found: list[Token], at: int) -> bool:
    """Whether OVER follows the bracket that opens at `at`."""
    depth = found[at].depth
    behind = (then for one, then in pairwise(found[at:]) if one.text == ")" and one.depth == depth)
    then = next(behind, None)
    return then is not None and then.says("OVER")


def _grouped(found: list[Token]) -> frozenset[str]:
    words: set[str] = set()
    is_in = False
    is_unclear = _first(found, "GROUP", "BY") is None and _first(found, "SELECT", "DISTINCT") is not None
    for one, two in _pairs([*found, Token("mark", "", 0, 0)]):
        if one.says("GROUP") and two.says("BY"):
            is_in = True
        elif one.says(*(_ENDS_FROM - {"GROUP", "WINDOW"})):
            is_in = False
        elif is_in and (one.kind == "number" or one.says("ALL")):
            is_unclear = True
        elif is_in and one.kind in ("word", "name") and not one.says("BY"):
            words.add(_plain(one).lower())
    if is_unclear:
        return frozenset(_plain(one).lower() for one in found if one.kind in ("word", "name"))
    return frozenset(words)


def _outer(found: list[Token]) -> int | None:
    for at, token in enumerate(found):
        if token.says("LEFT", "RIGHT", "FULL"):
            rest = [one for one in found[at + 1 : at + 3] if not one.says("OUTER")]
            if rest and rest[0].says("JOIN"):
                return token.at
    return None
