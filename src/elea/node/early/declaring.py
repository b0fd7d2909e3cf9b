"""What this node declares to another one: resources, publishers and subscribers for what its programs have.

A key expression of 1.x may need several resources (`keys.paths_of`). A path has one id, however many use it. Ids of the
node that opened the session are 2, 6, 10 …, those of the other 4, 8, 12 …, so that one id never means two things. A
profile may have them begin higher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from elea.model.errors import DeclarationRejected
from elea.model.keytext import EARLY, intersects
from elea.node.early.keys import paths_of
from elea.protocol.early.neighbour import Neighbour

__all__ = ["ROOM_BESIDE", "OwnDeclarations"]

ROOM_BESIDE: Final = 12
"""Bytes of a Declare besides the name of a resource: headers, counts, number and id."""

Done = Callable[[DeclarationRejected | None], None]


class _Used:
    """A path that is declared: its id, and how many subscribers and publishers of ours it has."""

    __slots__ = ("id", "publishers", "subscribers")

    def __init__(self, id: int) -> None:
        self.id = id
        self.subscribers = 0
        self.publishers = 0


class OwnDeclarations:
    """Our side of one session; its owner sees to it that one thread at a time is here."""

    def __init__(
        self,
        neighbour: Neighbour,
        *,
        initiates: bool,
        on_change: Callable[[], None],
        on_forget: Callable[[int], None] = lambda id: None,
    ) -> None:
        """Args:
        on_forget: an id is about to be forgotten.
        """
        self.rejected = 0
        """Transactions that the other node refused."""
        self.inexpressible = 0
        """Keys that the dialect has no names for, or none that fits a packet."""
        self._neighbour = neighbour
        self._generation = neighbour.session.generation
        self._paths: dict[str, _Used] = {}
        self._subscribed: dict[int | str, list[str]] = {}
        self._published: dict[int | str, list[str]] = {}
        self._next = neighbour.session.profile.ids_above + (2 if initiates else 4)
        self._on_change = on_change
        self._on_forget = on_forget

    def id_of(self, path: str) -> int | None:
        """The id of a path of ours."""
        used = self._paths.get(path)
        return None if used is None else used.id

    def is_copy(self, id: int, key: str) -> bool:
        """Whether a sample that came for subscriber `id` has come for one with a smaller id, too."""
        if not any(used.id == id and used.subscribers for used in self._paths.values()):
            return False
        taking = [used.id for path, used in self._paths.items() if used.subscribers and intersects(EARLY + path, key)]
        return bool(taking) and id != min(taking)

    def subscribe(self, number: int | str, key: str, done: Done = lambda error: None) -> bool:
        """Declare subscriber `number`; False if that cannot be said."""
        return self._declare(self._subscribed, number, key, done)

    def publish(self, number: int | str, key: str, done: Done = lambda error: None) -> bool:
        """Declare publisher `number`; False if that cannot be said."""
        return self._declare(self._published, number, key, done)

    def _declare(self, table: dict[int | str, list[str]], number: int | str, key: str, done: Done) -> bool:
        m = self._generation.messages
        paths = paths_of(key)
        room = self._neighbour.room
        if not paths or any(len(self._name(path)) + ROOM_BESIDE > room for path in paths):
            self.inexpressible += 1
            return False
        listed: list[Any] = []
        for path in paths:
            used = self._paths.get(path)
            if used is None:
                used = self._paths[path] = _Used(self._next)
                self._next += 4
                listed.append(m.ResourceDecl(used.id, self._name(path)))
            if table is self._subscribed:
                used.subscribers += 1
                if used.subscribers == 1:
                    listed.append(m.SubscriberDecl(used.id, m.SubscriptionModeId.PushModeId))
            else:
                used.publishers += 1
                if used.publishers == 1:
                    listed.append(m.PublisherDecl(used.id))
        table[number] = paths
        self._say(listed, done)
        return True

    def unsubscribe(self, number: int | str) -> None:
        """Subscriber `number` is gone."""
        self._forget(self._subscribed, number)

    def unpublish(self, number: int | str) -> None:
        """Publisher `number` is gone."""
        self._forget(self._published, number)

    def _forget(self, table: dict[int | str, list[str]], number: int | str) -> None:
        m = self._generation.messages
        listed: list[Any] = []
        for path in table.pop(number, ()):
            used = self._paths[path]
            if table is self._subscribed:
                used.subscribers -= 1
                if not used.subscribers:
                    listed.append(m.ForgetSubscriberDecl(used.id))
            else:
                used.publishers -= 1
                if not used.publishers:
                    listed.append(m.ForgetPublisherDecl(used.id))
            if not used.subscribers and not used.publishers:
                listed.append(m.ForgetResourceDecl(used.id))
                del self._paths[path]
                self._on_forget(used.id)  # before it is said: what comes behind is not understood
        self._say(listed, lambda error: None)

    def _say(self, listed: list[Any], done: Done) -> None:
        if not listed:
            done(None)
            return

        def told(error: DeclarationRejected | None) -> None:
            self.rejected += error is not None
            self._on_change()
            done(error)

        self._neighbour.declare(listed, told)

    def _name(self, path: str) -> bytes:
        return f"{self._neighbour.session.prefix}{path}".encode()
