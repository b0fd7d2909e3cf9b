"""What a source brings, on its way: to neighbours, stores, and the handlers of this process.

A source is one neighbour's session, or whatever else reads samples. Samples for neighbours and stores are collected and
leave together, at the end of a batch or before a message that must not overtake them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elea.io.dispatch import Mailbox
from elea.model.qos import BLOCK
from elea.node.route import Keeper, Route, SampleRun
from elea.node.stamper import stamped
from elea.space.way import NOWHERE, Collector, Encoder, Filtered
from elea.wire.details import RawSample

if TYPE_CHECKING:
    from elea.node.node import Node

__all__ = ["Outflow"]


class Outflow:
    """The samples of one source; used by one thread at a time."""

    def __init__(self, node: Node, *, waits: bool = True) -> None:
        self._node = node
        self._waits = waits
        self._encoder: Encoder = NOWHERE
        self._collector = Collector()
        self._collectors: dict[Encoder, Collector] = {}
        self._kept: dict[Keeper, list[tuple[str, list[RawSample]]]] = {}

    def add(self, route: Route, run: list[RawSample], reliable: bool, now_ns: int) -> None:
        """Send a run of samples of one key and one quality of service its way."""
        is_stamped = False
        if route.sieve is not None:
            run = route.sieve(run)
            if not run:
                return
        if route.keepers:
            if self._node.stamper is not None:  # so that who keeps it and who gets it see the same timestamp
                run, is_stamped = stamped(run, self._node.stamper, now_ns), True
            for keeper in route.keepers:
                self._kept.setdefault(keeper, []).append((route.key, run))
        for way in route.ways:
            filtered = way.filtered
            if filtered is None:
                self.collector(way.encoder).add(way, run, reliable, now_ns, is_stamped)
            else:
                self.add_chosen(way.encoder, filtered, route.key, run, reliable, now_ns, is_stamped)
        if route.boxes:
            arrived = SampleRun(route.expr, run, reliable)
            for box in route.boxes:
                self.leave(box, arrived, arrived.octets, len(run), reliable and run[0][3] & BLOCK != 0)

    def add_chosen(
        self,
        encoder: Encoder,
        filtered: Filtered,
        key: str,
        run: list[RawSample],
        reliable: bool,
        now_ns: int,
        is_stamped: bool,
    ) -> None:
        """Send those of a run a way that are wanted there, in their order among all that leaves by this encoder."""
        chosen = filtered.chosen(key, run)
        if chosen:
            self.collector(encoder).add(filtered.way, chosen, reliable, now_ns, is_stamped)

    def collector(self, encoder: Encoder) -> Collector:
        """Where samples for the faces of an encoder are collected."""
        if encoder is not self._encoder:
            found = self._collectors.get(encoder)
            if found is None:
                found = self._collectors[encoder] = encoder.collector(waits=self._waits)
            self._encoder, self._collector = encoder, found
        return self._collector

    def leave(self, box: Mailbox, item: Any, octets: int, count: int, waits: bool) -> None:
        """Leave something in a mailbox. What must not be dropped holds up its link if there is no room."""
        node = self._node
        if waits and box.is_full() and not box.is_open():
            if node.loop.hold(box):
                node.dispatch.add(box, item, octets, count, beyond=True)
                return
            box.wait_for_room()
        node.dispatch.add(box, item, octets, count)

    def flush(self, now_ns: int) -> None:
        """Let go of what was collected: to neighbours, then to the stores, which may wait.

        At the end of a batch, and before each message of it that is no sample: what that says or asks comes after the
        samples before it, whichever thread brings it round.
        """
        if len(self._collectors) == 1:
            self._collector.flush()
        else:
            for collector in self._collectors.values():
                collector.flush()
        if self._kept:
            kept, self._kept = self._kept, {}
            for keeper, pieces in kept.items():
                keeper.keep(pieces, now_ns)
