"""Chance from the operating system."""

from __future__ import annotations

import os

__all__ = ["SystemRandom"]


class SystemRandom:
    """Numbers nobody can guess, as of `random.SystemRandom`, whose module would take a millisecond to import."""

    def randrange(self, start: int, stop: int, /) -> int:
        """A number from `start`, below `stop`."""
        width = stop - start
        if width <= 0:
            raise ValueError(f"there is no number from {start} below {stop}")
        # With 64 bits more than needed, no number is noticeably likelier than another.
        drawn = int.from_bytes(os.urandom(width.bit_length() // 8 + 9), "big")
        return start + drawn % width

    def randbytes(self, n: int) -> bytes:
        """Bytes."""
        return os.urandom(n)
