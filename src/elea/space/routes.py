"""Where data and queries go, remembered as long as the declarations stay.

Spec: zenoh-1 sections 13.1 to 13.4 (data), 14.2 (queries).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.model.qos import QueryTarget
from elea.space.entities import Declarations, either
from elea.space.face import Entity, Face, Kinds, Region
from elea.space.neighbour import Neighbour
from elea.space.upstream import Upstream

__all__ = ["CACHED_KEY_CHARS", "CACHED_ROUTES", "Routes", "Seen"]


class Seen:
    """Who was seen to have entities that intersect a key: the long part of working out a route."""

    __slots__ = ("generation", "sources")

    def __init__(self, generation: int, sources: dict[Neighbour, bool]) -> None:
        self.generation = generation
        """Of the entities looked at, before it was looked."""
        self.sources = sources
        """With whether they answer queries on all of the key."""


class Routes:
    """Works out who gets what from whom."""

    def __init__(
        self,
        declarations: Declarations,
        upstream: Upstream,
        north: Collection[Neighbour],
        *,
        is_valid: Callable[[str], bool],
    ) -> None:
        self._declarations = declarations
        self._upstream = upstream
        self._north = north
        self._is_valid = is_valid
        self.generation = 0
        """Changes whenever data may go elsewhere than before."""
        self._queryables = 0
        """The same for queries."""
        self.known: dict[Face, dict[str, tuple[Face, ...]]] = {}
        """What `targets` has found, by source; the space looks here first."""
        self._known_queries: dict[Neighbour, dict[tuple[str, QueryTarget], tuple[Neighbour, ...]]] = {}

    def changed(self, entity: Entity | None = None) -> None:
        """Routes to an entity of this kind, or all, may have changed."""
        if entity in (None, Entity.SUBSCRIBER):
            self.generation += 1
            self.known.clear()
        if entity in (None, Entity.QUERYABLE):
            self._queryables += 1
            self._known_queries.clear()

    def look(self, entity: Entity, key: str) -> Seen:
        """See who has entities that intersect a valid key.

        It may take milliseconds, and needs no lock: what others declare meanwhile may be seen or not. Who uses it looks
        again, with the lock, if anything was.
        """
        generation = self.generation if entity is Entity.SUBSCRIBER else self._queryables
        records = self._declarations.intersecting(entity, key)
        sources = {source: False for record in records for source in list(record.sources)}
        if any(record.complete for record in records):
            for record in self._declarations.including(entity, key):
                for source in list(record.sources):
                    sources[source] = sources.get(source, False) or record.sources.get(source, (0, 0))[1] > 0
        return Seen(generation, sources)

    def look_for_query(self, source: Neighbour, key: str, target: QueryTarget) -> Seen | None:
        """The same before a query is passed on; None if it is known where it goes."""
        known = self._known_queries.get(source)
        if known is not None and (key, target) in known:
            return None
        return self.look(Entity.QUERYABLE, key)

    def targets(self, source: Neighbour, key: str, seen: Seen | None = None) -> tuple[Face, ...]:
        """Work out who gets data on `key`, which may have wildcards, that comes from `source`."""
        if not self._is_valid(key):
            return ()  # not remembered, so that each is counted
        if seen is None or seen.generation != self.generation:
            # An old look and what is known now do not go together: a neighbour that was in doubt then may have
            # declared since, and would get nothing.
            seen = self.look(Entity.SUBSCRIBER, key)
        found = self._targets(source, key, seen.sources)
        if len(key) <= CACHED_KEY_CHARS:
            known = self.known.setdefault(source.face, {})
            if len(known) >= CACHED_ROUTES:
                known.clear()
            known[key] = found
        return found

    def filters(self, key: str) -> dict[Face, tuple[str, ...]]:
        """Neighbours of whom all subscribers of a key are known, and all have predicates; with these."""
        wanted: dict[Neighbour, list[tuple[str, ...]]] = {}
        for record in self._declarations.intersecting(Entity.SUBSCRIBER, key):
            for source in record.sources:
                wanted.setdefault(source, []).append(record.predicates_of(source))
        found: dict[Face, tuple[str, ...]] = {}
        for neighbour, predicates in wanted.items():
            together = either(predicates)
            if together and not self._in_doubt(neighbour, Kinds.SUBSCRIBERS, key):
                found[neighbour.face] = together
        return found

    def destinations(
        self, source: Neighbour, key: str, target: QueryTarget, seen: Seen | None = None
    ) -> tuple[Neighbour, ...]:
        """Who gets a query on `key` that comes from `source`."""
        known = self._known_queries.setdefault(source, {})
        found = known.get((key, target))
        if found is None:
            if not self._is_valid(key):
                return ()
            if seen is None or seen.generation != self._queryables:
                seen = self.look(Entity.QUERYABLE, key)
            found = self._destinations(source, key, target, seen.sources)
            if len(key) <= CACHED_KEY_CHARS:
                if len(known) >= CACHED_ROUTES:
                    known.clear()
                known[key, target] = found
        return found

    def _targets(self, source: Neighbour, key: str, seen: dict[Neighbour, bool]) -> tuple[Face, ...]:
        found = self._candidates(source, Kinds.SUBSCRIBERS, key, seen)
        return tuple([neighbour.face for neighbour in found])

    def _candidates(self, source: Neighbour, kind: Kinds, key: str, seen: dict[Neighbour, bool]) -> list[Neighbour]:
        """Who has something or may have, the oldest first. What clients do that have nothing costs nothing."""
        found = [neighbour for neighbour in seen if source.passes_to(neighbour)]
        for neighbour in self._north:
            if neighbour not in seen and source.passes_to(neighbour) and self._in_doubt(neighbour, kind, key):
                found.append(neighbour)
        if len(found) > 1:
            found.sort(key=_order)
        return found

    def _destinations(
        self, source: Neighbour, key: str, target: QueryTarget, seen: dict[Neighbour, bool]
    ) -> tuple[Neighbour, ...]:
        complete: dict[Neighbour, bool | None] = {}
        """Each candidate's completeness; None is unknown."""
        for neighbour in self._candidates(source, Kinds.QUERYABLES, key, seen):
            if seen.get(neighbour):
                complete[neighbour] = True
            else:
                complete[neighbour] = None if self._in_doubt(neighbour, Kinds.QUERYABLES, key) else False
        if target is QueryTarget.ALL:
            return tuple(complete)
        if target is QueryTarget.ALL_COMPLETE:
            return tuple(neighbour for neighbour, answers in complete.items() if answers is not False)
        return self._best(complete)

    def _best(self, complete: dict[Neighbour, bool | None]) -> tuple[Neighbour, ...]:
        """In each region the nearest complete candidate or, for want of one, all of them (14.2).

        All candidates of a region are equally near, as long as there are no routers behind routers; the neighbour that
        was there first is taken, so that the choice does not wander.
        """
        chosen: dict[Neighbour, None] = {}
        for bloc in Region:
            candidates = [n for n in complete if n.bloc is bloc]
            nearest = next((n for n in candidates if complete[n]), None)
            chosen.update(dict.fromkeys(candidates if nearest is None else [nearest]))
        return tuple(chosen)

    def _in_doubt(self, neighbour: Neighbour, kind: Kinds, key: str) -> bool:
        """Whether a neighbour must be sent to because we do not know that nobody is there."""
        if neighbour.gateway:
            return not self._upstream.denies(neighbour, kind, key)
        return neighbour.equal and not neighbour.greeted


def _order(neighbour: Neighbour) -> int:
    return neighbour.order
