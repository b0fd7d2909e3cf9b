"""Ways to neighbours that want some samples only: those for which one of their predicates holds.

A subscriber says what it wants when it is declared (`Declare.predicates`), so that other samples do not travel. What is
kept back is counted; who subscribed looks again itself, and never depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elea.content import SamplePredicate
from elea.content.contents import PLAIN, UNKNOWN
from elea.content.registry import FORMATS
from elea.content.samplepredicate import view_of
from elea.model.limits import FILTER_BYTES, FILTER_WEIGHT, FILTERS_REMEMBERED
from elea.space.way import Publication, Way

if TYPE_CHECKING:
    from elea.content import SampleView
    from elea.model.errors import EleaError
    from elea.node.openmetrics import OpenMetrics
    from elea.node.schemas import SpaceSchemas
    from elea.wire.details import RawSample

__all__ = ["FilteredWay", "Filters"]


class Filters:
    """The predicates of all neighbours of a node, and what they have kept back."""

    def __init__(self, schemas: SpaceSchemas | None = None) -> None:
        self._schemas = schemas
        self._contents = PLAIN if schemas is None else schemas.passing
        self.passed = 0
        """Samples that were held against predicates and sent."""
        self.kept_back = 0
        """Samples that were not sent because no predicate held."""
        self.unreadable = 0
        """Those of them whose payload could not be read."""
        self.unlooked = 0
        """Samples that were sent because they are too large to be looked at here, or their type is not known here."""
        self.too_heavy = 0
        """Ways whose predicates are too much work; everything is sent there."""
        self._known: dict[tuple[str, ...], SamplePredicate] = {}
        self._views: tuple[list[RawSample], list[SampleView | None]] = ([], [])

    def way(self, way: Way, predicates: tuple[str, ...]) -> Way:
        """A way for samples for which one of some predicates holds; the keys of a neighbour share what tests them."""
        where = self._known.pop(predicates, None)
        if where is None:
            where = SamplePredicate.either(predicates, contents=self._contents)
            if len(self._known) >= FILTERS_REMEMBERED:
                del self._known[next(iter(self._known))]  # the one whose way was looked for longest ago
        self._known[predicates] = where
        if where.weight > FILTER_WEIGHT:
            self.too_heavy += 1
            return way
        return FilteredWay(way, where, self)

    def views(self, key: str, run: list[RawSample]) -> list[SampleView | None]:
        """The samples of a run, to look into: the ways of a route share them, so a payload is decoded once for all."""
        known, views = self._views
        if known is not run:
            contents = self._contents
            views = [view_of(key, raw, contents) for raw in run]
            self._views = (run, views)
        return views

    def is_untold(self, view: SampleView) -> bool:
        """Whether a payload could not be read only because nobody has told this node yet how."""
        if self._schemas is None or view.content() is not UNKNOWN or not view.is_undeclared:
            return False
        return view.encoding[0] in FORMATS or not self._schemas.is_known

    def form(self) -> list[dict[str, object]]:
        """What is held against samples, and what came of it."""
        return [
            {
                "predicates": [str(predicate) for predicate in where.predicates],
                "passed": where.passed,
                "kept_back": where.refused,
                "unreadable": where.unreadable,
            }
            for where in list(self._known.values())
        ]

    def meter(self, text: OpenMetrics) -> None:
        """Add to the metrics page."""
        text.family("elea_filtered_samples", "counter", "Samples held against predicates of neighbours.")
        for result in ("passed", "kept_back", "unreadable", "unlooked"):
            text.sample("elea_filtered_samples_total", getattr(self, result), result=result)
        text.family("elea_heavy_filters", "counter", "Ways whose predicates are too much work to be looked at here.")
        text.sample("elea_heavy_filters_total", self.too_heavy)


class FilteredWay(Way):
    """A way that samples are held back from; the way itself is `way`."""

    def __init__(self, way: Way, where: SamplePredicate, filters: Filters) -> None:
        super().__init__(way.key, way.faces, way.encoder)
        self.way = way
        self.where = where
        self._filters = filters
        self.filtered = self

    def chosen(self, key: str, run: list[RawSample]) -> list[RawSample]:
        """Those of a run that are wanted."""
        where, filters = self.where, self._filters
        takes, unreadable = where.takes_view, where.unreadable
        found: list[RawSample] = []
        for raw, view in zip(run, filters.views(key, run), strict=True):
            if len(raw[5]) > FILTER_BYTES:
                filters.unlooked += 1
                found.append(raw)
            elif takes(view):
                found.append(raw)
            elif where.uses_content and view is not None and filters.is_untold(view):
                filters.unlooked += 1  # who subscribed knows its type, or asks for it
                found.append(raw)
        filters.passed += len(found)
        filters.kept_back += len(run) - len(found)
        filters.unreadable += where.unreadable - unreadable
        return found

    def put(self, meta: bytes | None, payload: bytes, qos: int, reliable: bool) -> EleaError | None:
        if self.chosen(self.key, [(0, 0, b"", qos, meta, payload)]):
            return self.way.put(meta, payload, qos, reliable)
        return None

    def publication(self, meta: bytes | None, qos: int, reliable: bool) -> Publication:
        return FilteredPublication(self, meta, qos, reliable)

    def is_full(self, qos: int, reliable: bool) -> bool:
        return self.way.is_full(qos, reliable)

    def put_columns(self, columns: Any, ways: Sequence[Way], chosen: Any, qos: int) -> bool | EleaError:
        return False  # one by one, so that each is looked at


class FilteredPublication(Publication):
    """Samples of one publisher that are held against predicates."""

    def __init__(self, way: FilteredWay, meta: bytes | None, qos: int, reliable: bool) -> None:
        self._way = way
        self._meta = meta
        self._qos = qos
        self._publication = way.way.publication(meta, qos, reliable)

    def put(self, payload: bytes) -> EleaError | None:
        if self._way.chosen(self._way.key, [(0, 0, b"", self._qos, self._meta, payload)]):
            return self._publication.put(payload)
        return None
