"""Whether a changed definition only adds columns: then a table can go on, and rows of before have null there.

Definitions are compared word by word. What is taken for an addition is so beyond doubt: new items in the list of a
plain SELECT, new fields in the schema of a payload, all columns of the log instead of some. Anything else is a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from elea.spark.pipeline.problem import Wrong
from elea.spark.pipeline.sqltext import Token, statement, tokens

__all__ = ["added"]

GENERATORS: Final = frozenset(
    "EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK VARIANT_EXPLODE "
    "VARIANT_EXPLODE_OUTER".split()
)
"""Functions that make several rows of one: a new column with such a one changes which rows there are."""


def added(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str] | None:
    """What is new, by the names of sources and steps; None if more has changed than that.

    >>> before = {"step a": {"sql": "SELECT x FROM s"}}
    >>> added(before, {"step a": {"sql": "SELECT x , y + 1 AS z FROM s"}})
    ['step a (y + 1 AS z)']
    >>> added(before, {"step a": {"sql": "SELECT y FROM s"}}) is None
    True
    """
    if before.keys() != now.keys():
        return None
    found: list[str] = []
    for name, part in now.items():
        old = before[name]
        changed = {key for key in {*part, *old} if part.get(key) != old.get(key)}
        if not changed:
            continue
        if name.startswith("step ") and changed == {"sql"}:
            new = _items(old["sql"], part["sql"])
        elif name.startswith("source ") and changed <= {"schema", "metadata"}:
            new = _columns(old, part)
        else:
            return None
        if new is None:
            return None
        found.append(f"{name} ({', '.join(new)})")
    return found


def _columns(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str] | None:
    """Fields of a payload, and columns of the log."""
    found: list[str] = []
    if old["metadata"] != new["metadata"]:
        if not new["metadata"]:
            return None
        found.append("metadata")
    if old["schema"] == new["schema"]:
        return found
    if old["schema"] is None or new["schema"] is None:
        return None
    fields = _more(_split(_words(old["schema"])), _split(_words(new["schema"])))
    return None if fields is None else found + fields


def _items(old: str, new: str) -> list[str] | None:
    """Items of the list of a SELECT."""
    try:
        is_grouped = any(statement(sql).group_at is not None for sql in (old, new))
    except Wrong:
        return None
    parts = [_select(old), _select(new)]
    if is_grouped or parts[0] is None or parts[1] is None:
        return None
    (listed, rest), (more, other) = parts[0], parts[1]
    found = _more(listed, more) if rest == other else None
    if found is None or any(one.says(*GENERATORS) for item in found for one in tokens(item)):
        return None
    return found


def _select(sql: str) -> tuple[list[str], list[str]] | None:
    """The items of a SELECT, and the words behind them; None if it is not as plain as that."""
    found = tokens(sql)
    sets = ("UNION", "INTERSECT", "EXCEPT", "MINUS")
    if not found or not found[0].says("SELECT") or any(one.says(*sets) for one in found):
        return None
    ends = [at for at, one in enumerate(found) if one.says("FROM") and one.depth == 0]
    if not ends:
        return None
    return _split(found[1 : ends[0]]), [one.text for one in found[ends[0] :]]


def _words(schema: str) -> list[Token]:
    try:
        return tokens(schema)
    except Wrong:  # JSON, or whatever it is
        return [Token("text", schema, 0, 0)]


def _split(found: Sequence[Token]) -> list[str]:
    """The texts between commas that are in no brackets, pointed ones included."""
    items: list[list[str]] = [[]]
    depth = 0
    for one in found:
        depth += {"<": 1, ">": -1}.get(one.text, 0)
        if one.text == "," and one.depth == 0 and depth == 0:
            items.append([])
        else:
            items[-1].append(one.text)
    return [" ".join(item) for item in items]


def _more(old: list[str], new: list[str]) -> list[str] | None:
    """What is in the new list only, if the old one is in it as it was."""
    rest = iter(old)
    wanted = next(rest, None)
    found = []
    for item in new:
        if item == wanted:
            wanted = next(rest, None)
        else:
            found.append(item)
    return found if wanted is None and found else None
