"""What our neighbours want to be told of.

Spec: zenoh-1 section 9.3. Answering is the business of `announcements`, asking others that of `upstream`.
"""

from __future__ import annotations

from typing import Final

from elea.model.limits import MAX_INTERESTS
from elea.space.face import Entity, Interest, InterestMode, Kinds
from elea.space.keytree import KeyTree
from elea.space.neighbour import Neighbour

__all__ = ["KIND_OF", "Asked", "Interests"]

KIND_OF: Final = {
    Entity.SUBSCRIBER: Kinds.SUBSCRIBERS,
    Entity.QUERYABLE: Kinds.QUERYABLES,
    Entity.TOKEN: Kinds.TOKENS,
}


class Asked:
    """One interest of a neighbour."""

    __slots__ = ("aggregate", "answered", "id", "key", "kinds", "live", "mode", "neighbour", "summary", "waiting")

    def __init__(self, neighbour: Neighbour, message: Interest) -> None:
        self.neighbour = neighbour
        self.id = message.id
        self.mode = message.mode
        self.kinds = message.kinds
        self.key = message.key
        self.aggregate = message.aggregate
        self.live = True
        self.waiting = 0
        """How many gateways have yet to say that they told us all."""
        self.answered: set[tuple[Entity, str]] = set()
        """What was declared for the current part; needed only while it is open."""
        self.summary: dict[Entity, tuple[int, bool, tuple[str, ...]]] = {}
        """Of an aggregate: the id, completeness and predicates with which its key stands declared."""

    @property
    def current(self) -> bool:
        """Whether it asks for what exists now."""
        return bool(self.mode & InterestMode.CURRENT)

    @property
    def future(self) -> bool:
        """Whether it asks for what comes."""
        return bool(self.mode & InterestMode.FUTURE)

    def asks_for(self, entity: Entity) -> bool:
        """Whether entities of this kind are asked for."""
        return bool(self.kinds & KIND_OF[entity])

    def aggregates(self, entity: Entity) -> bool:
        """Whether all matching entities are to be answered as one, on the interest's own key."""
        return self.aggregate and entity is not Entity.TOKEN


class Interests:
    """The standing interests of all neighbours, by neighbour and by key."""

    def __init__(self) -> None:
        self._by_id: dict[Neighbour, dict[int, Asked]] = {}
        self._by_key: KeyTree[list[Asked]] = KeyTree()
        self._unrestricted: list[Asked] = []

    def add(self, asked: Asked) -> None:
        """Take an interest in, also one without a future part as long as it is not answered.

        Raises:
            LimitReached: the neighbour has as many as any may.
        """
        asked.neighbour.remember(asked.key or "", asked.neighbour.interests, "MAX_INTERESTS", MAX_INTERESTS)
        asked.neighbour.interests += 1
        self._by_id.setdefault(asked.neighbour, {})[asked.id] = asked
        if asked.future:
            self._list_of(asked.key).append(asked)

    def find(self, neighbour: Neighbour, interest_id: int) -> Asked | None:
        """The neighbour's interest of that id."""
        return self._by_id.get(neighbour, {}).get(interest_id)

    def end(self, asked: Asked) -> None:
        """The neighbour wants no more. A summary that stands is kept until there is nothing to sum up (9.3)."""
        asked.live = False
        del self._by_id[asked.neighbour][asked.id]
        if not asked.summary:
            self.forget(asked)

    def forget(self, asked: Asked) -> None:
        """Take out of the index an interest that has ended."""
        asked.neighbour.interests -= 1
        asked.neighbour.forget(asked.key or "")
        if not asked.future:
            return
        listed = self._list_of(asked.key)
        listed.remove(asked)
        if not listed and asked.key is not None:
            self._by_key.remove(asked.key)

    def drop(self, neighbour: Neighbour) -> list[Asked]:
        """Forget a neighbour; returns the interests it had."""
        gone = list(self._by_id.pop(neighbour, {}).values())
        ended = [asked for asked in self._listed() if asked.neighbour is neighbour and not asked.live]
        for asked in (*gone, *ended):
            asked.live = False
            self.forget(asked)
        return gone

    def matching(self, entity: Entity, key: str) -> list[Asked]:
        """The interests with a future part that ask for such an entity; ended ones among them keep a summary."""
        groups = [*self._by_key.intersecting(key), self._unrestricted]
        return [asked for group in groups for asked in group if asked.asks_for(entity)]

    def standing(self) -> list[Asked]:
        """Every live interest with a future part, in the order they came, by neighbour."""
        return [asked for held in self._by_id.values() for asked in held.values() if asked.future]

    def _listed(self) -> list[Asked]:
        return [asked for group in (*self._by_key, self._unrestricted) for asked in group]

    def _list_of(self, key: str | None) -> list[Asked]:
        if key is None:
            return self._unrestricted
        group = self._by_key.get(key)
        if group is None:
            group = []
            self._by_key.add(key, group)
        return group
