"""`ingest=spool` as a stream sees it: one log called `spool`, filled by the driver's process, read by tasks as files.

The directory outlives the process: after a restart the same positions are the same samples. Tasks open it beside the
writer, so executors must see it under the same path.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from elea.model.errors import ConfigError, DataLost, StoreCorrupt, StoreError, StoreInUse, StoreTrimmed
from elea.spark.batchplan import Piece
from elea.spark.offsets import Head
from elea.spark.options import ReadOptions
from elea.spark.rows import Rows
from elea.spark.sessions import session_of

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.content import Contents
    from elea.spark.spool import Spool

__all__ = ["NAME", "SpoolPartition", "Spooled", "read"]

_log: Final = logging.getLogger("elea.spark")

NAME: Final = "spool"
"""The name of the log in offsets."""


@dataclass
class SpoolPartition(InputPartition):
    """A range of the spool."""

    piece: Piece
    directory: str


class Spooled:
    """The spool of a query in the process that fills it; the counterpart of `Logs`."""

    def __init__(self, options: ReadOptions) -> None:
        from elea.spark.spool import Spooler

        self._directory = options.spool_dir or ""
        session = session_of(options)
        self._spool = _opened(self._directory, options.connect_timeout_ms / 1000)
        atexit.register(self.close)
        self._spooler = Spooler(self._spool, session, options.key_exprs, history=options.history)
        self._told = 0
        self.kept = (NAME,)
        self.away: dict[str, float] = {}
        """It is never away."""

    def close(self) -> None:
        """Spool what has come, and let another process have it."""
        atexit.unregister(self.close)
        self._spooler.close()
        self._spool.close()

    def find(self) -> None:
        """There is one log, whatever brokers offer."""

    def heads(self, *, wait: bool = True) -> dict[str, Head]:
        """How far it goes: what is below is on the disk."""
        epoch, end = self._spool.head()
        log = self._spool.log
        dropped = self._spooler.dropped
        if dropped > self._told:
            self._told = dropped
            _log.error("samples lost before they were spooled: count=%d directory=%s", dropped, self._directory)
        damaged = tuple((one.first, one.last) for one in log.damage if one.first <= one.last)
        return {NAME: Head(NAME, epoch, log.first, end, damaged, dropped)}

    def hold(self, log: str, position: int) -> None:
        """Everything before is done with."""
        self._spool.commit(position)

    def position_at(self, log: str, time_ns: int) -> int:
        """The first position with a timestamp not before a time; the end if there is none."""
        from elea.model.timerange import TimeBound, TimeExpr, TimeRange
        from elea.store import Range

        since = TimeRange(TimeBound(TimeExpr(time_ns)))
        for stored in self._spool.log.read(Range(time=since, limit=1, skip_damaged=True)):
            return stored.position
        return self._spool.log.end

    def measure(self, log: str, start: int, end: int, octets: int) -> int:
        """The position up to which about so many octets lie on disk."""
        from elea.store.rangesize import measured

        return measured(self._spool.log.shelf.sizes(), start, end, octets)

    def partition(self, piece: Piece) -> SpoolPartition:
        """A range for a task."""
        return SpoolPartition(piece, self._directory)


def _opened(directory: str, patience: float) -> Spool:
    """The spool; the process of a query that was stopped just now may still have it."""
    from elea.spark.spool import Spool

    until = time.monotonic() + patience
    while True:
        try:
            return Spool(directory)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _contents(options: ReadOptions) -> Contents:
    """How payloads are read; a broker is asked for declared types only if there is a payload of one."""
    from elea.content import Contents
    from elea.content.registry import SchemaRegistry
    from elea.spark.sessions import session_of

    known = SchemaRegistry()
    seen = [-1]

    def fetch() -> None:
        found = session_of(options)._node.schemas.ask()
        if found.generation == seen[0]:
            return
        seen[0] = found.generation
        for key, language, data in found.texts():
            known.take(key, None if language is None else language.encode(), data)

    return Contents(known, fetch)


def read(partition: SpoolPartition, options: ReadOptions, rows: Rows) -> Iterator[pa.RecordBatch]:
    """The rows of a range.

    Raises:
        ConfigError: the directory is not there, on this executor.
        DataLost: it is another spool, or samples of it cannot be read.
    """
    import os

    import pyarrow.compute as pc

    from elea.columnar.batchfilter import BatchFilter
    from elea.spark.spool import read_spool

    piece = partition.piece
    where = None if options.predicate is None else BatchFilter(options.predicate, contents=_contents(options))
    if not os.path.isdir(partition.directory):
        hint = "name a directory that all executors see"
        raise ConfigError("option spoolDir", f"{partition.directory} is not there on this executor", hint)
    try:
        for batch in read_spool(partition.directory, piece.epoch, piece.start, piece.end):
            if options.kind is not None:
                batch = batch.filter(pc.equal(batch.column("kind"), 1 if options.kind == "delete" else 0))
            if where is not None:
                batch = where.filter(batch)
            if batch.num_rows:
                yield rows.rows_of(batch, piece.log)
    except StoreTrimmed as error:
        raise DataLost(piece.log, "trimmed", str(error), first=error.position, last=error.first - 1) from error
    except StoreCorrupt as error:
        raise DataLost(piece.log, "damaged", str(error), first=error.position, last=error.last) from error
    except StoreError as error:
        raise DataLost(piece.log, "replaced", str(error)) from error
