"""The receiving half of a channel: what arrives, put in order; and what is said about what does not.

A *reliable* receiver keeps what comes too early, within a bound; an owner may hold an acknowledgement back until it has
what was delivered safe. A *best-effort* one only never goes back. Neither looks into messages.
Spec: zenoh-2018 §5.9, §5.10, Z18-CON-09, Z18-DUR-03.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from elea.model.limits import EARLY_AHEAD, EARLY_AHEAD_BYTES
from elea.protocol.early.acknack import AckNackFields, acknack
from elea.protocol.early.serial import distance, successor

__all__ = ["BestEffortReceiver", "Receiver"]

T = TypeVar("T")
SPAN: Final = 65


class BestEffortReceiver:
    """An ordered part of what was sent."""

    def __init__(self, sn_bits: int) -> None:
        self.expected: int | None = None
        self.late = 0
        """Messages that others had overtaken, or that came twice."""
        self._bits = sn_bits

    def takes(self, sn: int) -> bool:
        """Whether a message is delivered."""
        if self.expected is not None and distance(self.expected, sn, self._bits) >= 1 << (self._bits - 1):
            self.late += 1
            return False
        self.expected = successor(sn, self._bits)
        return True

    def synch(self, sn: int) -> None:
        """The other node says which number is next."""
        # Spec Z18-BEC-03: never back, or an old Synch that was overtaken would deliver messages twice.
        if self.expected is None or distance(self.expected, sn, self._bits) < 1 << (self._bits - 1):
            self.expected = sn


class Receiver(Generic[T]):
    """Everything that was sent, once and in order."""

    def __init__(self, sn_bits: int, *, ahead: int = EARLY_AHEAD, ahead_bytes: int = EARLY_AHEAD_BYTES) -> None:
        self.expected = 0
        self.duplicates = 0
        self.lost = 0
        """Messages that the other node has let go of before they came."""
        self.refused = 0
        """Messages that came too early and had no room; they will be sent again."""
        self.stale = 0
        """Synchs that were overtaken."""
        self.is_answering = False
        """Whether an AckNack is due."""
        self.barriers: dict[int, Callable[[], bool]] = {}
        """By number: whether what migrated here may be delivered from there on."""
        self._bits = sn_bits
        self._half = 1 << (sn_bits - 1)
        self._ahead: dict[int, tuple[T, int]] = {}
        self._ahead_bytes = 0
        self._most = ahead
        self._most_bytes = ahead_bytes
        self._end = 0
        """Behind the last number that is known to have been sent."""
        self._is_placed = False
        """Whether it is known with which number the channel begins: 0, unless a Synch came before anything else."""
        self._is_recovering = False  # something has been asked for
        self._unsafe: deque[list[int]] = deque()  # numbers delivered and held back, with how often

    def __len__(self) -> int:
        """How many messages wait for one before them."""
        return len(self._ahead)

    # -- arrivals -----------------------------------------------------------------------------------------------------

    def arrive(self, sn: int, sync: bool, item: T, size: int) -> None:
        """A message has come; `ready` gives what is in order now."""
        self.is_answering |= sync
        ahead = distance(self.expected, sn, self._bits)
        if ahead >= self._half or sn in self._ahead:
            self.duplicates += 1
            return
        if ahead and (len(self._ahead) >= self._most or self._ahead_bytes + size > self._most_bytes):
            self.refused += 1
            return
        self._ahead[sn] = (item, size)
        self._ahead_bytes += size
        if ahead and sn != self._end and distance(self.expected, self._end, self._bits) < min(SPAN, ahead):
            self.is_answering = True  # something is missing that was not known to be, and can be asked for
        self._know(successor(sn, self._bits))

    def passes(self, sn: int, sync: bool) -> bool:
        """Whether a message that has come is the next one and nothing waits: it is taken then, as nearly all are."""
        if sn != self.expected or self._ahead or self.barriers:
            return False
        self.is_answering = self.is_answering or sync or self._is_recovering
        self._is_placed = True
        self.expected = successor(sn, self._bits)
        self._know(self.expected)
        return True

    def ready(self) -> list[tuple[int, T]]:
        """What is in order, with its numbers, taken."""
        found: list[tuple[int, T]] = []
        while self.expected in self._ahead:
            barrier = self.barriers.get(self.expected)
            if barrier is not None:
                if not barrier():
                    break
                del self.barriers[self.expected]
            self._is_placed = True
            item, size = self._ahead.pop(self.expected)
            self._ahead_bytes -= size
            found.append((self.expected, item))
            self.expected = successor(self.expected, self._bits)
        if found and self._is_recovering:
            self.is_answering = True  # the other node may not know that this one has come
        if self.barriers and found:  # of messages that were delivered without them
            gone = [sn for sn in self.barriers if distance(self.expected, sn, self._bits) >= self._half]
            for sn in gone:
                del self.barriers[sn]
        return found

    def synch(self, sn: int, count: int, sync: bool) -> None:
        """The other node says what it will send next, and how many messages before that it still has."""
        oldest = successor(sn, self._bits, steps=-count)
        self.is_answering |= sync
        if not self._is_placed:
            self._is_placed = True
            self._skip(oldest)
            self._end = oldest
            for early in self._ahead:
                self._know(successor(early, self._bits))
        elif distance(self.expected, sn, self._bits) >= self._half:
            # Spec Z18-REL-11 would go back. An old Synch that others have overtaken must not: nothing comes twice.
            self.stale += 1
            return
        elif 0 < distance(self.expected, oldest, self._bits) < self._half:
            self.lost += distance(self.expected, oldest, self._bits)
            self._skip(oldest)
        self._know(sn)
        if self.expected != sn:
            self.is_answering = True

    def _skip(self, oldest: int) -> None:
        for sn in [sn for sn in self._ahead if distance(oldest, sn, self._bits) >= self._half]:
            self._ahead_bytes -= self._ahead.pop(sn)[1]
        self.expected = oldest

    def _know(self, end: int) -> None:
        if 0 < distance(self._end, end, self._bits) < self._half:
            self._end = end

    # -- acknowledging ------------------------------------------------------------------------------------------------

    def hold(self, sn: int) -> None:
        """A message that was delivered is not to be acknowledged yet; may be said several times of the one."""
        if self._unsafe and self._unsafe[-1][0] == sn:
            self._unsafe[-1][1] += 1
        else:
            self._unsafe.append([sn, 1])

    def release(self, sn: int) -> None:
        """The opposite, as often."""
        for one in self._unsafe:
            if one[0] == sn:
                one[1] -= 1
                break
        while self._unsafe and not self._unsafe[0][1]:
            self._unsafe.popleft()
            self.is_answering = True

    @property
    def held_back(self) -> int:
        """How many messages are delivered and not acknowledged."""
        return len(self._unsafe)

    def answer(self) -> AckNackFields:
        """What an AckNack says now."""
        self.is_answering = self._is_recovering = False
        if self._unsafe:  # nothing can be asked for without acknowledging all before it
            return AckNackFields(self._unsafe[0][0], None)
        known = distance(self.expected, self._end, self._bits)
        if not 0 < known < self._half:
            return AckNackFields(self.expected, None)
        missing = [
            sn
            for step in range(min(known, SPAN))
            if (sn := successor(self.expected, self._bits, steps=step)) not in self._ahead
        ]
        if not missing or missing[0] != self.expected:  # a barrier holds them up, not the network
            return AckNackFields(self.expected, None)
        self._is_recovering = True
        return acknack(self.expected, missing, self._bits)
