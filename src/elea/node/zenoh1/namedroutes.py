"""Routes by the name that a neighbour gives to a key: remembered until the space changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from elea.model.limits import CACHED_KEY_CHARS, MAX_ROUTES
from elea.node.route import Route
from elea.wire.zenoh1.frames import Frames

__all__ = ["FrameScanner", "NamedRoutes"]


class FrameScanner(Protocol):
    """Reads runs of messages to blocks (`elea.columnar.scanner.Scanner`)."""

    stopped: Frames

    def scan(
        self, buf: bytes, at: int, generation: int, find: Any, frames: Frames | None = None
    ) -> tuple[int, Any, Any, int]: ...

    def forget(self) -> None: ...


class NamedRoutes:
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
