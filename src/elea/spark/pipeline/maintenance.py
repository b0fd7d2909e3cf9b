"""Keeping tables fast and small: few large files of many small ones, and what no version needs any more removed.

It is done by the driver, between two batches of the table, so that nothing is written meanwhile. Readers are not
disturbed: a version that is younger than the retention keeps its files.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from elea.spark.delta import COMPACT_EVERY
from elea.spark.pipeline.targets import DeltaTarget

if TYPE_CHECKING:
    from elea.spark.pipeline.spec import Duration
    from elea.spark.pipeline.targets import Target

__all__ = ["Upkeep"]

VACUUM_SECONDS: Final = 3600.0
"""How often files are looked for that nobody needs; it lists the whole directory."""

_log: Final = logging.getLogger("elea.spark")


class Upkeep:
    """Called after each batch of a table."""

    def __init__(
        self,
        targets: Iterable[Target],
        retention: Duration | None,
        *,
        compact_every: int = COMPACT_EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = [one for one in targets if isinstance(one, DeltaTarget)]
        self._retention = retention
        self._compact_every = compact_every
        self._clock = clock
        self._next = clock()
        self.removed = 0
        """Files of versions that are older than the retention, and of tasks that died."""

    @property
    def compactions(self) -> int:
        """How often small files were put together."""
        return sum(one.counts.compactions for one in self._targets)

    def __call__(self, batch_id: int) -> None:
        """Do what is due after this batch."""
        if batch_id and batch_id % self._compact_every == 0:
            for target in self._targets:
                target.compact()
        if self._retention is not None and self._clock() >= self._next:
            self._next = self._clock() + VACUUM_SECONDS
            for target in self._targets:
                self._vacuum(target, self._retention)

    def _vacuum(self, target: DeltaTarget, retention: Duration) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        # Delta counts in hours. One at least: readers that have opened a version go on reading it for a while.
        hours = max(math.ceil(retention.seconds / 3600), 1)
        try:
            found = DeltaTable(target.path).vacuum(
                hours,
                dry_run=False,
                enforce_retention_duration=False,
                full=True,  # also what no version ever had
            )
        except DeltaError as error:  # there is a next time
            _log.warning("table not vacuumed: table=%s problem=%s", target.path, error)
        else:
            self.removed += len(found)
