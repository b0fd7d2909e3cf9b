"""What a task does: fetch a range of a log straight from its broker as Arrow, and make rows of it.

While Spark takes the batches of one answer, the next one is on its way (`elea.api.rangereader`). Nothing here has a
state: a task that is tried again fetches the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from elea.model.errors import DataLost, NotStored, StoreCorrupt, StoreReplaced, StoreTrimmed
from elea.model.qos import SampleKind
from elea.model.timerange import TimeBound, TimeExpr, TimeRange
from elea.spark.batchplan import Piece
from elea.spark.brokers import Brokers
from elea.spark.losses import tell
from elea.spark.options import ReadOptions
from elea.spark.rows import Rows
from elea.spark.sessions import answered, session_of, settle

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogPartition", "fetch", "sliced", "time_range"]

SLICE_BYTES: Final = 4 << 20
"""Octets that Spark takes at a time: as much as a block has as a rule. Each piece costs a tenth of a millisecond."""

_log: Final = logging.getLogger("elea.spark")


@dataclass
class LogPartition(InputPartition):
    """A range of one log, and who to ask for it."""

    piece: Piece
    key_expr: str
    keys: tuple[str, ...] | None
    locator: str | None = None
    """Where its broker is, if that is known; the others may be away."""

    losses: str | None = None
    """The key under which the driver notes what is gone; None if nobody counts."""


def fetch(
    partition: LogPartition, options: ReadOptions, rows: Rows, *, strict: bool, time: TimeRange | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a range, in batches as they were stored, of up to some megabytes.

    Args:
        time: the broker leaves out samples of other times. Only a batch asks for that: a stream that did would lose
            samples whose stamps are older than their place in the log, while its offsets move on.

    Raises:
        DataLost: they cannot be had any more, and `strict`.
    """
    piece = partition.piece
    start = piece.start
    brokers = Brokers(options, session_of(options), partition.locator)
    while start < piece.end:
        links = brokers.links()
        try:
            for batch, following in _batches(partition, options, start, strict=strict, time=time):
                yield rows.rows_of(batch, piece.log)
                start = following
            settle()
            return
        except NotStored:
            if brokers.stand(links):
                raise
        except StoreTrimmed as error:
            if strict:
                what = f"retention has removed positions {start} to {error.first - 1} before they were read"
                raise DataLost(piece.log, "trimmed", what, first=start, last=error.first - 1) from error
            end = min(error.first, piece.end)
            _log.warning("samples lost: log=%s first=%d last=%d reason=trimmed", piece.log, start, end - 1)
            if partition.losses is not None:
                tell(options, partition.losses, piece.log, piece.epoch, start, end)
            start = end


def sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of the size that suits Spark."""
    for batch in batches:
        step = max(batch.num_rows * SLICE_BYTES // max(batch.nbytes, 1), 1)
        for begin in range(0, batch.num_rows, step):
            yield batch.slice(begin, step)


def _batches(
    partition: LogPartition, options: ReadOptions, start: int, *, strict: bool, time: TimeRange | None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches, each with the position behind it."""
    piece = partition.piece
    reading = session_of(options).read(
        partition.key_expr,
        start=start,
        end=piece.end,
        time=time,
        skip_damaged=not strict,
        timeout=options.request_timeout_ms / 1000,
        log=piece.log,
        keys=partition.keys,
        kind=None if options.kind is None else SampleKind[options.kind.upper()],
        where=options.predicate,
    )
    with reading:
        while True:
            try:
                with answered(options):
                    if not reading.fetch():
                        return
            except StoreCorrupt as error:
                what = f"positions {error.position} to {error.last} are damaged ({error})"
                raise DataLost(piece.log, "damaged", what, first=error.position, last=error.last) from error
            except StoreReplaced as error:
                raise DataLost(piece.log, "replaced", str(error)) from error
            if reading.epoch != piece.epoch:
                # Nothing of the answer has been given to anybody.
                what = f"it was replaced: the epoch is {reading.epoch} and was {piece.epoch} when the batch was planned"
                raise DataLost(piece.log, "replaced", what)
            while (batch := reading.ready()) is not None:
                yield batch, batch.column("position")[batch.num_rows - 1].as_py() + 1


def time_range(options: ReadOptions) -> TimeRange | None:
    """The times of a batch read; the end is not included."""
    low, high = options.starting_timestamp, options.ending_timestamp
    if low is None and high is None:
        return None
    return TimeRange(
        None if low is None else TimeBound(TimeExpr(low)),
        None if high is None else TimeBound(TimeExpr(high), inclusive=False),
    )
