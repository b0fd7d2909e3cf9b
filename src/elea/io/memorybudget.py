"""What a node spends on the messages of others: one budget, shared fairly, and given back.

Every holder (a link with messages in the making, a request that waits for a thread, a link that takes nothing) has a
share. As long as there is room, a share grows as it likes. When there is none, whoever holds most gives way to those
who hold less: its messages in the making are given up. So many who want little get it, one who is alone may have all.

What has been given back in large amounts is returned to the system, too: an allocator keeps it otherwise.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, Protocol

from elea.model.limits import BLOCKED_PART, MEMORY_BUDGET, QUEUE_BYTES, QUEUE_LEAST

__all__ = ["MemoryBudget", "Queue", "Share", "default_budget"]

WORTH: Final = 32 << 20
"""Bytes given back after which the allocator is asked to return what it keeps; that takes some milliseconds."""


class Queue(Protocol):
    """What waits for a link (`elea.io.outbox.Outbox`)."""

    def limit(self, octets: int) -> None:
        """How much may wait in each conduit from now on."""
        ...


class Share:
    """What one holder has of a budget; used by one thread at a time, and by whoever takes it away."""

    __slots__ = ("_budget", "_give_up", "granted")

    def __init__(self, budget: MemoryBudget, give_up: Callable[[], None] | None) -> None:
        self._budget = budget
        self._give_up = give_up
        self.granted = 0

    def take(self, octets: int) -> bool:
        """Have so many bytes more; False if there is no room, or others have less and need it."""
        return self._budget.grant(self, octets)

    def give(self, octets: int) -> None:
        """Give some back, at most what there is."""
        self._budget.release(self, octets)

    def close(self) -> None:
        """Give all back: the holder has gone."""
        self._budget.release(self, self.granted)

    @property
    def gives_way(self) -> bool:
        """Whether it can be taken away."""
        return self._give_up is not None

    def give_up(self) -> None:
        """Take it away; called with the budget's lock."""
        if self._give_up is not None:
            self._give_up()


class MemoryBudget:
    """The budget of a node.

    >>> budget = MemoryBudget(100)
    >>> gone = []
    >>> large, small = budget.share(lambda: gone.append("large")), budget.share(lambda: gone.append("small"))
    >>> large.take(90), small.take(20), gone
    (True, True, ['large'])
    >>> budget.used, small.take(90), budget.refused, budget.revoked
    (20, False, 1, 1)
    """

    def __init__(self, total: int = MEMORY_BUDGET) -> None:
        self.total = total
        self.used = 0
        self.peak = 0
        self.refused = 0
        """How often something found no room."""
        self.revoked = 0
        """How often a holder had to give way to one who holds less."""
        self._holders: set[Share] = set()
        self.on_given: Callable[[], None] | None = None
        """Told that `tidy` has something to do in a while."""
        self._blocked: set[Queue] = set()
        self._recent = 0  # the most that was used since it was tidied
        self._untidy = False
        self._lock = threading.Lock()

    def share(self, give_up: Callable[[], None] | None = None) -> Share:
        """A share for a new holder.

        Args:
            give_up: frees what the holder has, at once and without waiting; none if that cannot be done.
        """
        return Share(self, give_up)

    def grant(self, share: Share, octets: int) -> bool:
        """`Share.take`."""
        with self._lock:
            while self.used + octets > self.total:
                largest = max((one for one in self._holders if one.gives_way), key=_granted, default=None)
                if largest is None or largest is share or largest.granted <= share.granted + octets:
                    self.refused += 1
                    return False
                self.revoked += 1
                largest.give_up()
                self._release(largest, largest.granted)
            share.granted += octets
            self.used += octets
            self._recent = max(self._recent, self.used)
            self.peak = max(self.peak, self.used)
            self._holders.add(share)
        return True

    def release(self, share: Share, octets: int) -> None:
        """`Share.give`."""
        with self._lock:
            self._release(share, octets)
            tell = self._recent - self.used >= WORTH and not self._untidy
            self._untidy = self._untidy or tell
        if tell and self.on_given is not None:
            self.on_given()

    def _release(self, share: Share, octets: int) -> None:
        octets = min(octets, share.granted)
        share.granted -= octets
        self.used -= octets
        if not share.granted:
            self._holders.discard(share)

    def tidy(self) -> bool:
        """Return to the system what was given back, if that is much; whether it was."""
        with self._lock:
            is_worth, self._untidy = self._recent - self.used >= WORTH, False
            self._recent = self.used
        if is_worth:
            from elea.io.allocator import (
                return_to_system,  # not with the module: ctypes costs 8 ms, and few come so far
            )

            return_to_system()
        return is_worth

    # -- links that take nothing --------------------------------------------------------------------------------------

    def blocked(self, queue: Queue) -> None:
        """A link takes no more for now: what may wait for it depends on how many others do not."""
        with self._lock:
            before = self.queue_bytes
            self._blocked.add(queue)
            bound, count = self.queue_bytes, len(self._blocked)
            # All of them anew whenever they have doubled: each is looked at a few times, however many there are.
            others = list(self._blocked) if bound < before and count & (count - 1) == 0 else [queue]
        if bound < QUEUE_BYTES:
            for one in others:
                one.limit(bound)

    def unblocked(self, queue: Queue) -> None:
        """It does again, or has ended."""
        with self._lock:
            self._blocked.discard(queue)
            is_short = (len(self._blocked) + 1) * QUEUE_BYTES > self.total // BLOCKED_PART
        if is_short:
            queue.limit(QUEUE_BYTES)

    @property
    def queue_bytes(self) -> int:
        """Bytes that may wait in one conduit of a link that takes nothing, as many of them as there are now."""
        return max(QUEUE_LEAST, min(QUEUE_BYTES, self.total // BLOCKED_PART // max(1, len(self._blocked))))

    @property
    def blocked_links(self) -> int:
        """Links that take nothing now."""
        return len(self._blocked)


def _granted(share: Share) -> int:
    return share.granted


def default_budget() -> int:
    """Half of the memory of this machine, `MEMORY_BUDGET` at most."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return MEMORY_BUDGET
    return min(MEMORY_BUDGET, there // 2)
