"""Constants of a predicate, and what each becomes when it meets a value of some type.

A string literal meets texts, labels and times. A parameter is given as a text, as DDS has it, and becomes whatever it
meets: `%0` = "2" is a number beside a number and a text beside a text. Spec: dds.md section 5.
"""

from __future__ import annotations

import re
from typing import Final

from elea.model.errors import InvalidSelector
from elea.model.timerange import TimeExpr

__all__ = ["Constant", "Given", "number_in", "point_in"]

_NUMBER: Final = re.compile(r"\s*[+-]?(?:0[xX][0-9A-Fa-f]{1,16}|[0-9]+((?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?))\s*")
_POINT: Final = re.compile(r"[\[({]?([^\[\](){}]*)[\])}]?")


class Given(str):
    """The text of a parameter as an argument of a function, which may read it as a number or a point."""

    __slots__ = ()


class Constant:
    """One constant in all its readings; a reading that it does not have is None."""

    __slots__ = ("boolean", "number", "text", "time_us")

    def __init__(
        self,
        text: str | None = None,
        number: int | float | None = None,
        boolean: bool | None = None,
        time_us: int | None = None,
    ) -> None:
        self.text = text
        self.number = number
        self.boolean = boolean
        self.time_us = time_us

    @classmethod
    def literal(cls, value: bool | int | float | str) -> Constant:
        """Of a literal, or of a parameter that was given with its type."""
        if isinstance(value, bool):
            return cls(boolean=value)
        if isinstance(value, str):
            return cls(text=value, time_us=_time(value))
        return cls(number=value, boolean=bool(value) if type(value) is int and value in (0, 1) else None)

    @classmethod
    def parameter(cls, value: bool | int | float | str) -> Constant:
        """Of a parameter: a text may be anything, and may have quotes around it."""
        if not isinstance(value, str):
            return cls.literal(value)
        text = value
        if len(text) > 1 and text[0] == text[-1] == "'":
            text = text[1:-1].replace("''", "'")
        boolean = {"TRUE": True, "FALSE": False, "1": True, "0": False}.get(value.strip().upper())
        return cls(text, number_in(value), boolean, _time(text))


def point_in(text: str) -> tuple[float, ...] | None:
    """One to three numbers in a text, such as `[1,2.5]`."""
    found = _POINT.fullmatch(text.strip())
    if found is None:
        return None
    numbers = [number_in(part) for part in found[1].split(",")]
    known = [float(number) for number in numbers if number is not None]
    return tuple(known) if len(known) == len(numbers) <= 3 else None


def number_in(text: str) -> int | float | None:
    """The number that a text is."""
    found = _NUMBER.fullmatch(text) if len(text) <= 64 else None
    if found is None:
        return None
    if found[1]:
        value = float(text)
        return value if value - value == 0 else None
    whole = int(text, 0) if "x" in text.lower() else int(text)
    return whole if -(1 << 63) <= whole < 1 << 64 else None


def _time(text: str) -> int | None:
    if not text[:4].isdigit():
        return None
    try:
        return TimeExpr.parse(text).ns // 1_000
    except InvalidSelector:
        return None
