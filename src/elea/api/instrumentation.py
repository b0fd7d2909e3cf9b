"""Where a message was when: the points at which timestamps are asked for, and those a message has collected.

The whole feature is unstable in Zenoh 1.10. Spec: zenoh-1.md section 8.7.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from elea.api.apierrors import InvalidValue
from elea.api.apitimestamp import Timestamp
from elea.api.identity import ZenohId
from elea.api.whatami import WhatAmI
from elea.model import timestamp as stamps
from elea.model.errors import DecodeError
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.values import value_class
from elea.wire.details import read_stamp
from elea.wire.timestampstack import CUSTOM, RECEIVE, ROUTE, SEND, CollectedStamps

if TYPE_CHECKING:
    from elea.node.node import Node

__all__ = [
    "InterceptionPoint",
    "TimestampContext",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
    "give_timestamps",
]

_log = logger("elea.api")


class InterceptionPoint(Enum):
    """A point on the way of a message."""

    SEND = 0
    ROUTE = 1
    RECEIVE = 2

    def __int__(self) -> int:
        value: int = self.value
        return value

    def __str__(self) -> str:
        return f"InterceptionPoint.{self.name}"

    __repr__ = __str__


class TimestampContext:
    """What a callback that gives timestamps is told: the node it runs on."""

    __slots__ = ("_whatami", "_zid")

    def __init__(self, zid: ZenohId, whatami: WhatAmI) -> None:
        self._zid = zid
        self._whatami = whatami

    @property
    def zid(self) -> ZenohId:
        """The identifier of the node."""
        return self._zid

    @property
    def whatami(self) -> WhatAmI:
        """The mode of the node."""
        return self._whatami

    def __repr__(self) -> str:
        return f"TimestampContext {{ zid: {self._zid}, whatami: {self._whatami!r} }}"


@value_class
class TimestampInstrumentation:
    """The points at which a message is to collect timestamps; `flags` has one bit for each."""

    flags: int

    def is_instrumented(self, point: InterceptionPoint) -> bool:
        """Whether timestamps are collected at a point."""
        return bool(self.flags >> int(point) & 1)

    def __repr__(self) -> str:
        return f"TimestampInstrumentation {{ conf_flags: {self.flags} }}"


class TimestampInstrumentationBuilder:
    """Chooses points; every setter gives a new builder.

    >>> TimestampInstrumentationBuilder().set_send(True).set_receive(True).build()
    TimestampInstrumentation { conf_flags: 5 }
    """

    __slots__ = ("_flags",)

    def __init__(self) -> None:
        self._flags = 0

    def set_send(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Whether the sender gives a timestamp."""
        return self._with(InterceptionPoint.SEND, enabled)

    def set_route(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Whether every node on the way gives a timestamp."""
        return self._with(InterceptionPoint.ROUTE, enabled)

    def set_receive(self, enabled: bool) -> TimestampInstrumentationBuilder:
        """Whether the receiver gives a timestamp."""
        return self._with(InterceptionPoint.RECEIVE, enabled)

    def build(self) -> TimestampInstrumentation:
        """The choice made; raises InvalidValue, a ZError, if no point was chosen."""
        if not self._flags:
            raise InvalidValue("instrumentation", "at least one point must be active")
        return TimestampInstrumentation(self._flags)

    def _with(self, point: InterceptionPoint, enabled: bool) -> TimestampInstrumentationBuilder:
        bit = 1 << int(point)
        made = TimestampInstrumentationBuilder()
        made._flags = self._flags | bit if enabled else self._flags & ~bit
        return made


class TimestampStackRecord:
    """One timestamp a message has collected."""

    __slots__ = ("_point", "_stamp")

    def __init__(self, point: InterceptionPoint, stamp: Timestamp | bytes) -> None:
        self._point = point
        self._stamp = stamp

    @property
    def point(self) -> InterceptionPoint:
        """Where it was collected."""
        return self._point

    @property
    def is_custom(self) -> bool:
        """Whether a callback gave it, and not the clock of the node."""
        return isinstance(self._stamp, bytes)

    def timestamp(self) -> Timestamp | bytes:
        """The timestamp, or what the callback gave."""
        return self._stamp

    def __repr__(self) -> str:
        stamp = f"Custom({list(self._stamp)})" if isinstance(self._stamp, bytes) else f"UHLC({self._stamp})"
        return f"TimestampStackRecord {{ point: {self._point.name.capitalize()}, timestamp: {stamp} }}"


class TimestampStack:
    """All timestamps a message has collected, in order."""

    __slots__ = ("_instrumentation", "_records")

    def __init__(self, instrumentation: TimestampInstrumentation, records: tuple[TimestampStackRecord, ...]) -> None:
        self._instrumentation = instrumentation
        self._records = records

    @classmethod
    def of(cls, stack: CollectedStamps) -> TimestampStack:
        """What a message has collected; records that make no sense are left out, as in eclipse-zenoh."""
        records: list[TimestampStackRecord] = []
        for flags, stamp in stack.records:
            point = _POINTS.get(flags & ~CUSTOM)
            value = stamp if flags & CUSTOM else _timestamp(stamp)
            if point is None or value is None:
                _log.warning("timestamp of a stack left out: flags=%#04x bytes=%s", flags, stamp[:32].hex())
            else:
                records.append(TimestampStackRecord(point, value))
        return cls(TimestampInstrumentation(stack.points), tuple(records))

    @property
    def instrumentation(self) -> TimestampInstrumentation:
        """The points that were asked for."""
        return self._instrumentation

    @property
    def records(self) -> list[TimestampStackRecord]:
        """The timestamps."""
        return list(self._records)

    def __repr__(self) -> str:
        return f"TimestampStack {{ instrumentation: {self._instrumentation}, records: {list(self._records)} }}"


_POINTS: Final = {SEND: InterceptionPoint.SEND, ROUTE: InterceptionPoint.ROUTE, RECEIVE: InterceptionPoint.RECEIVE}


def _timestamp(data: bytes) -> Timestamp | None:
    """A timestamp as it travels; None if it is none."""
    try:
        ntp64, id, _ = read_stamp(b"\0" + data)  # behind one byte, as in details
        return Timestamp.of(stamps.Timestamp(ntp64, NodeId(id)))
    except (DecodeError, IndexError, ValueError):
        return None


def give_timestamps(node: Node, callback: Callable[[TimestampContext], bytes]) -> None:
    """Have a program's function give the timestamps of a node."""
    context = TimestampContext(ZenohId(node.node_id), WhatAmI.of(node.role))
    node.instruments.callback = lambda: callback(context)
