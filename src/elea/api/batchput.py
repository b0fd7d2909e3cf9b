"""Publishing record batches: messages are written from columns, without an object per row. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from elea.api.batches import PIECE_ROWS, arrow, parts_of
from elea.api.putroute import PutRoute
from elea.api.zbytes import IntoZBytes
from elea.model.limits import MAX_PUT_ROUTES
from elea.model.qos import CongestionControl, Locality, Qos

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api.session import Session
    from elea.columnar.pushwriter import Outgoing

__all__ = ["Bulk"]

RAW_QOS: Final = Qos(congestion_control=CongestionControl.BLOCK).raw
"""Who hands over many samples at once can wait for them to leave, so none is dropped on the way out."""


NUMBERED: Final = 8
"""Samples of a key in one batch from which on the key is given a number: declaring one takes as much as a few keys."""


class Bulk:
    """The batches that a session publishes, and the ways of their keys."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._put_routes: dict[tuple[str, bool], PutRoute] = {}

    def publish(
        self, batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]], *, qos: int = RAW_QOS
    ) -> int:
        """Send the samples of a batch in their order; returns how many, when all have been handed to their links.

        Args:
            qos: how they travel, as on the wire; with BLOCK, or what does not fit is dropped.

        Raises:
            ValueError, InvalidKeyExpr: the batch is not one of samples; what stands before the part that is none has
                been sent.
            LinkStalled: a neighbour that takes nothing was given up.
        """
        from elea.columnar.pushwriter import Outgoing

        count = 0
        for part in parts_of(arrow(), batch):
            for start in range(0, part.num_rows, PIECE_ROWS):
                self._send(Outgoing(part.slice(start, PIECE_ROWS)), qos)
            count += part.num_rows
        return count

    def _send(self, outgoing: Outgoing, qos: int) -> None:
        import numpy as np

        node = self._session._node
        codes = outgoing.rows[:, 0]
        counts = np.bincount(codes, minlength=len(outgoing.keys)).tolist()
        routes = [self._put_route(key, count >= NUMBERED) for key, count in zip(outgoing.keys, counts, strict=True)]
        if node.stamper is not None and (missing := outgoing.unstamped):
            outgoing.stamp(missing, node.clock.reserve(node.loop.wall_ns(), missing), bytes(node.clock.id))
        # Keys that go the same way travel together.
        ways: dict[tuple[Any, ...], int] = {}
        way_of = np.array(
            [
                ways.setdefault((*[face for way in route.ways for face in way.faces], *route.boxes), len(ways))
                for route in routes
            ],
            np.int64,
        )
        for way in range(len(ways)):
            chosen = None if len(ways) == 1 else np.flatnonzero(way_of[codes] == way)
            self._send_one_way(outgoing, routes, routes[int(np.argmax(way_of == way))], chosen, qos)

    def _send_one_way(
        self, outgoing: Outgoing, routes: list[PutRoute], any_of: PutRoute, chosen: Any, qos: int
    ) -> None:
        """Send rows that go to the same places: in columns if that can be done, else one by one."""
        if not any_of.boxes and len(any_of.ways) == 1 and self._session._node.space.guard is None:
            # Keys that go elsewhere are not chosen; any way stands for theirs.
            first = any_of.ways[0]
            ways = [
                route.ways[0] if route.ways and route.ways[0].encoder is first.encoder else first for route in routes
            ]
            done = first.put_columns(outgoing, ways, chosen, qos)
            if done is True:
                return
            if done is not False:
                any_of.missed(done, False)
                return
        if any_of.boxes or any_of.ways:
            for row in range(len(outgoing.rows)) if chosen is None else chosen.tolist():
                code, meta, payload = outgoing.sample(row)
                routes[code].send(meta, payload, qos, True)

    def _put_route(self, key: str, numbered: bool) -> PutRoute:
        session = self._session
        route = self._put_routes.get((key, numbered))
        if route is None:
            session._key(key)
            if len(self._put_routes) >= MAX_PUT_ROUTES:
                self._put_routes.clear()
            route = self._put_routes[key, numbered] = PutRoute(session, key, Locality.ANY, numbered=numbered)
        session._check()
        if route.generation != session._node.generation:
            route.refresh()
        return route
