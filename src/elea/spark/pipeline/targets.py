"""Where the rows of a batch go in the end: a Delta table or a directory of parquet files, each batch once.

Both are told the files of a batch and the name under which it counts: the query and the number of the batch. A batch
that comes again, after whatever died, changes nothing.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from elea.model.errors import ConfigError, TableConflict
from elea.spark.delta import LOG_RETENTION, DeltaWriter, fingerprint
from elea.spark.deltafiles import DELTA
from elea.spark.pipeline.rowsplitter import STAGED
from elea.spark.tableplaces import is_remote, place_of

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.spark.deltafiles import Written
    from elea.spark.pipeline.spec import Duration

__all__ = ["DeltaTarget", "ParquetTarget", "Target"]

METADATA: Final = "elea."
"""What entries in a table's history begin with that say how many rows broke which rule."""

REBUILD: Final = "make the table anew with --backfill, or cast in a step to the types that the table has"

_log: Final = logging.getLogger("elea.spark")


class Target(Protocol):
    """A stored table."""

    suffix: str
    """What names of files that tasks write end with."""

    @property
    def directory(self) -> str:
        """Where tasks write them."""

    def open(self, schema: pa.Schema) -> pa.Schema:
        """Look at the table; make it if there is none. What `is_done` and `commit` say and do is about this look.

        Returns:
            the columns with which rows are written.
        """

    def is_done(self, query: str, batch_id: int) -> bool:
        """Whether the table has the batch."""

    def commit(self, files: Sequence[Written], query: str, batch_id: int, told: Mapping[str, str]) -> None:
        """Make the files count, all at once, and say so once."""


class DeltaTarget(DeltaWriter):
    """A Delta table."""

    suffix = DELTA

    def __init__(
        self,
        path: str | Path,
        name: str,
        *,
        partition_by: tuple[str, ...] = (),
        cluster_by: tuple[str, ...] = (),
        replace: bool = False,
        adopt: bool = False,
        retention: Duration | None = None,
    ) -> None:
        kept = LOG_RETENTION if retention is None else f"interval {max(round(retention.seconds), 1)} seconds"
        super().__init__(
            path,
            name=name,
            adopt=adopt,
            log_retention=kept,
            partition_by=partition_by,
            cluster_by=cluster_by,
            evolve=True,  # whether the definition may change is decided before a run
        )
        self._replace = replace
        self._hint = REBUILD
        if retention is not None:
            self._configuration["delta.deletedFileRetentionDuration"] = kept
        self._opened: Any = None
        self._schema: Any = None

    @property
    def directory(self) -> str:
        return self.path

    def open(self, schema: pa.Schema) -> pa.Schema:
        self._opened, self._schema = self._table(schema)
        return self._schema

    def open_for_replacement(self, other: Any) -> None:
        """Look at the table, which will get the rows of another, whatever columns it has had so far."""
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.path):
            DeltaTable.create(
                self.path,
                other.schema(),
                mode="ignore",
                partition_by=list(self.partition_by),
                configuration=self._configuration,
            )
        self._opened, self._schema = DeltaTable(self.path), other.schema()

    def is_done(self, query: str, batch_id: int) -> bool:
        return self._is_done(self._opened, query, batch_id)

    def commit(self, files: Sequence[Written], query: str, batch_id: int, told: Mapping[str, str]) -> None:
        from deltalake import Transaction

        if not files and not told and not self._replace:
            return
        marks = [Transaction(self._app_id(query), batch_id), Transaction(self.name, fingerprint(query))]
        self._put(files, marks, query, batch_id, told, replace=self._replace)

    def replace(self, files: Sequence[Written], query: str, batch_id: int) -> None:
        """Put other rows in the place of all that there are, as one new version, written by this query until then."""
        from deltalake import Transaction

        marks = [Transaction(self._app_id(query), batch_id), Transaction(self.name, fingerprint(query))]
        self._put(files, marks, query, batch_id, {"backfill": query}, replace=True)

    def last_batch(self, query: str) -> int | None:
        """The number of the newest batch of a query that the table has; None if it has none."""
        from deltalake import DeltaTable

        found: int | None = DeltaTable(self.path).transaction_version(self._app_id(query))
        return found

    def is_written_by(self, query: str) -> bool:
        """Whether this query is the one that wrote under the name last."""
        return bool(self._opened.transaction_version(self.name) == fingerprint(query))

    def _put(
        self,
        files: Sequence[Written],
        marks: list[Any],
        query: str,
        batch_id: int,
        told: Mapping[str, str],
        *,
        replace: bool,
    ) -> None:
        from deltalake import CommitProperties, DeltaTable
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction

        now_ms = time.time_ns() // 1_000_000
        actions = [AddAction(one.path or "", one.size, one.partition, now_ms, True, one.stats) for one in files]
        metadata = {f"{METADATA}{name}": value for name, value in told.items()}
        try:
            self._opened.create_write_transaction(
                list(actions),
                "overwrite" if replace else "append",
                self._schema,
                list(self.partition_by),
                commit_properties=CommitProperties(custom_metadata=metadata, app_transactions=marks),
            )
        except CommitFailedError as error:
            last = DeltaTable(self.path).transaction_version(self._app_id(query))
            raise TableConflict(self.path, batch_id, last) from error
        self.counts.batches += 1
        self.counts.rows += sum(one.rows for one in files)
        self.counts.files += len(files)


class ParquetTarget:
    """A directory of parquet files, for readers that know nothing else. No versions, and no file is ever torn.

    Files are written beside the directory and renamed into it, under the number of their batch. A crash between two
    renames shows part of a batch until the pipeline goes on; then the batch comes again and takes its place.
    """

    suffix = STAGED

    def __init__(self, path: str | Path, name: str) -> None:
        place = place_of(path)
        if is_remote(place):
            hint = "leave format out: a Delta table can be in an object store"
            raise ConfigError(f"table {place}", "files of parquet cannot be renamed in an object store", hint)
        self.path = Path(place)
        self._name = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        self._staged = self.path.parent / f".{self.path.name}.staged"

    @property
    def directory(self) -> str:
        return str(self._staged)

    def open(self, schema: pa.Schema) -> pa.Schema:
        self.path.mkdir(parents=True, exist_ok=True)
        self._staged.mkdir(parents=True, exist_ok=True)
        return schema

    def is_done(self, query: str, batch_id: int) -> bool:
        mine = self._prefix(query)
        others = [one.name for one in self.path.rglob(f"{self._name}-*.parquet") if not one.name.startswith(mine)]
        if others:
            hint = "bring back the checkpoint of that query, or choose another path"
            raise ConfigError(f"table {self.path}", f"another query has written {others[0]}", hint)
        # Part of a batch may be there: it is written again as a whole, in its own place.
        return False

    def commit(self, files: Sequence[Written], query: str, batch_id: int, told: Mapping[str, str]) -> None:
        prefix = f"{self._prefix(query)}{batch_id:08d}-"
        for old in list(self.path.rglob(f"{prefix}*.parquet")):
            old.unlink()
        for index, one in enumerate(files):
            source = self._staged / (one.path or "")
            target = self.path / Path(one.path or "").parent / f"{prefix}{index:04d}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
        _sync(self.path)
        for left in self._staged.rglob(f"*{self.suffix}"):  # of tasks that died
            left.unlink()

    def _prefix(self, query: str) -> str:
        return f"{self._name}-{fingerprint(query):016x}-"


def _sync(directory: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    at = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)
