"""Times and timestamps as the API shows them, over those of `elea.model.timestamp`."""

from __future__ import annotations

import builtins
import functools
import operator
from typing import TYPE_CHECKING, Final

from elea.api.apierrors import InvalidValue
from elea.model import timestamp as model
from elea.model.node_id import NodeId
from elea.model.timestamp import datetime_from_ns, ns_from_ntp64, ntp64_from_ns

if TYPE_CHECKING:
    from datetime import datetime, timedelta

__all__ = ["NTP64", "Timestamp", "TimestampId"]

_SECOND_NS: Final = 1_000_000_000
_NOBODY: Final = NodeId(b"\1")


@functools.total_ordering
class NTP64:
    """A time since 1970: 32 bits of seconds and 32 bits of fraction.

    >>> time = NTP64(1_700_000_000, 500_000_000)
    >>> time.as_secs_f64(), time.to_string_rfc3339_lossy()
    (1700000000.5, '2023-11-14T22:13:20.500000000Z')
    """

    __slots__ = ("_raw",)
    _raw: int

    def __init__(self, seconds: int, nanos: int) -> None:
        seconds, nanos = operator.index(seconds), operator.index(nanos)
        if seconds < 0 or not 0 <= nanos < 1 << 32:
            raise OverflowError(f"a time has no negative parts and 32 bits of nanoseconds, not {seconds} s {nanos} ns")
        try:
            self._raw = ntp64_from_ns(seconds * _SECOND_NS + nanos)
        except ValueError as error:
            raise InvalidValue("NTP64", str(error)) from error

    @classmethod
    def of(cls, raw: int) -> NTP64:
        """The time with this 64-bit value."""
        made = cls.__new__(cls)
        made._raw = raw
        return made

    def as_secs_f64(self) -> float:
        """Seconds with their fraction, as exact as a float can be."""
        return self._raw / (1 << 32)

    def as_secs(self) -> int:
        """Whole seconds."""
        return self._raw >> 32

    def as_nanos(self) -> int:
        """Nanoseconds."""
        return ns_from_ntp64(self._raw)

    def subsec_nanos(self) -> int:
        """Nanoseconds beyond the whole seconds."""
        return ns_from_ntp64(self._raw) - (self._raw >> 32) * _SECOND_NS

    def to_datetime(self) -> datetime:
        """The time in UTC, to the microsecond."""
        return datetime_from_ns(self.as_nanos())

    def to_string_rfc3339_lossy(self) -> str:
        """The text form for people, to the nanosecond."""
        return model.Timestamp(self._raw, _NOBODY).to_string_rfc3339_lossy().partition("/")[0]

    @classmethod
    def parse_rfc3339(cls, s: str) -> NTP64:
        """The time written as RFC 3339 in UTC."""
        try:
            return cls.of(model.Timestamp.parse_rfc3339(f"{s}/1").ntp64)
        except ValueError as error:
            raise InvalidValue("NTP64", str(error)) from error

    def __int__(self) -> int:
        return self._raw

    def __eq__(self, other: object) -> bool:
        return self._raw == other._raw if isinstance(other, NTP64) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._raw >= other._raw if isinstance(other, NTP64) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._raw)

    def __str__(self) -> str:
        return str(self._raw)

    __repr__ = __str__


@functools.total_ordering
class TimestampId:
    """Who gave a timestamp: 1 to 16 bytes, little-endian, trailing zeros cut.

    >>> TimestampId(bytes.fromhex("3412"))
    1234
    """

    __slots__ = ("_id",)
    _id: NodeId

    def __init__(self, bytes: bytearray | builtins.bytes) -> None:
        if not isinstance(bytes, builtins.bytes | bytearray):
            raise TypeError(f"argument 'bytes': {type(bytes).__name__!r} object is no bytes")
        try:
            self._id = NodeId(builtins.bytes(bytes))
        except ValueError as error:
            raise InvalidValue("TimestampId", str(error)) from error

    @classmethod
    def of(cls, id: NodeId) -> TimestampId:
        """The identifier of a node."""
        made = cls.__new__(cls)
        made._id = id
        return made

    @property
    def node_id(self) -> NodeId:
        """The same as the identifier of a node."""
        return self._id

    def __bytes__(self) -> builtins.bytes:
        return self._id.data

    def __eq__(self, other: object) -> bool:
        return self._id.data == other._id.data if isinstance(other, TimestampId) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._id.data >= other._id.data if isinstance(other, TimestampId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id.data)

    def __str__(self) -> str:
        return str(self._id)

    __repr__ = __str__


@functools.total_ordering
class Timestamp:
    """A time and who gave it; ordered by time first.

    >>> stamp = Timestamp(NTP64(1_700_000_000, 0), b"3")
    >>> stamp, stamp.to_string_rfc3339_lossy()
    (7301444403200000000/33, '2023-11-14T22:13:20.000000000Z/33')
    """

    __slots__ = ("_model",)
    _model: model.Timestamp

    def __init__(self, time: datetime | NTP64, id: bytearray | bytes | TimestampId) -> None:
        node = (id if isinstance(id, TimestampId) else TimestampId(id)).node_id
        self._model = model.Timestamp(_ntp64(time), node)

    @classmethod
    def of(cls, stamp: model.Timestamp) -> Timestamp:
        """The same timestamp as the layers below have it."""
        made = cls.__new__(cls)
        made._model = stamp
        return made

    @property
    def value(self) -> model.Timestamp:
        """The timestamp as the layers below have it."""
        return self._model

    def get_time(self) -> datetime:
        """The time in UTC, to the microsecond."""
        return self._model.get_time()

    def get_time_as_ntp64(self) -> NTP64:
        """The time with all its bits."""
        return NTP64.of(self._model.ntp64)

    def get_id(self) -> TimestampId:
        """Who gave it."""
        return TimestampId.of(self._model.id)

    def get_diff_duration(self, other: Timestamp) -> timedelta:
        """How much later than `other` this is, negative when it is earlier."""
        return self._model.get_diff_duration(other._model)

    def to_string_rfc3339_lossy(self) -> str:
        """The text form for people, to the nanosecond; several timestamps may share it."""
        return self._model.to_string_rfc3339_lossy()

    @classmethod
    def parse_rfc3339(cls, s: str) -> Timestamp:
        """The timestamp written as `<RFC 3339 in UTC>/<id>`."""
        try:
            return cls.of(model.Timestamp.parse_rfc3339(s))
        except ValueError as error:
            raise InvalidValue("Timestamp", str(error)) from error

    def __eq__(self, other: object) -> bool:
        return self._model == other._model if isinstance(other, Timestamp) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._model >= other._model if isinstance(other, Timestamp) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._model)

    def __str__(self) -> str:
        return str(self._model)

    __repr__ = __str__


def _ntp64(time: datetime | NTP64) -> int:
    if isinstance(time, NTP64):
        return int(time)
    from datetime import datetime, timedelta

    if not isinstance(time, datetime):
        raise TypeError("expected a `datetime` or a `NTP64`")
    # Raises TypeError for a time without zone, as eclipse-zenoh does: whose noon would it be?
    since = time - datetime_from_ns(0)
    return ntp64_from_ns((since // timedelta(microseconds=1)) * 1000)
