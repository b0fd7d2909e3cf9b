"""What the space says to its neighbours and hears from them, in no dialect.

A *face* is one neighbour: an open session with another node, or the local face, the programs of this process. It is
all that the space, the store and the API know of a neighbour, whichever dialect it speaks. Control messages are plain
values with whole keys; a dialect's end of the session turns them into bytes and resources, and back. Samples go through
the face's *encoder* (`elea.space.way`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, IntFlag
from typing import Protocol, runtime_checkable

from elea.model.qos import Role
from elea.model.values import value_class
from elea.space.questions import Request, Response, ResponseFinal
from elea.space.way import Encoder

__all__ = [
    "Control",
    "Declare",
    "Entity",
    "Face",
    "Final",
    "Flow",
    "Interest",
    "InterestDone",
    "InterestMode",
    "Kinds",
    "Puller",
    "PullingFace",
    "Region",
    "Request",
    "Response",
    "ResponseFinal",
    "Subject",
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


class Flow(IntEnum):
    """Which way a message goes, seen from this node."""

    INGRESS = 0
    EGRESS = 1

    @property
    def label(self) -> str:
        """As rules name it."""
        return self.name.lower()


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
    """An entity `id` exists on `key`; `interest_id` says which interest's question this answers.

    The key is a 1.x key expression, or a pattern of the early grammar (`zenoh://a/b?`): both kinds meet in the space
    (`elea.model.keytext`). What else an entity may come to say, such as a mode, a durability or its origin, has its
    place here.
    """

    entity: Entity
    id: int
    key: str
    complete: bool = False
    distance: int = 0
    interest_id: int | None = None
    predicates: tuple[str, ...] = ()
    """A subscriber wants samples for which one of these holds, all of them without any. It is an offer to those who
    understand it, so that other samples need not travel: whoever declares it looks itself, too."""


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


@value_class
class Subject:
    """Who a neighbour is: what access rules and people go by."""

    node_id: bytes
    role: Role
    user: str | None = None
    """The name it has proved with a password."""
    certificate: str | None = None
    """The common name of the certificate it has shown."""
    link: str = ""
    """The locator of its end of the link."""
    local: str = ""
    """The locator of our end, by which the interface is known."""


class Face(Protocol):
    """A neighbour: who it is, and how control messages and samples reach it."""

    @property
    def subject(self) -> Subject: ...

    @property
    def region(self) -> Region: ...

    @property
    def encoder(self) -> Encoder:
        """What samples are encoded with on their way to it: once for all faces that have the same one."""
        ...

    @property
    def has_priorities(self) -> bool:
        """Whether samples of each priority have a lane of their own."""
        ...

    def send(self, message: Control) -> None:
        """Queue a control message; never blocks, never calls back into the space."""
        ...

    def await_room(self, qos: int, timeout: float) -> bool:
        """Wait until answers of this quality of service have room, `timeout` seconds at most; whether they have."""
        ...

    @property
    def lacks(self) -> Mapping[str, str]:
        """What its dialect has no words for, each with the name of the dialect."""
        ...

    def counters(self) -> Mapping[str, int]:
        """What has been counted on its link, by name, for the metrics page."""
        ...


class Puller(Protocol):
    """A pull subscriber whose samples wait at a neighbour."""

    @property
    def is_over(self) -> bool:
        """Whether it brings nothing more: the session has ended, or it was closed."""
        ...

    def pull(self, most: int | None, done: Callable[[list[tuple[str, bytes]]], None]) -> None:
        """Ask for samples; `done` gets keys and payloads, when all have come."""
        ...

    def close(self) -> None:
        """Nothing is to wait any more."""
        ...


@runtime_checkable
class PullingFace(Protocol):
    """A neighbour whose dialect has pull subscribers."""

    def puller(self, key: str) -> Puller | None:
        """One for a key; None if that cannot be said there."""
        ...
