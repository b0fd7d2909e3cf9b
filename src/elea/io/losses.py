"""Messages lost on the way out, counted by reason: each of them once, for its link and for the node."""

from __future__ import annotations

import threading

__all__ = ["Losses"]


class Losses:
    """How many messages were lost, by reason; what is counted here is counted in `whole` too.

    `full`: there was no room, and they may be dropped. `refused`: there was none, and they may not, so the link is
    given up. `closed`: the link ended before they left. `oversized`: they do not fit a batch, and the session has no
    fragments.

    >>> node = Losses()
    >>> link = Losses(node)
    >>> link.add("full", 3)
    >>> link.counts == node.counts == {"full": 3, "closed": 0, "refused": 0, "oversized": 0}
    True
    """

    __slots__ = ("_lock", "_whole", "counts")

    def __init__(self, whole: Losses | None = None) -> None:
        self.counts = {"full": 0, "closed": 0, "refused": 0, "oversized": 0}
        self._whole = whole
        self._lock = threading.Lock()

    def add(self, reason: str, messages: int) -> None:
        """Count some more."""
        with self._lock:
            self.counts[reason] += messages
        if self._whole is not None:
            self._whole.add(reason, messages)
