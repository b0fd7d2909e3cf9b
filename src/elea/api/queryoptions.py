"""The options by which a query says which replies it wants."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias

from elea.model.qos import ConsolidationMode

__all__ = ["IntoQueryConsolidation", "QueryConsolidation", "ReplyKeyExpr", "into_consolidation"]


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
