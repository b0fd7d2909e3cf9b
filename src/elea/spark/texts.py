"""Texts of options to values; each raises ValueError with what it wants instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from elea.model.keyexpr import KeyExpr, includes
from elea.model.timerange import TimeExpr

__all__ = ["expressions", "instant", "listed", "member", "one_of", "predicate", "truth", "whole"]


def truth(text: str) -> bool:
    """`true` or `false`."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in values:
        raise ValueError("it is true or false")
    return values[text.strip().lower()]


def whole(least: int) -> Callable[[str], int]:
    """Whole numbers from `least`."""

    def parse(text: str) -> int:
        if not (text.strip().isascii() and text.strip().isdigit()) or int(text) < least:
            raise ValueError(f"it is a whole number from {least}")
        return int(text)

    return parse


def one_of(*names: str) -> Callable[[str], str]:
    """One of some words, whatever its case."""

    def parse(text: str) -> str:
        found = text.strip().lower()
        if found not in names:
            raise ValueError(f"it is one of {', '.join(names)}")
        return found

    return parse


def member(kind: Any) -> Callable[[str], Any]:
    """A member of an enumeration, by its name."""

    def parse(text: str) -> Any:
        try:
            return kind[text.strip().upper()]
        except KeyError:
            raise ValueError(f"it is one of {', '.join(one.name.lower() for one in kind)}") from None

    return parse


def listed(text: str) -> tuple[str, ...]:
    """Texts between commas, or a JSON list for those that have commas themselves."""
    if text.lstrip().startswith("["):
        found = json.loads(text)
        if not all(isinstance(one, str) for one in found):
            raise ValueError("a list in JSON has texts only")
    else:
        found = [piece.strip() for piece in text.split(",") if piece.strip()]
    if not found:
        raise ValueError("there is nothing in it")
    return tuple(found)


def expressions(text: str) -> tuple[str, ...]:
    """Key expressions, without those that others have in them: a sample is read once."""
    found = sorted({str(KeyExpr(one)) for one in listed(text)})
    return tuple(one for one in found if not any(other != one and includes(other, one) for other in found))


def instant(text: str) -> int:
    """Nanoseconds since 1970 of milliseconds, an ISO 8601 time (UTC if it names no zone), or `now(-1h)`."""
    from datetime import UTC, datetime, timedelta
    from time import time_ns

    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text) * 1_000_000
    if text.startswith("now("):
        return TimeExpr.parse(text).resolve(time_ns())
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is milliseconds since 1970, an ISO 8601 time, or now(-1h)") from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def predicate(text: str) -> str:
    """A predicate over samples, in its canonical form."""
    from elea.content import SamplePredicate

    return str(SamplePredicate(text).predicates[0])
