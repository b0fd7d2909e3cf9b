"""The executor's part of a pipeline's table: the rows of a task, sorted by its rules, into files or back if few.

Rows that keep to the rules, and rows for the quarantine, are split in one pass: the batch is computed once, however
many tables it goes to. Files count only when the driver commits them, so a task may die anywhere.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from elea.spark.deltafiles import GROUP_ROWS, INLINE_BYTES, Statistics, cast, parquet_writer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BROKEN",
    "COUNTS",
    "DELTA",
    "GOOD",
    "MASK",
    "QUARANTINE",
    "RESULT",
    "STAGED",
    "Piece",
    "Plan",
    "Written",
    "quarantined",
    "task",
]

GOOD: Final = "good"
QUARANTINE: Final = "quarantine"
COUNTS: Final = "counts"
"""The row of a task that says how many rows broke which rule."""

MASK: Final = "__broken"
"""A column with a bit for each rule that the row breaks."""

BROKEN: Final = "broken_rules"
"""The column of a quarantine that names them."""

RESULT: Final = "target string, path string, size bigint, rows bigint, stats string, partition string, inline binary"
"""What a task hands back: files, rows that are not worth one, and counts."""

DELTA: Final = ".snappy.parquet"
STAGED: Final = ".part"
"""How names of files end, in a Delta table and where they wait to be renamed."""

EXAMPLE_CHARS: Final = 300


@dataclass(frozen=True)
class Plan:
    """What a task is told."""

    schema: bytes
    """Of the table, as Arrow writes it."""

    directories: dict[str, str]
    """Where files go, by target. A target that has the batch already is missing: its rows are computed and left out."""

    partition_by: tuple[str, ...] = ()
    rules: tuple[tuple[str, str], ...] = ()
    """Name, and what happens to rows that break it."""

    suffix: str = DELTA

    def bits(self, otherwise: str) -> int:
        """The rules with this consequence."""
        return sum(1 << index for index, (_, what) in enumerate(self.rules) if what == otherwise)


@dataclass(frozen=True)
class Written:
    """A file, or some rows that wait for one, of a target and partition."""

    target: str
    path: str | None
    size: int
    rows: int
    stats: str
    partition: dict[str, str | None] = field(default_factory=dict)
    inline: bytes | None = None


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
        import pyarrow.compute as pc

        rows = cast(batch, self._schema)
        self.counts["in"] += rows.num_rows
        self.counts["octets"] += batch.nbytes
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
            schema = quarantined(self._schema)
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
        for partition, part in _parts(rows, by):
            at = (target, json.dumps(partition))
            if at not in self.pieces:
                self.pieces[at] = Piece(
                    target, self._plan.directories[target], part.schema, partition, suffix=self._plan.suffix
                )
            self.pieces[at].add(part)


class Piece:
    """Rows of one target and partition: held while they are few, then written to a file as they come."""

    def __init__(
        self,
        target: str,
        directory: str,
        schema: pa.Schema,
        partition: dict[str, str | None],
        *,
        suffix: str,
        hold: int = INLINE_BYTES,
    ) -> None:
        self._target = target
        self._directory = directory
        self._schema = schema
        self._partition = partition
        self._suffix = suffix
        self._hold = hold
        self._held: list[pa.RecordBatch] = []
        self._octets = 0
        self._writer: Any = None
        self._path = ""
        self._statistics = Statistics(schema)

    def add(self, rows: pa.RecordBatch) -> None:
        """Take in some rows."""
        self._octets += rows.nbytes
        if self._writer is None and self._octets <= self._hold:
            self._held.append(rows)
            return
        if self._writer is None:
            self._open()
            for held in self._held:
                self._write(held)
            self._held.clear()
        self._write(rows)

    def finish(self) -> Written:
        """The file, on the disk; or the rows."""
        if self._writer is None:
            rows = sum(batch.num_rows for batch in self._held)
            return Written(self._target, None, 0, rows, "", self._partition, _inline(self._schema, self._held))
        self._writer.close()
        path = Path(self._directory) / self._path
        with path.open("rb") as file:
            os.fsync(file.fileno())
        statistics = self._statistics
        size = path.stat().st_size
        return Written(self._target, self._path, size, statistics.rows, statistics.form(), self._partition)

    def _open(self) -> None:
        below = [f"{name}={_folder(value)}" for name, value in self._partition.items()]
        self._path = "/".join([*below, f"part-{uuid.uuid4()}{self._suffix}"])
        path = Path(self._directory) / self._path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = parquet_writer(path, self._schema)

    def _write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows, row_group_size=GROUP_ROWS)
        self._statistics.add(rows)


# -- helpers -----------------------------------------------------------------------------------------------------------


def _parts(rows: pa.RecordBatch, by: tuple[str, ...]) -> Iterator[tuple[dict[str, str | None], pa.RecordBatch]]:
    """The rows of each partition, without the columns that are the same for all of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not by:
        yield {}, rows
        return
    rest = [name for name in rows.schema.names if name not in by]
    for values in pa.table(rows.select(by)).group_by(by, use_threads=False).aggregate([]).to_pylist():
        chosen = None
        for name in by:
            column, value = rows.column(name), values[name]
            same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)
            chosen = same if chosen is None else pc.and_(chosen, same)
        yield {name: _told(values[name]) for name in by}, rows.filter(chosen).select(rest)


def _told(value: Any) -> str | None:
    """A value of a partition, as Delta and the names of directories have it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folder(value: str | None) -> str:
    """The directory of a partition, from which many readers take the value."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None or value == "" else quote(value, safe="")


def _inline(schema: pa.Schema, batches: list[pa.RecordBatch]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found
