"""The executor's part of a pipeline's table: the rows of a task, sorted by its rules, into files or back if few.

Rows that keep to the rules, and rows for the quarantine, are split in one pass: the batch is computed once, however
many tables it goes to. Files count only when the driver commits them, so a task may die anywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from elea.spark.deltafiles import DELTA, Piece, cast, parts
from elea.spark.deltamerge import DELETED

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BROKEN",
    "COUNTS",
    "GOOD",
    "MASK",
    "QUARANTINE",
    "RESULT",
    "STAGED",
    "TOMBSTONES",
    "Plan",
    "quarantined",
    "task",
]

GOOD: Final = "good"
QUARANTINE: Final = "quarantine"
TOMBSTONES: Final = "tombstones"
"""The table of deletions that a merge has beside it."""

COUNTS: Final = "counts"
"""The row of a task that says how many rows broke which rule."""

MASK: Final = "__broken"
"""A column with a bit for each rule that the row breaks."""

BROKEN: Final = "broken_rules"
"""The column of a quarantine that names them."""

RESULT: Final = "target string, path string, size bigint, rows bigint, stats string, partition string, inline binary"
"""What a task hands back: files, rows that are not worth one, and counts."""

STAGED: Final = ".part"
"""How names of files end where they wait to be renamed."""

EXAMPLE_CHARS: Final = 300


@dataclass(frozen=True)
class Plan:
    """What a task is told."""

    schema: bytes
    """Of the table, as Arrow writes it."""

    directories: dict[str, str]
    """Where files go, by target. A target that has the batch already is missing: its rows are computed and left out."""

    partition_by: tuple[str, ...] = ()
    tombstones: tuple[str, ...] = ()
    """The columns of the table of deletions."""

    rules: tuple[tuple[str, str], ...] = ()
    """Name, and what happens to rows that break it."""

    suffix: str = DELTA

    def bits(self, otherwise: str) -> int:
        """The rules with this consequence."""
        return sum(1 << index for index, (_, what) in enumerate(self.rules) if what == otherwise)


def quarantined(schema: pa.Schema) -> pa.Schema:
    """The columns of a quarantine: those of the table, and which rules were broken."""
    import pyarrow as pa

    return schema.append(pa.field(BROKEN, pa.list_(pa.field("element", pa.string()))))


def task(batches: Iterator[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` runs."""
    import pyarrow as pa

    sorter = _Sorter(plan, pa.ipc.read_schema(pa.py_buffer(plan.schema)))
    for batch in batches:
        if batch.num_rows:
            sorter.add(batch)
    found = [piece.finish() for piece in sorter.pieces.values()]
    rows = [
        (one.target, one.path, one.size, one.rows, one.stats, json.dumps(one.partition), one.inline) for one in found
    ]
    told = json.dumps({"counts": sorter.counts, "rules": sorter.rules, "example": sorter.example})
    rows.append((COUNTS, None, 0, 0, told, "{}", None))
    types = [pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.binary()]
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, names=[one.split()[0] for one in RESULT.split(", ")])


class _Sorter:
    """Sends rows where the rules say."""

    def __init__(self, plan: Plan, schema: pa.Schema) -> None:
        self._plan = plan
        self._schema = schema
        self._fail, self._quarantine = plan.bits("fail"), plan.bits("quarantine")
        self.pieces: dict[tuple[str, str], Piece] = {}
        self.counts: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.example = ""
        """A row that breaks a rule which ends the run."""

    def add(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = cast(batch, self._schema)
        self.counts["in"] += rows.num_rows
        self.counts["octets"] += batch.nbytes
        if DELETED in self._schema.names and self._plan.tombstones:
            self._keep(TOMBSTONES, rows.filter(rows.column(DELETED)).select(self._plan.tombstones))
        if not self._plan.rules:
            self._keep(GOOD, rows)
            return
        mask = batch.column(MASK)
        for index, (name, _) in enumerate(self._plan.rules):
            broken = pc.sum(pc.not_equal(pc.bit_wise_and(mask, 1 << index), 0)).as_py()
            if broken:
                self.rules[name] += broken
        failed = rows.filter(pc.not_equal(pc.bit_wise_and(mask, self._fail), 0))
        if failed.num_rows and not self.example:
            self.example = str(failed.slice(0, 1).to_pylist()[0])[:EXAMPLE_CHARS]
        aside = pc.not_equal(pc.bit_wise_and(mask, self._quarantine), 0)
        good = rows.filter(pc.equal(mask, 0))
        apart = rows.filter(aside)
        self.counts["failed"] += failed.num_rows
        self.counts["quarantined"] += apart.num_rows
        self._keep(GOOD, good)
        if apart.num_rows:
            names = self._names(mask.filter(aside))
            kept = [field for field in self._schema if field.name != DELETED]
            apart, schema = apart.select([field.name for field in kept]), quarantined(pa.schema(kept))
            self._keep(QUARANTINE, type(rows).from_arrays([*apart.columns, names], schema=schema))
        # Neither good, nor kept aside, nor the end of the run: dropped.
        over = pc.and_not(pc.not_equal(mask, 0), aside)
        self.counts["dropped"] += pc.sum(pc.and_(over, pc.equal(pc.bit_wise_and(mask, self._fail), 0))).as_py()

    def _names(self, mask: pa.Array) -> pa.Array:
        """The rules that a mask names, made once for each mask that there is."""
        import pyarrow as pa

        coded = mask.dictionary_encode()
        rules = [name for name, _ in self._plan.rules]
        lists = [
            [name for index, name in enumerate(rules) if bits >> index & 1] for bits in coded.dictionary.to_pylist()
        ]
        return pa.array(lists, pa.list_(pa.field("element", pa.string()))).take(coded.indices)

    def _keep(self, target: str, rows: pa.RecordBatch) -> None:
        if not rows.num_rows or target not in self._plan.directories:
            return
        by = self._plan.partition_by if target == GOOD else ()
        for partition, part in parts(rows, by):
            at = (target, json.dumps(partition))
            if at not in self.pieces:
                self.pieces[at] = Piece(
                    target, self._plan.directories[target], part.schema, partition, suffix=self._plan.suffix
                )
            self.pieces[at].add(part)
