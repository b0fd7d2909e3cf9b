"""Fragments of Zenoh 1.x back to messages, one `Reassembly` for each conduit. Spec: zenoh-1 §6.3."""

from __future__ import annotations

from typing import Final, TypeAlias

from elea.model.limits import MAX_MESSAGE

__all__ = ["Budget", "Chunk", "Reassembly"]

Chunk: TypeAlias = bytes | bytearray | memoryview

LARGE: Final = 4096


class Budget:
    """Bytes that the messages in the making of one session may still take; `exceeded` counts those given up for it."""

    __slots__ = ("exceeded", "left")

    def __init__(self, octets: int) -> None:
        self.left = octets
        self.exceeded = 0


class Reassembly:
    """The message in the making of one conduit; `lost` counts the fragments that came to nothing.

    Not given to it: fragments that are duplicates or late. With `marked` the first fragment of every message says
    so (patch 1); without, whatever follows a complete message starts the next. A message above `limit`, or above what
    the `budget` of its session has left, is given up.
    """

    def __init__(self, *, mask: int, marked: bool, limit: int = MAX_MESSAGE, budget: Budget | None = None) -> None:
        self.lost = 0
        self._mask = mask
        self._marked = marked
        self._limit = limit
        self._budget = Budget(limit) if budget is None else budget
        self._chunks: list[Chunk] = []
        self._size = 0
        self._held = 0
        self._next: int | None = None
        self._skipping = False

    def add(
        self, sn: int, chunk: bytes | memoryview, *, more: bool, first: bool, drop: bool, laid: bytes = b""
    ) -> list[Chunk] | None:
        """Take the next fragment; returns the chunks of the message it completes, at least one.

        `laid` is what it has besides in shared memory. A view is kept until `settle` is called, so that a large
        payload is copied once, out of the chunks.
        """
        if drop:
            self._abandon()
            self.lost += 1
            return None
        if first:
            self._abandon()
        elif self._next is None:
            if self._marked or self._skipping:
                self._pass_over(more)
                return None
        elif sn != self._next:
            self._pass_over(more)
            return None
        size = len(chunk) + len(laid)
        if self._size + size > self._limit or size > self._budget.left:
            self._budget.exceeded += 1
            self._pass_over(more)
            return None
        self._size += size
        self._budget.left -= size
        if laid:
            self._keep(chunk)
            chunk = laid
        return self._append(sn, chunk, more)

    def settle(self) -> None:
        """Copy what is a view: its bytes are about to change."""
        self._chunks = [bytes(chunk) if isinstance(chunk, memoryview) else chunk for chunk in self._chunks]

    def _append(self, sn: int, chunk: bytes | memoryview, more: bool) -> list[Chunk] | None:
        self._skipping = False
        if more:
            self._keep(chunk)
            self._held += 1
            self._next = sn + 1 & self._mask
            return None
        whole = self._chunks
        whole.append(chunk)
        self._held = 0
        self._abandon()
        return whole

    def _keep(self, chunk: bytes | memoryview) -> None:
        """Large chunks as they are, small ones together: a million of one byte must not cost a million objects."""
        if len(chunk) >= LARGE:
            self._chunks.append(chunk)
        elif self._chunks and isinstance(last := self._chunks[-1], bytearray):
            last += chunk
        else:
            self._chunks.append(bytearray(chunk))

    def _abandon(self) -> None:
        self.lost += self._held
        self._held = 0
        self._chunks = []
        self._budget.left += self._size
        self._size = 0
        self._next = None

    def _pass_over(self, more: bool) -> None:
        """Drop a fragment in the middle of nowhere.

        Spec: without marks the reference starts a message at the next fragment, although it is the rest of a lost
        one. We pass over all up to the end of that message; what would come out is not worth delivering.
        """
        self._abandon()
        self.lost += 1
        self._skipping = more
