"""What the values of a pipeline file may be: durations, triggers, key expressions, locators, times, paths.

Each function takes what `tomllib` has read and returns what a `Spec` holds, or raises `Wrong`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Final

from elea.io.linkerrors import LocatorError
from elea.io.locator import Locator
from elea.model.errors import ConfigError, InvalidKeyExpr
from elea.model.keyexpr import KeyExpr
from elea.model.timerange import TimeExpr
from elea.spark.pipeline.problem import Wrong, listed, nearest
from elea.spark.pipeline.pythoncode import Code
from elea.spark.pipeline.spec import AVAILABLE_NOW, Duration
from elea.spark.tableplaces import is_remote, place_of

__all__ = [
    "check_name",
    "code",
    "duration",
    "flag",
    "key",
    "key_exprs",
    "locators",
    "named",
    "one_of",
    "options",
    "place",
    "scd",
    "start",
    "table_place",
    "text",
    "texts",
    "time",
    "trigger",
]

_UNITS: Final = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_SHORT: Final = {"ms": "millisecond", "s": "second", "sec": "second", "m": "minute", "min": "minute"} | {
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_PIECE: Final = re.compile(r"(\d+)\s*([A-Za-z]+)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str):
        raise Wrong(f"it is a text, not {_kind(value)}", f'put it in quotes: "{_shown(value)}"')
    if not value.strip():
        raise Wrong("it is empty", "write something, or leave the line out")
    return value


def code(value: Any) -> Code:
    """A function of Python."""
    return Code.parse(text(value))


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise Wrong(f"it is true or false, not {_kind(value)}", "write true or false, without quotes")
    return value


def scd(value: Any) -> int:
    """A type of slowly changing dimension."""
    if value not in (1, 2) or isinstance(value, bool):
        fix = "write 1 (the latest row of each key) or 2 (all rows, with the time they were valid)"
        raise Wrong(f"there is no type {_shown(value)!r}", fix)
    return int(value)


def texts(value: Any) -> tuple[str, ...]:
    """A text, or a list of texts."""
    return tuple(text(one) for one in (value if isinstance(value, list) else [value]))


def named(value: Any) -> str:
    """A name for directories and cursors."""
    found = text(value)
    if not _PATH_NAME.fullmatch(found):
        raise Wrong(f"{found!r} is no name", "use letters, digits, -, _ and dots, such as fleet-2")
    return found


def one_of(*names: str) -> Callable[[Any], str]:
    """One of several words."""

    def parse(value: Any) -> str:
        found = text(value).strip().lower()
        if found not in names:
            raise Wrong(f"{value!r} is none of {listed(names)}", nearest(found, names, "write one of"))
        return found

    return parse


def duration(value: Any) -> Duration:
    """`10 seconds`, `1 hour 30 minutes`, `500 ms`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise Wrong(f"{value} of what?", f'name the unit: "{value} seconds"')
    found = text(value).strip()
    if found.startswith("-"):
        raise Wrong(f"{found!r} is less than nothing", "leave the minus out")
    pieces = _PIECE.findall(found)
    if not pieces or _PIECE.sub("", found).strip(" ,"):
        raise Wrong(f"{found!r} is no length of time", 'write a whole number and a unit: "10 seconds", "1 hour"')
    named, seconds = [], 0.0
    for number, unit in pieces:
        name = unit.lower()
        name = _SHORT.get(name, name.removesuffix("s"))
        if name not in _UNITS:
            raise Wrong(f"there is no unit {unit!r}", nearest(unit, [f"{one}s" for one in _UNITS], "units are"))
        seconds += int(number) * _UNITS[name]
        named.append(f"{int(number)} {name}{'' if int(number) == 1 else 's'}")
    return Duration(" ".join(named), seconds)


def trigger(value: Any) -> str:
    """How often micro-batches start."""
    if isinstance(value, str):
        plain = re.sub(r"[\s_-]", "", value).lower()
        if plain == "availablenow":
            return AVAILABLE_NOW
        if not value.strip()[:1].isdigit() and value.strip():
            fix = f'write a length of time such as "2 seconds", or "{AVAILABLE_NOW}" for one run to the end'
            raise Wrong(f"{value!r} is no trigger", fix)
    return duration(value).text


