"""Resources of the early dialects as keys of the common space, and back.

    zenoh://a/b, xrce://a/b         a/b                     the same key in both dialects and in 1.x
    zenoh://a/b?                    zenoh://a/b?            a pattern: the space compares it exactly
    zenoh:///T                      @empty/T                an empty first name (DEC-32)
    zenoh://a/b in space 7          @early/space/7/a/b      spaces are tenants (Z18-RSP-02)
    id 6, never named               @early/id/0/6           a resource without a name (DEC-30)

Chunks that begin with `@` are met by no wildcard of 1.x, so nobody gets these by accident. Tags are no part of a key:
identity is the path (Z18-DUR-05). Every early name has a key. Keys of 1.x that have other characters than those of
Z18-RES-02 have no name.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

from elea.model.errors import InvalidResource
from elea.model.keytext import EARLY
from elea.model.limits import CACHED_KEY_CHARS
from elea.model.resource import ZENOH_SCHEME, Resource, Selection
from elea.protocol.early.names import Subject

__all__ = ["RESERVED", "key_of", "paths_of", "pattern_of", "place_of"]

EMPTY: Final = "@empty"
RESERVED: Final = "@early/"
"""How keys begin that no other space, and no node that uses names, is to see."""

MOST_DOUBLE: Final = 4
"""Double wildcards of one 1.x expression that are told one by one: each may also stand for nothing, so 16 resources."""


def key_of(space: int, subject: Resource | int) -> str:
    """The key of the samples of one resource."""
    if isinstance(subject, int):
        return f"{RESERVED}id/{space}/{subject}"
    path = EMPTY + subject.path if subject.path.startswith("/") else subject.path
    return path if space <= 1 else f"{RESERVED}space/{space}/{path}"


def pattern_of(space: int, subject: Subject) -> str:
    """What a publisher or subscriber of something is in the space: a key, or a pattern."""
    if isinstance(subject, Selection):
        subject = subject.resource
    key = key_of(space, subject)
    return key if isinstance(subject, int) or subject.trivial else EARLY + key


def place_of(key: str) -> tuple[int, Resource | int] | None:
    """Where the samples of a key belong: resource space, and resource or id; None if no early name says it."""
    return _short_place_of(key) if len(key) <= CACHED_KEY_CHARS else _place_of(key)


@lru_cache(maxsize=4096)
def _short_place_of(key: str) -> tuple[int, Resource | int] | None:
    return _place_of(key)


def _place_of(key: str) -> tuple[int, Resource | int] | None:
    space = 0
    path = key
    if key.startswith(RESERVED):
        kind, _, rest = key[len(RESERVED) :].partition("/")
        number, _, path = rest.partition("/")
        if kind not in ("id", "space") or not number.isdecimal() or not path:
            return None
        space = int(number)
        if kind == "id":
            return (space, int(path)) if path.isdecimal() else None
    if path.startswith(f"{EMPTY}/"):
        path = path[len(EMPTY) :]
    try:
        resource = Resource.parse(ZENOH_SCHEME + path)
    except InvalidResource:
        return None
    return (space, resource) if resource.trivial and not resource.tags and not resource.meta else None


def paths_of(key: str) -> list[str]:
    """The early paths that together have every key of a 1.x expression, or of an early pattern; none if none can.

    A `**` of 1.x may stand for nothing, an early one not with the slashes around it; so there are several. Beyond
    `MOST_DOUBLE` of them, one path has all keys, and more; where samples go here is decided with the expression itself.

    >>> paths_of("a/**/b"), paths_of("a/$*x"), paths_of("zenoh://a/b?"), paths_of("a b")
    (['a/**/b', 'a/b'], ['a/*x'], ['a/b?'], [])
    """
    if key.startswith(EARLY):
        found = [key[len(EARLY) :]]
    else:
        chunks = [chunk if chunk == "**" else chunk.replace("$*", "*") for chunk in key.split("/")]
        if chunks.count("**") > MOST_DOUBLE:
            first = chunks.index("**")
            found = ["/".join(chunks[:first]) + "**" if first else "**"]
        else:
            choices = [("**", "") if chunk == "**" else (chunk,) for chunk in chunks]
            found = ["/".join(filter(None, chosen)) for chosen in product(*choices)]
    return [path for path in dict.fromkeys(found) if path and _is_path(path)]


def _is_path(path: str) -> bool:
    try:
        Resource.parse(ZENOH_SCHEME + path)
    except InvalidResource:
        return False
    return not path.startswith(RESERVED)
