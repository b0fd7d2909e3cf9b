"""How far so many octets of a log reach: what a reader that takes a bounded amount at a time wants to know."""

from __future__ import annotations

from collections.abc import Sequence

from elea.store.retention import Size

__all__ = ["measured"]


def measured(sizes: Sequence[Size], start: int, end: int, octets: int) -> int:
    """The position up to which positions from `start` take about `octets` on disk; at least one, if there is one.

    Samples of one segment count as equally large: what a segment holds is not read for this.
    """
    left, following = octets, start
    for first, after, size, _ in sizes:
        low, high = max(first, start), min(after, end)
        if low >= high:
            continue
        following = min(low + left * (after - first) // max(size, 1), high)
        left -= size * (high - low) // (after - first)
        if following < high or left <= 0:
            break
    return max(following, min(start + 1, end))
