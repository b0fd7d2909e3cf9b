"""Where data and queries go, remembered as long as the declarations stay.

Spec: zenoh-1 sections 13.1 to 13.4 (data), 14.2 (queries).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from elea.model import keyexpr
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.model.qos import QueryTarget
from elea.space.entities import Declarations, Record
from elea.space.face import Entity, Face, Kinds, Region
from elea.space.neighbour import Neighbour
from elea.space.upstream import Upstream

__all__ = ["CACHED_KEY_CHARS", "CACHED_ROUTES", "Routes"]


class Routes:
    """Works out who gets what from whom."""

    def __init__(
        self,
        declarations: Declarations,
        upstream: Upstream,
        neighbours: Collection[Neighbour],
        *,
        is_valid: Callable[[str], bool],
    ) -> None:
        self._declarations = declarations
        self._upstream = upstream
        self._neighbours = neighbours
        self._is_valid = is_valid
        self.generation = 0
        """Changes whenever data may go elsewhere than before."""
        self.known: dict[Face, dict[str, tuple[Face, ...]]] = {}
        """What `targets` has found, by source; the space looks here first."""
        self._known_queries: dict[Neighbour, dict[tuple[str, QueryTarget], tuple[Neighbour, ...]]] = {}

    def changed(self, entity: Entity | None = None) -> None:
        """Routes to an entity of this kind, or all, may have changed."""
        if entity in (None, Entity.SUBSCRIBER):
            self.generation += 1
            self.known.clear()
        if entity in (None, Entity.QUERYABLE):
            self._known_queries.clear()

    def targets(self, source: Neighbour, key: str) -> tuple[Face, ...]:
        """Work out who gets data on `key`, which may have wildcards, that comes from `source`."""
        if not self._is_valid(key):
            return ()  # not remembered, so that each is counted
        found = self._targets(source, key)
        if len(key) <= CACHED_KEY_CHARS:
            known = self.known.setdefault(source.face, {})
            if len(known) >= CACHED_ROUTES:
                known.clear()
            known[key] = found
        return found

    def destinations(self, source: Neighbour, key: str, target: QueryTarget) -> tuple[Neighbour, ...]:
        """Who gets a query on `key` that comes from `source`."""
        known = self._known_queries.setdefault(source, {})
        found = known.get((key, target))
        if found is None:
            if not self._is_valid(key):
                return ()
            found = self._destinations(source, key, target)
            if len(key) <= CACHED_KEY_CHARS:
                if len(known) >= CACHED_ROUTES:
                    known.clear()
                known[key, target] = found
        return found

    def _targets(self, source: Neighbour, key: str) -> tuple[Face, ...]:
        records = self._declarations.intersecting(Entity.SUBSCRIBER, key)
        found = dict.fromkeys(s.face for record in records for s in record.sources if source.passes_to(s))
        for neighbour in self._neighbours:
            if source.passes_to(neighbour) and self._in_doubt(neighbour, Kinds.SUBSCRIBERS, key):
                found[neighbour.face] = None
        return tuple(found)

    def _destinations(self, source: Neighbour, key: str, target: QueryTarget) -> tuple[Neighbour, ...]:
        complete: dict[Neighbour, bool | None] = {}
        """Each candidate's completeness; None is unknown."""
        for record in self._declarations.intersecting(Entity.QUERYABLE, key):
            for neighbour in record.sources:
                if source.passes_to(neighbour):
                    complete[neighbour] = complete.get(neighbour) or _answers_fully(record, neighbour, key)
        for neighbour in self._neighbours:
            if source.passes_to(neighbour) and not complete.get(neighbour):
                if self._in_doubt(neighbour, Kinds.QUERYABLES, key):
                    complete[neighbour] = None
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
            candidates = [n for n in self._neighbours if n.bloc is bloc and n in complete]
            nearest = next((n for n in candidates if complete[n]), None)
            chosen.update(dict.fromkeys(candidates if nearest is None else [nearest]))
        return tuple(chosen)

    def _in_doubt(self, neighbour: Neighbour, kind: Kinds, key: str) -> bool:
        """Whether a neighbour must be sent to because we do not know that nobody is there."""
        if neighbour.gateway:
            return not self._upstream.denies(neighbour, kind, key)
        return neighbour.equal and not neighbour.greeted


def _answers_fully(record: Record, neighbour: Neighbour, key: str) -> bool:
    return record.sources[neighbour][1] > 0 and keyexpr.includes(record.key, key)
