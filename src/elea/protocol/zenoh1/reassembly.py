"""Fragments of Zenoh 1.x back to messages, one `Reassembly` for each conduit. Spec: zenoh-1 §6.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from elea.model.limits import MAX_MESSAGE

__all__ = ["Budget", "Chunk", "Reassembly"]

Chunk: TypeAlias = bytes | bytearray | memoryview

LARGE: Final = 4096


LEAST: Final = 1 << 16
MOST: Final = 1 << 20
"""Bytes by which what is granted to a session grows at least; it doubles in between, so that few fragments ask."""


class Budget:
    """Bytes that the messages in the making of one session may take; `exceeded` counts those given up for it.

    What it may take in all is `limit`. Within that it asks `more`, which may say no because others need
    it, and gives all `back` when no message is in the making; without them all of it is granted.
    """

    __slots__ = ("_back", "_limit", "_more", "exceeded", "granted", "used")

    def __init__(
        self,
        limit: int,
        more: Callable[[int], bool] | None = None,
        back: Callable[[int], None] | None = None,
    ) -> None:
        self._limit = limit
        self._more = more
        self._back = back
        self.granted = limit if more is None else 0
        self.used = 0
        self.exceeded = 0

    def take(self, size: int) -> bool:
        """Whether there is room for so much more; then it is taken."""
        wanted = self.used + size
        if wanted > self.granted:
            if wanted > self._limit or self._more is None:
                return False
            step = max(wanted - self.granted, LEAST, min(self.granted, MOST))
            if not self._more(step):
                return False
            self.granted += step
        self.used = wanted
        return True

    def give(self, size: int) -> None:
        """So much is not needed any more."""
        self.used -= size
        if not self.used and self._back is not None:
            granted, self.granted = self.granted, 0
            self._back(granted)


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
        self._revoked = False

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
        if self._revoked and not first:
            self._budget.exceeded += 1
            self._pass_over(more)
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
        if self._size + size > self._limit or not self._budget.take(size):
            self._budget.exceeded += 1
            self._pass_over(more)
            return None
        self._size += size
        if laid:
            self._keep(chunk)
            chunk = laid
        return self._append(sn, chunk, more)

    def revoke(self) -> None:
        """Free what is held, since others need it; any thread may. The rest of the message is passed over."""
        self._revoked = True
        self._chunks = []

    def settle(self) -> None:
        """Copy what is a view: its bytes are about to change."""
        self._chunks = [bytes(chunk) if isinstance(chunk, memoryview) else chunk for chunk in self._chunks]
        if self._revoked:  # meanwhile
            self._chunks = []

    def _append(self, sn: int, chunk: bytes | memoryview, more: bool) -> list[Chunk] | None:
        self._skipping = False
        if more:
            self._keep(chunk)
            self._held += 1
            self._next = sn + 1 & self._mask
            return None
        whole = self._chunks
        if self._revoked:  # looked at behind the chunks: who takes them away says so first, and then makes a new list
            self._budget.exceeded += 1
            self._pass_over(more)
            return None
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
        self._revoked = False
        size, self._size = self._size, 0
        self._next = None
        if size:
            self._budget.give(size)

    def _pass_over(self, more: bool) -> None:
        """Drop a fragment in the middle of nowhere.

        Spec: without marks the reference starts a message at the next fragment, although it is the rest of a lost
        one. We pass over all up to the end of that message; what would come out is not worth delivering.
        """
        self._abandon()
        self.lost += 1
        self._skipping = more
