"""The timestamps that a node adds to messages that collect them: where they are sent, pass, and arrive.

As in eclipse-zenoh every node on the way gives one for `ROUTE`, that of the sender and that of the receiver too; within
one session there is none. Spec: zenoh-1 §8.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.model.logger import logger
from elea.node.outflow import Outflow
from elea.node.route import Route
from elea.node.stamper import stamped
from elea.space.questions import Request
from elea.wire.details import write_stamp
from elea.wire.timestampstack import CUSTOM, RECEIVE, ROUTE, SEND, CollectedStamps, StackedDetails

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.wire.details import RawSample

__all__ = ["Instruments"]

_log = logger("elea.node")


class Instruments:
    """The clock of one node, or what a program has put in its place."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.callback: Callable[[], bytes] | None = None
        """Gives the timestamps, if the program wants its own."""
        self.failures = 0

    def begun(self, points: int) -> CollectedStamps:
        """The stack of a message that is sent."""
        return self.marked(CollectedStamps(points), SEND)

    def marked(self, stack: CollectedStamps, point: int) -> CollectedStamps:
        """The stack with a timestamp of now, if that was asked for at this point. Calls the user: not with a lock."""
        if not stack.points & point:
            return stack
        if self.callback is not None:
            return stack.with_record(point | CUSTOM, self._custom(self.callback))
        node = self._node
        return stack.with_record(point, write_stamp(node.clock.tick(node.loop.wall_ns())))

    def _custom(self, callback: Callable[[], bytes]) -> bytes:
        try:
            given = callback()
            if isinstance(given, bytes):
                return given
            problem: object = f"it returned {type(given).__name__}, not bytes"
        except Exception as error:  # noqa: BLE001 - the message must not be lost for it
            problem = error
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            _log.error("timestamp callback failed: problem=%s failures=%d", problem, self.failures)
        return b""

    def routed(self, request: Request) -> Request:
        """A query of this process, as others get it."""
        return Request(
            request.id,
            request.key,
            request.target,
            request.body,
            request.timeout_ms,
            request.qos,
            request.budget,
            None if request.stack is None else self.marked(request.stack, ROUTE),
        )

    def add(
        self, outflow: Outflow, route: Route, sample: RawSample, stack: CollectedStamps, reliable: bool, now_ns: int
    ) -> None:
        """Send a sample of a neighbour its way: what passes on, and what arrives here, with stacks of their own."""
        run = [sample] if route.sieve is None else route.sieve([sample])
        if not run:
            return
        if route.keepers and self._node.stamper is not None:
            run = stamped(run, self._node.stamper, now_ns)  # all see the same timestamp
        stack = self.marked(stack, ROUTE)
        passing = Route(route.key, route.generation, (), route.ways, route.keepers)
        outflow.add(passing, _with(run, stack), reliable, now_ns)
        if route.boxes:
            arrived = _with(run, self.marked(stack, RECEIVE))
            outflow.add(Route(route.key, route.generation, route.boxes, ()), arrived, reliable, now_ns)


def _with(run: list[RawSample], stack: CollectedStamps) -> list[RawSample]:
    return [(*one[:4], StackedDetails(one[4], stack), one[5]) for one in run]
