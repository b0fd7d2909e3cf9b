"""Values of fields over time, out of batches of samples: a line for each key and field, thinned when it grows long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.content import Contents, SampleView
from elea.model.errors import InvalidPredicate
from elea.model.limits import PLOT_LINES, PLOT_POINTS
from elea.model.predicate import Predicate
from elea.model.predicate.closure import path_getter
from elea.model.predicate.syntax import Field, canonical
from elea.recorder.samplebatch import nanoseconds
from elea.wire.details import DEFAULT_QOS

__all__ = ["FieldValues", "field_path"]

_COLUMNS: Final = ("payload", "kind", "encoding", "schema")
_BITS: Final = 1024
"""A whole number of fewer bits is a float."""


def field_path(text: str) -> tuple[str | int, ...]:
    """A field as predicates write it: `speed`, `pos.x`, `wheels[2].slip`, `"odd name"`.

    Raises:
        InvalidPredicate: it is none.

    >>> field_path("wheels[2].slip")
    ('wheels', 2, 'slip')
    """
    found = Predicate(f"{text} IS NULL")
    path = next(iter(found.fields), None)
    if path is None or canonical(found.condition) != f"{canonical(Field(path))} IS NULL":
        raise InvalidPredicate(text, 1, "one field of the content is expected, such as speed or pos.x")
    return path


class FieldValues:
    """What some fields are at which time, by key.

    Numbers count, and booleans as 0 and 1. All else is passed over and counted.
    """

    def __init__(self, fields: Sequence[str], contents: Contents | None = None) -> None:
        self._getters: list[tuple[str, Callable[[Mapping[str, object]], object]]] = [
            (field, path_getter(field_path(field))) for field in fields
        ]
        self.contents = Contents() if contents is None else contents
        """How payloads are read."""
        self._lines: dict[tuple[str, str], _Line] = {}
        self.values = 0
        """Values taken."""
        self.passed_over = 0
        """Values that are no numbers, or not there."""
        self.unreadable = 0
        """Samples of which nobody can tell, because of their encoding or because they are broken."""
        self.more: set[str] = set()
        """Keys for which there was no line left, as many as are remembered."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the values of a batch."""
        _, times = nanoseconds(batch)
        keys = pc.dictionary_encode(batch.column("key"))
        codes, names = keys.indices.to_pylist(), keys.dictionary.to_pylist()
        rows = zip(codes, times.tolist(), *(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
        found: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for code, time, payload, kind, encoding, schema in rows:
            if kind:
                continue
            parts = (False, None, encoding, schema, None, None)
            content = SampleView(names[code], payload, DEFAULT_QOS, parts, self.contents).content()
            if not isinstance(content, Mapping):
                self.unreadable += 1
                continue
            for number, (_, getter) in enumerate(self._getters):
                value = getter(content)
                # A boolean is an int; whole numbers of JSON may be larger than any float.
                if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < _BITS):
                    found.setdefault((code, number), []).append((time, float(value)))
                else:
                    self.passed_over += 1
        for (code, number), points in found.items():
            self._take(names[code], self._getters[number][0], points)

    def _take(self, key: str, field: str, points: list[tuple[int, float]]) -> None:
        line = self._lines.get((key, field))
        if line is None:
            if len(self._lines) >= PLOT_LINES:
                if len(self.more) < 10_000:
                    self.more.add(key)
                return
            line = self._lines[key, field] = _Line()
        self.values += len(points)
        line.add(points)

    def lines(self) -> dict[tuple[str, str], tuple[Any, Any]]:
        """By key and field: times in nanoseconds since 1970, and values; in the order of time."""
        return {name: line.points() for name, line in sorted(self._lines.items())}


class _Line:
    """Points of one line; of long ones, the least and the greatest of neighbours stay."""

    def __init__(self) -> None:
        self._times = np.empty(0, np.int64)
        self._values = np.empty(0, np.float64)
        self._new: list[tuple[int, float]] = []

    def add(self, points: list[tuple[int, float]]) -> None:
        self._new += points
        if len(self._new) >= PLOT_POINTS:
            self._settle()

    def points(self) -> tuple[Any, Any]:
        self._settle()
        return self._times, self._values

    def _settle(self) -> None:
        if self._new:
            times, values = zip(*self._new, strict=True)
            self._new = []
            self._times = np.concatenate([self._times, np.array(times, np.int64)])
            self._values = np.concatenate([self._values, np.array(values, np.float64)])
            order = np.argsort(self._times, kind="stable")
            self._times, self._values = self._times[order], self._values[order]
        while len(self._times) > PLOT_POINTS:
            self._times, self._values = thinned(self._times, self._values)


def thinned(times: Any, values: Any) -> tuple[Any, Any]:
    """Half of the points: of each four the least and the greatest, so that no peak is lost."""
    whole = len(times) // 4 * 4
    groups = np.nan_to_num(values[:whole].reshape(-1, 4))
    chosen = np.sort(np.stack([groups.argmin(axis=1), groups.argmax(axis=1)], axis=1), axis=1)
    places = (chosen + 4 * np.arange(len(groups))[:, None]).ravel()
    return np.concatenate([times[places], times[whole:]]), np.concatenate([values[places], values[whole:]])
