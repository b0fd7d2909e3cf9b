"""Patterns: the one notion of a set of keys that the space holds, whichever grammar it was written in.

The 1.x wildcards work on chunks, the early ones on characters; a key is a plain text in both (`zenoh://a/b`
is the key `a/b`), so two patterns of different kinds intersect or include each other as sets of texts,
exactly. Spec: design.md section 2, zenoh-1.md section 11, zenoh-2018.md Z18-RES-03.

# Spec: the keys considered are those that some dialect can name: non-empty chunks parted by single slashes,
# no slash at the end, and only the first chunk possibly empty (DEC-32). `zenoh:///T` is the key `/T`, which
# no 1.x pattern has.
# Spec: the verbatim rule binds 1.x wildcards only: `zenoh://**` has the key `@/x`, the 1.x `**` has not. A
# character is one Unicode character, so the early `?` has `é`, although an early path can be written in ASCII
# only.
"""

from __future__ import annotations

from enum import Enum

from elea.model import keyexpr
from elea.model.errors import LimitReached
from elea.model.globs import CACHED_CHARS, Glob, compile_characters, compile_chunks, globs_intersect
from elea.model.globsearch import find_counterexample, find_witness
from elea.model.keyexpr import KeyExpr
from elea.model.resource import Resource, Selection
from elea.model.values import value_class

__all__ = ["Pattern", "PatternKind"]


class PatternKind(Enum):
    """What the wildcards of a pattern work on."""

    CHUNKS = "chunks"
    CHARACTERS = "characters"


@value_class
class Pattern:
    """A set of keys, written in one of the two grammars.

    >>> Pattern.of("a/*").intersects(Pattern.of(Resource.parse("zenoh://a/b?")))
    True
    >>> Pattern.of("**").intersects(Pattern.of(Resource.parse("zenoh://@x/*")))
    False
    """

    # Compiled once, for one that is kept: a space compares each key with thousands of them.
    __slots__ = ("_compiled",)

    text: str
    kind: PatternKind = PatternKind.CHUNKS

    @classmethod
    def of(cls, source: KeyExpr | Resource | Selection | str) -> Pattern:
        """The pattern of a key expression (as which a text is taken), or of the path of a resource."""
        if isinstance(source, Selection):
            source = source.resource
        if isinstance(source, Resource):
            return cls(source.path, PatternKind.CHARACTERS)
        if isinstance(source, str):
            keyexpr.check(source)
        return cls(str(source))

    @property
    def concrete(self) -> bool:
        """Whether the pattern has no wildcard and so is one key."""
        return "*" not in self.text and (self.kind is PatternKind.CHUNKS or "?" not in self.text)

    def matches(self, key: str) -> bool:
        """Whether the key, given as text, belongs to the set."""
        if self.concrete:
            return self.text == key
        if self.kind is PatternKind.CHUNKS:
            is_key = key[:1] not in ("", "/") and key[-1] != "/" and "//" not in key
            return is_key and keyexpr.includes(self.text, key)
        glob = self._glob()
        places = glob.read(glob.start, "/")
        for char in key:
            places = glob.read(places, char)
            if not places:
                return False
        return places & glob.end != 0

    def intersects(self, other: Pattern) -> bool:
        """Whether some key belongs to both."""
        if other.concrete:
            return self.matches(other.text)
        if self.concrete:
            return other.matches(self.text)
        if self.kind is PatternKind.CHUNKS and other.kind is PatternKind.CHUNKS:
            return keyexpr.intersects(self.text, other.text)
        return globs_intersect(self._glob(), other._glob())

    def includes(self, other: Pattern) -> bool:
        """Whether every key of the other belongs to this one.

        Exact, with two exceptions on the careful side: between two 1.x patterns the rule of the network holds
        (see `keyexpr.includes`), and pairs written to need exponentially many steps are answered no.
        """
        if other.concrete:
            return self.matches(other.text)
        if self.kind is PatternKind.CHUNKS and other.kind is PatternKind.CHUNKS:
            return keyexpr.includes(self.text, other.text)
        try:
            return self.missing(other) is None
        except LimitReached:
            return False

    def witness(self, other: Pattern) -> str | None:
        """A shortest key that belongs to both, or `None`."""
        return find_witness(self._glob(), other._glob()) if self.intersects(other) else None

    def missing(self, other: Pattern) -> str | None:
        """A key of the other that this one lacks, or `None`.

        Raises:
            LimitReached: the pair is written to need exponentially many steps.
        """
        return find_counterexample(self._glob(), other._glob())

    def _glob(self) -> Glob:
        found: Glob | None = getattr(self, "_compiled", None)
        if found is None:
            found = (compile_chunks if self.kind is PatternKind.CHUNKS else compile_characters)(self.text)
            if len(self.text) <= CACHED_CHARS:
                object.__setattr__(self, "_compiled", found)
        return found
