"""A namespace: a key that stands before every key a session uses, and that the program never sees.

What the session declares, puts, asks and answers gets it; what arrives loses it, and what is outside does not arrive.
The node itself, its admin space, its storages and its links know whole keys only.
"""

from __future__ import annotations

from elea.model import keyexpr
from elea.model.keyexpr import KeyExpr

__all__ = ["Namespace"]


class Namespace:
    """The keys of one session, as it says them and as others do.

    >>> space = Namespace("fleet/7")
    >>> space.whole("temp/*"), space.own("fleet/7/temp/in"), space.own("fleet/8/temp/in")
    ('fleet/7/temp/*', 'temp/in', None)
    """

    __slots__ = ("_chunks", "_prefix", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._prefix = f"{key}/"
        self._chunks = key.split("/")

    def whole(self, key: str) -> str:
        """A key of the session as others know it."""
        return self._prefix + key

    def own(self, key: str) -> str | None:
        """A key of others as the session knows it, wildcards too; None if it is outside.

        As in eclipse-zenoh, of several answers the longest is given: what is in `a/**` is in `**` of namespace `a/b`.
        """
        if key.startswith(self._prefix):
            return key[len(self._prefix) :]
        if "*" not in key:
            return None
        chunks = key.split("/")
        for at, chunk in enumerate(self._chunks):
            if at == len(chunks):
                return None
            if chunks[at] == "**":
                return "/".join(chunks[at:])
            if not keyexpr.intersects(chunks[at], chunk):
                return None
        return "/".join(chunks[len(self._chunks) :]) or None

    def own_expr(self, key: KeyExpr) -> KeyExpr | None:
        """The same for a value."""
        found = self.own(str(key))
        return None if found is None else KeyExpr(found)
