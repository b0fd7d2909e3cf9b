"""`timestamping/drop_future_timestamp`: puts whose timestamp is too far ahead are dropped, where others are replaced.

As in eclipse-zenoh it concerns nodes that give timestamps, puts that are routed, and not deletions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.model.logger import logger
from elea.wire.details import has_timestamp, is_deletion, read_stamp

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.openmetrics import OpenMetrics
    from elea.wire.details import RawSample

__all__ = ["FutureStamps", "Sift"]

_log = logger("elea.node")

Sift = Callable[[list["RawSample"]], list["RawSample"]]
"""What is left of a run."""


class FutureStamps:
    """Drops samples from the future, counts and says so."""

    def __init__(self, node: Node) -> None:
        self.dropped = 0
        self._clock = node.clock
        self._wall_ns = node.loop.wall_ns
        node.meters.append(self._meter)

    def sieve(self, key: str, inner: Sift | None) -> Sift:
        """Behind what else holds samples of a route back."""

        def sift(run: list[RawSample]) -> list[RawSample]:
            left = run if inner is None else inner(run)
            return [raw for raw in left if self.passes(key, raw[4])]

        return sift

    def passes(self, key: str, meta: bytes | None) -> bool:
        """Whether a sample is of now or before, as far as it says."""
        if meta is None or is_deletion(meta) or not has_timestamp(meta):
            return True
        ntp64, _, _ = read_stamp(meta)
        if self._clock.accepts(ntp64, self._wall_ns()):
            return True
        self.dropped += 1
        if self.dropped & (self.dropped - 1) == 0:
            _log.warning("samples dropped: reason=timestamp too far ahead key=%s dropped=%d", key, self.dropped)
        return False

    def _meter(self, text: OpenMetrics) -> None:
        text.family("elea_future_samples", "counter", "Samples dropped since their timestamp was too far ahead.")
        text.sample("elea_future_samples_total", self.dropped)
