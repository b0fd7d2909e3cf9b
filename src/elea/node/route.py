"""Where the samples of one key go: to handlers of this process, to stores, to neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from elea.io.dispatch import Mailbox
from elea.model.keyexpr import KeyExpr
from elea.space.way import Way
from elea.wire.details import RawSample

__all__ = ["Durable", "Keeper", "Route", "SafeKeeper", "SampleRun"]


class Keeper(Protocol):
    """A store, to which samples are handed by the thread that read them."""

    @property
    def durability(self) -> str:
        """`transient` or `persistent`."""
        ...

    def keep(self, pieces: Sequence[tuple[str, Sequence[RawSample]]], arrival_ns: int) -> None:
        """Take runs of samples, all of them with a timestamp. It may wait, which holds up the link they came from."""
        ...


class SafeKeeper(Keeper, Protocol):
    """A store that says when samples are safe."""

    def stamped(self, run: list[RawSample]) -> list[RawSample]:
        """The samples as they will be kept: with timestamps."""
        ...

    def keep_safely(self, key: str, run: list[RawSample], done: Callable[[Exception | None], None]) -> None:
        """Store samples of one key; `done` is told, by any thread, when they are safe, or why not.

        It waits for no one: what has no room holds up the link that is read.
        """
        ...


class Durable(Protocol):
    """The durability service of a node, for samples that say themselves how durable they are."""

    def keeper_of(self, key: str, durability: str) -> SafeKeeper | None:
        """The store that has all keys of an expression and is as durable; None if there is none."""
        ...


class Route:
    """The way of one key: handlers here, stores here, neighbours. Good until the node's generation changes."""

    __slots__ = ("boxes", "expr", "generation", "is_denied", "keepers", "key", "only_passes", "sieve", "takers", "ways")

    def __init__(
        self,
        key: str,
        generation: int,
        boxes: Sequence[Mailbox],
        ways: tuple[Way, ...],
        keepers: tuple[Keeper, ...] = (),
        sieve: Callable[[list[RawSample]], list[RawSample]] | None = None,
    ) -> None:
        self.key = key
        self.expr = KeyExpr(key)  # made once for all samples of the key
        self.generation = generation
        self.boxes = boxes
        self.ways = ways
        self.keepers = keepers
        self.is_denied = False
        """Whether rules let nothing of its source through; then its way only counts."""
        self.sieve = sieve
        """What is left of a run that comes from the route's source, where a filter looks at each sample."""
        # Blocks of samples go to those who take them, if nobody else is to have any.
        self.takers: tuple[Mailbox, ...] = ()
        if not ways and not keepers and sieve is None and all(box.takes_blocks for box in boxes):
            self.takers = tuple(boxes)
        self.only_passes = len(ways) == 1 and not boxes and not keepers and sieve is None
        """Whether samples go to neighbours of one dialect and stay nowhere here."""

    def without(self, keeper: Keeper | None) -> Route:
        """The same for samples that a store has already, and that have passed the sieve."""
        return Route(
            self.key, self.generation, self.boxes, self.ways, tuple(o for o in self.keepers if o is not keeper)
        )


class SampleRun:
    """A run of samples of one key, as a mailbox holds it."""

    __slots__ = ("key", "octets", "reliable", "run")

    def __init__(self, key: KeyExpr, run: list[RawSample], reliable: bool) -> None:
        self.key = key
        self.run = run
        self.reliable = reliable
        octets = 0
        for raw in cast("list[tuple[Any, ...]]", run):  # as `RawSample`, mypyc would take every tuple apart
            meta: bytes | None = raw[4]
            payload: bytes = raw[5]
            octets += len(payload) if meta is None else len(payload) + len(meta)
        self.octets = octets
