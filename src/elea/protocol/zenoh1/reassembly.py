"""Fragments of Zenoh 1.x back to messages, one `Reassembly` for each conduit. Spec: zenoh-1 §6.3."""

from __future__ import annotations

from elea.model.limits import MAX_MESSAGE

__all__ = ["Reassembly"]


class Reassembly:
    """The message in the making of one conduit; `lost` counts the fragments that came to nothing.

    Not given to it: fragments that are duplicates or late. With `marked` the first fragment of every message says
    so (patch 1); without, whatever follows a complete message starts the next.
    """

    def __init__(self, *, mask: int, marked: bool, limit: int = MAX_MESSAGE) -> None:
        self.lost = 0
        self._mask = mask
        self._marked = marked
        self._limit = limit
        # Octets and not a list of chunks: a list would let a peer that sends empty fragments take memory for ever.
        self._buffer = bytearray()
        self._held = 0
        self._next: int | None = None
        self._skipping = False

    def add(self, sn: int, chunk: bytes, *, more: bool, first: bool, drop: bool) -> bytes | None:
        """Take the next fragment; returns the message it completes."""
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
        if len(self._buffer) + len(chunk) > self._limit:
            self._pass_over(more)
            return None
        return self._append(sn, chunk, more)

    def _append(self, sn: int, chunk: bytes, more: bool) -> bytes | None:
        self._skipping = False
        self._buffer += chunk
        if more:
            self._held += 1
            self._next = sn + 1 & self._mask
            return None
        whole = bytes(self._buffer)
        self._held = 0
        self._abandon()
        return whole

    def _abandon(self) -> None:
        self.lost += self._held
        self._held = 0
        self._buffer = bytearray()
        self._next = None

    def _pass_over(self, more: bool) -> None:
        """Drop a fragment in the middle of nowhere.

        Spec: without marks the reference starts a message at the next fragment, although it is the rest of a lost
        one. We pass over all up to the end of that message; what would come out is not worth delivering.
        """
        self._abandon()
        self.lost += 1
        self._skipping = more
