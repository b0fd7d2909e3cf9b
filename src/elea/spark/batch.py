"""A batch read: ranges of logs, or what a get brings. Planned in a process of the driver, read by tasks.

Spark plans a DataFrame once: its rows are those that were there at its first action. For newer ones, `load()` again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from elea.model.errors import ConfigError
from elea.spark.batchplan import Piece, pieces_of, reach, split
from elea.spark.logpartition import LogPartition, fetch, sliced, time_range
from elea.spark.logs import Logs
from elea.spark.offsets import EARLIEST, LATEST, Head, Offset, Place, parse_text
from elea.spark.options import PARALLELISM, ReadOptions
from elea.spark.pushdownclaims import Claims
from elea.spark.rows import Made, Rows, payload_of
from elea.spark.saidfirst import says_first
from elea.spark.schema import CORRUPT, UPROTOCOL, VALUE
from elea.spark.sessions import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["ZenohBatchReader", "ranges_of", "rows_maker", "start_of"]


def ranges_of(start: Offset, end: Offset, options: ReadOptions) -> list[Piece]:
    """What lies between two offsets, cut as options say; unless they do, into large ranges, as many as run at once."""
    pieces = pieces_of(start, end)
    if options.min_partitions is not None:
        return split(pieces, options.min_partitions, 1)
    given = os.environ.get(PARALLELISM, "")
    return split(pieces, max(int(given), 1) if given.isdigit() else 2)


def rows_maker(schema: StructType, options: ReadOptions) -> Rows:
    """What makes the rows of a schema, with the columns that the format of its payloads makes."""
    if options.payload_format == "raw":
        return Rows(schema, None)
    from elea.spark.payload import load

    load(options.payload_format, options.payload_module)
    return Rows(schema, _decoding(schema, options))


def _decoding(schema: StructType, options: ReadOptions) -> Made | None:
    types = {column.name: column.dataType for column in schema.fields}
    if options.payload_format == UPROTOCOL:
        from elea.spark.payload.uprotocol_format import message_columns

        return message_columns(types, options)
    if not types.keys() & {VALUE, CORRUPT}:
        return None
    if VALUE not in types:
        raise ConfigError("column _corrupt", "only with value is it known what is corrupt", "select value, too")
    from elea.spark.payload import DECLARED, decoder

    if options.payload_format in DECLARED:
        from elea.spark.payload.declared_format import declared_columns

        return declared_columns(types[VALUE], options)
    decode = decoder(options.payload_format, types[VALUE])
    return lambda batch: dict(zip((VALUE, CORRUPT), decode(payload_of(batch)), strict=True))


def start_of(said: str | None, default: str, path: str, logs: Logs, heads: dict[str, Head]) -> Offset:
    """The offset that an option names.

    Raises:
        ConfigError: it does not name a place in each log.
        DataLost: a place that it names is gone.
    """
    text = (said or default).strip()
    if text.lower() in (EARLIEST, LATEST):
        is_first = text.lower() == EARLIEST
        return {log: Place(head.epoch, head.first if is_first else head.end) for log, head in heads.items()}
    found = parse_text(text, path, heads)
    for log in heads:
        if log not in found:
            raise ConfigError(path, f"it says nothing of log {log}", f"logs are {', '.join(heads)}; name all of them")
    return found


@dataclass
class QueryPartition(InputPartition):
    """A get."""

    selector: str


@says_first
class ZenohBatchReader(DataSourceReader):
    """Reads what is there."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        if options.is_query:
            from elea.spark.brokerquery import selectors_of

            return [QueryPartition(selector) for selector in selectors_of(options)]
        logs = Logs(options)
        pieces = ranges_of(*self._bounds(logs), options)
        settle()
        found = [(piece, logs.kept[piece.log]) for piece in pieces]
        return [LogPartition(piece, kept.key_expr, kept.keys, kept.locator) for piece, kept in found]

    def _bounds(self, logs: Logs) -> tuple[Offset, Offset]:
        options, heads = self._options, logs.heads()
        strict = options.fail_on_data_loss
        start = start_of(options.starting_offsets, EARLIEST, "option startingOffsets", logs, heads)
        end = start_of(options.ending_offsets, LATEST, "option endingOffsets", logs, heads)
        since = options.starting_timestamp
        if since is not None:
            # All that have such a timestamp are behind the first that has; the others are left out by the broker.
            start = {log: Place(heads[log].epoch, logs.position_at(log, since)) for log in start}
        start = {log: reach(log, place, heads.get(log), strict=strict).place for log, place in start.items()}
        found: Offset = {}
        for log, place in end.items():
            until = reach(log, place, heads.get(log), strict=strict).place
            found[log] = until if until.next >= start[log].next else Place(until.epoch, start[log].next)
        return start, found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = rows_maker(self._schema, self._options)
        if isinstance(partition, QueryPartition):
            from elea.spark.brokerquery import ask

            yield from ask(partition.selector, self._options, rows)
        elif isinstance(partition, LogPartition):
            options = self._options
            strict, time = options.fail_on_data_loss, time_range(options)
            yield from sliced(fetch(partition, options, rows, strict=strict, time=time))
        # Else it is Spark's stand-in for an empty list of partitions.


@says_first
class ZenohPushdownReader(ZenohBatchReader):
    """The same, asking the broker for less by what Spark filters; Spark applies every filter again.

    Only with the option `pushdown` and Spark's own switch: queries of one `load()` share what was pushed for one of
    them (docs/spark.md), so every query needs a `load()` of its own, and one that has none is refused.
    """

    def __init__(self, options: ReadOptions, schema: StructType, load: str) -> None:
        super().__init__(options, schema)
        self._claims = Claims(load)
        self._is_narrowed = False

    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802 - the name is Spark's
        from elea.spark.pushdown import narrowed

        self._claims.plan()
        self._is_narrowed = True
        self._options = narrowed(self._options, filters)
        return filters

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if self._is_narrowed and isinstance(partition, (LogPartition, QueryPartition)):
            piece = partition.piece if isinstance(partition, LogPartition) else partition.selector
            self._claims.read(hashlib.sha256(repr(piece).encode()).hexdigest()[:32])
        yield from super().read(partition)
