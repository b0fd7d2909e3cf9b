"""What is known of the log of another broker, and of the rounds of alignment with it."""

from __future__ import annotations

import logging
from typing import Final

from elea.store.alignment import Aligned

__all__ = ["Alignment"]

_log: Final = logging.getLogger("elea.node")


class Alignment:
    """One storage and one broker it is aligned with; told in `@store/info` and the admin space."""

    def __init__(self, storage: str, locator: str) -> None:
        self._storage = storage
        self.locator = locator
        self.node: str | None = None
        self.rounds = 0
        """Rounds that came to their end."""
        self.failed = 0
        self.differences = 0
        """Stretches of time that were not the same."""
        self.brought = 0
        self.unreadable = 0
        """Samples that the other log has listed and could not give; asked for again in the next round."""
        self.ahead = 0
        """Samples that wait for their time, as of the last round: the other broker took them from a clock ahead."""
        self.last_ns: int | None = None
        """When the last round came to its end, since 1970."""
        self.problem: str | None = None
        """Why the last round did not."""

    def done(self, aligned: Aligned, now_ns: int) -> None:
        """A round has come to its end."""
        self.rounds += 1
        self.differences += aligned.differences
        self.unreadable += aligned.missing - aligned.brought
        self.last_ns = now_ns
        if aligned.ahead > self.ahead:
            _log.warning(
                "samples of the future not aligned: storage=%s with=%s ahead=%d; they are brought when their time has "
                "come; check the clocks", self._storage, self.locator, aligned.ahead,
            )  # fmt: skip
        self.ahead = aligned.ahead
        if self.problem is not None or (aligned.brought and self.rounds == 1):
            _log.info("alignment works: storage=%s with=%s node=%s", self._storage, self.locator, self.node)
        self.problem = None
        if aligned.brought:
            _log.info("aligned: storage=%s with=%s samples=%d", self._storage, self.locator, aligned.brought)
        if aligned.missing > aligned.brought:
            missing = aligned.missing - aligned.brought
            _log.warning("samples not aligned: storage=%s with=%s unreadable=%d", self._storage, self.locator, missing)

    def failed_with(self, problem: str) -> None:
        """A round has not; logged when the reason is another than last time."""
        self.failed += 1
        if problem != self.problem:
            self.problem = problem
            _log.warning("alignment failed: storage=%s with=%s problem=%s", self._storage, self.locator, problem)

    def facts(self) -> dict[str, object]:
        """All of it."""
        return {
            "with": self.locator,
            "node": self.node,
            "rounds": self.rounds,
            "failed": self.failed,
            "differences": self.differences,
            "aligned": self.brought,
            "unreadable": self.unreadable,
            "ahead": self.ahead,
            "last_success": None if self.last_ns is None else self.last_ns / 1e9,
            "problem": self.problem,
        }
