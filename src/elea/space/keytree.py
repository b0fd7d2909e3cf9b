"""An index of key expressions: which of the stored ones have a key in common with a given one.

A tree over chunks. Its branches are literal chunks, found by hashing, `*`, `**`, and the few chunks with `$*`, tried
one by one. Both what is stored and what is asked may have wildcards. The answers are those of `elea.model.keyexpr`; the
tree only finds them without looking at everything. Texts must be valid. Spec: zenoh-1 section 11.

A walk looks at a node of the tree once, with all places of the asked text that lead there as one set
(`elea.model.chunkrow`): no text and no stored pattern, however full of `**`, makes it look twice. With 100,000 stored
keys of four chunks a concrete key is looked up in 2 µs, and one among 100,000 patterns `a/<n>/**` in 2 µs; an entry
costs 160 to 900 bytes (measured with CPython 3.11).

Patterns of the early grammar (`zenoh://a/b?`), whose wildcards work on characters, are kept beside the tree and
compared one by one, exactly (`elea.model.keytext`).

A walk may go on while another thread changes the tree: it finds all that was there the whole time, and of what came or
went meanwhile some. So a walk needs no lock, only the change does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from elea.model.chunkrow import Row, dollar_includes
from elea.model.keytext import EARLY, pattern_of

if TYPE_CHECKING:
    from elea.model.pattern import Pattern

__all__ = ["KeyTree"]

T = TypeVar("T")

_WILDCARD: Final = re.compile(r"[?*]")


class _Node(Generic[T]):
    """A place in the tree. What holds branches is made when there is something to put in: most nodes are leaves."""

    __slots__ = ("literal", "value", "wild")

    def __init__(self) -> None:
        self.literal: dict[str, _Node[T]] | None = None
        self.wild: _Wild[T] | None = None
        self.value: T | None = None

    def child(self, chunk: str) -> _Node[T] | None:
        """What is below by exactly this chunk."""
        if not _is_wild(chunk):
            return None if self.literal is None else self.literal.get(chunk)
        if self.wild is None:
            return None
        if chunk == "*":
            return self.wild.star
        return self.wild.many if chunk == "**" else self.wild.dollar.get(chunk)

    def grow(self, chunk: str) -> _Node[T]:
        """A new node below, by a chunk that has none."""
        child: _Node[T] = _Node()
        if not _is_wild(chunk):
            if self.literal is None:
                self.literal = {}
            self.literal[chunk] = child
            return child
        if self.wild is None:
            self.wild = _Wild()
        if chunk == "*":
            self.wild.star = child
        elif chunk == "**":
            self.wild.many = child
        else:
            self.wild.dollar[chunk] = child
        return child

    def cut(self, chunk: str) -> None:
        """Take out the node below by this chunk."""
        if not _is_wild(chunk):
            assert self.literal is not None
            del self.literal[chunk]
            self.literal = self.literal or None
            return
        wild = self.wild
        assert wild is not None
        if chunk == "*":
            wild.star = None
        elif chunk == "**":
            wild.many = None
        else:
            del wild.dollar[chunk]
        if wild.star is None and wild.many is None and not wild.dollar:
            self.wild = None

    def children(self) -> list[tuple[str, _Node[T]]]:
        """All that is below, with its chunk."""
        found = list((self.literal or {}).items())
        wild = self.wild  # looked at once: another thread may take it away
        if wild is not None:
            found += list(wild.dollar.items())
            pairs = (("*", wild.star), ("**", wild.many))
            found += [(chunk, child) for chunk, child in pairs if child is not None]
        return found


class _Wild(Generic[T]):
    """The branches of a node that have wildcards."""

    __slots__ = ("dollar", "many", "star")

    def __init__(self) -> None:
        self.star: _Node[T] | None = None
        self.many: _Node[T] | None = None
        self.dollar: dict[str, _Node[T]] = {}


class KeyTree(Generic[T]):
    """A map from key expressions to values (never None) that can be asked by relation.

    >>> tree = KeyTree[int]()
    >>> tree.add("home/**", 1)
    >>> tree.add("home/kitchen/temp", 2)
    >>> sorted(tree.intersecting("home/*/temp"))
    [1, 2]
    >>> tree.including("home/*/temp")
    [1]
    """

    __slots__ = ("_early", "_root", "_size", "visited")

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._early: dict[str, tuple[str, Pattern, T]] = {}
        """Patterns of the early grammar, whose wildcards know no chunks: looked at one by one, first how they begin."""
        self._size = 0
        self.visited = 0
        """What walks have cost: nodes looked at, and comparisons of a chunk with `$*` with another."""

    def __len__(self) -> int:
        return self._size + len(self._early)

    def __iter__(self) -> Iterator[T]:
        """Every value, in no particular order."""
        for _, _, early in list(self._early.values()):
            yield early
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node.value is not None:
                yield node.value
            stack += [child for _, child in node.children()]

    def add(self, key: str, value: T) -> None:
        """Store a value under a key expression or early pattern, in place of one already there."""
        if key.startswith(EARLY):
            pattern = pattern_of(key)
            self._early[key] = (_WILDCARD.split(pattern.text, 1)[0], pattern, value)
            return
        node = self._root
        for chunk in key.split("/"):
            node = node.child(chunk) or node.grow(chunk)
        self._size += node.value is None
        node.value = value

    def get(self, key: str) -> T | None:
        """The value stored under exactly this key expression."""
        if key.startswith(EARLY):
            found = self._early.get(key)
            return None if found is None else found[2]
        node = self._root
        for chunk in key.split("/"):
            child = node.child(chunk)
            if child is None:
                return None
            node = child
        return node.value

    def remove(self, key: str) -> None:
        """Take out what is stored under a key expression; raises KeyError when nothing is."""
        if key.startswith(EARLY):
            del self._early[key]
            return
        node = self._root
        path: list[tuple[_Node[T], str]] = []
        for chunk in key.split("/"):
            child = node.child(chunk)
            if child is None:
                raise KeyError(key)
            path.append((node, chunk))
            node = child
        if node.value is None:
            raise KeyError(key)
        node.value = None
        self._size -= 1
        while path and node.value is None and node.literal is None and node.wild is None:
            node, chunk = path.pop()
            node.cut(chunk)

    def intersecting(self, key: str) -> list[T]:
        """The values whose key expressions have a key in common with this one."""
        if self._early or key.startswith(EARLY):
            return self._intersecting_early(key)
        return self._intersecting(key)

    def _intersecting(self, key: str) -> list[T]:
        if "*" not in key:
            return self._matching(key)
        row = Row(key.split("/"))
        found: list[T] = []
        self._meet([(self._root, row.start())], row, found)
        return found

    def _intersecting_early(self, key: str) -> list[T]:
        """The same where one side at least may be an early pattern."""
        pattern = pattern_of(key)
        found = self._early_values(pattern, including=False)
        if not key.startswith(EARLY):
            return self._intersecting(key) + found
        for text, value in self._texts():
            self.visited += 1
            if pattern.intersects(pattern_of(text)):
                found.append(value)
        return found

    def _early_values(self, asked: Pattern, *, including: bool) -> list[T]:
        """The values of early patterns. Of those for one key most are told apart by how they begin."""
        early = list(self._early.values())
        self.visited += len(early)
        if asked.concrete:
            key = asked.text
            return [value for start, pattern, value in early if key.startswith(start) and pattern.matches(key)]
        if including:
            return [value for _, pattern, value in early if pattern.includes(asked)]
        return [value for _, pattern, value in early if pattern.intersects(asked)]

    def _texts(self) -> Iterator[tuple[str, T]]:
        """The 1.x expressions, and their values."""
        stack: list[tuple[str, _Node[T]]] = [("", self._root)]
        while stack:
            text, node = stack.pop()
            if node.value is not None:
                yield text, node.value
            for chunk, child in node.children():
                stack.append((f"{text}/{chunk}" if text else chunk, child))

    def including(self, key: str) -> list[T]:
        """The values whose key expressions have every key of this one, as far as `keyexpr.includes` sees it."""
        if self._early or key.startswith(EARLY):
            pattern = pattern_of(key)
            early = self._early_values(pattern, including=True)
            if key.startswith(EARLY):
                return early + [value for text, value in self._texts() if pattern_of(text).includes(pattern)]
            return self._including(key) + early
        return self._including(key)

    def _including(self, key: str) -> list[T]:
        if "*" not in key:
            return self._matching(key)
        row = Row(key.split("/"))
        found: list[T] = []
        visited = 0
        stack: list[tuple[_Node[T], int]] = [(self._root, 1)]
        while stack:
            node, places = stack.pop()
            visited += 1
            value = node.value
            if value is not None and places & row.end:
                found.append(value)
            literal, wild = node.literal, node.wild
            if literal is not None:
                _follow_literals(stack, literal, places & ~row.wild, row, 0)
            if wild is None:
                continue
            star, many, dollar = wild.star, wild.many, wild.dollar
            if star is not None and places & row.single:
                stack.append((star, (places & row.single) << 1))
            if many is not None:
                stack.append((many, row.meet_many(places)))
            visited += len(dollar) * (places & row.single).bit_count()
            for branch in list(dollar):
                child, after = dollar.get(branch), row.cover_dollar(places, branch)
                if child is not None and after:
                    stack.append((child, after))
        self.visited += visited
        return found

    def _matching(self, key: str) -> list[T]:
        """The hot path: a concrete key, all of whose chunks are literal."""
        found: list[T] = []
        behind: list[tuple[_Node[T], int]] = []  # a `**`, and how many chunks come before it
        chunks = key.split("/")
        nodes = [self._root]
        visited = 0
        at = 0
        for chunk in chunks:
            reached: list[_Node[T]] = []
            visited += len(nodes)
            for node in nodes:
                literal = node.literal
                if literal is not None:
                    child = literal.get(chunk)
                    if child is not None:
                        reached.append(child)
                wild = node.wild
                if wild is None:
                    continue
                many = wild.many
                if many is not None:
                    behind.append((many, at))
                if chunk[0] == "@":
                    continue
                star = wild.star
                if star is not None:
                    reached.append(star)
                dollar = wild.dollar
                if dollar:
                    visited += len(dollar)
                    for branch in list(dollar):
                        if dollar_includes(branch, chunk):
                            child = dollar.get(branch)
                            if child is not None:
                                reached.append(child)
            nodes = reached
            if not nodes:
                break
            at += 1
        for node in nodes:
            value = node.value
            if value is not None:
                found.append(value)
            wild = node.wild
            if wild is not None and wild.many is not None:
                behind.append((wild.many, at))
        self.visited += visited
        if behind:
            self._match_behind(behind, chunks, _after_verbatim(chunks) if "@" in key else 0, found)
        return found

    def _match_behind(
        self, behind: list[tuple[_Node[T], int]], chunks: list[str], open_from: int, found: list[T]
    ) -> None:
        """Go on from nodes of `**`, before which so many chunks were read; mostly nothing comes after it."""
        stack: list[tuple[_Node[T], int]] = []
        row: Row | None = None
        for node, at in behind:
            value = node.value
            if value is not None and at >= open_from:
                found.append(value)
            if node.literal is not None or node.wild is not None:
                row = row or Row(chunks)
                self.visited += _push_below(stack, node, row.meet_many(1 << at), row)
        if row is not None:
            self._meet(stack, row, found)

    def _meet(self, stack: list[tuple[_Node[T], int]], row: Row, found: list[T]) -> None:
        """Walk on from nodes with the places of the row that led there; add the values of those at its end."""
        visited = 0
        while stack:
            node, places = stack.pop()
            visited += 1
            value = node.value
            if value is not None and places & row.end:
                found.append(value)
            visited += _push_below(stack, node, places, row)
        self.visited += visited


def _push_below(stack: list[tuple[_Node[T], int]], node: _Node[T], places: int, row: Row) -> int:
    """Add the nodes one chunk further that have places left; returns how many chunks were compared with a `$*`."""
    literal, wild = node.literal, node.wild
    compared = 0
    if literal is not None:
        if not places & row.wild:
            _follow_literals(stack, literal, places, row, row.many)
        else:
            _try_literals(stack, literal, places, row)
            compared = len(literal) * (places & row.dollars).bit_count()
    if wild is None:
        return compared
    star, many, dollar = wild.star, wild.many, wild.dollar
    if star is not None:
        after = row.meet_any(places)
        if after:
            stack.append((star, after))
    if many is not None:
        stack.append((many, row.meet_many(places)))
    for branch in list(dollar):
        after = row.meet_dollar(places, branch)
        if after:
            child = dollar.get(branch)
            if child is not None:
                stack.append((child, after))
    return compared + len(dollar) * (places & row.single).bit_count()


def _try_literals(stack: list[tuple[_Node[T], int]], literal: dict[str, _Node[T]], places: int, row: Row) -> None:
    """The same for branches without wildcard, where a wildcard is among the places."""
    # Most often these are nothing but `*` and `**`, after which every branch has the same places.
    after_any = 0 if places & ~(row.stars | row.many | row.end) else row.meet_any(places)
    for branch in list(literal):
        after = after_any if after_any and branch[0] != "@" else row.meet(places, branch)
        if after:
            child = literal.get(branch)
            if child is not None:
                stack.append((child, after))


def _follow_literals(
    stack: list[tuple[_Node[T], int]], literal: dict[str, _Node[T]], places: int, row: Row, skipped: int
) -> None:
    """The same for branches and places without wildcard: whichever are fewer are looked up among the others.

    `skipped` is where `**` may stand for no chunk.
    """
    places &= row.end - 1
    if places.bit_count() <= len(literal):
        while places:
            chunk = row.chunks[(places & -places).bit_length() - 1]
            here = places & row.literal[chunk]
            places ^= here
            child = literal.get(chunk)
            if child is not None:
                after = here << 1
                stack.append((child, after | (after & skipped) << 1))
        return
    for branch in list(literal):
        after = (places & row.literal.get(branch, 0)) << 1
        child = literal.get(branch) if after else None
        if child is not None:
            stack.append((child, after | (after & skipped) << 1))


def _after_verbatim(chunks: list[str]) -> int:
    """How many chunks there are up to and with the last verbatim one, which no `**` reads."""
    count = len(chunks)
    while count and chunks[count - 1][0] != "@":
        count -= 1
    return count


def _is_wild(chunk: str) -> bool:
    # A verbatim chunk is matched by itself only, even one with `$*` in it.
    return "*" in chunk and chunk[0] != "@"
