"""`Network`: nodes, the wires between them, and the time they share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Final, Self

from elea.api.config import Config
from elea.api.nodefactory import link_settings, settle_node
from elea.api.settings import Settings
from elea.model.errors import OperationTimeout
from elea.model.limits import MAX_BATCH
from elea.model.node_id import NodeId
from elea.node.admin import Admin
from elea.node.dialect import DEFAULT
from elea.testing.networktrace import Trace
from elea.testing.simnode import Node
from elea.testing.timeline import Timeline
from elea.testing.virtualnode import VirtualRuntime, Wish
from elea.testing.wire import Conditions, Wire

__all__ = ["Network"]

START_NS: Final = 1_767_225_600 * 1_000_000_000
"""The first of January 2026: timestamps look like those of today, and are the same in every run."""

TRACE_LIMIT: Final = 1_000_000
"""Crossings remembered; a run that needs more should be watched in parts."""

SETTLING: Final = 60.0
"""Virtual seconds in which a network that has been left alone should have come to rest."""


class Network:
    """A simulated network: any number of nodes in one thread, in virtual time, the same in every run.

    >>> net = Network(seed=7)
    >>> router, robot, desk = net.router("router"), net.client("robot"), net.client("desk")
    >>> _ = net.link(robot, router, delay=(0.002, 0.010)), net.link(desk, router)
    >>> positions = desk.subscribe("fleet/**")
    >>> net.settle()
    >>> robot.put("fleet/1/position", "3.5 7.0")
    >>> net.run(1.0)
    >>> [(str(sample.key_expr), sample.payload.to_string()) for sample in positions]
    [('fleet/1/position', '3.5 7.0')]

    Everything random comes from `seed`: ids of nodes, cookies, delays, losses. Nothing depends on the machine, so two
    runs of the same program with the same seed have the same `trace`.
    """

    def __init__(self, seed: int = 0, *, start_ns: int = START_NS, trace_limit: int = TRACE_LIMIT) -> None:
        self.seed = seed
        self.trace = Trace(trace_limit)
        self.nodes: dict[str, Node] = {}
        self._timeline = Timeline(start_ns)
        self._wires: dict[frozenset[str], Wire] = {}
        self._wishes: dict[frozenset[str], Wish] = {}
        self._running = False

    @property
    def now(self) -> float:
        """Seconds since the network was made."""
        return self._timeline.now

    # -- building ------------------------------------------------------------------------------------------------------

    def router(self, name: str, config: Config | None = None) -> Node:
        """A node that passes on what others send."""
        return self._add(name, "router", config)

    def peer(self, name: str, config: Config | None = None) -> Node:
        """A node that talks to other peers directly; it finds none by itself, as links are what `link` makes."""
        return self._add(name, "peer", config)

    def client(self, name: str, config: Config | None = None) -> Node:
        """A node that leaves everything to its router."""
        return self._add(name, "client", config)

    def link(
        self,
        a: Node,
        b: Node,
        *,
        delay: float | tuple[float, float] = 0.001,
        loss: float = 0.0,
        reorder: float = 0.0,
        duplicate: float = 0.0,
        datagrams: bool = False,
        mtu: int = MAX_BATCH,
        dialect: str = DEFAULT,
    ) -> Wire:
        """Let `a` connect to `b`, and again whenever the link is lost.

        Args:
            delay: seconds on the way, or the least and the most of them.
            loss, reorder, duplicate: the share of datagrams that is lost, overtaken, or arrives twice.
            datagrams: whether the link is like UDP; otherwise it is like TCP.
            mtu: bytes of the largest batch; longer messages are sent in fragments.
            dialect: what they speak: `zenoh2018`, say.
        """
        pair = _pair(a, b)
        if a is b or pair in self._wires:
            raise ValueError(f"{a} and {b} are {'one node' if a is b else 'linked already'}")
        between = (delay, delay) if isinstance(delay, int | float) else delay
        conditions = Conditions(between, loss, reorder, duplicate, datagrams, mtu)
        wire = Wire(self._timeline, self.trace, (a.name, b.name), conditions, self._chance("wire", a.name, b.name))
        wire.accept = lambda end: b._runtime.links.accept(end, dialect)
        self._wires[pair] = wire
        self._wishes[pair] = Wish(a._runtime, wire, dialect)
        return wire

    def wire(self, a: Node, b: Node) -> Wire:
        """What links two nodes."""
        return self._wires[_pair(a, b)]

    def _add(self, name: str, mode: str, config: Config | None) -> Node:
        if name in self.nodes:
            raise ValueError(f"there is a node {name!r} already")
        chosen = Config() if config is None else copy.deepcopy(config)
        chosen.insert_json5("mode", f'"{mode}"')
        node = self.nodes[name] = Node(name, chosen, self, lambda settings: self._start(name, settings))
        return node

    def _start(self, name: str, settings: Settings) -> VirtualRuntime:
        node_id = settings.id or NodeId.random(self._chance("id", name))
        runtime = VirtualRuntime(
            node_id.data,
            settings.role,
            link_settings(settings),
            timestamping=settings.timestamping,
            timeline=self._timeline,
            chance=self._chance("node", name),
        )
        settle_node(runtime.node, settings)
        admin = settings.admin
        Admin(runtime.node, runtime.links, enabled=admin.enabled, read=admin.read, metadata=settings.metadata)
        return runtime

    def _chance(self, *purpose: str) -> Random:
        """A source for each purpose, so that one more node or link changes nothing for the others."""
        return Random("/".join((str(self.seed), *purpose)))

    # -- breaking ------------------------------------------------------------------------------------------------------

    def part(self, a: Node, b: Node | None = None) -> None:
        """Let nothing through between two nodes, or between one and all the others."""
        for wire in self._chosen(a, b):
            wire.part()

    def heal(self, a: Node | None = None, b: Node | None = None) -> None:
        """Let everything through again: between two nodes, around one, or everywhere."""
        for wire in self._chosen(a, b):
            wire.heal()

    def _chosen(self, a: Node | None, b: Node | None) -> list[Wire]:
        if a is not None and b is not None:
            return [self.wire(a, b)]
        return [wire for wire in self._wires.values() if a is None or a.name in wire.names]

    # -- time ----------------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let time run."""
        limit = self.now + seconds
        self._go_on(lambda: False, limit)
        self._timeline.now = limit

    def run_until(self, condition: Callable[[], object], seconds: float = SETTLING) -> None:
        """Let time run until a condition holds; it is looked at after everything that happens.

        Raises:
            OperationTimeout: it does not hold within these seconds.
        """
        limit = self.now + seconds
        if not self._go_on(condition, limit):
            self._timeline.now = limit
            raise OperationTimeout(f"what was waited for did not come in {seconds:g} s of virtual time")

    def settle(self, seconds: float = SETTLING) -> None:
        """Let time run until every link that can be is open, nothing is on its way and nobody has anything to do.

        Raises:
            OperationTimeout: there was no rest within these seconds.
        """
        try:
            self.run_until(self.is_settled, seconds)
        except OperationTimeout:
            missing = [str(self._wires[pair]) for pair in self._wishes if not self._is_settled(pair)]
            raise OperationTimeout(f"no rest in {seconds:g} s of virtual time: {', '.join(missing)}") from None

    def is_settled(self) -> bool:
        """Whether every link that can be is open, and nothing is on its way."""
        return all(map(self._is_settled, self._wishes)) and not self._timeline.is_busy()

    def _is_settled(self, pair: frozenset[str]) -> bool:
        wire = self._wires[pair]
        if wire.parted or any(self.nodes[name].is_closed() for name in pair):
            return True
        return self._wishes[pair].is_open and not wire.under_way

    def _go_on(self, condition: Callable[[], object], limit: float) -> bool:
        if self._running:
            raise RuntimeError("time is running already: a handler must not wait, let it note what it needs instead")
        self._running = True
        try:
            while not condition():
                if not self._timeline.step(limit):
                    return False
            return True
        finally:
            self._running = False

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every node."""
        for node in self.nodes.values():
            node.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _pair(a: Node, b: Node) -> frozenset[str]:
    return frozenset((a.name, b.name))
