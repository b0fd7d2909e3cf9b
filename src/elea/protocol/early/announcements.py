"""What a broker tells a publisher: that somebody listens, or nobody any more.

Spec: zenoh-2018 Z18-DAT-01.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elea.protocol.early.declarations import Declarations
from elea.protocol.early.generation import Generation
from elea.protocol.early.names import Names, Subject

__all__ = ["Announcements"]


class Announcements:
    """The publishers of one neighbour.

    Args:
        is_wanted: whether another node subscribes to what is published in a space.
    """

    def __init__(
        self, generation: Generation, theirs: Declarations, names: Names, is_wanted: Callable[[int, Subject], bool]
    ) -> None:
        self._generation = generation
        self._theirs = theirs
        self._names = names
        self._is_wanted = is_wanted
        self._told: set[tuple[int, int]] = set()

    def review(self) -> dict[int, list[Any]]:
        """By space, what is to be declared since publishers here or subscribers elsewhere have changed."""
        wanted = {
            (space, id)
            for space, declared in self._theirs.spaces.items()
            for id in declared.publishers
            if (subject := self._names.subject(space, id)) is not None and self._is_wanted(space, subject)
        }
        m = self._generation.messages
        found: dict[int, list[Any]] = {}
        # A publisher that is gone is told too: its id may come to be used again.
        for space, id in sorted(self._told - wanted):
            found.setdefault(space, []).append(m.ForgetSubscriberDecl(id))
        for space, id in sorted(wanted - self._told):
            found.setdefault(space, []).append(m.SubscriberDecl(id, m.SubscriptionModeId.PushModeId))
        self._told = wanted
        return found
