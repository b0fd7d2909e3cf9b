"""What the ids of a session stand for, and how a sample is addressed to the other node.

Ids are scoped to a session: either node may use one that the other declared. An even id that nobody declared is a
resource without a name, the same in all sessions (DEC-30). Spec: zenoh-2018 Z18-DCL-10, 16, Z18-DAT-03, 04, 08,
Z18-RES-04, Z18-RSP-02.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from elea.model.errors import InvalidResource
from elea.model.limits import CACHED_KEY_CHARS
from elea.model.resource import Resource, Selection, resources_match
from elea.protocol.early.declarations import Declarations

__all__ = ["Address", "Names", "Subject", "subjects_match"]

Subject = Resource | Selection | int
"""What is published or subscribed to; a number is the id of a resource without a name."""

BROKER_SPACE: Final = 1


class Address(NamedTuple):
    """How a sample is sent: under an id, with the id of its resource where needed; or, without ids, by its name."""

    id: int | None
    prid: int | None = None


def _resource(name: bytes) -> Resource:
    return _short_resource(name) if len(name) <= CACHED_KEY_CHARS else Resource.parse(name.decode("ascii"))


def _selection(query: bytes) -> Selection:
    return _short_selection(query) if len(query) <= CACHED_KEY_CHARS else Selection.parse(query.decode("ascii"))


@lru_cache(maxsize=4096)
def _short_resource(name: bytes) -> Resource:
    return Resource.parse(name.decode("ascii"))


@lru_cache(maxsize=4096)
def _short_selection(query: bytes) -> Selection:
    return Selection.parse(query.decode("ascii"))


def subjects_match(wanted: Subject, given: Subject) -> bool:
    """Whether a subscriber takes what a publisher has; of selections the resources count (Z18-RES-04)."""
    if isinstance(wanted, int) or isinstance(given, int):
        return wanted == given
    return resources_match(_path_of(wanted), _path_of(given))


def _path_of(subject: Resource | Selection) -> Resource:
    return subject.resource if isinstance(subject, Selection) else subject


class Names:
    """The ids of one session."""

    def __init__(self, theirs: Declarations, ours: Declarations) -> None:
        self.unknown = 0
        """Data of an id that stands for nothing, or of no single resource: dropped."""
        self._theirs = theirs
        self._ours = ours

    def subject(self, space: int, id: int) -> Subject | None:
        """What an id stands for; None for an odd one that nobody declared."""
        for declared in (self._theirs, self._ours):
            found = declared.spaces.get(space)
            if found is None:
                continue
            if id in found.resources:
                return _resource(found.resources[id].resource)
            if id in found.selections:
                return _selection(found.selections[id].query)
        return None if id % 2 else id

    def id_of(self, space: int, resource: Resource) -> int | None:
        """The smallest id of a resource, whatever its tags; also what its `$id` says (Z18-MET-01, Z18-DUR-05)."""
        ids = [
            id for declared in (self._theirs, self._ours) for id in declared.ids_of(space, resource.path, resource.meta)
        ]
        return min(ids, default=None)

    # -- towards the other node ---------------------------------------------------------------------------------------

    def listeners(self, space: int, given: Subject) -> Iterator[tuple[int, int]]:
        """Space and id of each subscriber of the other node that takes what is published.

        It looks at all of them: right for a device and for announcements. A broker's samples go through its key tree.
        """
        for other, declared in self._theirs.spaces.items():
            # Broker ids are for names of space 0. Resources without a name have nothing but the id.
            if other != space and (isinstance(given, int) or {other, space} != {0, BROKER_SPACE}):
                continue
            for id in declared.subscribers:
                wanted = self.subject(other, id)
                if wanted is not None and subjects_match(wanted, given):
                    yield other, id

    def is_wanted(self, space: int, given: Subject) -> bool:
        """Whether the other node has announced a subscriber for it: if not, nothing is sent (Z18-DAT-01)."""
        return next(self.listeners(space, given), None) is not None

    def address(self, space: int, id: int, given: Resource | int) -> Address:
        """How a sample of one resource goes to the subscriber `id` (Z18-DAT-03)."""
        wanted = self.subject(space, id)
        if isinstance(given, int) or (isinstance(wanted, Resource) and wanted.trivial):
            return Address(id)
        prid = self.id_of(space, given)
        return Address(None) if prid is None else Address(id, prid)

    # -- from the other node ------------------------------------------------------------------------------------------

    def origin(self, space: int, message: Any, prid: int | None = None) -> Resource | int | None:
        """Which resource a sample belongs to; None, and counted, if that cannot be told (Z18-DAT-04, 08).

        Args:
            prid: of a sample in a batch; other messages say it themselves.
        """
        found = (
            self._written(message.resource) if hasattr(message, "resource") else self._streamed(space, message, prid)
        )
        if found is None:
            self.unknown += 1
        return found

    def _written(self, name: bytes) -> Resource | None:
        try:
            resource = _resource(name)
        except (InvalidResource, UnicodeDecodeError):
            return None
        return resource if resource.trivial else None

    def _streamed(self, space: int, message: Any, prid: int | None) -> Resource | int | None:
        own = getattr(message, "prid", None) if prid is None else prid
        id = message.id if not isinstance(own, int) else own
        found = self.subject(space, id)
        if isinstance(found, int):
            return found if self._is_used(space, found) else None
        if isinstance(found, Selection):
            found = found.resource
        return found if isinstance(found, Resource) and found.trivial else None

    def _is_used(self, space: int, id: int) -> bool:
        return any(
            declared.spaces[space].is_anonymous(id)
            for declared in (self._theirs, self._ours)
            if space in declared.spaces
        )
