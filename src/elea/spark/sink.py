"""The sink of `format("zenoh")`: rows to puts and deletions, exactly once where a broker keeps them.

`write` runs in executors and stages the samples of a task beside the broker's log; `commit` runs once a batch, on the
driver's side, and names what counts. The broker stores and publishes that as a whole, under the name of the query and
the number of the batch, and remembers both: a batch that comes again, after whatever died, is not stored again, even if
its rows are in other tasks by then; one that is older is refused (`StoreFenced`). What tasks staged that failed or were
overtaken is forgotten. Where nobody keeps samples they are put as they come, at least once, and a warning says so.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from elea.model.errors import ConfigError, EleaError
from elea.model.node_id import NodeId
from elea.spark.saidfirst import says_first
from elea.spark.samples import checked

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from elea.spark.options import WriteOptions

__all__ = ["BatchSink", "StreamSink", "Written"]

NAMES: Final = uuid.UUID("5fe1ea5f-54c9-4a2c-9c0b-7d3a1f0c2e11")
"""The name space of the option `writerId`."""

_log: Final = logging.getLogger("elea.spark")
_warned: Final[set[tuple[str, ...]]] = set()


@dataclass
class Written(WriterCommitMessage):
    """What one task has done."""

    writer: uuid.UUID
    number: int
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """Names of staged pieces, by the key expression of their storage."""
    rows: int = 0
    plain: int = 0
    """Rows that were put without a store."""


class _Sink:
    """What both kinds have in common. Picklable; nothing is opened before it is needed."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        self._options = options
        self._packed = checked(schema, options)

    def _write(self, batches: Iterator[pa.RecordBatch], writer: uuid.UUID, number: int) -> Written:
        from elea.spark.samples import Samples
        from elea.spark.sessions import session_of
        from elea.spark.sinktask import SinkTask, chunks

        done = Written(writer, number)
        task = samples = None
        for rows in chunks(batches):
            if task is None or samples is None:
                task = SinkTask(session_of(self._options), self._options, writer, number)
                samples = Samples(rows.schema, self._options, self._packed)
            task.take(samples.of(rows, NodeId(writer.bytes).data, time.time_ns() // 1000))
            done.rows += rows.num_rows
        if task is not None:
            task.settle()
            done.pieces, done.plain = task.pieces, task.plain
        return done

    def _commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from elea.api.stagedbatch import StagedBatch
        from elea.spark.sessions import session_of
        from elea.spark.sinktask import qos_of

        written = [message for message in messages if isinstance(message, Written)]
        self._warn(sum(one.plain for one in written))
        for place in sorted({place for one in written for place in one.pieces}):
            pieces = [piece for one in written for piece in one.pieces.get(place, ())]
            session = session_of(self._options)
            timeout = self._options.request_timeout_ms / 1000
            batch = StagedBatch(
                session, written[0].writer, written[0].number, qos=qos_of(self._options).raw, timeout=timeout
            )
            restamped = batch.commit(place, pieces).get("restamped", 0)
            if restamped:
                _log.warning(
                    "timestamps too far ahead replaced by the broker: keys=%s rows=%d; check the column of times",
                    place, restamped,
                )  # fmt: skip

    def _abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what was staged. If that fails, too, the broker does so after a while."""
        from elea.api.stagedbatch import StagedBatch
        from elea.spark.sessions import session_of

        written = [message for message in messages if isinstance(message, Written)]
        try:
            for place in sorted({place for one in written for place in one.pieces}):
                StagedBatch(session_of(self._options), written[0].writer, written[0].number, timeout=5.0).drop(place)
        except EleaError as error:
            _log.warning("staged samples not dropped: batch=%d problem=%s", written[0].number, error)

    def _warn(self, plain: int) -> None:
        if plain and self._options.idempotent is None and self._options.connect not in _warned:
            _warned.add(self._options.connect)
            _log.warning(
                "samples were put at least once, not exactly once: rows=%d connect=%s; no broker there keeps them. "
                "Start one with --store, or say .option('idempotent', 'false') if that is meant",
                plain, ",".join(self._options.connect),
            )  # fmt: skip


@says_first
class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """The sink of a stream; made anew for every micro-batch."""

    def __init__(self, schema: StructType, options: WriteOptions, overwrite: bool = False) -> None:
        """`overwrite` is output mode `complete`: every row of the result is put again, replacing its key's value."""
        super().__init__(schema, options)
        if options.writer_id is not None or options.writer_batch is not None:
            hint = "leave them out: a stream has its query id and numbers its batches"
            raise ConfigError("option writerId", "it is for df.write, in foreachBatch", hint)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage the rows of a task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        if query is None or number is None:
            hint = "use PySpark 4.3, in which tasks can ask for both"
            raise ConfigError("writeStream", "a task does not know its query and its batch", hint)
        return self._write(iterator, uuid.UUID(query), int(number))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make what the tasks of a batch have staged count."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Forget it."""
        self._abort(messages)


@says_first
class BatchSink(_Sink, DataSourceArrowWriter):
    """The sink of `df.write`: the rows of a job are stored as a whole and once, however often its tasks are tried.

    A job that is started again is another job, unless it says who it is: with `writerId` and `writerBatch` (in
    foreachBatch a name and the number of the batch) the same number is stored once.
    """

    def __init__(self, schema: StructType, options: WriteOptions, overwrite: bool = False) -> None:
        super().__init__(schema, options)
        if overwrite:
            hint = (
                "a put replaces the value of its key: write .mode('append'); to delete keys, write rows of kind DELETE"
            )
            raise ConfigError("mode overwrite", "a data space is not emptied by a write", hint)
        if (options.writer_id is None) != (options.writer_batch is None):
            raise ConfigError("option writerId", "it goes with writerBatch", "give both or none")
        if options.writer_id is None or options.writer_batch is None:
            self._writer, self._number = uuid.uuid4(), 0
        else:
            self._writer, self._number = uuid.uuid5(NAMES, options.writer_id), options.writer_batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage the rows of a task."""
        return self._write(iterator, self._writer, self._number)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what the tasks have staged count."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Forget it."""
        self._abort(messages)
