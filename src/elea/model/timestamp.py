"""Timestamps and the hybrid logical clock that makes them.

This module owns the 64-bit time format (NTP64 counted from 1970), its two text forms and the rules by which a
clock advances. It never asks what time it is: every call that needs the time takes it as nanoseconds.
Spec: zenoh-1 §1.6 and §16; the conversions are those of the `uhlc` crate that eclipse-zenoh uses.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from elea.model.limits import CLOCK_DRIFT_NS, CLOCK_MARGIN_NS
from elea.model.node_id import NodeId
from elea.model.values import value_class

if TYPE_CHECKING:
    from datetime import datetime, timedelta

__all__ = [
    "Hlc",
    "HlcUpdate",
    "Timestamp",
    "believed_time",
    "datetime_from_ns",
    "ns_from_ntp64",
    "ntp64_from_ns",
    "timedelta_from_ns",
]

_SECOND_NS: Final = 1_000_000_000
_FRACTION: Final = (1 << 32) - 1
_MAX_NTP64: Final = (1 << 64) - 1
_MAX_NS: Final = (1 << 32) * _SECOND_NS - 1
_COUNTER_MASK: Final = 0xF  # the low four bits count events that share one physical instant
_DECIMAL: Final = r"[0-9]{1,20}"
_RFC3339: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d*))?(?:Z|\+00:00)"


def ntp64_from_ns(ns: int) -> int:
    """Nanoseconds since 1970 as 32 bits of seconds and 32 bits of fraction, rounded down.

    Raises:
        ValueError: before 1970 or after February 2106, which the format cannot express.
    """
    seconds, rest = divmod(ns, _SECOND_NS)
    if not 0 <= seconds <= _FRACTION:
        raise ValueError(f"{ns} ns since 1970 does not fit 32 bits of seconds; check the system clock")
    return (seconds << 32) | ((rest << 32) // _SECOND_NS)


def ns_from_ntp64(ntp64: int) -> int:
    """The inverse: exact for every value made by `ntp64_from_ns`, because this one rounds up."""
    fraction_ns = -(-(ntp64 & _FRACTION) * _SECOND_NS // (1 << 32))
    return (ntp64 >> 32) * _SECOND_NS + fraction_ns


_MARGIN: Final = ntp64_from_ns(CLOCK_MARGIN_NS)


def believed_time(ntp64: int, arrival_ns: int) -> int:
    """The time for which a stored sample counts: that of its timestamp, or of its arrival if that was long before.

    Nothing that is taken today is so far ahead; what an older version took may be. It must not be the newest for ever.
    An arrival of 0 is not known, and tells nothing.
    """
    if not 0 < arrival_ns <= _MAX_NS:
        return ntp64
    arrival = ntp64_from_ns(arrival_ns)
    return arrival if ntp64 > arrival + _MARGIN else ntp64


# `datetime` takes a millisecond to import, and few programs look at times in that way.


def datetime_from_ns(ns: int) -> datetime:
    """A time in UTC, to the microsecond, for nanoseconds since 1970."""
    from datetime import UTC, datetime

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta_from_ns(ns)


def timedelta_from_ns(ns: int) -> timedelta:
    """A duration, to the microsecond."""
    from datetime import timedelta

    return timedelta(microseconds=ns // 1000)


@value_class(order=True)
class Timestamp:
    """A time and the node that gave it; all timestamps of a system are distinct and ordered, time first.

    >>> stamp = Timestamp.parse("7386664595088445305/33")
    >>> stamp.to_string_rfc3339_lossy()
    '2024-07-01T13:51:12.129693000Z/33'
    >>> Timestamp.parse(str(stamp)) == stamp
    True
    """

    ntp64: int
    id: NodeId

    def __post_init__(self) -> None:
        if not 0 <= self.ntp64 <= _MAX_NTP64:
            raise ValueError(f"a timestamp has 64 bits, {self.ntp64} does not fit")

    @classmethod
    def from_ns(cls, ns: int, id: NodeId) -> Timestamp:
        """The timestamp of a node at `ns` nanoseconds since 1970."""
        return cls(ntp64_from_ns(ns), id)

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Either text form: `<ntp64 decimal>/<id>` or `<RFC 3339>/<id>`; the id may be in capitals.

        Raises:
            ValueError: the text has neither form.
        """
        time, slash, id = text.partition("/")
        if not slash:
            raise ValueError(f"invalid timestamp {text!r}: write <time>/<node id>")
        ntp64 = int(time) if re.fullmatch(_DECIMAL, time) else _ntp64_from_rfc3339(time)
        return cls(ntp64, NodeId.parse(id.lower()))

    @classmethod
    def parse_rfc3339(cls, text: str) -> Timestamp:
        """Only the form `<RFC 3339>/<id>`, in UTC."""
        time, _, id = text.partition("/")
        return cls(_ntp64_from_rfc3339(time), NodeId.parse(id.lower()))

    @property
    def ns(self) -> int:
        """Nanoseconds since 1970."""
        return ns_from_ntp64(self.ntp64)

    def get_time(self) -> datetime:
        """The time in UTC, to the microsecond."""
        return datetime_from_ns(self.ns)

    def get_id(self) -> NodeId:
        """The node that gave the timestamp."""
        return self.id

    def get_diff_duration(self, other: Timestamp) -> timedelta:
        """How much later than `other` this is, negative when it is earlier."""
        return timedelta_from_ns(self.ns - other.ns)

    def to_string_rfc3339_lossy(self) -> str:
        """The text form for people, to the nanosecond; several timestamps may share it."""
        date = datetime_from_ns(self.ns).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{date}.{self.ns % _SECOND_NS:09}Z/{self.id}"

    def __str__(self) -> str:
        return f"{self.ntp64}/{self.id}"

    def __repr__(self) -> str:
        return f"Timestamp({str(self)!r})"


