"""Whether somebody elsewhere takes what a neighbour publishes, and what it is told of that. Spec: Z18-DAT-01."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.node.early.keys import pattern_of
from elea.protocol.early.names import Subject
from elea.space.face import Declare, Interest, InterestDone, InterestMode, Kinds, Undeclare

if TYPE_CHECKING:
    from elea.node.early.face import EarlyFace

__all__ = ["Wanted"]


class Wanted:
    """Publishers of one neighbour: an interest of the space stands for all that publish the same."""

    def __init__(self, face: EarlyFace) -> None:
        self._face = face
        self._keys: dict[tuple[int, int], str] = {}
        self._interests: dict[str, tuple[int, int]] = {}  # by key: number, and for how many publishers
        self._next = 0
        self._told: dict[int, str] = {}
        self.keys: set[str] = set()
        """What somebody takes."""

    def __call__(self, space: int, subject: Subject) -> bool:
        return pattern_of(space, subject) in self.keys

    def published(self, space: int, id: int, subject: Subject) -> None:
        """A publisher is there: ask the space who takes it."""
        key = pattern_of(space, subject)
        if self._face.is_north or self._keys.get((space, id)) == key:
            return  # a peer tells of its subscribers by itself
        self._keys[space, id] = key
        number, count = self._interests.get(key, (0, 0))
        if not count:
            self._next += 1
            number = self._next
        self._interests[key] = (number, count + 1)
        if not count:
            ask = Interest(number, InterestMode.CURRENT_FUTURE, Kinds.SUBSCRIBERS, key, aggregate=True)
            self._face.node.control(self._face, ask)
        self._face.machine.announce()

    def unpublished(self, space: int, id: int) -> None:
        """A publisher is gone."""
        key = self._keys.pop((space, id), None)
        if key is None:
            return
        number, count = self._interests[key]
        if count > 1:
            self._interests[key] = (number, count - 1)
            return
        del self._interests[key]
        self._face.node.control(self._face, InterestDone(number))
        self.keys.discard(key)
        self._face.machine.announce()

    def told(self, message: Declare) -> None:
        """The space says that somebody takes something; it is locked."""
        self._told[message.id] = message.key
        self.keys.add(message.key)
        self._face.node.later(self._face.machine.announce)

    def untold(self, message: Undeclare) -> None:
        """Nobody does any more."""
        key = self._told.pop(message.id, None)
        if key is not None and key not in self._told.values():
            self.keys.discard(key)
            self._face.node.later(self._face.machine.announce)
