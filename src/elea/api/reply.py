"""What a query gets back, and the options by which it says what it wants."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias

from elea.api.identity import EntityGlobalId, ZenohId
from elea.api.instrumentation import TimestampStack
from elea.api.sample import Sample
from elea.api.zbytes import ZBytes
from elea.model.encoding import Encoding
from elea.model.qos import ConsolidationMode

__all__ = [
    "IntoQueryConsolidation",
    "QueryConsolidation",
    "Reply",
    "ReplyError",
    "ReplyKeyExpr",
    "into_consolidation",
]


class ReplyKeyExpr(Enum):
    """Which keys replies may have."""

    ANY = 0
    MATCHING_QUERY = 1
    DEFAULT = MATCHING_QUERY

    def __int__(self) -> int:
        value: int = self.value
        return value

    def __str__(self) -> str:
        return f"ReplyKeyExpr.{self.name}"

    __repr__ = __str__


class QueryConsolidation:
    """How several replies for one key become one.

    >>> QueryConsolidation(ConsolidationMode.NONE).mode()
    ConsolidationMode.NONE
    """

    __slots__ = ("_mode",)

    AUTO: ClassVar[QueryConsolidation]
    DEFAULT: ClassVar[QueryConsolidation]

    def __init__(self, mode: ConsolidationMode, /) -> None:
        if not isinstance(mode, ConsolidationMode):
            raise TypeError(f"argument 'mode': {type(mode).__name__!r} object is no ConsolidationMode")
        self._mode = mode

    # A method, as in eclipse-zenoh 1.10.2, although its type stubs declare a property.
    def mode(self) -> ConsolidationMode:
        """The rule."""
        return self._mode

    def __eq__(self, other: object) -> bool:
        return self._mode == other._mode if isinstance(other, QueryConsolidation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._mode)

    def __repr__(self) -> str:
        return f"QueryConsolidation({self._mode!r})"


QueryConsolidation.AUTO = QueryConsolidation.DEFAULT = QueryConsolidation(ConsolidationMode.AUTO)

IntoQueryConsolidation: TypeAlias = QueryConsolidation | ConsolidationMode
"""What a consolidation may be given as."""


def into_consolidation(value: IntoQueryConsolidation | None) -> ConsolidationMode:
    """The rule a user gave; AUTO if none."""
    if value is None:
        return ConsolidationMode.AUTO
    return value.mode() if isinstance(value, QueryConsolidation) else QueryConsolidation(value).mode()


class ReplyError:
    """A reply that is no sample: a queryable failed, or time ran out."""

    __slots__ = ("_encoding", "_payload", "_stack")

    def __init__(
        self, payload: bytes, encoding: Encoding = Encoding.ZENOH_BYTES, stack: TimestampStack | None = None
    ) -> None:
        self._payload = payload
        self._encoding = encoding
        self._stack = stack

    @property
    def payload(self) -> ZBytes:
        """What went wrong, in the words of who answered."""
        return ZBytes(self._payload)

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        return self._encoding

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """The timestamps it has collected on its way, if that was asked for."""
        return self._stack

    def __repr__(self) -> str:
        return f"ReplyError(payload={self._payload!r}, encoding={str(self._encoding)!r})"


class Reply:
    """One answer to a query: a sample or an error.

    >>> reply = Reply(Sample.of("a", b"1"))
    >>> reply.ok is reply.result, reply.err
    (True, None)
    """

    __slots__ = ("_replier", "_result")

    def __init__(
        self, result: Sample | ReplyError, replier_id: EntityGlobalId | tuple[bytes, int] | None = None
    ) -> None:
        self._result = result
        self._replier = replier_id

    @property
    def result(self) -> Sample | ReplyError:
        """The sample or the error."""
        return self._result

    @property
    def ok(self) -> Sample | None:
        """The sample, if it is one."""
        return self._result if isinstance(self._result, Sample) else None

    @property
    def err(self) -> ReplyError | None:
        """The error, if it is one."""
        return self._result if isinstance(self._result, ReplyError) else None

    @property
    def replier_id(self) -> EntityGlobalId | None:
        """Who answered; nobody, if time ran out here."""
        who = self._replier
        if isinstance(who, tuple):  # as it came: few want to know
            who = self._replier = EntityGlobalId(ZenohId(who[0]), who[1])
        return who

    def __repr__(self) -> str:
        return f"Reply(result={self._result!r}, replier_id={self.replier_id!r})"
