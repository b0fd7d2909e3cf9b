"""Routes by the name that a neighbour gives to a key: remembered until the space changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from elea.model.limits import CACHED_KEY_CHARS, MAX_ROUTES
from elea.node.route import Route
from elea.wire.zenoh1.frames import Frames

__all__ = ["FrameScanner", "NamedRoutes", "RememberedNames"]


class FrameScanner(Protocol):
    """Reads runs of messages to blocks (`elea.columnar.scanner.Scanner`)."""

    stopped: Frames

    def scan(
        self, buf: bytes, at: int, generation: int, find: Any, frames: Frames | None = None
    ) -> tuple[int, Any, Any, int]: ...

    def forget(self) -> None: ...


class RememberedNames:
    """What all sessions of a node remember together: when it is too much, the one that remembers most forgets."""

    def __init__(self, most: int = MAX_ROUTES) -> None:
        self.most = most
        self.count = 0
        self._sessions: dict[NamedRoutes, None] = {}

    def make_room(self, asking: NamedRoutes) -> None:
        """One more name is to be remembered."""
        self._sessions[asking] = None
        if self.count >= self.most:
            largest = asking
            for one in list(self._sessions):
                if len(one) > len(largest):
                    largest = one
            largest.forget()

    def leave(self, session: NamedRoutes) -> None:
        """A session has ended."""
        session.forget()
        self._sessions.pop(session, None)


class NamedRoutes:
    """Routes by the name a neighbour uses: PUSH header bits, scope and suffix."""

    def __init__(
        self, find: Callable[[int, int, bytes], Route | None], together: RememberedNames | None = None
    ) -> None:
        self._find = find
        self._together = RememberedNames() if together is None else together
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
        self._together.make_room(self)
        before = len(self)
        if suffix:
            self._by_name[bits, scope, suffix] = route
        else:
            self.by_number[scope << 7 | bits] = route
        self._together.count += len(self) - before

    def __len__(self) -> int:
        return len(self.by_number) + len(self._by_name)

    def forget(self) -> None:
        """A resource changed its meaning, or others need the room."""
        self._together.count -= len(self)
        self.by_number.clear()
        self._by_name.clear()

    def end(self) -> None:
        """The session has ended."""
        self._together.leave(self)
