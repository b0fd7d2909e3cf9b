"""Fragments of one channel, in order, put together again. Spec: zenoh-2018 §5.13."""

from __future__ import annotations

from typing import Any

from elea.model.errors import RuleBroken
from elea.model.limits import EARLY_MESSAGE
from elea.protocol.early.serial import distance, successor

__all__ = ["Reassembly"]


class Reassembly:
    """The message in the making of one channel.

    Args:
        strict: whether a broken series is an error (a reliable channel) or only lost.
    """

    def __init__(self, sn_bits: int, *, strict: bool, limit: int = EARLY_MESSAGE) -> None:
        self.discarded = 0
        """Series that were not completed."""
        self._bits = sn_bits
        self._strict = strict
        self._limit = limit
        self._first: Any = None
        self._base = 0
        self._next = 0
        self._count: int | None = None
        self._piece = 0
        self._last = 0
        self._payload = bytearray()

    @property
    def octets(self) -> int:
        """What is held."""
        return len(self._payload)

    def whole(self, sn: int, message: Any) -> list[Any]:
        """A message without a marker has come: what it completes, and the message itself."""
        done = [] if self._first is None else self._ended()
        return [*done, message]

    def fragment(self, sn: int, marker: Any, message: Any) -> list[Any]:
        """A fragment has come: the messages that it completes.

        Raises:
            RuleBroken: the series makes no sense, or is too large (of a reliable channel; others lose it).
        """
        done: list[Any] = []
        if self._first is not None and self._base != marker.snBase:
            done = self._ended()
        index = distance(marker.snBase, sn, self._bits)
        count = marker.n
        if count is not None and (count < 2 or index >= count):
            self._broken(f"fragment {index} of {count}")
            return done
        if self._first is None:
            if index:
                self._broken(f"the series begins with its fragment {index}")
                return done
            self._first, self._base, self._count, self._piece = message, marker.snBase, count, len(message.payload)
        elif sn != self._next or (self._count or count) != (count or self._count) or not _alike(self._first, message):
            self._broken("fragments that do not belong together, or with a gap")
            return done
        elif len(message.payload) > self._piece or self._last < self._piece or not self._piece:
            self._broken("fragments that are not equally large")
            return done
        if len(self._payload) + len(message.payload) > self._limit:
            limit = self._limit
            self._forget()
            if self._strict:
                raise RuleBroken("REASSEMBLY", "close-3", f"more than {limit} octets in fragments (EARLY_MESSAGE)")
            return done
        self._payload += message.payload
        self._last = len(message.payload)
        self._count = count or self._count
        self._next = successor(sn, self._bits)
        if self._count == index + 1:
            done += self._ended()
        return done

    def _ended(self) -> list[Any]:
        """The series is over: the message, if it is complete."""
        first, count = self._first, self._count
        got = distance(self._base, self._next, self._bits)
        if count is not None and got != count:
            self._broken(f"{got} fragments of {count}")
            return []
        whole = first._replace(payload=bytes(self._payload))
        self._first = None
        self._payload = bytearray()
        return [whole]

    def _broken(self, problem: str) -> None:
        self._forget()
        if self._strict:
            raise RuleBroken("FRAGMENTS", "close-255", problem)

    def _forget(self) -> None:
        self.discarded += 1
        self._first = None
        self._payload = bytearray()


def _alike(first: Any, other: Any) -> bool:
    """Whether two fragments are of the same kind, id and resource; the name stands in the first only (DEC-28)."""
    if type(first) is not type(other):
        return False
    if hasattr(first, "resource"):
        return not other.resource
    return bool(first.id == other.id and first.prid == other.prid)
