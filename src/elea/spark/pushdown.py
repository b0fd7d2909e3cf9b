"""Filters of Spark as narrower options: asking for less is all they do, for Spark applies every one of them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr
from elea.model.keyexpr import KeyExpr
from elea.spark.options import ReadOptions

__all__ = ["narrowed"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = 1000


def narrowed(options: ReadOptions, filters: Iterable[Any]) -> ReadOptions:
    """The options with what filters on `key`, `timestamp` and `kind` rule out left out."""
    for one in filters:
        column = getattr(one, "attribute", None)
        kind, value = type(one).__name__, getattr(one, "value", None)
        if column == ("key",):
            options = _by_key(options, kind, value)
        elif column == ("timestamp",) and isinstance(value, datetime):
            options = _by_time(options, kind, value)
        elif column == ("kind",) and kind == "EqualTo" and value in ("PUT", "DELETE") and options.kind is None:
            options = replace(options, kind=value.lower())
    return options


def _by_key(options: ReadOptions, kind: str, value: Any) -> ReadOptions:
    if len(options.key_exprs) != 1:  # what two sets of expressions have in common is no set of expressions
        return options
    (wanted,) = options.key_exprs
    if kind in ("EqualTo", "In"):
        given = [value] if kind == "EqualTo" else list(value)
        found = tuple(sorted({one for one in given if isinstance(one, str) and _has(wanted, one)}))
        return replace(options, key_exprs=found) if found else options
    if kind == "StringStartsWith" and "/" in value:
        below = f"{value.rpartition('/')[0]}/**"
        if "*" not in value and _has(wanted, below):
            return replace(options, key_exprs=(below,))
    return options


def _has(wanted: str, expr: str) -> bool:
    try:
        return keyexpr.includes(wanted, str(KeyExpr(expr)))
    except InvalidKeyExpr:  # no key is like that; Spark finds out, too
        return False


def _by_time(options: ReadOptions, kind: str, value: datetime) -> ReadOptions:
    """A column has microseconds, a log nanoseconds: `<= t` reaches to the end of that microsecond."""
    at = (value - _EPOCH) // timedelta(microseconds=1) * _MICROSECOND
    low, high = options.starting_timestamp, options.ending_timestamp
    if kind in ("EqualTo", "GreaterThanOrEqual", "GreaterThan"):
        since = at + (_MICROSECOND if kind == "GreaterThan" else 0)
        low = since if low is None else max(low, since)
    if kind in ("EqualTo", "LessThanOrEqual", "LessThan"):
        until = at + (0 if kind == "LessThan" else _MICROSECOND)
        high = until if high is None else min(high, until)
    return replace(options, starting_timestamp=low, ending_timestamp=high)
