"""What the space says to its neighbours and hears from them, in no dialect.

A *face* is one neighbour: a session with another node, or the node's own session. Messages are plain values with whole
keys; a dialect's end of the session turns them into bytes and resources, and back.
"""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import Protocol

from elea.model.qos import Role
from elea.model.values import value_class
from elea.space.questions import Request, Response, ResponseFinal

__all__ = [
    "Control",
    "Declare",
    "Entity",
    "Face",
    "Final",
    "Interest",
    "InterestDone",
    "InterestMode",
    "Kinds",
    "Region",
    "Request",
    "Response",
    "ResponseFinal",
    "Undeclare",
]


class Entity(IntEnum):
    """What can be declared on a key expression."""

    SUBSCRIBER = 1
    QUERYABLE = 2
    TOKEN = 3


class Kinds(IntFlag):
    """What an interest asks for; the bits are those of Zenoh 1.x."""

    KEYEXPRS = 1
    SUBSCRIBERS = 2
    QUERYABLES = 4
    TOKENS = 8


class InterestMode(IntEnum):
    """Which declarations an interest asks for."""

    CURRENT = 1
    FUTURE = 2
    CURRENT_FUTURE = 3


class Region(Enum):
    """Where a neighbour stands, seen from this node."""

    LOCAL = "local"
    """The node's own session."""
    CLIENTS = "clients"
    """South: clients, who depend on us and are relayed among themselves."""
    PEERS = "peers"
    """Peers: south of a router, beside a peer. They are linked with each other, so nothing is relayed among them."""
    ROUTERS = "routers"
    """North: the router network."""


@value_class
class Declare:
    """An entity `id` exists on `key`; `interest_id` says which interest's question this answers."""

    entity: Entity
    id: int
    key: str
    complete: bool = False
    distance: int = 0
    interest_id: int | None = None


@value_class
class Undeclare:
    """An entity is gone; `key` is there when the other side cannot know the id."""

    entity: Entity
    id: int
    key: str | None = None


@value_class
class Final:
    """Everything that exists now and interests you (`interest_id`) has been declared."""

    interest_id: int


@value_class
class Interest:
    """Tell me of entities of these kinds that intersect `key` (all, without one)."""

    id: int
    mode: InterestMode
    kinds: Kinds
    key: str | None = None
    aggregate: bool = False


@value_class
class InterestDone:
    """The interest is over; what was declared for it stays declared."""

    id: int


Control = Declare | Undeclare | Final | Interest | InterestDone | Request | Response | ResponseFinal


class Face(Protocol):
    """A neighbour, as the space sees it."""

    @property
    def node_id(self) -> bytes: ...

    @property
    def role(self) -> Role: ...

    @property
    def region(self) -> Region: ...

    def send(self, message: Control) -> None:
        """Queue a control message; never blocks, never calls back into the space."""
        ...
