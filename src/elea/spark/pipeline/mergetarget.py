"""A Delta table into which rows are merged by key: tasks write them aside, the driver merges and commits.

The commit has the number of the batch, as every other. A batch that comes again and is in the table is left out; one
that is not is merged once more from rows that are the same, which comes to the same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import TableConflict
from elea.spark.delta import fingerprint
from elea.spark.deltamerge import DELETED, Merge, merge, table_schema
from elea.spark.pipeline.targets import METADATA, DeltaTarget
from elea.spark.tableplaces import read_file, remove

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.spark.deltafiles import Written

__all__ = ["MergeTarget"]

STAGED: Final = "_merge"
"""Where rows wait, in the directory of the table: Delta leaves alone what begins with `_`."""

COUNTED: Final = {
    "num_target_rows_inserted": "inserted",
    "num_target_rows_updated": "updated",
    "num_target_rows_deleted": "deleted",
}

_log: Final = logging.getLogger("elea.spark")


class MergeTarget(DeltaTarget):
    """A Delta table of the latest row of each key, or of all with the time they were valid."""

    def __init__(self, path: str | Path, name: str, how: Merge, *, gone: DeltaTarget | None, **options: Any) -> None:
        super().__init__(path, name, **options)
        self.how = how
        self.merged: dict[str, int] = dict.fromkeys(COUNTED.values(), 0)
        """Rows of the table that were inserted, updated, deleted."""
        self._gone = gone
        self._rows: pa.Schema | None = None

    @property
    def directory(self) -> str:
        return f"{self.path}/{STAGED}"

    def open(self, schema: pa.Schema) -> pa.Schema:
        import pyarrow as pa

        written = super().open(table_schema(self.how, schema, self.path))
        self._rows = pa.schema([written.field(name) for name in schema.names])
        return self._rows

    def commit(self, files: Sequence[Written], query: str, batch_id: int, told: Mapping[str, str]) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import CommitFailedError

        if not files:
            return
        marks = [Transaction(self._app_id(query), batch_id), Transaction(self.name, fingerprint(query))]
        metadata = {f"{METADATA}{name}": value for name, value in told.items()}
        gone = None if self._gone is None else DeltaTable(self._gone.path)
        try:
            found = merge(
                self._opened,
                self._staged(files),
                self.how,
                gone=gone,
                properties=CommitProperties(custom_metadata=metadata, app_transactions=marks),
            )
        except CommitFailedError as error:
            last = DeltaTable(self.path).transaction_version(self._app_id(query))
            raise TableConflict(self.path, batch_id, last) from error
        for counted, name in COUNTED.items():
            self.merged[name] += found.get(counted, 0)
        self.counts.batches += 1
        self.counts.rows += sum(one.rows for one in files)
        self.counts.files += found.get("num_target_files_added", 0)
        remove(self.directory)  # also what tasks that died have left

    def _staged(self, files: Sequence[Written]) -> pa.Table:
        """The rows of a batch, in the order in which tasks have read them."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        assert self._rows is not None
        shape = self._rows.append(pa.field(DELETED, pa.bool_())) if self.how.deletes else self._rows
        parts = [pq.ParquetFile(read_file(self.directory, one.path or "")).read() for one in files]
        return pa.concat_tables([part.select(shape.names).cast(shape) for part in parts])
