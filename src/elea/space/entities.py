"""Who has declared what: one record per kind of entity and key, with its sources.

This module keeps the books; whom to tell is decided in `announcements`. Spec: zenoh-1 sections 9.1, 13.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from elea.model import keytext
from elea.model.limits import MAX_DECLARATIONS, PREDICATES_DECLARED
from elea.space.face import Declare, Entity, Undeclare
from elea.space.keytree import KeyTree
from elea.space.neighbour import Neighbour

__all__ = ["Declarations", "Record", "either", "is_complete_for"]

_Name = tuple[Entity, int | str]
"""How a neighbour names a declaration: by its id, or by the key where there are no ids."""


class Record:
    """All declarations of one kind on one key expression."""

    __slots__ = ("complete", "entity", "filters", "key", "sources", "told")

    def __init__(self, entity: Entity, key: str) -> None:
        self.entity = entity
        self.key = key
        self.complete = 0
        """How many declarations are complete, of all sources; mostly none, which saves asking the sources."""
        self.sources: dict[Neighbour, tuple[int, int]] = {}
        """How many declarations each source has, and how many of them are complete."""
        self.filters: dict[Neighbour, dict[tuple[str, ...], int]] = {}
        """How many declarations of a source have which predicates, if any has some."""
        self.told: dict[Neighbour, tuple[int, bool, tuple[str, ...]]] = {}
        """Under which id and completeness, with which predicates, we have declared the record to whom."""

    def heard_by(self, neighbour: Neighbour, key: str | None = None) -> bool:
        """Whether some source may be reported to the neighbour, on the record's key or another that stands for it."""
        if neighbour.guard is not None and not neighbour.may_hear(self.entity, key or self.key):
            return False
        return any(source.is_heard_by(neighbour, self.entity) for source in self.sources)

    def complete_for(self, neighbour: Neighbour) -> bool:
        """Whether some source that may be reported to the neighbour is complete."""
        if not self.complete:
            return False
        return any(complete and s.is_heard_by(neighbour, self.entity) for s, (_, complete) in self.sources.items())

    def predicates_of(self, source: Neighbour) -> tuple[str, ...]:
        """One of these holds for every sample that a source wants; none if it may want any."""
        known = self.filters.get(source)
        if known is None or sum(known.values()) < self.sources[source][0]:
            return ()
        return either(known)

    def predicates_for(self, neighbour: Neighbour) -> tuple[str, ...]:
        """The same for all sources that may be reported to a neighbour."""
        if not self.filters:
            return ()
        return either(self.predicates_of(s) for s in self.sources if s.is_heard_by(neighbour, self.entity))

    def filter(self, source: Neighbour, predicates: tuple[str, ...], declarations: int) -> None:
        """Add to (or take from) the declarations of a source that have these predicates."""
        known = self.filters.setdefault(source, {})
        known[predicates] = known.get(predicates, 0) + declarations
        if not known[predicates]:
            del known[predicates]
        if not known:
            del self.filters[source]

    def count(self, source: Neighbour, declarations: int, complete: int) -> None:
        """Add to (or take from) what a source has."""
        self.complete += complete
        had = self.sources.get(source, (0, 0))
        now = (had[0] + declarations, had[1] + complete)
        if now[0]:
            self.sources[source] = now
        else:
            del self.sources[source]


_Held = tuple[Record, bool, "tuple[str, ...]"]
"""What a declaration says: its record, whether it is complete, its predicates."""


