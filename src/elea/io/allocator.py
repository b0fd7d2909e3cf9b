"""What a broker tells the allocators of its process: to return what they keep for later, and not to keep it many times.

Threads that read and write logs come and go, and each frees into an arena of its own: of a broker that used 20 MB, 650
were such (`python -m tests.hostile.siege`). It is for glibc, and for Arrow's own pool; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Final

__all__ = ["KeptMemory", "few_arenas", "return_to_system"]

KEPT: Final = 32 << 20
"""Bytes that may be kept for later, beyond what cannot be returned."""

BASE: Final = 64 << 20
"""About what a process has that is no allocator's: libraries, stacks."""

ARENAS: Final = 2
"""The interpreter runs one thread at a time: more than this serve nobody."""

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of malloc.h."""

_C: Final = ctypes.CDLL(None)


class _Facts(ctypes.Structure):
    """`struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )


class KeptMemory:
    """What is kept for later, looked at from time to time: 50 µs, and some milliseconds when it is returned.

    Python's own pools and libraries look the same from here, and stay: so what was left the last time is no reason to
    try again.
    """

    def __init__(self) -> None:
        self._left = BASE

    def look(self) -> bool:
        """Return it if that is much; whether it was."""
        kept = _kept()
        if kept is None:
            return False
        self._left = max(BASE, min(self._left, kept))
        if kept - self._left <= KEPT:
            return False
        return_to_system()
        self._left = max(BASE, _kept() or 0)
        return True


def few_arenas() -> None:
    """Have threads share what they have freed; for a process that is a broker and nothing else."""
    option = _function("mallopt")
    if option is not None:
        option(_ARENA_MAX, ARENAS)


def return_to_system() -> None:
    """Have the allocators return what they keep for later."""
    arrow = sys.modules.get("pyarrow")  # only a node that keeps data has it
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def _function(name: str) -> Any:
    return getattr(_C, name, None)


def _kept() -> int | None:
    """Bytes of this process that nothing has asked malloc for; None where nobody can say."""
    facts = _function("mallinfo2")
    if facts is None:
        return None
    facts.restype = _Facts
    found = facts()
    try:
        with open("/proc/self/statm", "rb") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
    return int(resident - found.uordblks - found.hblkhd)
