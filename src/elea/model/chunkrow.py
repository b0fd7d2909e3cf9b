"""The chunks of a key expression as one row of places: what keys, expressions and trees of them are matched with.

A set of places is one integer with a bit for each chunk, and one for the end. Reading a chunk, or letting `**` read any
number of them, is a handful of operations on whole integers, whatever the wildcards: two expressions of n and m chunks
are compared in n steps, and no order of wildcards makes it more. Only `$*` costs more, a comparison with each chunk
that may be meant; `limits.KEY_EXPR_WILDCARDS` bounds how many there are. Texts must be valid. Spec: zenoh-1 section 11.
"""

from __future__ import annotations

__all__ = ["Row", "chunk_includes", "chunks_intersect", "dollar_includes"]


class Row:
    """The chunks of one key expression, and for each kind of chunk the set of its places."""

    __slots__ = ("chunks", "dollars", "end", "literal", "many", "passable", "single", "stars", "wild")

    def __init__(self, chunks: list[str]) -> None:
        self.chunks = chunks
        self.literal: dict[str, int] = {}
        """Where each chunk without wildcard stands."""
        self.many = 0
        """Where `**` stands."""
        self.dollars = 0
        """Where chunks with `$*` stand."""
        self.single = 0
        """Where chunks stand that `*` has a chunk in common with."""
        self.stars = 0
        """Where `*` stands."""
        place = 1
        for chunk in chunks:
            if chunk == "**":
                self.many |= place
            elif chunk[0] == "@":  # matched by itself only, even one with `$*` in it
                self.literal[chunk] = self.literal.get(chunk, 0) | place
            else:
                self.single |= place
                if chunk == "*":
                    self.stars |= place
                elif "$" in chunk:
                    self.dollars |= place
                else:
                    self.literal[chunk] = self.literal.get(chunk, 0) | place
            place <<= 1
        self.end = place
        self.wild = self.stars | self.dollars | self.many
        """Where any wildcard stands."""
        self.passable = self.single | self.many
        """What `**` reads: all but verbatim chunks."""

    # -- an expression that has a key in common ----------------------------------------------------------------

    def start(self) -> int:
        """The places before anything is read."""
        return 1 | (1 & self.many) << 1

    def meet(self, places: int, chunk: str) -> int:
        """The places after a chunk of another expression, if the two are to have a key in common."""
        if chunk == "**":
            return self.meet_many(places)
        if chunk[0] == "@":
            after = (places & self.literal.get(chunk, 0)) << 1
        elif chunk == "*":
            return self.meet_any(places)
        elif "$" in chunk:
            return self.meet_dollar(places, chunk)
        else:
            met = places & (self.literal.get(chunk, 0) | self.stars)
            dollars = places & self.dollars
            while dollars:
                place = dollars & -dollars
                if dollar_includes(self.chunks[place.bit_length() - 1], chunk):
                    met |= place
                dollars ^= place
            after = met << 1 | places & self.many
        # A `**` may stand for no chunk at all; there are no two in a row.
        return after | (after & self.many) << 1

    def meet_any(self, places: int) -> int:
        """The same after `*`."""
        after = (places & self.single) << 1 | places & self.many
        return after | (after & self.many) << 1

    def meet_many(self, places: int) -> int:
        """The same after `**`.

        Adding the places to the passable ones makes a carry run up each passable stretch from its lowest place: one
        addition does what a loop over the places would.
        """
        starts = places & self.passable
        return places | ((self.passable + starts) ^ self.passable) if starts else places

    def meet_dollar(self, places: int, chunk: str) -> int:
        """The same after a chunk with `$*`."""
        met = places & self.stars
        asked = places & self.single & ~met
        while asked:
            place = asked & -asked
            if chunks_intersect(chunk, self.chunks[place.bit_length() - 1]):
                met |= place
            asked ^= place
        after = met << 1 | places & self.many
        return after | (after & self.many) << 1

    # -- an expression that has all keys of this one -----------------------------------------------------------

    def cover(self, places: int, chunk: str) -> int:
        """The places after a chunk of another expression, if that is to include this one; it starts at place 1."""
        if chunk == "**":
            return self.meet_many(places)
        if chunk[0] == "@":
            return (places & self.literal.get(chunk, 0)) << 1
        if chunk == "*":
            return (places & self.single) << 1
        if "$" in chunk:
            return self.cover_dollar(places, chunk)
        return (places & self.literal.get(chunk, 0)) << 1

    def cover_dollar(self, places: int, chunk: str) -> int:
        """The same for a chunk with `$*`."""
        covered = 0
        asked = places & self.single
        while asked:
            place = asked & -asked
            if chunk_includes(chunk, self.chunks[place.bit_length() - 1]):
                covered |= place
            asked ^= place
        return covered << 1


# -- chunks ----------------------------------------------------------------------------------------------------


def chunks_intersect(p: str, q: str) -> bool:
    """Whether some chunk belongs to both of two chunks other than `**`."""
    if p == q:
        return True
    if p[0] == "@" or q[0] == "@":
        return False
    if p == "*" or q == "*":
        return True
    if "$" not in p:
        return "$" in q and dollar_includes(q, p)
    if "$" not in q:
        return dollar_includes(p, q)
    # Each has a `$*`, which can hold all that the other asks for between its ends: only the ends can
    # disagree.
    start, _, _ = p.partition("$*")
    other_start, _, _ = q.partition("$*")
    _, _, end = p.rpartition("$*")
    _, _, other_end = q.rpartition("$*")
    starts_agree = start.startswith(other_start) or other_start.startswith(start)
    return starts_agree and (end.endswith(other_end) or other_end.endswith(end))


def chunk_includes(p: str, q: str) -> bool:
    """Whether every chunk of `q` belongs to `p`, which is not `**`."""
    if p == q:
        return True
    if p[0] == "@" or q[0] == "@" or q == "**":
        return False
    return p == "*" or ("$" in p and q != "*" and dollar_includes(p, q))


def dollar_includes(pattern: str, chunk: str) -> bool:
    """Whether the fixed parts of a `$*` pattern are found in order in the chunk, the ends at its ends.

    The first place found for each part is the best one. A `$*` of the chunk itself is never part of a find,
    because fixed parts contain no `$`.
    """
    first, *middle, last = pattern.split("$*")
    at, end = len(first), len(chunk) - len(last)
    if at > end or not chunk.startswith(first) or not chunk.endswith(last):
        return False
    for part in middle:
        at = chunk.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
