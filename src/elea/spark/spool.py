"""The spool of `ingest=spool`: what a plain Zenoh router brings, kept until Spark is done with it.

A spool is a log in a directory (`elea.store`): samples have positions, are on the disk before they count, and keep
their positions and epoch when the process is killed and started again. So everything is delivered exactly once *from
the spool on*. What comes while nobody spools is not in it; what was lost on the way into it is counted (`Spooler`).
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from elea.api.arrowhandler import Arrow
from elea.model.errors import EleaError, StoreError, StoreFull
from elea.model.qos import SampleKind
from elea.store import DEL, PUT, Log, Range, Record, Retention, Sync, open_log
from elea.store.disk import DiskShelf
from elea.store.logreads import Keys, Reader

if TYPE_CHECKING:
    from elea.api.sample import Sample
    from elea.api.session import Session

__all__ = ["CURSOR", "Spool", "Spooler", "read_spool"]

CURSOR: Final = "spark"
"""The cursor that holds what is not committed."""

ROWS: Final = 65_536
SECONDS: Final = 0.25
AGAIN: Final = 0.5
"""Seconds until a full disk is tried again."""

OVERLAP: Final = 5.0
"""Seconds after the history has been read in which a live sample may be one of it."""

_log = logging.getLogger("elea.spark")


class Spool:
    """The spool in a directory, for the one process that writes it.

    Raises:
        StoreInUse: another process spools there.
        StoreError: it cannot be opened.
    """

    def __init__(self, directory: str | Path) -> None:
        self.log: Final[Log] = open_log(directory, sync=Sync.DURABLE)
        self.error: EleaError | None = None
        """Why nothing is spooled any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def head(self) -> tuple[str, int]:
        """Epoch, and the position the next sample will get: everything below is on the disk.

        Raises:
            StoreError: nothing is spooled any more, and why.
        """
        if self.error is not None:
            raise self.error
        return self.log.epoch, self.log.end

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The samples of a range, in the columns of a log; for this process, others use `read_spool`."""
        return self.log.read_arrow(Range(start=start, end=end))

    def commit(self, position: int) -> None:
        """Everything below is done with: as soon as a whole file of it is, that is removed."""
        self.log.move_cursor(CURSOR, max(position, self.log.first))
        self.log.retain(Retention(age_ns=0), time.time_ns())

    def close(self) -> None:
        """Let another process have it."""
        self.log.close()


def read_spool(directory: str | Path, epoch: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The samples of a range, read beside the process that writes; for executors.

    Raises:
        StoreError: it is another spool than the range was planned for.
        StoreTrimmed, StoreCorrupt: the range is not there any more, or cannot be read.
    """
    shelf = DiskShelf(Path(directory), read_only=True, create=False, random=secrets.token_bytes)
    try:
        if shelf.epoch != epoch:
            raise StoreError(f"the spool in {directory} has epoch {shelf.epoch}, not {epoch}: it was made anew")
        reader = Reader(shelf)
        yield from reader.joined(reader.resolve(Range(start=start, end=end)))
    finally:
        shelf.close()


