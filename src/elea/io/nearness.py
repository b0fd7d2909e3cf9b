"""On which core a link is read: on that of the thread that waits for what comes over it.

A callback that hands something to a thread of the user's wakes that thread where it ran last. Is that another core than
the one on which the link's own thread waits awake (`vigil.py`), then waking it crosses cores, and both bid for the
interpreter at once: a round trip through a broker takes 160 to 230 µs instead of 100. The kernel moves threads apart
whenever a core is idle for a moment, and leaves them there.

So the reading thread looks now and then, at the beginning of a wait that is awake, where the one ran who sent last over
its link, and moves there. It moves nobody else, and is free to be moved away again: its affinity is what it was. Where
that happens at once, as on a machine with cores to spare, it looks less and less often.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final

__all__ = ["LEAST", "MOST", "Nearness", "core_of"]

LEAST: Final = 0.005
"""Seconds between two looks. One takes 20 µs, of a time in which nothing can have come yet."""

MOST: Final = 0.64
"""Seconds between two looks where threads are moved apart each time; they double until then."""

_PROCESSOR: Final = 36  # of the fields behind the name, as in proc(5): the 39th of all


class Nearness:
    """The looks of the thread that reads one link."""

    __slots__ = ("_again", "_apart", "_pause", "looks", "moves")

    def __init__(self) -> None:
        self.looks = 0
        self.moves = 0
        self._again = 0.0
        self._pause = LEAST
        self._apart = False  # at the last look

    def is_due(self, now: float) -> bool:
        """Whether it is time for the next look."""
        return now >= self._again

    def seek(self, other: int, now: float) -> None:
        """Go where a thread ran last; for a thread that is not the user's. Threads are named as the system does."""
        self._again = now + self._pause
        own = threading.get_native_id()
        if other in (0, own):
            return
        self.looks += 1
        here, there = core_of(own), core_of(other)
        if here < 0 or there < 0:  # a system that does not tell, or a thread that has ended
            self._pause = MOST
        elif here == there:
            self._apart, self._pause = False, LEAST
        else:
            self._pause = min(2 * self._pause, MOST) if self._apart else LEAST
            self._apart = True
            self._move(there)
        self._again = now + self._pause

    def _move(self, core: int) -> None:
        with contextlib.suppress(OSError):  # not allowed: then it stays where it is
            allowed = os.sched_getaffinity(0)
            if core in allowed:
                try:
                    os.sched_setaffinity(0, (core,))
                    self.moves += 1
                finally:
                    os.sched_setaffinity(0, allowed)


def core_of(thread: int) -> int:
    """The core on which a thread of this process runs, or ran last; -1 if the system does not tell."""
    try:
        with open(f"/proc/self/task/{thread}/stat", "rb", buffering=0) as stat:
            return int(stat.read(1024).rpartition(b")")[2].split()[_PROCESSOR])
    except (OSError, IndexError, ValueError):
        return -1
