"""Quality of service and the other small enumerations of the data space.

This module owns their names, which are those of eclipse-zenoh's Python API, and their numbers on the wire of
Zenoh 1.x; of bytes it knows only the packed quality-of-service value. Spec: zenoh-1 §1.5, §8.1, §8.3, §10;
zenoh-2018 Z18-PRP-03 for durability.
"""

from __future__ import annotations

from enum import IntEnum, nonmember
from typing import Final

from elea.model.values import value_class

__all__ = [
    "BLOCK",
    "CongestionControl",
    "ConsolidationMode",
    "Durability",
    "Locality",
    "Priority",
    "Qos",
    "QueryTarget",
    "Reliability",
    "Role",
    "SampleKind",
]

BLOCK: Final = 0x08
"""The bit of a packed quality of service that says: wait for room rather than drop."""

_EXPRESS: Final = 0x10
_BLOCK_FIRST: Final = 0x20
_PRIORITY: Final = 0x07


class _Named(IntEnum):
    """Numbers that print as `Priority.DATA`, as programs written for eclipse-zenoh expect."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return str(self)


class Priority(_Named):
    """Which lane a message takes; the lower the number the sooner it goes. CONTROL is the protocol's own."""

    CONTROL = 0
    REAL_TIME = 1
    INTERACTIVE_HIGH = 2
    INTERACTIVE_LOW = 3
    DATA_HIGH = 4
    DATA = 5
    DATA_LOW = 6
    BACKGROUND = 7
    DEFAULT = DATA
    MAX = REAL_TIME
    MIN = BACKGROUND
    NUM = nonmember(7)  # the priorities open to users


class CongestionControl(_Named):
    """What a sender does when its queue is full."""

    DROP = 0
    BLOCK = 1
    BLOCK_FIRST = 2
    DEFAULT = DROP


class Reliability(_Named):
    """Whether a link may lose a message."""

    BEST_EFFORT = 0
    RELIABLE = 1
    # As in eclipse-zenoh, whose publishers are reliable all the same if they say nothing.
    DEFAULT = BEST_EFFORT


class SampleKind(_Named):
    """What a sample does to its key."""

    PUT = 0
    DELETE = 1


class QueryTarget(_Named):
    """Which of the matching queryables a query goes to."""

    BEST_MATCHING = 0
    ALL = 1
    ALL_COMPLETE = 2
    DEFAULT = BEST_MATCHING


class ConsolidationMode(_Named):
    """How several replies for one key become one; AUTO leaves the choice to the query's parameters."""

    AUTO = 0
    NONE = 1
    MONOTONIC = 2
    LATEST = 3
    DEFAULT = AUTO


class Locality(_Named):
    """Where a counterpart may be: in the same session, elsewhere, or both."""

    SESSION_LOCAL = 0
    REMOTE = 1
    ANY = 2
    DEFAULT = ANY


class Role(IntEnum):
    """What a node does; the values are the bits of a scouting mask. Zenoh 1.x calls a broker *router*.

    >>> Role.PEER.code, Role.PEER.value, str(Role.PEER)
    (1, 2, 'peer')
    """

    ROUTER = 1
    PEER = 2
    CLIENT = 4
    BROKER = ROUTER

    @property
    def code(self) -> int:
        """The two-bit number of the role in INIT, JOIN and HELLO."""
        return self.value >> 1

    @classmethod
    def from_code(cls, code: int) -> Role:
        """The role with a two-bit number; raises ValueError for the reserved 3."""
        if not 0 <= code <= 2:
            raise ValueError(f"{code} is not the code of a role: 0 router, 1 peer, 2 client")
        return cls(1 << code)

    def __str__(self) -> str:
        return self.name.lower()

    def __repr__(self) -> str:
        return f"Role.{self.name}"


class Durability(IntEnum):
    """How long data outlives its writer; the values are those of property 8 of the early dialects.

    >>> Durability.parse("persistent") > Durability.TRANSIENT
    True
    """

    VOLATILE = 0
    TRANSIENT = 1
    PERSISTENT = 2

    @classmethod
    def parse(cls, text: str) -> Durability:
        """The durability called `text`, in lower case as everywhere else."""
        for durability in cls:
            if str(durability) == text:
                return durability
        raise ValueError(f"unknown durability {text!r}: choose volatile, transient or persistent")

    def __str__(self) -> str:
        return self.name.lower()

    def __repr__(self) -> str:
        return f"Durability.{self.name}"


@value_class
class Qos:
    """How a message of Zenoh 1.x wants to be sent; the defaults are those of a message that does not say.

    >>> Qos().raw, Qos.from_raw(0x1D)
    (5, Qos(priority=Priority.DATA, congestion_control=CongestionControl.BLOCK, express=True))
    """

    priority: Priority = Priority.DATA
    congestion_control: CongestionControl = CongestionControl.DROP
    express: bool = False

    @classmethod
    def from_raw(cls, raw: int) -> Qos:
        """The value packed in the QoS extension; bits nobody has defined are ignored."""
        if raw & BLOCK:
            congestion = CongestionControl.BLOCK
        elif raw & _BLOCK_FIRST:
            congestion = CongestionControl.BLOCK_FIRST
        else:
            congestion = CongestionControl.DROP
        return cls(Priority(raw & _PRIORITY), congestion, bool(raw & _EXPRESS))

    @property
    def raw(self) -> int:
        """The packed value."""
        value = int(self.priority)
        if self.congestion_control is CongestionControl.BLOCK:
            value |= BLOCK
        elif self.congestion_control is CongestionControl.BLOCK_FIRST:
            value |= _BLOCK_FIRST
        return value | (_EXPRESS if self.express else 0)
