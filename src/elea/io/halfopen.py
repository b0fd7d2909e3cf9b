"""Places for links whose handshakes are under way: bounded in all, and shared fairly between source addresses.

A link that is accepted takes a place until its session is open. When all places are taken, a newcomer still gets one:
the source that holds most of them gives up one, of the step of the handshake where most of its links stand, and there
the one that has stood longest. So those that wait for nothing push out each other, also if an honest client has the
same address; and a link keeps its place for a moment, in which a busy client can take the next step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from elea.io.addresses import source_of
from elea.io.timers import monotonic
from elea.model.errors import LimitReached
from elea.model.limits import ACCEPT_CROWD, ACCEPT_PENDING

__all__ = ["HalfOpen", "Place"]

GRACE: Final = 0.25
"""Seconds a link may stand at a step before it makes place for others."""


class Place:
    """The place of one link."""

    __slots__ = ("_all", "give_up", "since", "source", "steps")

    def __init__(self, places: HalfOpen, source: str, give_up: Callable[[LimitReached], None], steps: int) -> None:
        self._all = places
        self.source = source
        self.give_up = give_up
        self.steps = steps
        """Steps of its handshakes that it has done right."""
        self.since = 0.0

    def advance(self) -> None:
        """Another step is done."""
        self._all.advance(self)

    def leave(self) -> None:
        """The session is open, or the link has ended."""
        self._all.leave(self)


class HalfOpen:
    """The places of a node.

    >>> places, closed = HalfOpen(2, grace=0.0), []
    >>> for remote in ("tcp/10.0.0.1:5001", "tcp/10.0.0.1:5002", "tcp/10.0.0.2:5003"):
    ...     _ = places.take(remote, lambda reason, remote=remote: closed.append(remote))
    >>> closed, len(places), places.displaced
    (['tcp/10.0.0.1:5001'], 2, 1)
    """

    def __init__(
        self, most: int = ACCEPT_PENDING, *, grace: float = GRACE, now: Callable[[], float] = monotonic
    ) -> None:
        self.most = max(most, 1)
        self.displaced = 0
        """Links that were closed to make place for others."""
        self._grace = grace
        self._now = now
        self._count = 0
        self._by_source: dict[str, dict[Place, None]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    def take(self, remote: str, give_up: Callable[[LimitReached], None], *, steps: int = 0) -> Place:
        """A place for a link.

        Args:
            remote: the locator of its other end.
            give_up: closes the link; called by whoever takes the next place.
        """
        place = Place(self, source_of(remote), give_up, steps)
        now = place.since = self._now()
        with self._lock:
            # Two at a time, so that there are no more than `most` again soon after an attack.
            given = [one for _ in range(2) if (one := self._late(now)) is not None]
            self._by_source.setdefault(place.source, {})[place] = None
            self._count += 1
        self._give_up(given)
        return place

    def make_room(self, count: int) -> None:
        """Close that many links, whatever their age: something else has run out."""
        with self._lock:
            given = [self._displaced() for _ in range(min(count, self._count))]
        self._give_up(given)

    def advance(self, place: Place) -> None:
        """A link has come a step further: it stands there as the last one."""
        with self._lock:
            places = self._by_source.get(place.source, {})
            if place in places:
                del places[place]
                place.steps += 1
                place.since = self._now()
                places[place] = None

    def leave(self, place: Place) -> None:
        """A place is free again; it does no harm to say so twice."""
        with self._lock:
            self._remove(place)

    def _late(self, now: float) -> Place | None:
        if self._count < self.most:
            return None
        is_crowd = self._count >= self.most * ACCEPT_CROWD
        found = self._candidate()
        return self._displaced(found) if is_crowd or now - found.since >= self._grace else None

    def _candidate(self) -> Place:
        places = max(self._by_source.values(), key=len)
        stand: dict[int, int] = {}
        for place in places:
            stand[place.steps] = stand.get(place.steps, 0) + 1
        steps = max(stand, key=stand.__getitem__)
        return next(place for place in places if place.steps == steps)

    def _displaced(self, place: Place | None = None) -> Place:
        found = place or self._candidate()
        self._remove(found)
        self.displaced += 1
        return found

    def _remove(self, place: Place) -> None:
        places = self._by_source.get(place.source)
        if places is not None and place in places:
            del places[place]
            self._count -= 1
            if not places:
                del self._by_source[place.source]

    def _give_up(self, places: list[Place]) -> None:
        for place in places:
            place.give_up(LimitReached("accept_pending", self.most))
