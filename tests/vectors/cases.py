"""What a case is, how two JSON values differ, and the cases below a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Case", "Json", "Mismatch", "Record", "check_equal", "files_below"]

Json = Any
Record = dict[str, Any]

SHOWN = 160


class Mismatch(AssertionError):
    """A vector that is not met; the text is a short diff."""


@dataclass(frozen=True)
class Case:
    """One vector: `check` raises if it is not met. Without `check` it is skipped for `reason`."""

    name: str
    check: Callable[[], None] | None = None
    reason: str = ""


def files_below(places: list[Path]) -> Iterator[Path]:
    """The JSON files in the places named, folders searched to the bottom."""
    for place in places:
        if place.is_file():
            yield place
        else:
            yield from sorted(place.rglob("*.json"))


def check_equal(what: str, actual: Json, expected: Json) -> None:
    """Raises Mismatch naming the first place where two values differ; true is not 1."""
    found = _difference(actual, expected, "")
    if found:
        raise Mismatch(f"{what}{found}")


def _difference(actual: Json, expected: Json, path: str) -> str:
    if type(actual) is type(expected) and isinstance(expected, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            if key not in actual or key not in expected:
                state = "missing" if key not in actual else f"unexpected {_short(actual[key])}"
                return f"{path}.{key}: {state}"
            if found := _difference(actual[key], expected[key], f"{path}.{key}"):
                return found
        return ""
    if type(actual) is type(expected) and isinstance(expected, list):
        for i, (one, other) in enumerate(zip(actual, expected, strict=False)):
            if found := _difference(one, other, f"{path}[{i}]"):
                return found
        return "" if len(actual) == len(expected) else f"{path}: {len(actual)} items, expected {len(expected)}"
    if type(actual) is type(expected) and actual == expected:
        return ""
    return f"{path}: {_short(actual)}, expected {_short(expected)}"


def _short(value: Json) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}…{text[-SHOWN // 2 :]}"
