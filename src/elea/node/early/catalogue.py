"""What nodes of the early dialects have said of resources: tags, properties, names. One for a whole node.

A sample in the common space has no tags, and its key none either. So a node remembers, by key, what the latest
declaration or write said (Z18-DUR-05).
Spec: zenoh-2018 §5.16.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from elea.model.limits import EARLY_TAGS, EARLY_TAGS_OCTETS
from elea.model.qos import Durability
from elea.protocol.early.numbered import vle

__all__ = ["Catalogue", "Known"]


class Known(NamedTuple):
    """What was said of a resource last."""

    tags: tuple[str, ...]
    durability: Durability
    properties: bytes
    """As `X/property` gives them: `[Property]`, serialised."""


class Catalogue:
    """Resources by key; the one that was spoken of least recently gives way."""

    def __init__(self, limit: int = EARLY_TAGS) -> None:
        self.version = 0
        """Changes whenever something else is known of a resource."""
        self.forgotten = 0
        """Resources that gave way."""
        self._limit = limit
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._octets = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def declared(
        self, key: str, tags: tuple[str, ...], durability: Durability, properties: Sequence[Any] | None
    ) -> None:
        """A resource was declared."""
        self._set(key, Known(tags, durability, serialised(properties)))

    def written(self, key: str, tags: tuple[str, ...], durability: Durability) -> None:
        """A sample was written by name: its tags count from now on, properties stay."""
        known = self._known.get(key)
        if known is None or known.tags != tags or known.durability is not durability:
            self._set(key, Known(tags, durability, b"\0" if known is None else known.properties))

    def _set(self, key: str, known: Known) -> None:
        with self._lock:
            before = self._known.pop(key, None)
            if before is not None:
                self._octets -= _octets(key, before)
            self._known[key] = known
            self.version += 1
            self._octets += _octets(key, known)
            while len(self._known) > self._limit or self._octets > EARLY_TAGS_OCTETS:
                self._octets -= _octets(*self._known.popitem(last=False))
                self.forgotten += 1

    def get(self, key: str) -> Known | None:
        """What is known of a key."""
        return self._known.get(key)

    def names(self) -> list[str]:
        """All keys."""
        with self._lock:
            return list(self._known)


def _octets(key: str, known: Known) -> int:
    return len(key) + len(known.properties) + sum(map(len, known.tags))


def children(path: str, names: Iterable[str]) -> list[str]:
    """The names right below a path, of those that are known.

    >>> children("a", ["a/b", "a/c/d", "a/c/e", "ab/c", "a"])
    ['a/b', 'a/c']
    """
    below = f"{path}/"
    return sorted({below + name[len(below) :].split("/")[0] for name in names if name.startswith(below)})


def serialised(properties: Sequence[Any] | None) -> bytes:
    """Properties as `[Property]`."""
    listed = properties or ()
    return vle(len(listed)) + b"".join(vle(one.id) + vle(len(one.value)) + one.value for one in listed)
