"""What a broker tells the allocators of its process: to return what they keep for later, and not to keep it many times.

Threads that read and write logs come and go, and each frees into an arena of its own: of a broker that used 20 MB, 650
were such (`python -m tests.hostile.siege`). It is for glibc, and for Arrow's own pool; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Final

__all__ = ["few_arenas", "return_kept", "return_to_system"]

KEPT: Final = 32 << 20
"""Bytes that may be kept for later."""

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


def few_arenas() -> None:
    """Have threads share what they have freed; for a process that is a broker and nothing else."""
    option = _function("mallopt")
    if option is not None:
        option(_ARENA_MAX, ARENAS)


def return_kept() -> bool:
    """Return what is kept for later if that is much; whether it was. 50 µs if it is not."""
    facts = _function("mallinfo2")
    if facts is None:
        return False
    facts.restype = _Facts
    found = facts()
    try:
        with open("/proc/self/statm", "rb") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return False
    if resident - found.uordblks - found.hblkhd - BASE <= KEPT:
        return False
    return_to_system()
    return True


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
