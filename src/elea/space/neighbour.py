"""A neighbour with what its place means, and the numbers given out on the way to it."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from elea.model import keyexpr
from elea.model.errors import LimitReached
from elea.model.limits import DOLLAR_WEIGHT, MAX_KEY_OCTETS, MAX_WILDCARDS
from elea.model.qos import Role
from elea.space import regions
from elea.space.face import Entity, Face, Region

if TYPE_CHECKING:
    from elea.space.guard import Guard

__all__ = ["Ids", "Neighbour"]

_LAST_ID: Final = (1 << 32) - 1
"""Ids travel in 32 bits; a busy node has that many queries within days."""


class Ids:
    """Numbers from 1 on, wrapping, without those in use. 0 is kept: it means *no id* or *the first exchange*."""

    __slots__ = ("_last",)

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def fresh(self, used: Container[int]) -> int:
        """A number that is not in `used`."""
        self._last = self._last + 1 if self._last < _LAST_ID else 1
        while self._last in used:
            self._last = self._last + 1 if self._last < _LAST_ID else 1
        return self._last


class Neighbour:
    """A face and what the rules of our role say about it. Compared by identity."""

    __slots__ = (
        "bloc",
        "equal",
        "face",
        "gateway",
        "greeted",
        "guard",
        "interest_ids",
        "interests",
        "key_octets",
        "north",
        "order",
        "region",
        "request_ids",
        "send",
        "sourced",
        "told_ids",
        "wildcards",
    )

    def __init__(self, face: Face, role: Role, order: int = 0) -> None:
        region = face.region
        self.face = face
        self.order = order
        """Which it is of all that have come: what goes to several goes to the oldest first."""
        self.send = face.send
        self.region = region
        self.bloc = regions.bloc(role, region)
        self.north = regions.is_north(role, region)
        self.gateway = regions.is_gateway(role, region)
        self.equal = regions.is_equal(role, region)
        self.sourced = regions.is_sourced(role, region)
        self.guard: Guard | None = None
        """What judges what it may be told, if there are rules."""
        self.greeted = False
        """Whether an equal has told us all it had."""
        self.interests = 0
        """How many it has, those included that have ended and are still summed up."""
        self.key_octets = 0
        """Size of the keys it has made us remember."""
        self.wildcards = 0
        """Wildcards in these keys, by weight."""
        self.told_ids = Ids()
        self.interest_ids = Ids()
        self.request_ids = Ids()

    def remember(self, key: str, count: int, limit: str, most: int) -> None:
        """It makes us remember one more key, besides `count` things of the kind.

        Raises:
            LimitReached: that would be more than any neighbour may.
        """
        if count >= most:
            raise LimitReached(limit, most)
        if self.key_octets + len(key) > MAX_KEY_OCTETS:
            raise LimitReached("MAX_KEY_OCTETS", MAX_KEY_OCTETS)
        if "*" in key:
            weight = _weight(key)
            # What this process asks of itself is not refused: it has nobody to tell.
            if self.wildcards + weight > MAX_WILDCARDS and self.region is not Region.LOCAL:
                raise LimitReached("MAX_WILDCARDS", MAX_WILDCARDS)
            self.wildcards += weight
        self.key_octets += len(key)

    def forget(self, key: str) -> None:
        """The opposite of `remember`."""
        self.key_octets -= len(key)
        if "*" in key:
            self.wildcards -= _weight(key)

    def passes_to(self, other: Neighbour) -> bool:
        """Whether data and queries from here may go to the other."""
        return self is not other and (self.bloc is not other.bloc or regions.passes_within(self.bloc))

    def may_hear(self, entity: Entity, key: str) -> bool:
        """Whether the rules let it be told of an entity on `key`."""
        return self.guard is None or self.guard.may_hear(self.face, entity, key)

    def is_heard_by(self, other: Neighbour, entity: Entity) -> bool:
        """Whether the other may be told of entities from here."""
        if self is other:
            # Spec 9.3: its own tokens are reported to a client, not to a peer. Our own session knows its own.
            return entity is Entity.TOKEN and self.region is Region.CLIENTS
        return self.passes_to(other)


def _weight(key: str) -> int:
    return keyexpr.wildcards(key) + (DOLLAR_WEIGHT - 1) * key.count("$*")
