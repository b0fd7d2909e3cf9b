"""Replay: the samples of captures into the data space again, at the pace of their arrival or as fast as possible."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elea.columnar.arrays import given_in, numbers_in, numbers_of
from elea.columnar.batchfilter import BatchFilter
from elea.model.qos import CongestionControl, Qos
from elea.model.timestamp import ntp64_from_ns
from elea.recorder.capturefiles import Capture, open_captures
from elea.recorder.samplebatch import nanoseconds
from elea.store.logreads import Keys
from elea.wire.details import DEFAULT_QOS

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.model.predicate import Predicate

__all__ = ["Replayer", "Times"]

Times = Literal["original", "shifted", "now"]

NAP: Final = 0.2
"""Seconds of a wait after which `run` looks about."""

SOON: Final = 1e-6
"""Seconds that are not waited for."""

_SENT: Final = ("key", "payload", "kind", "encoding", "schema", "attachment", "ntp64", "stamp_id")


class Replayer:
    """The samples of captures, put again in the order in which they were recorded.

    ::

        replayer = Replayer(session, ["drive.mcap"], pace=2.0)
        replayer.run()

    Payload, kind, encoding, attachment, priority and express are as recorded. Samples are sent with BLOCK, so a replay
    waits for a slow link and loses nothing; their source is this session.

    Args:
        pace: how much faster than recorded; None is as fast as possible.
        times: `original` gives the timestamps as recorded; `shifted` moves them all by the same time, so that the first
            sample is from now, or (if it goes faster than recorded) the last one; `now` gives new ones.
        key_expr, where: only samples of these keys, and for which this predicate holds.

    Raises:
        ValueError: a pace that is not above 0, or a file whose name does not tell its format.
    """

    def __init__(
        self,
        session: Session,
        paths: Sequence[Path | str],
        *,
        pace: float | None = 1.0,
        times: Times = "original",
        key_expr: str | None = None,
        where: Predicate | str | None = None,
    ) -> None:
        if pace is not None and not pace > 0:
            raise ValueError(f"a pace is above 0, or None for as fast as possible; {pace} is not")
        if times not in get_args(Times):
            raise ValueError(f"times {times!r} is none of {', '.join(get_args(Times))}")
        self._session = session
        self._pace = pace
        self._times = times
        self._keys = Keys(key_expr)
        self._filter = None if where is None else BatchFilter(where, contents=session._node.schemas.contents)
        self._paths = list(paths)
        self.captures: list[Capture] = open_captures(paths)
        self.size = sum(capture.size for capture in self.captures)
        """Bytes of all files."""
        self.sent = 0
        """Samples put so far."""
        self.passed_over = 0
        """Samples that were not asked for."""
        self.late = 0.0
        """Seconds by which the last samples were behind their pace."""
        self._bulk: Any = None

    @property
    def done(self) -> int:
        """Bytes of the files that have been read."""
        return sum(capture.done for capture in self.captures)

    @property
    def cut(self) -> list[Path]:
        """Files that end before they are whole, of those that have been read."""
        return [capture.path for capture in self.captures if capture.is_cut]

    def run(self, watch: Callable[[], object] = lambda: None) -> int:
        """Put all samples; how many. `watch` is called now and then, and may raise to end it."""
        for delay in self.steps():
            until = time.monotonic() + delay
            watch()
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(left, NAP))
                watch()
        return self.sent

    def steps(self) -> Iterator[float]:
        """Puts what is due, and yields the seconds until more is: for those who wait in their own way.

        Raises:
            CaptureDamaged: a file cannot be read further; what stands before has been put.
        """
        begun, origin = 0.0, None
        shift: int | None = None
        for batch in self._batches():
            arrivals = np.maximum.accumulate(nanoseconds(batch)[0])  # a clock may have been set back
            if origin is None:
                begun, origin = time.monotonic(), int(arrivals[0])
            if self._times == "shifted":
                shift = self._shift(batch) if shift is None else shift
                batch = _shifted(batch, shift)
            if self._pace is None:
                self._put(batch)
                yield 0.0
                continue
            due = (arrivals - origin) / (1e9 * self._pace)
            at = 0
            while at < len(due):
                now = time.monotonic() - begun
                end = int(np.searchsorted(due, now + SOON, side="right"))
                if end > at:
                    self.late = max(now - float(due[end - 1]), 0.0)
                    self._put(batch.slice(at, end - at))
                    at = end
                else:
                    yield float(due[at]) - now

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in itertools.chain.from_iterable(self.captures):
            rows = batch.num_rows
            mask = self._keys.mask(batch.column("key"))
            found = batch if mask is None else batch.filter(mask)
            if self._filter is not None and found.num_rows:
                found = self._filter.filter(found)
            self.passed_over += rows - found.num_rows
            if found.num_rows:
                yield found

    def _shift(self, batch: pa.RecordBatch) -> int:
        """By how much timestamps are moved, as NTP64; none is ahead of the time at which it is sent."""
        now = ntp64_from_ns(time.time_ns())
        if self._pace is not None and self._pace <= 1:
            first = pc.drop_null(batch.column("ntp64"))
            return now - first[0].as_py() if len(first) else 0
        newest = 0
        for each in itertools.chain.from_iterable(open_captures(self._paths)):
            newest = max(newest, pc.max(each.column("ntp64")).as_py() or 0)
        return now - newest

    def _put(self, batch: pa.RecordBatch) -> None:
        if self._bulk is None:
            from elea.api.batchput import Bulk

            self._bulk = Bulk(self._session)
        if self._times == "now":
            node = self._session._node
            first = node.clock.reserve(node.loop.wall_ns(), batch.num_rows)
            stamps = np.arange(first, first + batch.num_rows, dtype=np.uint64)
            batch = batch.set_column(2, "ntp64", numbers_of(stamps, pa.uint64()))
            own = pa.repeat(pa.scalar(bytes(node.clock.id), pa.binary()), batch.num_rows)
            batch = batch.set_column(3, "stamp_id", own)
        qualities = numbers_in(batch.column("qos"), np.uint8)
        cuts = [0, *(np.flatnonzero(np.diff(qualities)) + 1).tolist(), len(qualities)]
        for start, end in itertools.pairwise(cuts):
            self._bulk.publish(batch.slice(start, end - start).select(_SENT), qos=_quality(int(qualities[start])))
            self.sent += end - start


def _quality(raw: int) -> int:
    """The byte of the wire with BLOCK: a replay can wait."""
    recorded = Qos.from_raw(raw if raw & 7 else DEFAULT_QOS)  # no sample has the priority of the protocol itself
    return Qos(recorded.priority, CongestionControl.BLOCK, recorded.express).raw


def _shifted(batch: pa.RecordBatch, by: int) -> pa.RecordBatch:
    stamps = batch.column("ntp64")
    if not by or stamps.null_count == len(stamps):
        return batch
    moved = numbers_in(stamps, np.uint64) + np.uint64(by % (1 << 64))
    return batch.set_column(2, "ntp64", numbers_of(moved, pa.uint64(), given_in(stamps)))