class HlcUpdate(Enum):
    """What came of showing a remote timestamp to a clock."""

    ACCEPTED = "accepted"
    TOO_FAR_AHEAD = "too far ahead"


class Hlc:
    """A hybrid logical clock: follows the time it is told, and never gives the same timestamp twice.

    Args:
        drift_ns: how far ahead of the time it is told a timestamp of another node may be.

    >>> clock = Hlc(NodeId.parse("a1"))
    >>> clock.tick(1_000) < clock.tick(1_000) < clock.tick(999)
    True
    """

    # Threads share it without a lock: from where `_last` is read to where it is written no other thread gets a turn. So
    # there must be no call in between, not even of `max`.
    __slots__ = ("_drift", "_last", "id")

    def __init__(self, id: NodeId, *, drift_ns: int = CLOCK_DRIFT_NS) -> None:
        self.id = id
        self._drift = ntp64_from_ns(drift_ns)
        self._last = 0

    def tick(self, now_ns: int) -> Timestamp:
        """A timestamp above all given before and all accepted by `update`; at `now_ns` when possible."""
        return Timestamp(self.reserve(now_ns, 1), self.id)

    def reserve(self, now_ns: int, count: int) -> int:
        """The first of `count` consecutive NTP64 numbers, all above everything given before.

        One call stamps a whole run of samples: consecutive numbers differ in their first byte on the wire.
        """
        now = ntp64_from_ns(now_ns) & ~_COUNTER_MASK
        # When the counter is full the carry moves into the time: it runs ahead by 4 ns and stays monotonic.
        first = now if now > self._last else self._last + 1
        self._last = first + count - 1
        return first

    def update(self, remote: Timestamp, now_ns: int) -> HlcUpdate:
        """Move past a timestamp of another node, unless it is too far ahead of `now_ns`.

        On TOO_FAR_AHEAD the clock is unchanged: one node with a wrong clock must not drag the others along.
        """
        return HlcUpdate.ACCEPTED if self.accepts(remote.ntp64, now_ns) else HlcUpdate.TOO_FAR_AHEAD

    def accepts(self, ntp64: int, now_ns: int) -> bool:
        """The same for a time alone."""
        if ntp64 > self.limit(now_ns):
            return False
        # Spec: the larger of both. The `uhlc` crate adds one more, which spends counter values for nothing:
        # the next tick is above the remote timestamp in either case.
        self.follow(ntp64)
        return True

    def limit(self, now_ns: int) -> int:
        """The last NTP64 number that is not too far ahead of `now_ns`; what this clock has given itself never is."""
        return max((ntp64_from_ns(now_ns) & ~_COUNTER_MASK) + self._drift, self._last)

    def follow(self, ntp64: int) -> None:
        """Be above a time from now on, whatever the time is: one of the own past, or one that was judged before."""
        if ntp64 > self._last:
            self._last = ntp64

    def arrival(self, now_ns: int) -> int:
        """The time, in nanoseconds, at which something arrives now.

        It is `now_ns`, unless that has been set back behind what this clock has given: a sample does not arrive long
        before it was stamped, and who reads the two later shall believe both.
        """
        last = self._last
        if last <= (ntp64_from_ns(now_ns) & ~_COUNTER_MASK) + self._drift:
            return now_ns
        return ns_from_ntp64(last)


def _ntp64_from_rfc3339(text: str) -> int:
    match = re.fullmatch(_RFC3339, text, re.ASCII)
    if match is None:
        raise ValueError(f"invalid time {text!r}: write it as 2024-07-01T13:51:12.129693Z")
    from datetime import UTC, datetime

    try:
        date = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"invalid time {text!r}: {error}") from error
    since = date - datetime_from_ns(0)
    seconds = since.days * 86_400 + since.seconds
    # Digits beyond the nanosecond are cut, not rounded, as eclipse-zenoh does.
    nanos = int((match[2] or "")[:9].ljust(9, "0"))
    return ntp64_from_ns(seconds * _SECOND_NS + nanos)
