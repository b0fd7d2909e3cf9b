"""Where samples of one key go: remembered per incoming name, forgotten when the space changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from elea.broker.delivery import Mailbox
from elea.broker.relay import OutgoingKey
from elea.model.keyexpr import KeyExpr
from elea.wire.zenoh1.samples import Pushed

__all__ = ["Arrived", "Forwarder", "Route", "Routes"]

MAX_ROUTES: Final = 100_000
"""Names remembered per session; then all are forgotten and found again."""


class Forwarder(Protocol):
    """A session that samples can be sent through."""

    def forward(self, route: Route, parts: tuple[bytes, ...], size: int, qos: int, reliable: bool) -> None: ...


class Route:
    """The way of one key: handlers here, sessions elsewhere."""

    __slots__ = ("boxes", "expr", "faces", "generation", "key", "outgoing")

    def __init__(
        self, key: str, generation: int, boxes: Sequence[Mailbox], faces: Sequence[Forwarder], outgoing: OutgoingKey
    ) -> None:
        self.key = key
        self.expr = KeyExpr(key)  # made once for all samples of the key
        self.generation = generation
        self.boxes = boxes
        self.faces = faces
        self.outgoing = outgoing


class Arrived:
    """A run of samples of one key, as a mailbox holds it."""

    __slots__ = ("key", "reliable", "run")

    def __init__(self, key: KeyExpr, run: list[Pushed], reliable: bool) -> None:
        self.key = key
        self.run = run
        self.reliable = reliable


class Routes:
    """Routes by the name a neighbour uses: PUSH header bits, scope and suffix."""

    def __init__(self, find: Callable[[int, int, bytes], Route | None], generation: Callable[[], int]) -> None:
        self._find = find
        self._generation = generation
        self._known: dict[tuple[int, int, bytes], Route | None] = {}

    def of(self, header: int, scope: int, suffix: bytes) -> Route | None:
        """The route of a name; None if the name stands for no key."""
        name = (header & 0x60, scope, suffix)
        route = self._known.get(name)
        if route is None or route.generation != self._generation():
            if len(self._known) >= MAX_ROUTES:
                self._known.clear()
            route = self._find(header, scope, suffix)
            if route is not None:
                self._known[name] = route
        return route

    def forget(self) -> None:
        """A resource changed its meaning."""
        self._known.clear()