class Declarations:
    """What every neighbour has declared, by id and by key."""

    def __init__(self) -> None:
        self._trees: dict[Entity, KeyTree[Record]] = {entity: KeyTree() for entity in Entity}
        self._held: dict[Neighbour, dict[_Name, _Held]] = {}
        self._orphans: dict[Neighbour, list[_Held]] = {}
        self.filtered = 0
        """How many declarations have predicates; mostly none, which saves asking the records."""

    def all(self, entity: Entity) -> list[Record]:
        """Every record of a kind."""
        return list(self._trees[entity])

    def intersecting(self, entity: Entity, key: str | None) -> list[Record]:
        """The records of a kind that intersect a key expression; all of them without one."""
        return self.all(entity) if key is None else self._trees[entity].intersecting(key)

    def including(self, entity: Entity, key: str) -> list[Record]:
        """The records of a kind that include a key expression."""
        return self._trees[entity].including(key)

    def find(self, entity: Entity, key: str) -> Record | None:
        """The record on exactly this key."""
        return self._trees[entity].get(key)

    def declare(self, source: Neighbour, message: Declare) -> tuple[Record, bool]:
        """Take a declaration in. Returns its record and whether that changed by it.

        Raises:
            LimitReached: the neighbour has declared as much as any may.
        """
        entity, key = message.entity, message.key
        complete = message.complete and entity is Entity.QUERYABLE
        predicates = message.predicates
        held = self._held.setdefault(source, {})
        name: _Name = (entity, key if source.sourced else message.id)
        known = held.get(name)
        if known is not None:
            record, was_complete, had = known
            if record.key == key:
                if was_complete == complete and had == predicates:
                    return record, False  # said again, for another interest
                held[name] = (record, complete, predicates)
                record.count(source, 0, complete - was_complete)
                self._filter(source, record, had, -1)
                self._filter(source, record, predicates, 1)
                return record, True
        orphans = self._orphans.get(source, ())
        source.remember(key, len(held) + len(orphans), "MAX_DECLARATIONS", MAX_DECLARATIONS)
        if known is not None:
            # A live id taken for another key: 1.10.2 keeps both, and the first one until the neighbour goes (9.1).
            self._orphans.setdefault(source, []).append(known)
        record = self._record(entity, key)
        held[name] = (record, complete, predicates)
        record.count(source, 1, complete)
        self._filter(source, record, predicates, 1)
        return record, True

    def undeclare(self, source: Neighbour, message: Undeclare) -> Record | None:
        """Take a declaration out, found by its id or else by its key. Returns its record, if it was known."""
        held = self._held.get(source, {})
        name: _Name | None = (message.entity, message.key or "" if source.sourced else message.id)
        if name not in held:
            name = self._named_by_key(source, message.entity, message.key)
        if name is None:
            return None
        found = held.pop(name)
        self._take(source, *found)
        return found[0]

    def of(self, source: Neighbour) -> list[tuple[int | str, _Held]]:
        """What a neighbour has declared: by which id or key, and what it said."""
        return [(name, said) for (_, name), said in self._held.get(source, {}).items()]

    def drop(self, source: Neighbour) -> Iterator[Record]:
        """Take out all that a neighbour had, one by one; the records come as they are after each step."""
        gone = [*self._held.pop(source, {}).values(), *self._orphans.pop(source, ())]
        for found in gone:
            self._take(source, *found)
            yield found[0]

    def _named_by_key(self, source: Neighbour, entity: Entity, key: str | None) -> _Name | None:
        record = self._trees[entity].get(key) if key is not None else None
        if record is None or source not in record.sources:
            return None  # so that only a hit costs a search
        return next((name for name, (held, _, _) in self._held[source].items() if held is record), None)

    def _record(self, entity: Entity, key: str) -> Record:
        tree = self._trees[entity]
        record = tree.get(key)
        if record is None:
            record = Record(entity, key)
            tree.add(key, record)
        return record

    def _filter(self, source: Neighbour, record: Record, predicates: tuple[str, ...], declarations: int) -> None:
        if predicates:
            record.filter(source, predicates, declarations)
            self.filtered += declarations
            source.key_octets += declarations * sum(map(len, predicates))

    def _take(self, source: Neighbour, record: Record, complete: bool, predicates: tuple[str, ...]) -> None:
        self._filter(source, record, predicates, -1)
        record.count(source, -1, -complete)
        source.forget(record.key)
        if not record.sources:
            self._trees[record.entity].remove(record.key)


def either(wanted: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All predicates together; none if one of them all wants everything, or they are too many to be looked at."""
    found: dict[str, None] = {}
    for predicates in wanted:
        if not predicates:
            return ()
        found.update(dict.fromkeys(predicates))
    return tuple(sorted(found)) if len(found) <= PREDICATES_DECLARED else ()


def is_complete_for(record: Record, neighbour: Neighbour, key: str) -> bool:
    """Whether a neighbour is told that someone has all there is on `key`."""
    return record.complete_for(neighbour) and keytext.includes(record.key, key)
