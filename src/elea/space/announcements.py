"""Whom we tell of what, and when.

North neighbours are told everything they may hear; the others what they have asked for. However many sources a key
has, it is one declaration per neighbour: made with the first, withdrawn with the last. Spec: zenoh-1 sections 9.3,
13.1 to 13.4, 15, 17.5.
"""

from __future__ import annotations

from collections.abc import Collection

from elea.space.entities import Declarations, Record, either
from elea.space.face import Declare, Entity, Final, InterestMode, Undeclare
from elea.space.interests import Asked, Interests
from elea.space.neighbour import Neighbour

__all__ = ["Announcements"]


class Announcements:
    """Keeps every neighbour's picture of the declarations as it should be."""

    def __init__(self, declarations: Declarations, interests: Interests, north: Collection[Neighbour]) -> None:
        self._declarations = declarations
        self._interests = interests
        self._north = north
        self._told: dict[Neighbour, dict[int, Record | Asked]] = {}

    # -- declarations change ---------------------------------------------------------------------------------

    def spread(self, record: Record, source: Neighbour, *, grown: bool) -> None:
        """A record has changed by a declaration (`grown`) or an undeclaration of `source`: tell whom it concerns."""
        for neighbour in self._north:
            self._refresh(neighbour, record, True)
        matching = self._interests.matching(record.entity, record.key)
        asking = {a.neighbour: None for a in matching if a.live and not a.aggregates(record.entity)}
        for neighbour in list(record.told):
            if not neighbour.north:
                self._refresh(neighbour, record, neighbour in asking)
                asking.pop(neighbour, None)
        for neighbour in asking:
            if not record.heard_by(neighbour):
                self._bury(neighbour, record, source)
            elif grown:  # one source fewer is no news to who was never told of the others, older than its question
                self._declare(neighbour, record, None)
        for asked in matching:
            if asked.aggregates(record.entity) and not _stands(asked, record):
                self._sum_up(asked, record.entity, None)

    def spread_unknown_loss(self, key: str, source: Neighbour) -> None:
        """A token we were never told of is gone, says our gateway: so it does to us, we do to those who asked."""
        record = self._declarations.find(Entity.TOKEN, key) or Record(Entity.TOKEN, key)
        for neighbour in {a.neighbour: None for a in self._interests.matching(Entity.TOKEN, key) if a.live}:
            if not record.heard_by(neighbour):
                self._bury(neighbour, record, source)

    def _bury(self, neighbour: Neighbour, record: Record, source: Neighbour) -> None:
        """The end of a token never declared to someone who waits for the ends of tokens (9.3: id 0 and the key)."""
        is_told = source.is_heard_by(neighbour, Entity.TOKEN) and neighbour.may_hear(Entity.TOKEN, record.key)
        if record.entity is Entity.TOKEN and is_told:
            neighbour.send(Undeclare(Entity.TOKEN, 0, record.key))

    def _refresh(self, neighbour: Neighbour, record: Record, wanted: bool) -> None:
        """Bring a neighbour's picture of one record up to date; new things only if it wants them."""
        told = record.told.get(neighbour)
        if not record.heard_by(neighbour):
            if told is not None:
                self._withdraw(neighbour, record, told[0])
        elif wanted and (
            told is None
            or told[1] != record.complete_for(neighbour)
            or ((told[2] or record.filters) and told[2] != record.predicates_for(neighbour))
        ):
            self._declare(neighbour, record, None)

    def _declare(self, neighbour: Neighbour, record: Record, interest_id: int | None) -> None:
        """Declare a record, for the first time or again: the id stays the same."""
        complete = record.complete_for(neighbour)
        told = record.told.get(neighbour)
        number = told[0] if told is not None else self._number(neighbour, record)
        predicates = record.predicates_for(neighbour)
        record.told[neighbour] = (number, complete, predicates)
        sent = 0 if neighbour.sourced else number
        neighbour.send(
            Declare(record.entity, sent, record.key, complete, interest_id=interest_id, predicates=predicates)
        )

    def _withdraw(self, neighbour: Neighbour, record: Record, number: int) -> None:
        del record.told[neighbour]
        del self._told[neighbour][number]
        if neighbour.sourced:
            neighbour.send(Undeclare(record.entity, 0, record.key))
        else:
            neighbour.send(Undeclare(record.entity, number))

    def _number(self, neighbour: Neighbour, what: Record | Asked) -> int:
        told = self._told.setdefault(neighbour, {})
        number = neighbour.told_ids.fresh(told)
        told[number] = what
        return number

    # -- interests -------------------------------------------------------------------------------------------

    def answer(self, asked: Asked) -> None:
        """Declare what exists now, as far as we know, for the current part of an interest."""
        for entity in Entity:
            if not asked.asks_for(entity):
                continue
            if asked.aggregates(entity):
                self._sum_up(asked, entity, asked.id)
                continue
            for record in self._declarations.intersecting(entity, asked.key):
                self.answer_with(asked, record)

    def answer_with(self, asked: Asked, record: Record) -> None:
        """Declare one record for the current part of an interest, unless that was done."""
        entity, neighbour = record.entity, asked.neighbour
        if asked.aggregates(entity):
            self._sum_up(asked, entity, asked.id)
        elif (entity, record.key) not in asked.answered and record.heard_by(neighbour):
            asked.answered.add((entity, record.key))
            if asked.mode is InterestMode.CURRENT:
                # Nothing follows such an answer, so it needs no id (9.3).
                neighbour.send(Declare(entity, 0, record.key, record.complete_for(neighbour), interest_id=asked.id))
            else:
                self._declare(neighbour, record, asked.id)

    def finish(self, asked: Asked) -> None:
        """Say that the current part is answered."""
        asked.answered.clear()
        asked.neighbour.send(Final(asked.id))

    def _sum_up(self, asked: Asked, entity: Entity, interest_id: int | None) -> None:
        """Bring the one declaration up to date that stands for all matches of an aggregate interest."""
        neighbour, key = asked.neighbour, asked.key
        assert key is not None
        heard = [r for r in self._declarations.intersecting(entity, key) if r.heard_by(neighbour, key)]
        standing = asked.summary.get(entity)
        if not heard:
            if standing is not None:
                del asked.summary[entity]
                del self._told[neighbour][standing[0]]
                neighbour.send(Undeclare(entity, standing[0]))
                if not asked.live and not asked.summary:
                    self._interests.forget(asked)
            return
        complete = any(record.complete for record in heard) and any(
            record.complete_for(neighbour) for record in self._declarations.including(entity, key)
        )
        predicates: tuple[str, ...] = ()
        if all(record.filters for record in heard):
            predicates = either(record.predicates_for(neighbour) for record in heard)
        if not asked.live or (standing is not None and standing[1:] == (complete, predicates)):
            return
        number = standing[0] if standing is not None else self._number(neighbour, asked)
        asked.summary[entity] = (number, complete, predicates)
        neighbour.send(Declare(entity, number, key, complete, interest_id=interest_id, predicates=predicates))

    # -- neighbours come and go ------------------------------------------------------------------------------

    def introduce(self, neighbour: Neighbour) -> None:
        """Tell a new north neighbour all it may hear: subscribers, then queryables, then tokens (13.1)."""
        for entity in Entity:
            for record in self._declarations.all(entity):
                self._refresh(neighbour, record, True)

    def judge_again(self) -> None:
        """Rules have changed: withdraw what somebody may not be told any more, tell what it may be told now."""
        for entity in Entity:
            for record in self._declarations.all(entity):
                for neighbour in (*self._north, *list(record.told)):
                    self._refresh(neighbour, record, True)
        for asked in self._interests.standing():
            for entity in Entity:
                if asked.aggregates(entity):
                    self._sum_up(asked, entity, None)
                elif asked.asks_for(entity):
                    for record in self._declarations.intersecting(entity, asked.key):
                        self._refresh(asked.neighbour, record, True)

    def drop(self, neighbour: Neighbour) -> None:
        """Forget what a neighbour was told."""
        for what in self._told.pop(neighbour, {}).values():
            if isinstance(what, Record):
                what.told.pop(neighbour, None)


def _stands(asked: Asked, record: Record) -> bool:
    """Whether a summary is right as it was, whatever else there is: who asks often must not cost a look at all."""
    standing = asked.summary.get(record.entity)
    if standing is None or not record.heard_by(asked.neighbour, asked.key):
        return False
    return not standing[1] and not standing[2] and not record.complete_for(asked.neighbour)
