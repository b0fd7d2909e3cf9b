"""From a run of samples off the wire to a user's handler; compiled where that is possible."""

from __future__ import annotations

from typing import Any, cast

from elea.api.namespace import Namespace
from elea.api.sample import Sample
from elea.api.sinks import Sink
from elea.node.route import SampleRun

__all__ = ["SampleDelivery"]


class SampleDelivery:
    """Makes samples of what arrives for one subscriber."""

    __slots__ = ("_namespace", "_sink")

    def __init__(self, sink: Sink[Sample], namespace: Namespace | None = None) -> None:
        self._sink = sink
        self._namespace = namespace

    def arrived(self, arrived: SampleRun) -> None:
        """Hand a run over."""
        key = arrived.key
        if self._namespace is not None:
            own = self._namespace.own_expr(key)
            if own is None:
                return
            key = own
        run = arrived.run
        if len(run) == 1:
            self._sink.push(Sample(key, run[0]))
        else:
            whole = cast("list[tuple[Any, ...]]", run)  # as `RawSample`, mypyc would take every tuple apart
            self._sink.push_many([Sample(key, raw) for raw in whole])
