"""Reading a log step by step through a session: where to begin, and the next samples from a position on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from elea.api.cursor import Cursor
from elea.api.stored import StoredSample, samples_of
from elea.model.errors import StoreReplaced
from elea.model.timerange import TimeBound, TimeExpr, TimeRange

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.model.predicate import Predicate

__all__ = ["FIRST_ROWS", "LogReader", "Start", "Step", "instant_ns", "rows_after"]

FIRST_ROWS: Final = 256
MOST_ROWS: Final = 16_384
STEP_BYTES: Final = 4 << 20
"""Bytes that a step is meant to have: its samples are given to nobody before it is complete."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a subscriber begins, in the words of `declare_subscriber`."""

    history: int | None = None
    since: datetime | timedelta | int | None = None
    cursor: str | None = None

    def __post_init__(self) -> None:
        if self.history is not None and self.since is not None:
            raise ValueError("history and since both say where to begin: give one of them")
        for name, value in (("history", self.history), ("since", self.since)):
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{name} is not negative, {value} is")
        if isinstance(self.since, datetime) and self.since.tzinfo is None:
            raise ValueError(f"since {self.since} has no time zone; write datetime(…, tzinfo=UTC)")


class Step(NamedTuple):
    """What one read has brought."""

    samples: list[StoredSample]
    next: int
    """Where to go on."""

    end: int
    """Where the log ended."""


class LogReader:
    """Reads the samples of a key expression out of the log that keeps it.

    A step is judged as a whole: its samples count only when the log has said at its end that it is still the same one.
    """

    def __init__(self, session: Session, key: str, where: Predicate | None = None) -> None:
        self._session = session
        self._key = key
        self._where = where
        self._rows = FIRST_ROWS
        self.epoch = ""
        self.end = 0
        self.timeout: float | None = None
        """Seconds for the parts of a read, if not as many as usual."""

    def begin(self, start: Start) -> int:
        """The position to begin with; a new cursor is set to it."""
        cursor = None if start.cursor is None else self._session.cursor(self._key, start.cursor)
        position = None if cursor is None else cursor.position
        if position is not None:
            self._look(newest_first=True, limit=1)
            return int(position)
        found = self._first(start)
        if cursor is not None:
            cursor.move(found)
        return found

    def _first(self, start: Start) -> int:
        if start.history:
            positions = self._look(newest_first=True, limit=start.history, where=self._where)
            return positions[-1] if positions else self.end
        if isinstance(start.since, int):
            positions = self._look(start=start.since or None, limit=1)
            if start.since > self.end:
                raise ValueError(f"since {start.since} is behind the end of the log at {self.end}")
            return start.since or (positions[0] if positions else self.end)
        if start.since is not None:
            since = TimeBound(TimeExpr(instant_ns(start.since, self._session._node.loop.wall_ns())))
            positions = self._look(time=TimeRange(since), limit=1)
            return positions[0] if positions else self.end
        self._look(newest_first=True, limit=1)
        return self.end

    def _look(self, **wanted: Any) -> list[int]:
        """The first and the last position of a range; takes the log as it is for the one to follow.

        Without the predicate, as a rule: a log need not be searched for a sample to know where it ends.
        """
        found: list[int] = []
        reading = self._session.read(self._key, **wanted)
        for batch in reading:
            column = batch.column("position")
            found = [found[0] if found else column[0].as_py(), column[batch.num_rows - 1].as_py()]
        self.epoch, self.end = reading.epoch or "", reading.end or 0
        return found

    def read(self, start: int, end: int | None = None, most: int | None = None) -> Step:
        """The next samples from a position on, `most` of them at most.

        Raises:
            StoreTrimmed, StoreCorrupt: they cannot be had any more.
            StoreReplaced: the log is not the same any more.
        """
        samples: list[StoredSample] = []
        octets, is_whole = 0, True
        limit = self._rows if most is None else min(most, self._rows)
        with self._session.read(
            self._key, start=start, end=end, limit=limit, timeout=self.timeout, where=self._where
        ) as reading:
            for batch in reading:
                samples += samples_of(batch)
                octets += batch.nbytes
                if octets >= STEP_BYTES:  # rows are much larger than they were
                    is_whole = False
                    break
        if reading.epoch != self.epoch:
            raise StoreReplaced(reading.log or "", reading.epoch or "", self.epoch)
        self.end = reading.end or 0
        if is_whole and len(samples) < limit:
            return Step(samples, max(start, reading.next or 0), self.end)
        if limit == self._rows:
            self._rows = rows_after(len(samples), octets)
        return Step(samples, samples[-1].position + 1, self.end)

    def renew(self) -> int:
        """Take the log that is there now; its oldest position with a sample of ours."""
        positions = self._look(limit=1)
        return positions[0] if positions else self.end

    def move(self, cursor: str, position: int, timeout: float | None = None) -> None:
        """Set a cursor."""
        Cursor(self._session, self._key, cursor, timeout).move(position)


def rows_after(rows: int, octets: int) -> int:
    """How many samples to ask for after so many had so many bytes."""
    return max(1, min(MOST_ROWS, 2 * rows, STEP_BYTES * rows // max(octets, 1)))


def instant_ns(time: datetime | timedelta, now_ns: int) -> int:
    """Nanoseconds since 1970 of a time, or of one so long ago."""
    if isinstance(time, timedelta):
        return max(0, now_ns - time // _MICROSECOND * 1000)
    return max(0, (time - _EPOCH) // _MICROSECOND * 1000)
