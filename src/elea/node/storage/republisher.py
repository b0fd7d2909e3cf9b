"""Samples that a storage got as a request, on their way to live subscribers: from the broker's own session.

Nobody waits for a subscriber here: the samples are stored, and whoever put them is told so. What a subscriber has no
room for is queued for it up to a bound; one that takes nothing, or stays so far behind, loses its link, and reads the
rest from the log when it comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from elea.node.outflow import Outflow
from elea.node.route import Keeper, Route, SampleRun
from elea.node.storage.records import sample_of
from elea.store import DEL

if TYPE_CHECKING:
    from elea.io.dispatch import Mailbox
    from elea.node.node import Node
    from elea.node.storage.storage import Storage
    from elea.store import Record

__all__ = ["Republisher"]

MAX_ROUTES: Final = 10_000


class Republisher:
    """Used by one thread at a time. `own` are the mailboxes of storages, whose samples do not come back to them."""

    def __init__(self, node: Node, own: set[Mailbox]) -> None:
        self._node = node
        self._own = own
        self._routes: dict[tuple[str, bool], Route] = {}
        self._outflow = Outflow(node, waits=False)

    def publish(self, records: Sequence[Record], keeper: Storage) -> None:
        """Send records to everybody who wants them, but not to `keeper`, who has them."""
        node = self._node
        # One look for all keys first: mostly nobody wants any of them, and a look at each is 1 µs a sample.
        if not records or not self.is_wanted(keeper.key_expr, keeper):
            return
        for record in records:
            if not self.is_wanted(record.key, keeper):
                continue
            route = self.route(record.key, deletions=record.kind == DEL)
            run = [sample_of(record)]
            for way in route.ways:
                if way.filtered is None:
                    self._outflow.collector(way.encoder).add(way, run, True, record.arrival_ns, True)
                else:
                    arrival = record.arrival_ns
                    self._outflow.add_chosen(way.encoder, way.filtered, record.key, run, True, arrival, True)
            for box in route.boxes:
                if box not in self._own:
                    node.dispatch.add(box, SampleRun(route.expr, run, True), len(record.payload))
            for other in route.keepers:
                if other is not keeper:
                    other.keep([(record.key, run)], record.arrival_ns)
        self._outflow.flush(0)  # it has nothing for stores
        if node.dispatch:
            node.deliver_soon()

    def is_wanted(self, key: str, keeper: Keeper) -> bool:
        """Whether there is anybody but `keeper` for samples on a key, or on any key of an expression."""
        route = self.route(key)
        if route.ways or any(other is not keeper for other in route.keepers):
            return True
        return any(box not in self._own for box in route.boxes)

    def route(self, key: str, *, deletions: bool = False) -> Route:
        """Where samples on a key go."""
        name = (key, deletions and self._node.space.guard is not None)  # without rules they go where puts go
        route = self._routes.get(name)
        if route is None or route.generation != self._node.generation:
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            route = self._routes[name] = self._node.route(self._node.local, key, deletions=name[1])
        return route
