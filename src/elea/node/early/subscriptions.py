"""Subscribers of one neighbour: which of them take a sample, and how it is addressed to each.

Spec: zenoh-2018 Z18-DAT-03, 06, 09, Z18-DUR-02.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from elea.model.limits import EARLY_PENDING
from elea.model.qos import Durability
from elea.model.resource import Resource, Selection, tags_agree
from elea.node.early.catalogue import Known
from elea.node.early.keys import RESERVED, pattern_of, place_of
from elea.protocol.early.names import Names, Subject
from elea.protocol.early.numbered import stream_entry, write_entry
from elea.protocol.early.pulls import mode_of
from elea.protocol.early.terms import PropertyId, property_number
from elea.protocol.pacing import PUSH, Mode
from elea.space.keytree import KeyTree

if TYPE_CHECKING:
    from elea.node.early.filters import Filter

__all__ = ["Address", "Subscription", "Subscriptions"]


class Subscription:
    """A subscriber of the other node."""

    __slots__ = (
        "backlog",
        "backlog_octets",
        "id",
        "is_durable",
        "key",
        "mode",
        "number",
        "reliable",
        "space",
        "subject",
        "tags",
        "where",
    )

    def __init__(self, number: int, space: int, subject: Subject, declaration: Any, durability: Durability) -> None:
        self.number = number
        """Its id in the space."""
        self.space = space
        self.id: int = declaration.id
        self.subject = subject
        self.key = pattern_of(space, subject)
        self.mode: Mode = mode_of(declaration)
        self.tags: tuple[str, ...] = () if isinstance(subject, int) else subject.tags
        self.reliable = property_number(declaration.properties, PropertyId.RELIABILITY, 1) == 1
        self.where: Filter | None = None
        """The predicate of its selection."""
        self.is_durable = durability is not Durability.VOLATILE
        """Whether it first gets what is stored (Z18-DUR-04)."""
        self.backlog: deque[tuple[str, bytes | None, bytes]] | None = None
        """Samples that came while what is stored is being read: key, details, payload."""
        self.backlog_octets = 0

    @property
    def is_paced(self) -> bool:
        """Whether its samples wait for a pull or for a window."""
        return self.mode is not PUSH

    @property
    def has_to_wait(self) -> bool:
        """Whether it does not get samples at once: it pulls, has windows, or reads what is stored."""
        return self.is_paced or self.backlog is not None


class Address(NamedTuple):
    """How a sample is written for one subscriber: what stands before its payload, on either channel."""

    to: Subscription | None
    """None: whoever there is at the other node."""
    id: int
    reliable: bytes
    best_effort: bytes
    wheres: tuple[Filter, ...] = ()
    """Predicates of which one must hold; none for all samples."""


class Subscriptions:
    """All subscribers of one neighbour, by id and by key.

    Args:
        scheme: what its names begin with.
        has_tags: whether they may have tags.
    """

    def __init__(self, names: Names, scheme: str, *, has_tags: bool) -> None:
        self.version = 0
        """Changes whenever a sample may have to be addressed in another way."""
        self.unnamed = 0
        """Samples of keys that no resource can have."""
        self._names = names
        self._scheme = scheme
        self._has_tags = has_tags
        self._numbers = 0
        self._by_id: dict[tuple[int, int], Subscription] = {}
        self._leaving: dict[tuple[int, int], None] = {}
        self._by_key: KeyTree[list[Subscription]] = KeyTree()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._by_id.values())

    def get(self, space: int, id: int) -> Subscription | None:
        return self._by_id.get((space, id))

    def add(
        self, space: int, subject: Subject, declaration: Any, durability: Durability, where: Filter | None = None
    ) -> Subscription:
        """A subscriber is there; `where` is the predicate of its selection."""
        self._numbers += 1
        self.version += 1
        made = Subscription(self._numbers, space, subject, declaration, durability)
        made.where = where
        self._by_id[space, made.id] = made
        self._by_key.add(made.key, [*(self._by_key.get(made.key) or ()), made])
        return made

    def remove(self, space: int, id: int) -> Subscription | None:
        """A subscriber is gone."""
        gone = self._by_id.pop((space, id), None)
        if gone is not None:
            self.version += 1
            left = [one for one in self._by_key.get(gone.key) or () if one is not gone]
            if left:
                self._by_key.add(gone.key, left)
            else:
                self._by_key.remove(gone.key)
        return gone

    def leave(self, space: int, id: int) -> None:
        """Write nothing under an id of ours any more: the other node is told to forget it, and may have.

        It may subscribe to it even so, before it has heard; such an id is never used again.
        """
        self._leaving[space, id] = None
        if len(self._leaving) > EARLY_PENDING:
            del self._leaving[next(iter(self._leaving))]
        self.version += 1

    def taking(self, key: str) -> list[Subscription]:
        """The subscribers whose pattern has a key, the smallest id first."""
        found = [one for listed in self._by_key.intersecting(key) for one in listed]
        if key.startswith(RESERVED):  # a wildcard of space 0 has these keys by its characters only
            found = [one for one in found if one.key == key or one.key.startswith((f"zenoh://{RESERVED}", RESERVED))]
        return sorted(found, key=lambda one: (one.space, one.id))

    def addresses(self, key: str, known: Known | None, stored: str, *, in_doubt: bool) -> list[Address]:
        """How a sample is written for each that takes it; by name, if nobody is known and somebody may be there.

        With a name, the other node finds out itself who takes it: one message is enough for all of them.

        Args:
            known: what was said of the key, by whose tags it is taken.
            stored: how durably it is kept whatever was said, as a tag.
        """
        place = place_of(key)
        if place is None:
            self.unnamed += 1
            return []
        space, resource = place
        tags = tags_of(known, stored)
        written = () if known is None else known.tags
        taking = [
            one
            for one in self.taking(key)
            if tags_agree(one.tags, tags) and (not self._leaving or (one.space, one.id) not in self._leaving)
        ]
        if not taking:
            if not in_doubt or isinstance(resource, int):
                return []
            return [self._by_name(None, space, resource, written)]
        found = [self.address(one, one.space, one.id, one.subject, resource, written) for one in taking]
        named = [one for one in found if not one.id]
        # One that waits for pulls has samples of its own.
        shared = [one for one in named if one.to is not None and not one.to.is_paced and not one.to.is_durable]
        own = [one for one in found if one not in shared]
        if not shared:
            return own
        wheres = [where for one in shared for where in one.wheres]
        return [*own, shared[0]._replace(wheres=tuple(wheres) if all(one.wheres for one in shared) else ())]

    def address(
        self,
        to: Subscription | None,
        space: int,
        id: int,
        subject: Subject | None,
        resource: Resource | int,
        tags: tuple[str, ...],
    ) -> Address:
        """How a sample of a resource is written for the id `id`, which stands for `subject` (Z18-DAT-03)."""
        if isinstance(resource, int) or (isinstance(subject, Resource) and subject.trivial):
            return _by_id(to, space, id, None)
        prid = self._names.id_of(space, resource)
        if prid is not None and (space, prid) not in self._leaving:
            return _by_id(to, space, id, prid)
        if isinstance(subject, Selection) and subject.resource.trivial:
            return _by_id(to, space, id, None)  # it can be of no other resource
        return self._by_name(to, space, resource, tags)

    def _by_name(self, to: Subscription | None, space: int, resource: Resource, tags: tuple[str, ...]) -> Address:
        name = str(Resource(self._scheme, resource.path, tags if self._has_tags else (), resource.meta)).encode()
        space = 0 if space == 1 else space
        fronts = [write_entry(name, b"", reliable=reliable, space=space)[0] for reliable in (True, False)]
        return Address(to, 0, fronts[0], fronts[1], _wheres(to))


def _by_id(to: Subscription | None, space: int, id: int, prid: int | None) -> Address:
    fronts = [stream_entry(id, b"", reliable=reliable, prid=prid, space=space)[0] for reliable in (True, False)]
    return Address(to, id, fronts[0], fronts[1], _wheres(to))


def _wheres(to: Subscription | None) -> tuple[Filter, ...]:
    return () if to is None or to.where is None else (to.where,)


def tags_of(known: Known | None, stored: str) -> tuple[str, ...]:
    """The tags that count for a resource: those it has, and its durability, however that came (Z18-DUR-01, 05).

    What a storage keeps whatever its writers say is durable, too.
    """
    said = () if known is None else known.tags
    if known is not None and known.durability is not Durability.VOLATILE:
        said = (*said, known.durability.name.lower())
    return (*said, stored) if stored else said
