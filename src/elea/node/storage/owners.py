"""Whose a cursor or a writer of batches is: that of the user who used its name first, and of nobody else.

A name that no user has used is everybody's, as all are where nobody proves who he is. Owners are notes of the log, so
that they outlive a restart.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.model.errors import LimitReached, NotOwner

if TYPE_CHECKING:
    from elea.node.storage.storequery import StoreQuery
    from elea.store import Log

__all__ = ["Owners", "user_of"]

NOTE: Final = "owner:"


def user_of(asking: StoreQuery) -> str | None:
    """Who asks: a user, or the name of a certificate; None if it is proved by nothing."""
    face = asking.asker()
    if face is None:
        return None
    subject = face.subject
    return f"user {subject.user}" if subject.user is not None else _certificate(subject.certificate)


def _certificate(name: str | None) -> str | None:
    return None if name is None else f"certificate {name}"


class Owners:
    """Owners of the names of one kind in a log."""

    def __init__(self, log: Log, kind: str, limit: str, most: int) -> None:
        self._log = log
        self._kind = kind
        self._limit = limit
        self._most = most
        self._lock = threading.Lock()
        before = f"{NOTE}{kind}:"
        self._known = {
            name.removeprefix(before): owner for name, owner in log.notes().items() if name.startswith(before)
        }

    def check(self, name: str, user: str | None) -> None:
        """Refuse a name that is somebody else's.

        Raises:
            NotOwner: it is.
        """
        owner = self._known.get(name)
        if owner is not None and owner != user:
            raise NotOwner(self._kind, name)

    def claim(self, name: str, user: str | None) -> None:
        """The same, and from now on it is this user's.

        Raises:
            NotOwner: it is somebody else's.
            LimitReached: the user has as many as one may.
        """
        with self._lock:
            self.check(name, user)
            if user is None or name in self._known:
                return
            if sum(owner == user for owner in self._known.values()) >= self._most:
                raise LimitReached(self._limit, self._most)
            self._log.put_note(f"{NOTE}{self._kind}:{name}", user)
            self._known[name] = user

    def of(self, user: str) -> set[str]:
        """The names that are a user's."""
        return {name for name, owner in list(self._known.items()) if owner == user}

    def forget(self, name: str) -> None:
        """A name is nobody's any more."""
        with self._lock:
            if self._known.pop(name, None) is not None:
                self._log.drop_note(f"{NOTE}{self._kind}:{name}")
