"""A table of a pipeline: each batch of a stream once into the table, and rows that break a rule where the rule says.

The batch is computed once; tasks sort its rows (`splitting`), the driver commits the files: those of the quarantine
first, then those of the table. Each has the number of the batch, so that whatever dies in between comes again and
adds to neither twice. Counts of broken rules stand in the history of the table, and in the report of the run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import ConfigError, ExpectationFailed
from elea.spark.arrowmap import ArrowMap
from elea.spark.delta import COMPACT_EVERY, query_of, schema_of
from elea.spark.deltafiles import Written, gathered
from elea.spark.deltamerge import DELETED, tombstone_schema
from elea.spark.pipeline.mergetarget import MergeTarget
from elea.spark.pipeline.rowsplitter import (
    BROKEN,
    COUNTS,
    GOOD,
    MASK,
    QUARANTINE,
    RESULT,
    TOMBSTONES,
    Plan,
    quarantined,
    task,
)
from elea.spark.pipeline.spec import Table
from elea.spark.pipeline.targets import DeltaTarget, ParquetTarget, Target
from elea.spark.tableplaces import beside, place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["TableCounts", "TableWriter", "merge_writer", "targets_of"]

RULES: Final = 60
"""Rules of a table: one bit each in a number of 64."""


@dataclass
class TableCounts:
    """What a writer has done since it was made."""

    batches: int = 0
    repeated: int = 0
    """Batches of which the table, or its quarantine, had a part already."""
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    """Rows that broke each rule; a row may break several."""


def targets_of(table: Table, pipeline: str, *, is_stream: bool = True) -> dict[str, Target]:
    """The table, and its quarantine if there is one, under the names by which they know the pipeline.

    Tables of what is no stream are replaced by every run.
    """
    name = f"{pipeline}/{table.name}"
    found: dict[str, Target] = {}
    if any(one.otherwise == QUARANTINE for one in table.expect):
        path = table.quarantine or beside(table.path, "_quarantine")
        found[QUARANTINE] = _target(table, path, f"{name}/quarantine", is_stream=is_stream)
    if table.merge is None:
        found[GOOD] = _target(
            table, table.path, name, is_stream=is_stream, partition_by=table.partition_by, cluster_by=table.cluster_by
        )
        return found
    gone: DeltaTarget | None = None
    if table.merge.has_tombstones:
        # Before the table: a deletion that is not remembered is worse than one that is remembered twice.
        found[TOMBSTONES] = gone = DeltaTarget(
            beside(table.path, "_deleted"), f"{name}/deleted", retention=table.retention
        )
    found[GOOD] = MergeTarget(
        table.path,
        name,
        table.merge,
        gone=gone,
        partition_by=table.partition_by,
        cluster_by=table.cluster_by,
        retention=table.retention,
    )
    return found


def _target(
    table: Table,
    path: Path | str,
    name: str,
    *,
    is_stream: bool,
    partition_by: tuple[str, ...] = (),
    cluster_by: tuple[str, ...] = (),
) -> Target:
    is_replaced = table.mode == "complete" or not is_stream
    if table.format == "parquet":
        if is_replaced:
            hint = "leave format out: a Delta table can be replaced at once"
            raise ConfigError(f"table {table.name}", "files of parquet cannot be replaced while others read them", hint)
        return ParquetTarget(path, name)
    return DeltaTarget(
        path,
        name,
        partition_by=partition_by,
        cluster_by=cluster_by,
        replace=is_replaced,
        adopt=not is_stream,
        retention=table.retention,
    )


class TableWriter:
    """A function for `foreachBatch`."""

    def __init__(
        self, table: Table, pipeline: str, *, is_stream: bool = True, after: Callable[[int], None] | None = None
    ) -> None:
        """`after` is called with the number of each batch, when everything is committed."""
        if len(table.expect) > RULES:
            raise ConfigError(f"table {table.name}", f"it has {len(table.expect)} rules", f"the limit is {RULES}")
        self.table = table
        self.counts = TableCounts()
        self.targets = targets_of(table, pipeline, is_stream=is_stream)
        self.error: Exception | None = None
        """What ended it; Spark tells it with a page of its own."""
        self.after = after
        self.landed: pa.Schema | None = None
        """The columns of the table, if batches are not its rows but files that have them (`elea.spark.deltaingest`)."""
        self._map = ArrowMap()

    @property
    def merged(self) -> dict[str, int]:
        """Rows of the table that merges have inserted, updated and deleted."""
        target = self.targets[GOOD]
        return dict(target.merged) if isinstance(target, MergeTarget) else {}

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch; see `write`."""
        try:
            query = query_of(rows)
            if query is None:
                hint = "run it where the driver is: local, local-cluster, spark://"
                raise ConfigError("pipeline", "tables are not written through Spark Connect", hint)
            self.write(rows, query, batch_id)
        except Exception as error:
            self.error = error
            raise

    def write(self, rows: DataFrame, query: str, batch_id: int) -> None:
        """Compute a batch and commit what tables do not have of it.

        Raises:
            ExpectationFailed: rows break a rule that ends the run; nothing of the batch is committed.
            ConfigError, TableConflict: as of `elea.spark.delta`.
        """
        if BROKEN in rows.columns and self.table.expect:
            raise ConfigError(
                f"table {self.table.name}", f"its quarantine needs the name {BROKEN}", "rename the column"
            )
        schema = self._open(schema_of(rows) if self.landed is None else self.landed)
        missing = {name: one for name, one in self.targets.items() if not one.is_done(query, batch_id)}
        if self.landed is None:
            # A batch that all tables have is computed all the same: Spark learns from it how far time has come.
            files, told = self._computed(rows, schema, missing)
        else:
            files, told = self._landed(rows, missing)
        if told["counts"].get("failed"):
            raise self._failure(told)
        self._count(told, is_repeated=len(missing) < len(self.targets))
        by_target: dict[str, list[Written]] = {name: [] for name in self.targets}
        for one in files:
            by_target[one.target].append(one)
        rules = {"broken_rules": json.dumps(told["rules"], sort_keys=True)} if told["rules"] else {}
        for name, target in missing.items():
            target.commit(by_target[name], query, batch_id, rules if name == GOOD else {})
            rows_written = sum(one.rows for one in by_target[name])
            if name == GOOD:
                self.counts.rows_out += rows_written
            elif name == QUARANTINE:
                self.counts.quarantined += rows_written
        if self.after is not None:
            self.after(batch_id)

    def _open(self, schema: pa.Schema) -> pa.Schema:
        # The quarantine comes first, but it has the columns that the table says.
        written = self.targets[GOOD].open(schema)
        if QUARANTINE in self.targets:
            self.targets[QUARANTINE].open(quarantined(written))
        if TOMBSTONES in self.targets and self.table.merge is not None:
            self.targets[TOMBSTONES].open(tombstone_schema(self.table.merge, written))
        return written

    def _computed(
        self, rows: DataFrame, schema: pa.Schema, missing: dict[str, Target]
    ) -> tuple[list[Written], dict[str, Any]]:
        how = self.table.merge
        checked, exempt = rows, ""
        if how is not None and how.deletes is not None:
            import pyarrow as pa

            # A deletion has no values that a rule could be about.
            checked, exempt = rows.selectExpr("*", f"coalesce({how.deletes}, false) AS `{DELETED}`"), f"`{DELETED}` OR "
            schema = schema.append(pa.field(DELETED, pa.bool_()))
        plan = Plan(
            schema=schema.serialize().to_pybytes(),
            directories={name: target.directory for name, target in missing.items()},
            partition_by=self.table.partition_by if how is None else (),
            tombstones=() if how is None or not how.has_tombstones else (*how.keys, *how.sequence_by),
            rules=tuple((one.name, one.otherwise) for one in self.table.expect),
            suffix=self.targets[GOOD].suffix,
        )
        if self.table.expect:
            # What is not true is broken, unknown (null) as well.
            rules = [f"{exempt}({one.check})" for one in self.table.expect]
            bits = [f"CASE WHEN {rule} THEN 0L ELSE {1 << at}L END" for at, rule in enumerate(rules)]
            checked = checked.selectExpr("*", f"{' + '.join(bits)} AS `{MASK}`")
        found = self._map(checked, partial(task, plan=plan), RESULT)
        told: dict[str, Any] = {"counts": Counter(), "rules": Counter(), "example": ""}
        written: list[Written] = []
        for one in found:
            if one.target == COUNTS:
                form = json.loads(one.stats)
                told["counts"].update(form["counts"])
                told["rules"].update(form["rules"])
                told["example"] = told["example"] or form["example"]
            else:
                partition = json.loads(one.partition)
                inline = None if one.inline is None else bytes(one.inline)
                written.append(Written(one.target, one.path, one.size, one.rows, one.stats, partition, inline))
        self._map.note(told["counts"]["in"], told["counts"]["octets"])
        places = {name: (one.directory, one.suffix) for name, one in missing.items()}
        return list(gathered(written, places)), told

    def _landed(self, rows: DataFrame, missing: dict[str, Target]) -> tuple[list[Written], dict[str, Any]]:
        """The files that tasks have written; if the table has them, they are not written once more."""
        found = rows.collect() if missing else []
        written = [_landed(one) for one in found]
        told = {"counts": {"in": sum(one.rows for one in found)}, "rules": {}, "example": ""}
        places = {name: (one.directory, one.suffix) for name, one in missing.items()}
        return list(gathered(written, places)), told

    def _failure(self, told: dict[str, Any]) -> ExpectationFailed:
        ends = {one.name for one in self.table.expect if one.otherwise == "fail"}
        broken = {name: count for name, count in told["rules"].items() if name in ends}
        return ExpectationFailed(self.table.name, broken, told["example"])

    def _count(self, told: dict[str, Any], *, is_repeated: bool) -> None:
        self.counts.repeated += is_repeated
        self.counts.batches += 1
        self.counts.rows_in += told["counts"].get("in", 0)
        self.counts.dropped += told["counts"].get("dropped", 0)
        self.counts.rules.update(told["rules"])


def _landed(one: Any) -> Written:
    """A row of `deltafiles.RESULT`."""
    inline = None if one.inline is None else bytes(one.inline)
    return Written(GOOD, one.path, one.size or 0, one.rows, one.stats or "", json.loads(one.partition), inline)


def merge_writer(
    path: str | Path,
    *,
    name: str = "elea",
    keys: Sequence[str],
    sequence_by: Sequence[str] = (),
    deletes: str | None = None,
    scd: int = 1,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    compact_every: int | None = COMPACT_EVERY,
) -> TableWriter:
    """A function for `foreachBatch` that merges every batch of a stream into a Delta table once (`delta.write`)."""
    from elea.spark.deltamerge import Merge

    how = Merge(tuple(keys), tuple(sequence_by), deletes, scd)
    place = place_of(path)
    table = Table(
        name=place.rpartition("/")[2], reads="", path=place, mode="merge", merge=how,
        partition_by=tuple(partition_by), cluster_by=tuple(cluster_by),
    )  # fmt: skip
    made = TableWriter(table, name)

    def after(batch_id: int) -> None:
        target = made.targets[GOOD]
        if compact_every and batch_id and batch_id % compact_every == 0 and isinstance(target, DeltaTarget):
            target.compact()

    made.after = after
    return made
