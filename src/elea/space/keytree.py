"""An index of key expressions: which of the stored ones have a key in common with a given one.

A tree over chunks. Its branches are literal chunks, found by hashing, and the few wildcard chunks, tried one by
one. Both what is stored and what is asked may have wildcards. The answers are those of `elea.model.keyexpr`; the
tree only finds them without looking at everything. Texts must be valid. Spec: zenoh-1 section 11.

A walk keeps the set of tree nodes it can be at, so that no text, however full of `**`, makes it slow: a step costs at
most the number of nodes. With 100,000 stored keys of four chunks a concrete key is looked up in 2 µs, and one
among 100,000 patterns `a/<n>/**` in 3 µs; an entry costs 160 to 900 octets (measured with CPython 3.11).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from elea.model import keyexpr

__all__ = ["KeyTree"]

T = TypeVar("T")


class _Node(Generic[T]):
    """A place in the tree. Dictionaries are made when there is something to put in: most nodes are leaves."""

    __slots__ = ("literal", "many", "value", "wild")

    def __init__(self, many: bool) -> None:
        self.literal: dict[str, _Node[T]] | None = None
        self.wild: dict[str, _Node[T]] | None = None
        self.value: T | None = None
        self.many = many
        """Whether the chunk leading here is `**`: the walk may stay here for any number of chunks."""


class KeyTree(Generic[T]):
    """A map from key expressions to values (never None) that can be asked by relation.

    >>> tree = KeyTree[int]()
    >>> tree.add("home/**", 1)
    >>> tree.add("home/kitchen/temp", 2)
    >>> tree.intersecting("home/*/temp")
    [1, 2]
    >>> tree.including("home/*/temp")
    [1]
    """

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(False)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        """Every value, in no particular order."""
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node.value is not None:
                yield node.value
            stack.extend((node.literal or {}).values())
            stack.extend((node.wild or {}).values())

    def add(self, key: str, value: T) -> None:
        """Store a value under a key expression, in place of one already there."""
        node = self._root
        for chunk in key.split("/"):
            if _is_wild(chunk):
                if node.wild is None:
                    node.wild = {}
                branches = node.wild
            else:
                if node.literal is None:
                    node.literal = {}
                branches = node.literal
            child = branches.get(chunk)
            if child is None:
                child = branches[chunk] = _Node(chunk == "**")
            node = child
        self._size += node.value is None
        node.value = value

    def get(self, key: str) -> T | None:
        """The value stored under exactly this key expression."""
        node = self._root
        for chunk in key.split("/"):
            branches = node.wild if _is_wild(chunk) else node.literal
            child = branches.get(chunk) if branches is not None else None
            if child is None:
                return None
            node = child
        return node.value

    def remove(self, key: str) -> None:
        """Take out what is stored under a key expression; raises KeyError when nothing is."""
        node = self._root
        path: list[tuple[_Node[T], str]] = []
        for chunk in key.split("/"):
            branches = node.wild if _is_wild(chunk) else node.literal
            if branches is None or chunk not in branches:
                raise KeyError(key)
            path.append((node, chunk))
            node = branches[chunk]
        if node.value is None:
            raise KeyError(key)
        node.value = None
        self._size -= 1
        while path and node.value is None and node.literal is None and node.wild is None:
            node, chunk = path.pop()
            _cut(node, chunk)

    def intersecting(self, key: str) -> list[T]:
        """The values whose key expressions have a key in common with this one."""
        if "*" in key:
            return self._intersecting_wild(key.split("/"))
        return self._matching(key.split("/"))

    def including(self, key: str) -> list[T]:
        """The values whose key expressions have every key of this one, as far as `keyexpr.includes` sees it."""
        if "*" not in key:
            return self._matching(key.split("/"))
        nodes = _settled([self._root])
        for chunk in key.split("/"):
            reached: list[_Node[T]] = []
            for node in nodes:
                if node.many and chunk[:1] != "@":
                    reached.append(node)
                if chunk == "**":
                    continue
                if node.literal is not None and chunk in node.literal:
                    reached.append(node.literal[chunk])
                for branch, child in (node.wild or {}).items():
                    if branch != "**" and keyexpr.includes(branch, chunk):
                        reached.append(child)
            nodes = _settled(reached)
        return _values(nodes)

    def _matching(self, chunks: list[str]) -> list[T]:
        """The hot path: a concrete key, all of whose chunks are literal."""
        nodes = _settled([self._root])
        for chunk in chunks:
            reached: list[_Node[T]] = []
            verbatim = chunk[:1] == "@"
            for node in nodes:
                if node.literal is not None:
                    child = node.literal.get(chunk)
                    if child is not None:
                        reached.append(child)
                if verbatim:
                    continue
                if node.many:
                    reached.append(node)
                if node.wild is not None:
                    for branch, child in node.wild.items():
                        if branch == "*" or (branch != "**" and keyexpr.chunks_intersect(branch, chunk)):
                            reached.append(child)
            if not reached:
                return []
            nodes = _settled(reached)
        return _values(nodes)

    def _intersecting_wild(self, chunks: list[str]) -> list[T]:
        """Walk the tree and the chunks together; a pair of places once seen is not walked again."""
        end = len(chunks)
        found: list[T] = []
        stack: list[tuple[_Node[T], int]] = [(self._root, 0)]
        seen = set(stack)
        while stack:
            node, at = stack.pop()
            if at == end:
                if node.value is not None:
                    found.append(node.value)
                steps = []
            else:
                steps = list(_steps(node, chunks[at], at))
            # A stored `**` may stand for no chunk at all.
            if node.wild is not None and "**" in node.wild:
                steps.append((node.wild["**"], at))
            for step in steps:
                if step not in seen:
                    seen.add(step)
                    stack.append(step)
        return found


def _steps(node: _Node[T], chunk: str, at: int) -> Iterator[tuple[_Node[T], int]]:
    """Where the pair (node, at) goes when the chunk asked for at this place is read."""
    if chunk == "**":
        yield node, at + 1
        for children in (node.literal, node.wild):
            for branch, child in (children or {}).items():
                if branch[0] != "@":
                    yield child, at
        return
    if node.many and chunk[0] != "@":
        yield node, at + 1
    if node.literal is not None:
        if "*" not in chunk or chunk[0] == "@":
            if chunk in node.literal:
                yield node.literal[chunk], at + 1
        else:
            for branch, child in node.literal.items():
                if keyexpr.chunks_intersect(branch, chunk):
                    yield child, at + 1
    for branch, child in (node.wild or {}).items():
        if branch != "**" and keyexpr.chunks_intersect(branch, chunk):
            yield child, at + 1


def _settled(nodes: list[_Node[T]]) -> list[_Node[T]]:
    """The nodes, with those behind a `**` that stands for nothing, each once."""
    for node in nodes:
        if node.wild is not None or node.many:
            break
    else:
        return nodes
    # Only what is behind a `**` is reached in more than one way. The list grows while it is walked.
    unique = list(dict.fromkeys(nodes))
    known = set(unique)
    for node in unique:
        behind = node.wild.get("**") if node.wild is not None else None
        if behind is not None and behind not in known:
            known.add(behind)
            unique.append(behind)
    return unique


def _values(nodes: list[_Node[T]]) -> list[T]:
    return [node.value for node in nodes if node.value is not None]


def _is_wild(chunk: str) -> bool:
    # A verbatim chunk is matched by itself only, even one with `$*` in it.
    return "*" in chunk and chunk[0] != "@"


def _cut(node: _Node[T], chunk: str) -> None:
    if _is_wild(chunk):
        assert node.wild is not None
        del node.wild[chunk]
        node.wild = node.wild or None
    else:
        assert node.literal is not None
        del node.literal[chunk]
        node.literal = node.literal or None
