"""A predicate over batches of samples, in the columns of a log or of live batches.

What looks at no payload is an expression over the columns; payloads are decoded only of rows that are left: those of
declared types as columns (`typedfilter`), the others one by one. The verdict is that of `SamplePredicate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from elea.columnar.predicate import expression
from elea.columnar.samplecolumns import encodings, microseconds
from elea.content import Contents, SamplePredicate
from elea.content.contents import PLAIN
from elea.model.errors import InvalidPredicate
from elea.model.predicate import Predicate
from elea.model.predicate.syntax import And, Condition, Field, Or, Property, canonical, walk
from elea.model.predicate.types import METADATA, Enumeration

if TYPE_CHECKING:
    from elea.columnar.typedfilter import TypedFilter

__all__ = ["BatchFilter"]

_SCHEMA: Final = pa.schema(
    {
        "key": pa.string(),
        "kind": pa.uint8(),
        "timestamp": pa.timestamp("us", "UTC"),
        "encoding": pa.string(),
        "priority": pa.uint8(),
        "express": pa.bool_(),
        "size": pa.int64(),
    }
)
LOOKED: Final = 1 << 18
"""Bytes of samples that are looked into between two looks whether somebody waits."""

_ENUMERATIONS: Final[dict[tuple[str, ...], Enumeration]] = {
    (name,): its for name, its in METADATA.items() if isinstance(its, Enumeration)
}


class BatchFilter:
    """Holds batches against a predicate; counts what it lets through."""

    def __init__(self, predicate: Predicate | str, *, contents: Contents = PLAIN) -> None:
        whole = Predicate.of(predicate)
        condition = whole.condition
        terms: tuple[Condition, ...] = condition.terms if isinstance(condition, And) else (condition,)
        quick = [term for term in terms if _is_quick(term)]
        self._expression = None
        self._metadata: frozenset[str] = frozenset()
        if quick:
            try:
                part = _joined(quick, whole)
                self._expression = expression(part, _SCHEMA, enumerations=_ENUMERATIONS)
                self._metadata = part.metadata
            except InvalidPredicate:  # a function without a form for columns
                quick = []
        slow = [term for term in terms if term not in quick]
        self._where = SamplePredicate(_joined(slow, whole), contents=contents) if slow else None
        self._typed = _typed(_joined(slow, whole), contents) if slow else None
        SamplePredicate(whole)  # refuses what makes no sense
        self.passed = 0
        """Samples that were taken."""
        self.refused = 0
        """Samples that were not, those below included."""
        self.unreadable = 0
        """Samples whose payload is not what its encoding says."""

    def filter(self, batch: pa.RecordBatch, alive: Callable[[], object] | None = None) -> pa.RecordBatch:
        """The rows for which the predicate holds; `alive` is called now and then, and may raise to end it."""
        found = batch
        if self._expression is not None:
            found = batch.filter(self._quick_mask(batch))
        if self._where is not None and found.num_rows:
            chosen = self._chosen(found, self._where, alive)
            if len(chosen) < found.num_rows:
                found = found.take(pa.array(chosen, pa.int64()))
            self.unreadable = self._where.unreadable
        self.passed += found.num_rows
        self.refused += batch.num_rows - found.num_rows
        return found

    def tell(self, where: SamplePredicate) -> None:
        """Show what was counted where others look for it."""
        where.passed, where.refused, where.unreadable = self.passed, self.refused, self.unreadable

    def _quick_mask(self, batch: pa.RecordBatch) -> pa.Array:
        """For which rows the part without payloads holds."""
        columns = [
            _MAKERS[field.name](batch) if field.name in self._metadata else pa.nulls(batch.num_rows, field.type)
            for field in _SCHEMA
        ]
        rows = acero.TableSourceNodeOptions(pa.Table.from_arrays(columns, schema=_SCHEMA))
        verdict = acero.ProjectNodeOptions([self._expression], ["verdict"])
        plan = [acero.Declaration("table_source", rows), acero.Declaration("project", verdict)]
        found = acero.Declaration.from_sequence(plan).to_table(use_threads=False)
        return found.column("verdict").combine_chunks()

    def _chosen(self, batch: pa.RecordBatch, where: SamplePredicate, alive: Callable[[], object] | None) -> list[int]:
        if self._typed is None:
            return self._one_by_one(batch, where, alive)
        return self._typed.chosen(batch, where, lambda others: self._one_by_one(others, where, alive), alive)

    def _one_by_one(
        self, batch: pa.RecordBatch, where: SamplePredicate, alive: Callable[[], object] | None
    ) -> list[int]:
        names = ("key", "payload", "kind", "ntp64", "stamp_id", "encoding", "schema", "qos")
        rows = zip(*[batch.column(name).to_pylist() for name in names], strict=True)
        found: list[int] = []
        looked = 0
        for at, (key, payload, kind, ntp64, stamp_id, encoding, schema, qos) in enumerate(rows):
            stamp = None if ntp64 is None else (ntp64, stamp_id or b"")
            if where.takes_parts(key, payload, qos, (kind == 1, stamp, encoding, schema, None, None)):
                found.append(at)
            looked += 64 + len(payload)
            if looked > LOOKED and alive is not None:
                looked = 0
                alive()
        return found


def _typed(predicate: Predicate, contents: Contents) -> TypedFilter | None:
    """What looks at payloads of declared types as columns; None if there are none, or no NumPy, as in a broker."""
    if contents.schemas is None:
        return None
    try:
        from elea.columnar.typedfilter import TypedFilter
    except ImportError:
        return None
    return TypedFilter(predicate, contents)


def _is_quick(term: Condition) -> bool:
    return not any(isinstance(node, Field | Property) for node in walk(term))


def _joined(terms: list[Condition], whole: Predicate) -> Predicate:
    texts = [f"({canonical(term)})" if isinstance(term, Or) else canonical(term) for term in terms]
    return Predicate(" AND ".join(texts), whole.parameters)


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "key": lambda batch: batch.column("key"),
    "kind": lambda batch: batch.column("kind"),
    "timestamp": microseconds,
    "encoding": encodings,
    "priority": lambda batch: pc.bit_wise_and(batch.column("qos"), pa.scalar(7, pa.uint8())),
    "express": lambda batch: pc.not_equal(pc.bit_wise_and(batch.column("qos"), pa.scalar(16, pa.uint8())), 0),
    "size": lambda batch: pc.binary_length(batch.column("payload")).cast(pa.int64()),
}
