"""Subscribers with a predicate: what they tell others, and what they look at themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.content import SamplePredicate
from elea.node.route import SampleRun

if TYPE_CHECKING:
    from elea.api.namespace import Namespace
    from elea.model.predicate import Predicate

__all__ = ["FilteredDelivery", "declared_predicates"]


def declared_predicates(predicate: Predicate, namespace: Namespace | None) -> tuple[str, ...]:
    """What other nodes may hold samples against before they send them; nothing if they would see another sample.

    A timestamp may be given on the way, by the next router. Keys of a session with a namespace are other ones outside.
    """
    if "timestamp" in predicate.metadata or (namespace is not None and "key" in predicate.metadata):
        return ()
    return (str(predicate),)


class FilteredDelivery:
    """Brings those samples of a run to a handler for which a predicate holds."""

    __slots__ = ("_namespace", "_next", "where")

    def __init__(
        self, where: SamplePredicate, following: Callable[[SampleRun], None], namespace: Namespace | None = None
    ) -> None:
        self.where = where
        self._next = following
        self._namespace = namespace

    def arrived(self, arrived: SampleRun) -> None:
        """Hand a run over."""
        key: str | None = str(arrived.key)
        if self._namespace is not None and key is not None:
            key = self._namespace.own(key)
            if key is None:
                return
        run = self.where.chosen(key or "", arrived.run)
        if run is arrived.run:
            self._next(arrived)
        elif run:
            self._next(SampleRun(arrived.key, run, arrived.reliable))