def key_exprs(value: Any) -> tuple[str, ...]:
    """Key expressions: one, or a list."""
    found = texts(value)
    for one in found:
        try:
            KeyExpr(one)
        except InvalidKeyExpr as error:
            fix = error.hint or "write chunks with / between, such as fleet/*/speed"
            raise Wrong(f"invalid key expression {one!r}: {error.problem}", fix) from error
    if not found:
        raise Wrong("the list is empty", 'name at least one, such as "fleet/**"')
    return found


def key(value: Any) -> str:
    """A key: no wildcards."""
    (found,) = key_exprs(text(value))
    if "*" in found:
        raise Wrong(f"{found!r} is a key expression; rows are put on one key", "write a key without *, or a column key")
    return found


def locators(value: Any) -> tuple[str, ...]:
    """Locators: one, or a list."""
    found = texts(value)
    for one in found:
        try:
            Locator.parse(one)
        except LocatorError as error:
            fix = error.hint or "write it as tcp/127.0.0.1:7447"
            raise Wrong(f"locator {one!r}: {error.problem}", fix) from error
    if not found:
        raise Wrong("the list is empty", 'name at least one, such as "tcp/127.0.0.1:7447"')
    return found


def time(value: Any) -> str:
    """An ISO 8601 time (UTC if it names no zone), milliseconds since 1970, or `now(-1h)`."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    found = text(value).strip()
    if found.isascii() and found.isdigit():
        return found
    try:
        if found.startswith("now("):
            TimeExpr.parse(found)
        else:
            datetime.fromisoformat(found)
    except ValueError:
        fix = 'write it as "2026-01-31T12:00:00Z", or as "now(-1h)"'
        raise Wrong(f"{found!r} is no time", fix) from None
    return found


def start(value: Any) -> str:
    """Where a stream starts: `earliest`, `latest`, or a time."""
    if isinstance(value, str) and value.strip().lower() in ("earliest", "latest"):
        return value.strip().lower()
    try:
        return time(value)
    except Wrong as error:
        words = nearest(str(value), ("earliest", "latest"), "write")
        fix = f'{words}, or a time such as "2026-01-31T12:00:00Z"'
        raise Wrong(f"{value!r} says no start", fix) from error


def place(value: Any) -> str:
    """The path of a directory."""
    found = text(value)
    if "://" in found and not found.startswith("file://"):
        scheme = found.partition("://")[0]
        fix = "name a directory on a disk that lasts, such as state; tables may be in an object store"
        raise Wrong(f"checkpoints are a directory, not in {scheme}", fix)
    return found.removeprefix("file://")


def table_place(value: Any) -> str:
    """The path of a directory, or a place in an object store."""
    found = text(value)
    if is_remote(found):
        try:
            return place_of(found)
        except ConfigError as error:
            raise Wrong(error.problem, error.hint) from error
    if "://" in found and not found.startswith("file://"):
        scheme = found.partition("://")[0]
        fix = "name a directory that driver and executors see, such as tables/lights, or s3://bucket/lights"
        raise Wrong(f"nobody can write tables to {scheme}", fix)
    return found.removeprefix("file://")


def options(value: Any) -> dict[str, str]:
    """Further options of `format("zenoh")`."""
    if not isinstance(value, dict):
        raise Wrong(f"it is a table, not {_kind(value)}", "write options = { maxOffsetsPerTrigger = 100000 }")
    found = {}
    for name, one in value.items():
        if isinstance(one, (dict, list)):
            raise Wrong(f"{name} is a text, a number, true or false, not {_kind(one)}", "write a text")
        found[name] = str(one).lower() if isinstance(one, bool) else str(one)
    return found


def check_name(name: str) -> None:
    """Names of sources and steps stand in SQL, those of tables and publishes in paths."""
    if not _NAME.fullmatch(name):
        raise Wrong(
            f"{name!r} cannot be a name in SQL", f"write {_proposed(name)}: letters, digits and _, no digit first"
        )


def _proposed(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return made if _NAME.fullmatch(made) else f"_{made}"


def _kind(value: Any) -> str:
    kinds = {
        bool: f"{_shown(value)}",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "a table",
    }
    return kinds.get(type(value), "a time")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
