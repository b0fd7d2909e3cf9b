"""A predicate over payloads of declared types, as columns: what `BatchFilter` need not look at row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from elea.columnar.cdrcolumns import CdrColumns
from elea.columnar.cdrtypes import enumerations_of
from elea.columnar.predicate import expression
from elea.content import Contents, SamplePredicate
from elea.content.registry import FORMATS
from elea.model.errors import InvalidPredicate
from elea.model.predicate import Predicate

__all__ = ["TypedFilter"]

LEAST: Final = 16
"""Fewer rows are looked at one by one."""

_READABLE: Final = "\0readable"
"""A column that no schema can name."""


class _Reading(NamedTuple):
    columns: CdrColumns
    expression: Any


class TypedFilter:
    """Holds batches against a predicate that looks at fields only."""

    def __init__(self, predicate: Predicate, contents: Contents) -> None:
        self._predicate = predicate
        self._contents = contents
        self._generation = -1
        self._readings: dict[tuple[int, bytes], _Reading | None] = {}

    def chosen(
        self,
        batch: pa.RecordBatch,
        where: SamplePredicate,
        one_by_one: Callable[[pa.RecordBatch], list[int]],
        alive: Callable[[], object] | None,
    ) -> list[int]:
        """The rows that are wanted; those that are not of a declared type are looked at `one_by_one`."""
        left = np.ones(batch.num_rows, bool)
        found: list[int] = []
        for rows, holds, unreadable in self.judged(batch):
            left[rows] = False
            found += rows[holds].tolist()
            where.unreadable += unreadable
            if alive is not None:
                alive()
        if left.all():
            return one_by_one(batch)
        others = np.flatnonzero(left)
        if len(others):
            found += others[one_by_one(batch.take(pa.array(others)))].tolist()
        return sorted(found)

    def judged(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any, int]]:
        """Rows of types that are declared, for which of them it holds, and how many payloads could not be read."""
        schemas = self._contents.schemas
        if schemas is None or self._predicate.metadata:
            return
        if schemas.generation != self._generation:
            self._generation = schemas.generation
            self._readings.clear()
        encodings = batch.column("encoding").to_numpy(zero_copy_only=False)
        is_put = batch.column("kind").to_numpy(zero_copy_only=False) == 0
        for encoding in set(np.unique(encodings).tolist()) & FORMATS.keys():
            rows = np.flatnonzero((encodings == encoding) & is_put)
            names = pc.dictionary_encode(batch.column("schema").take(pa.array(rows)))
            places = pc.fill_null(names.indices, -1).to_numpy()
            for place, name in enumerate(names.dictionary.to_pylist()):
                own = rows[places == place]
                reading = self._reading(encoding, name) if name is not None and len(own) >= LEAST else None
                if reading is not None:
                    yield (own, *_verdict(reading, batch.column("payload").take(pa.array(own))))

    def _reading(self, encoding: int, name: bytes) -> _Reading | None:
        key = (encoding, name)
        if key not in self._readings:
            assert self._contents.schemas is not None
            its = self._contents.schemas.struct(encoding, name)
            self._readings[key] = None if its is None else self._made(CdrColumns(its))
        return self._readings[key]

    def _made(self, columns: CdrColumns) -> _Reading | None:
        schema = pa.schema([*columns.type, pa.field(_READABLE, pa.bool_())])
        try:
            test = expression(
                self._predicate,
                schema,
                enumerations=enumerations_of(columns.declared),
                readable=pc.field(_READABLE),
            )
        except InvalidPredicate:  # a function without a form for columns
            return None
        return _Reading(columns, test)


def _verdict(reading: _Reading, payloads: pa.Array) -> tuple[Any, int]:
    values = reading.columns.decode(payloads)
    readable = values.is_valid()
    table = pa.Table.from_arrays([*values.flatten(), readable], names=[*(f.name for f in values.type), _READABLE])
    plan = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions([reading.expression], ["verdict"])),
    ]
    found = acero.Declaration.from_sequence(plan).to_table(use_threads=False).column("verdict")
    holds = pc.fill_null(found, False).to_numpy().astype(bool)
    unreadable = ~readable.to_numpy(zero_copy_only=False) & ~holds
    return holds, int(unreadable.sum())
