"""Messages lost on the way out, counted by reason: each of them once, for its link and for the node."""

from __future__ import annotations

import threading

from elea.model.logger import logger

__all__ = ["Losses"]


_log = logger("elea.io")

_WHY = {
    "full": "no room, and they may be dropped",
    "refused": "no room, and they may not be dropped: the link is given up",
    "closed": "the link ended before they left",
    "oversized": "larger than a batch of a session without fragments",
}


class Losses:
    """How many messages were lost, by reason; what is counted here is counted in `whole` too.

    `full`: there was no room, and they may be dropped. `refused`: there was none, and they may not, so the link is
    given up. `closed`: the link ended before they left. `oversized`: they do not fit a batch, and the session has no
    fragments. Those of a link are said in the log, the 1st, 2nd, 4th … time for each reason.

    >>> node = Losses()
    >>> link = Losses(node)
    >>> link.add("full", 3)
    True
    >>> link.counts == node.counts == {"full": 3, "closed": 0, "refused": 0, "oversized": 0}
    True
    """

    __slots__ = ("_lock", "_neighbour", "_whole", "counts")

    def __init__(self, whole: Losses | None = None, neighbour: str = "") -> None:
        self.counts = {"full": 0, "closed": 0, "refused": 0, "oversized": 0}
        self._whole = whole
        self._neighbour = neighbour
        self._lock = threading.Lock()

    def add(self, reason: str, messages: int) -> bool:
        """Count some more; whether it is time to say so: there are twice as many as the last time."""
        with self._lock:
            before = self.counts[reason]
            self.counts[reason] = after = before + messages
        if self._whole is not None:
            self._whole.add(reason, messages)
        return after.bit_length() > before.bit_length()

    def tell(self, reason: str, key: str) -> None:
        """Say how many were lost so far."""
        _log.warning(
            "messages dropped: neighbour=%s key=%s reason=%s (%s) count=%d",
            self._neighbour,
            key or "-",
            reason,
            _WHY[reason],
            self.counts[reason],
        )
