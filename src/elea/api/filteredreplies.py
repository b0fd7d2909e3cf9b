"""Gets with a predicate: what the query says, and what is done with its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elea.api.reply import Reply
from elea.model.keyexpr import KeyExpr
from elea.model.predicate.parameter import WHERE, parameter_of
from elea.model.selector import Selector

if TYPE_CHECKING:
    from elea.api.sinks import Sink
    from elea.content import SamplePredicate

__all__ = ["FilteredReplies", "with_predicate"]


def with_predicate(selector: Selector | KeyExpr | str, where: SamplePredicate) -> Selector:
    """The selector that says what is wanted, for those who understand it."""
    chosen = selector if isinstance(selector, Selector) else Selector(str(selector))
    parameters = chosen.parameters
    parameters.insert(WHERE, parameter_of(where.predicates[0]))
    return Selector(chosen.key_expr, parameters)


class FilteredReplies:
    """Hands over replies for which a predicate holds, and errors."""

    def __init__(self, sink: Sink[Reply], where: SamplePredicate) -> None:
        self._sink = sink
        self._where = where

    @property
    def dropped(self) -> int:
        return self._sink.dropped

    def push(self, item: Reply, /) -> None:
        """Deliver a reply, or leave it out."""
        sample = item.ok
        if sample is None:
            self._sink.push(item)
            return
        raw = sample._raw
        if self._where.takes(str(sample._key), raw[4], raw[5], raw[3]):
            self._sink.push(item)

    def push_many(self, items: Sequence[Reply], /) -> None:
        """Deliver several."""
        for item in items:
            self.push(item)

    def close(self) -> None:
        """Nothing more will come."""
        self._sink.close()