class Spooler:
    """Subscribes, and appends what comes to a spool, in batches that are on the disk before they count.

    Args:
        history: first ask storages and publisher caches for what they have of the key expressions.
    """

    def __init__(
        self,
        spool: Spool,
        session: Session,
        key_exprs: Sequence[str],
        *,
        history: bool = False,
        rows: int = ROWS,
        seconds: float = SECONDS,
    ) -> None:
        self._spool = spool
        self._session = session
        self._node_id = bytes(session.zid())
        self._closing = threading.Event()
        self._writing = threading.Lock()
        self._history: dict[str, tuple[int, bytes]] = {}
        self._overlap_until = 0.0
        self._live = threading.Event()
        self.spooled = 0
        self.repeated = 0
        """Samples of the history that were there already, or came live as well."""
        self.refused = 0
        """Samples on expressions with wildcards, which are no keys."""
        self.lost = 0
        """Samples that could not be written."""
        self.failed_replies = 0
        self._subscribers = []
        for number, expr in enumerate(key_exprs):
            # A sample that has several expressions is spooled for the first of them.
            take = partial(self._take, [Keys(one) for one in key_exprs[:number]])
            self._subscribers.append(session.declare_subscriber(expr, Arrow(rows, seconds, callback=take)))
        try:
            if history:
                for expr in key_exprs:
                    self._ask(expr)
        finally:
            self._overlap_until = time.monotonic() + OVERLAP
            self._live.set()

    @property
    def dropped(self) -> int:
        """Samples that reached this process and are not in the spool: came too fast, refused, or not written."""
        return sum(each.dropped for each in self._subscribers) + self.refused + self.lost

    def close(self) -> None:
        """Spool what has come, and stop."""
        self._closing.set()
        self._live.set()
        for subscriber in self._subscribers:
            subscriber.undeclare()

    # -- live samples

    def _take(self, earlier: list[Keys], batch: pa.RecordBatch) -> None:
        self._live.wait()  # the history comes first; live samples wait in their mailbox
        try:
            self._spool_batch(earlier, batch)
        except Exception as error:  # noqa: BLE001 - whatever it was, samples are lost and the reader must hear of it
            self._fail(batch.num_rows, StoreError(f"samples could not be spooled: {error!r}"))

    def _spool_batch(self, earlier: list[Keys], batch: pa.RecordBatch) -> None:
        keep = pc.invert(pc.match_substring(batch.column("key"), "*"))
        wild = batch.num_rows - pc.sum(keep).as_py()
        if wild:
            self.refused += wild
            _log.warning("samples not spooled: reason=wildcards samples=%d refused=%d", wild, self.refused)
        for keys in earlier:
            found = keys.mask(batch.column("key"))
            keep = pc.and_not(keep, pa.scalar(True) if found is None else found)
        batch = batch if pc.all(keep).as_py() else batch.filter(keep)
        if self._history and time.monotonic() < self._overlap_until:
            batch = self._without_history(batch)
        if batch.num_rows:
            self._append(self._complete(batch))

    def _without_history(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        named = zip(*(batch.column(name).to_pylist() for name in ("key", "ntp64", "stamp_id")), strict=True)
        fresh = [self._history.get(key) != (ntp64, stamp_id) for key, ntp64, stamp_id in named]
        self.repeated += fresh.count(False)
        return batch.filter(pa.array(fresh, pa.bool_()))

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with what a log wants of every sample: a timestamp of this node for those that have none."""
        columns = {name: batch.column(name) for name in batch.schema.names}
        missing = columns["ntp64"].null_count
        if missing:
            node = self._session._node
            first = node.clock.reserve(node.loop.wall_ns(), missing)
            given = pa.array(range(first, first + missing), pa.uint64())
            columns["ntp64"] = pc.replace_with_mask(columns["ntp64"], columns["ntp64"].is_null(), given)
            columns["stamp_id"] = columns["stamp_id"].fill_null(self._node_id)
        columns["once"] = pa.repeat(pa.scalar(False), batch.num_rows)
        return pa.RecordBatch.from_pydict(columns)

    def _append(self, batch: pa.RecordBatch) -> None:
        """Write a batch. A full disk is tried again, while samples wait where they came from; a broken one is told."""
        while self._spool.error is None:
            try:
                with self._writing:
                    self._spool.log.append_arrow(batch)
                self.spooled += batch.num_rows
                return
            except StoreFull as error:
                _log.error("spool full: problem=%s waiting=%d", error, batch.num_rows)
                if self._closing.wait(AGAIN):
                    break
            except StoreError as error:
                self._spool.error = error
        self._fail(batch.num_rows, self._spool.error)

    def _fail(self, rows: int, error: EleaError | None) -> None:
        self.lost += rows
        self._spool.error = self._spool.error or error
        _log.error("samples not spooled: samples=%d lost=%d problem=%s", rows, self.lost, error)

    # -- what was there before

    def _ask(self, expr: str) -> None:
        records: list[Record] = []
        for reply in self._session.get(expr):
            sample = reply.ok
            if sample is None:
                self.failed_replies += 1
                _log.warning("history incomplete: reply=%s failed=%d", reply.err, self.failed_replies)
                continue
            record = self._record(sample)
            stamp = record.ntp64, record.stamp_id
            newest = self._spool.log.latest(record.key, deleted=True)
            known = newest is not None and (newest.record.ntp64, newest.record.stamp_id) >= stamp
            if known or self._history.get(record.key) == stamp:
                self.repeated += 1
            else:
                records.append(record)
            self._history[record.key] = stamp
        if records:
            self._spool.log.append(records)
            self.spooled += len(records)

    def _record(self, sample: Sample) -> Record:
        stamp = sample.timestamp
        if stamp is None:
            stamp = self._session.new_timestamp()
        source: Any = sample.source_info
        return Record(
            str(sample.key_expr),
            sample.payload.to_bytes(),
            stamp.value.ntp64,
            stamp.value.id.data,
            time.time_ns(),
            PUT if sample.kind is SampleKind.PUT else DEL,
            sample.encoding.id,
            sample.encoding.schema,
            None if sample.attachment is None else sample.attachment.to_bytes(),
            None if source is None else bytes(source.source_id.zid),
            None if source is None else source.source_id.eid,
            None if source is None else source.source_sn,
        )
