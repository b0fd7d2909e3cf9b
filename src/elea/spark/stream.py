"""A streaming read: in the driver's process for this query, offsets and cursors; in tasks, ranges of logs.

Spark writes the offsets of a batch down before it is read, and reads it again after a crash: a range is the same rows
for ever, until `commit` says that it is done. Only then does the cursor of the query move, and retention may follow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from elea.spark.batch import ranges_of, rows_maker, start_of
from elea.spark.batchplan import Piece, Reached, admit, damaged_between, reach
from elea.spark.logpartition import LogPartition, fetch, sliced
from elea.spark.logs import Logs
from elea.spark.losses import Losses
from elea.spark.offsets import LATEST, Head, Offset, Place, form_of, parse
from elea.spark.options import SPOOL, ReadOptions
from elea.spark.rows import Rows
from elea.spark.saidfirst import says_first
from elea.spark.schema import landed, nullable
from elea.spark.sessions import close_all, session_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["ZenohStreamReader"]

_log: Final = logging.getLogger("elea.spark")

POLL_SECONDS: Final = 0.02
"""How often the ends of logs are looked at while nothing comes."""

FIND_SECONDS: Final = 30.0
"""How often brokers are asked for logs that are new."""


@says_first
class ZenohStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes. Spark makes it in several processes; only the driver's connects for offsets."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._logs: Any = None
        self._losses: Losses | None = None
        self._first: dict[str, Any] | None = None
        self._found_at = 0.0
        self._heads: dict[str, Head] = {}
        self._known: dict[str, Head] = {}
        """The heads as they were last seen."""
        self._away: dict[str, float] = {}
        """Logs whose broker is away, and for how many seconds."""
        self._until: dict[str, Head] | None = None
        self._held: dict[str, tuple[str, int]] = {}
        self._planned: dict[str, tuple[str, int, int, int]] = {}
        self._dropped = 0
        self._name: str | None = None

    # -- where to begin

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - the names are Spark's
        options = self._options
        heads = self._look(wait=True)
        start = start_of(options.starting_offsets, LATEST, "option startingOffsets", self._logs, heads)
        if options.starting_timestamp is not None:
            start = {
                log: Place(head.epoch, self._logs.position_at(log, options.starting_timestamp))
                for log, head in heads.items()
            }
        start = {log: self._reached(log, place, heads.get(log)).place for log, place in start.items()}
        if self._names_itself:
            # Its cursor is put down with the first batch. Before that no checkpoint has the name, and a query that
            # ends here would leave a cursor behind which nobody finds again.
            self._use(uuid4().hex[:12])
            self._tell_others()
        else:
            self._hold(start)
        self._first = self._form(start)
        return self._first

    # -- the name of the cursor

    @property
    def _names_itself(self) -> bool:
        """Whether it makes a name: Spark does not tell it the checkpoint, so the name is kept in the offsets there."""
        return self._options.source_id is None and self._options.ingest != SPOOL

    def _use(self, name: str | None) -> None:
        self._name = name
        if self._logs is None:
            self._look()
        if self._names_itself:
            self._logs.cursor = self._options.cursor if name is None else f"{self._options.cursor}-{name}"

    def _use_name_of(self, form: dict[str, Any]) -> None:
        """Take the name from an offset; those from before there were any go on under the one of the options."""
        self._use(next((str(one["cursor"]) for one in form.values() if "cursor" in one), None))

    def _form(self, offset: Offset) -> dict[str, Any]:
        found = form_of(offset)
        if self._names_itself and self._name is not None:
            found = {log: {"cursor": self._name, **place} for log, place in found.items()}
        return found

    def _tell_others(self) -> None:
        for log, cursors in self._logs.cursors.items():
            others = {name: at for name, at in cursors.items() if name.startswith(f"{self._options.cursor}-")}
            if others:
                _log.warning(
                    "retention is held by other queries that read the same: log=%s cursors=%s hint=drop those of "
                    "checkpoints that are gone: session.cursor(key, name, log=log).drop()", log, others
                )  # fmt: skip

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._look(wait=True)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    # -- how far to go

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = parse(start)
        self._use_name_of(start)
        if start != self._first or not self._names_itself:
            # Spark asks for more when it has written down that everything before is done.
            self._hold(before, is_done=True)
        until = time.monotonic() + self._options.poll_timeout_ms / 1000
        while True:
            heads = self._ends()
            reached = self._reached_all(before, heads)
            available = {log: max(heads[log].end - one.place.next, 0) for log, one in reached.items() if log in heads}
            moved = any(
                one.lost is not None or log not in before or self._passed_over(one.place, log)
                for log, one in reached.items()
            )
            left = until - time.monotonic()
            if any(available.values()) or moved or left <= 0 or self._until is not None:
                break
            time.sleep(min(POLL_SECONDS, left))
        if not any(available.values()) and not moved:
            return start
        taken = self._admitted(reached, available, limit)
        # Spark does not write the beginning of a query down: to read its first batch again, after a crash, it asks
        # for `initialOffset` once more, and `latest` is another place by then. So the end of that batch says both.
        known = {} if start == self._first else before
        end = {log: self._end(log, one, known.get(log), taken.get(log, 0)) for log, one in reached.items()}
        return self._form(end)

    def _end(self, log: str, reached: Reached, before: Place | None, taken: int) -> Place:
        start = reached.place
        goes_on = before is not None and (before.epoch, before.next) == (start.epoch, start.next)
        lost = dict(start.lost)
        head = self._heads.get(log)
        damaged = self._damaged(head, start.next, start.next + taken) if head is not None else 0
        if damaged:
            lost["damaged"] = lost.get("damaged", 0) + damaged
        passed_over = self._passed_over(start, log, is_counted=True)
        if passed_over:
            lost["trimmed"] = lost.get("trimmed", 0) + passed_over
        if head is not None and head.dropped > self._dropped:
            lost["dropped"] = lost.get("dropped", 0) + head.dropped - self._dropped
            self._dropped = head.dropped
        return Place(start.epoch, start.next + taken, None if goes_on else start.next, lost)

    def _damaged(self, head: Head, start: int, end: int) -> int:
        """Positions to be passed over in a batch, and those of the batch before that only its tasks have found."""
        counted = damaged_between(head, start, end)
        epoch, low, high, before = self._planned.get(head.log, ("", 0, 0, 0))
        late = damaged_between(head, low, high) - before if epoch == head.epoch else 0
        self._planned[head.log] = head.epoch, start, end, counted
        return counted + late

    def _passed_over(self, place: Place, log: str, *, is_counted: bool = False) -> int:
        """Positions that tasks of batches before have found gone."""
        if self._losses is None:
            return 0
        return self._losses.take(log, place.epoch) if is_counted else self._losses.waiting(log, place.epoch)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        found = form_of({log: Place(head.epoch, head.end) for log, head in self._known.items()})
        for log, seconds in self._away.items():
            if log in found:
                found[log] = {"away": round(seconds), **found[log]}
        return found

    def _ends(self) -> dict[str, Head]:
        """The heads that count: with availableNow, not beyond those at its beginning."""
        # A run to the end has to hear all of them; one that goes on reads what there is meanwhile.
        heads = self._look(wait=self._until is not None)
        if self._until is None:
            return heads
        found = {}
        for log, head in heads.items():
            last = self._until.get(log)
            if last is not None:
                end = min(head.end, last.end) if last.epoch == head.epoch else head.end
                found[log] = replace(head, end=end)
        return found

    def _look(self, *, wait: bool = False) -> dict[str, Head]:
        now = time.monotonic()
        if self._logs is None:
            self._logs = self._source()
            self._found_at = now
        elif now - self._found_at > FIND_SECONDS:
            self._logs.find()
            self._found_at = now
        self._heads = self._logs.heads(wait=wait)
        self._known.update(self._heads)
        away = self._logs.away
        for log in away.keys() - self._away.keys():
            _log.warning("broker away: log=%s locator=%s", log, self._logs.kept[log].locator)
        for log in self._away.keys() & self._heads.keys():
            _log.info("broker back: log=%s", log)
        self._away = dict(away)
        return self._heads

    def _source(self) -> Any:
        if self._options.ingest == SPOOL:
            from elea.spark.spoolstream import Spooled

            return Spooled(self._options)
        return Logs(self._options)

    def _reached_all(self, before: Offset, heads: dict[str, Head]) -> dict[str, Reached]:
        # A log whose broker is away stays where it is: not being there is not being lost.
        found = {
            log: Reached(Place(place.epoch, place.next, None, place.lost))
            if log in self._away
            else self._reached(log, place, heads.get(log))
            for log, place in before.items()
        }
        for log, head in heads.items():
            if log not in found:
                _log.info("log found: log=%s epoch=%s first=%d end=%d", log, head.epoch, head.first, head.end)
                found[log] = Reached(Place(head.epoch, head.first))
        return dict(sorted(found.items()))

    def _reached(self, log: str, place: Place, head: Head | None) -> Reached:
        found = reach(log, place, head, strict=self._options.fail_on_data_loss)
        if found.lost is not None:
            _log.warning("samples lost: log=%s reason=%s problem=%s", log, found.lost.reason, found.lost)
        return found

    def _admitted(self, reached: dict[str, Reached], available: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        if isinstance(limit, ReadMaxRows):
            return admit(available, limit.max_rows)
        if not isinstance(limit, ReadMaxBytes):
            return available
        total = sum(available.values())
        found = {}
        for log, rows in available.items():
            if rows:
                share = max(limit.max_bytes * rows // total, 1)
                start = reached[log].place.next
                found[log] = min(self._logs.measure(log, start, start + rows, share) - start, rows)
        return found

    # -- reading

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = parse(start), parse(end)
        self._use_name_of(end)
        pieces = ranges_of(first, last, self._options)
        if not self._names_itself:
            self._hold(first)
        else:
            # After a crash in the first batch Spark has another beginning, and the right end.
            self._hold({piece.log: Place(piece.epoch, piece.start) for piece in reversed(pieces)})
        self._hold_back(pieces)
        if self._options.ingest == SPOOL:
            return [self._logs.partition(piece) for piece in pieces]
        found: list[InputPartition] = []
        for piece in pieces:
            kept = self._logs.kept.get(piece.log)
            if kept is None:
                self._reached(piece.log, Place(piece.epoch, piece.start), None)  # raises, or is told and passed over
                continue
            found.append(LogPartition(piece, kept.key_expr, kept.keys, kept.locator, self._losses_key()))
        return found

    def _losses_key(self) -> str | None:
        """Where tasks tell what is gone; those of a query that fails then have no use for it."""
        if self._options.fail_on_data_loss:
            return None
        if self._losses is None:
            self._losses = Losses(session_of(self._options))
        return self._losses.key

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options = self._options
        if options.landing is None:
            return sliced(self._rows(partition, rows_maker(self._schema, options)))
        from elea.spark.deltafiles import task

        rows = rows_maker(landed(options), options)
        schema = nullable(rows.schema).serialize().to_pybytes()
        return task(self._rows(partition, rows), options.landing, schema, options.landing_partitions)

    def _rows(self, partition: InputPartition, rows: Rows) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, LogPartition):
            yield from fetch(partition, self._options, rows, strict=self._options.fail_on_data_loss)
            return
        from elea.spark.spoolstream import SpoolPartition, read

        if isinstance(partition, SpoolPartition):
            yield from read(partition, self._options, rows)

    # -- what is done

    def commit(self, end: dict[str, Any]) -> None:
        self._hold(parse(end), is_done=True)

    def _hold(self, offset: Offset, *, is_done: bool = False) -> None:
        """Keep retention from passing a place that may be read again; the cursor moves on when a batch is done."""
        if self._logs is None:
            self._look()
        for log, place in offset.items():
            head = self._heads.get(log)
            if head is None or head.epoch != place.epoch:
                continue
            epoch, position = self._held.get(log, ("", 0))
            if epoch == place.epoch and not (is_done and place.next > position):
                continue
            self._logs.hold(log, min(max(place.next, head.first), head.end))
            self._held[log] = (place.epoch, place.next)

    def _hold_back(self, pieces: Sequence[Piece]) -> None:
        """Put cursors back to where a batch begins that is read again."""
        for piece in pieces:
            head = self._heads.get(piece.log)
            epoch, position = self._held.get(piece.log, ("", 0))
            if head is not None and epoch == piece.epoch == head.epoch and piece.start < position:
                self._logs.hold(piece.log, max(piece.start, head.first))
                self._held[piece.log] = (piece.epoch, piece.start)

    def stop(self) -> None:
        if self._losses is not None:
            self._losses.close()
        if self._logs is not None:
            self._logs.close()
        close_all()
