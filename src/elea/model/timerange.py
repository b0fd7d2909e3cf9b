"""Time ranges: the value of the parameter `_time`, exact to the nanosecond.

`[now(-60s)..]` is the last minute, `[2024-01-01T00:00:00Z..2024-01-02T00:00:00Z[` a day without its last
instant, and `[now(-1h);10m]` ten minutes from an hour ago. Nothing here reads a clock: `now` is an argument.
Numbers are decimal all along, because 0.1 s is not a binary fraction. Spec: zenoh-1.md section 12.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from elea.model.errors import InvalidSelector
from elea.model.limits import DURATION_NS, TIME_EXPR_CHARS
from elea.model.values import value_class

__all__ = ["TimeBound", "TimeExpr", "TimeRange"]

_SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "u": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "": _SECOND,
    "m": 60 * _SECOND,
    "h": 3_600 * _SECOND,
    "d": 86_400 * _SECOND,
    "w": 604_800 * _SECOND,
}
# An exponent of three digits would be allowed to ask for a number of 10^999: two are enough for 292 years in
# any unit.
_DURATION: Final = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)(u|ms|s|m|h|d|w|)")
_INSTANT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?Z?")
_EPOCH: Final = date(1970, 1, 1).toordinal()


@value_class
class TimeExpr:
    """An instant in nanoseconds since 1970, or, if `relative`, an offset from the moment of evaluation."""

    ns: int
    relative: bool = False

    @classmethod
    def parse(cls, text: str) -> TimeExpr:
        """Read `now()`, `now(-1.5h)` or an RFC 3339 instant in UTC."""
        if len(text) > TIME_EXPR_CHARS:
            raise InvalidSelector(f"{text[:TIME_EXPR_CHARS]}…", f"longer than {TIME_EXPR_CHARS} characters")
        if not (text.startswith("now(") and text.endswith(")")):
            return cls(_parse_instant(text))
        offset = text[4:-1]
        if not offset:
            return cls(0, relative=True)
        sign = -1 if offset[0] == "-" else 1
        return cls(sign * _parse_duration(offset[1:] if offset[0] in "+-" else offset), relative=True)

    def resolve(self, now_ns: int) -> int:
        """The instant, given the moment of evaluation."""
        return now_ns + self.ns if self.relative else self.ns

    def __str__(self) -> str:
        if not self.relative:
            return _print_instant(self.ns)
        return f"now({_print_seconds(self.ns)})" if self.ns else "now()"


@value_class
class TimeBound:
    """One end of a range, which belongs to the range if `inclusive`."""

    at: TimeExpr
    inclusive: bool = True


@value_class
class TimeRange:
    """The instants between two bounds, either of which may be missing.

    >>> str(TimeRange.parse("[now(-1.5m)..]"))
    '[now(-90s)..]'
    >>> TimeRange.parse("[now(-60s)..now()[").contains(40 * 10**9, now_ns=100 * 10**9)
    True
    """

    start: TimeBound | None = None
    end: TimeBound | None = None

    @classmethod
    def parse(cls, text: str) -> TimeRange:
        """Read a range.

        Raises:
            InvalidSelector: the text is not a time range.
        """
        if len(text) < 2 or text[0] not in "[]" or text[-1] not in "[]":
            raise InvalidSelector(text[:200], "a time range starts and ends with '[' or ']'")
        inner, first, last = text[1:-1], text[0] == "[", text[-1] == "]"
        start, mark, end = inner.partition("..")
        if mark:
            return cls(_parse_bound(start, first), _parse_bound(end, last))
        start, mark, duration = inner.partition(";")
        if not mark:
            raise InvalidSelector(text[:200], "a time range has '..' or ';' between its bounds")
        if not start:
            raise InvalidSelector(text, "a duration needs a start; write 'start;duration' or 'start..end'")
        since = TimeExpr.parse(start)
        until = TimeExpr(since.ns + _parse_duration(duration), since.relative)
        return cls(TimeBound(since, first), TimeBound(until, last))

    def resolve(self, now_ns: int) -> TimeRange:
        """The range with instants in place of offsets from now."""
        return TimeRange(_resolve_bound(self.start, now_ns), _resolve_bound(self.end, now_ns))

    def contains(self, ns: int, now_ns: int | None = None) -> bool:
        """Whether an instant, in nanoseconds since 1970, is in the range.

        Raises:
            ValueError: a bound is relative to now, and now is not given.
        """
        if self.start is not None:
            at = _instant(self.start.at, now_ns)
            if ns < at or (ns == at and not self.start.inclusive):
                return False
        if self.end is not None:
            at = _instant(self.end.at, now_ns)
            return ns < at or (ns == at and self.end.inclusive)
        return True

    def __str__(self) -> str:
        before = "[" if self.start is None or self.start.inclusive else "]"
        after = "]" if self.end is None or self.end.inclusive else "["
        start = "" if self.start is None else str(self.start.at)
        end = "" if self.end is None else str(self.end.at)
        return f"{before}{start}..{end}{after}"


def _parse_bound(text: str, inclusive: bool) -> TimeBound | None:
    return TimeBound(TimeExpr.parse(text), inclusive) if text else None


def _resolve_bound(bound: TimeBound | None, now_ns: int) -> TimeBound | None:
    return None if bound is None else TimeBound(TimeExpr(bound.at.resolve(now_ns)), bound.inclusive)


def _instant(at: TimeExpr, now_ns: int | None) -> int:
    if not at.relative:
        return at.ns
    if now_ns is None:
        raise ValueError("the range is relative to now; give now_ns or resolve it first")
    return at.resolve(now_ns)


def _parse_duration(text: str) -> int:
    found = _DURATION.fullmatch(text) if len(text) <= TIME_EXPR_CHARS else None
    if found is None:
        shown = text[:TIME_EXPR_CHARS]
        raise InvalidSelector(shown, "a duration is a number and one of u, ms, s, m, h, d, w (seconds if none)")
    # Below a nanosecond there is nothing to compare with, so the rest is rounded, half to even.
    from decimal import ROUND_HALF_EVEN, Decimal  # 0.5 MB that few programs need

    exact = Decimal(found[1]) * _UNITS[found[2]]
    if exact > DURATION_NS:
        raise InvalidSelector(text, f"above the limit of {DURATION_NS} nanoseconds")
    return int(exact.to_integral_value(ROUND_HALF_EVEN))


def _parse_instant(text: str) -> int:
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise InvalidSelector(text, "neither now(…) nor an instant such as 2024-01-31T12:00:00Z, in UTC")
    hour, minute, second = int(found[2]), int(found[3]), int(found[4])
    try:
        days = date.fromisoformat(found[1]).toordinal() - _EPOCH
    except ValueError as error:
        raise InvalidSelector(text, str(error)) from None
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidSelector(text, "the time of day does not exist")
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
    return seconds * _SECOND + int((found[5] or "").ljust(9, "0"))


def _print_instant(ns: int) -> str:
    seconds, fraction = divmod(ns, _SECOND)
    days, seconds = divmod(seconds, 86_400)
    try:
        day = date.fromordinal(days + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        raise InvalidSelector(str(ns), "an instant outside the years 1 to 9999 has no text") from None
    text = f"{day}T{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        digits = f"{fraction:09}"
        # Three, six or nine digits, as eclipse-zenoh prints them.
        text += "." + digits[: 3 if digits.endswith("000000") else 6 if digits.endswith("000") else 9]
    return text + "Z"


def _print_seconds(ns: int) -> str:
    whole, fraction = divmod(abs(ns), _SECOND)
    text = f"{whole}.{fraction:09}".rstrip("0").rstrip(".")
    return f"{'-' if ns < 0 else ''}{text}s"
