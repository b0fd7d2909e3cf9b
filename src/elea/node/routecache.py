"""Where samples of one key go: remembered per incoming name, forgotten when the space changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from elea.io.dispatch import Mailbox
from elea.model.keyexpr import KeyExpr
from elea.model.limits import CACHED_KEY_CHARS, MAX_ROUTES
from elea.node.zenoh1.pushes import OutgoingKey
from elea.wire.zenoh1.frames import Frames
from elea.wire.zenoh1.samples import Pushed

__all__ = ["Arrived", "Forwarder", "Keeping", "Route", "Routes", "Scanning"]


class Forwarder(Protocol):
    """A session that samples can be sent through."""

    room: int
    """Octets that fit one batch there."""

    def takes_number(self, key: str) -> bool:
        """Whether a number may stand for this key there."""
        ...

    def forward(self, parts: Sequence[bytes], size: int, conduit: int, droppable: bool, samples: int) -> None: ...

    def tell(self, number: int, key: str) -> None: ...


class Keeping(Protocol):
    """A store, to which samples are handed by the thread that read them."""

    def keep(self, pieces: Sequence[tuple[str, Sequence[Pushed]]], arrival_ns: int) -> None:
        """Take runs of samples, all of them with a timestamp. It may wait, which holds up the link they came from."""
        ...


class Scanning(Protocol):
    """Reads runs of messages to blocks (`elea.columnar.scanner.Scanner`)."""

    stopped: Frames

    def scan(
        self, buf: bytes, at: int, generation: int, find: Any, frames: Frames | None = None
    ) -> tuple[int, Any, Any, int]: ...

    def forget(self) -> None: ...


class Route:
    """The way of one key: handlers here, sessions elsewhere, stores here."""

    __slots__ = ("boxes", "expr", "faces", "generation", "keepers", "key", "only_passes", "outgoing", "takers")

    def __init__(
        self,
        key: str,
        generation: int,
        boxes: Sequence[Mailbox],
        faces: tuple[Forwarder, ...],
        outgoing: OutgoingKey,
        keepers: tuple[Keeping, ...] = (),
    ) -> None:
        self.keepers = keepers
        self.key = key
        self.expr = KeyExpr(key)  # made once for all samples of the key
        self.generation = generation
        self.boxes = boxes
        self.faces = faces
        self.outgoing = outgoing
        # Blocks of samples go to those who take them, if nobody else is to have any.
        self.takers: tuple[Mailbox, ...] = ()
        if not faces and not keepers and all(box.takes_blocks for box in boxes):
            self.takers = tuple(boxes)
        self.only_passes = bool(faces) and not boxes and not keepers
        """Whether samples go to neighbours and stay nowhere here."""


class Arrived:
    """A run of samples of one key, as a mailbox holds it."""

    __slots__ = ("key", "octets", "reliable", "run")

    def __init__(self, key: KeyExpr, run: list[Pushed], reliable: bool) -> None:
        self.key = key
        self.run = run
        self.reliable = reliable
        octets = 0
        for raw in cast("list[tuple[Any, ...]]", run):  # as `Pushed`, mypyc would take every tuple apart
            meta: bytes | None = raw[4]
            payload: bytes = raw[5]
            octets += len(payload) if meta is None else len(payload) + len(meta)
        self.octets = octets


class Routes:
    """Routes by the name a neighbour uses: PUSH header bits, scope and suffix."""

    def __init__(self, find: Callable[[int, int, bytes], Route | None]) -> None:
        self._find = find
        self.by_number: dict[int, Route] = {}
        """By number and header bits, for names without a suffix."""
        self._by_name: dict[tuple[int, int, bytes], Route] = {}

    def of(self, header: int, scope: int, suffix: bytes, generation: int) -> Route | None:
        """The route of a name; None if the name stands for no key."""
        if suffix:
            route = self._by_name.get((header & 0x60, scope, suffix))
        else:
            route = self.by_number.get(scope << 7 | header & 0x60)
        if route is None or route.generation != generation:
            route = self._find(header, scope, suffix)
            if route is not None:
                self._remember(header & 0x60, scope, suffix, route)
        return route

    def _remember(self, bits: int, scope: int, suffix: bytes, route: Route) -> None:
        if len(suffix) > CACHED_KEY_CHARS:
            return
        if len(self.by_number) + len(self._by_name) >= MAX_ROUTES:
            self.forget()
        if suffix:
            self._by_name[bits, scope, suffix] = route
        else:
            self.by_number[scope << 7 | bits] = route

    def forget(self) -> None:
        """A resource changed its meaning."""
        self.by_number.clear()
        self._by_name.clear()
