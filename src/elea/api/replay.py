"""Replay: the samples of a time range again, in the order and at the pace of their timestamps.

::

    for sample in session.replay("home/**", since=timedelta(hours=1), pace=60):  # an hour in a minute
        session.put(f"replay/{sample.key_expr}", sample.payload)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from elea.api.logreader import FIRST_ROWS, instant_ns, rows_after
from elea.api.stored import StoredSample, samples_of
from elea.model.errors import SessionClosed, StoreReplaced
from elea.model.keyexpr import KeyExpr
from elea.model.timerange import TimeBound, TimeExpr, TimeRange
from elea.model.timestamp import ns_from_ntp64

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Replay"]

SECOND_NS: Final = 1_000_000_000
NAP: Final = 0.5
"""Seconds after which a waiting replay looks whether its session is still open."""


class Replay:
    """The samples of a range, to iterate over; made by `Session.replay`.

    What is put after the first sample was asked for is not part of it. Several samples may have the same time; they
    come in the order of their positions.
    """

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        since: datetime | timedelta | None,
        until: datetime | timedelta | None,
        pace: float | None,
    ) -> None:
        if pace is not None and not pace > 0:
            raise ValueError(f"a pace is above 0, or None for as fast as possible; {pace} is not")
        now = session._node.loop.wall_ns()
        for name, time in (("since", since), ("until", until)):
            if isinstance(time, datetime) and time.tzinfo is None:
                raise ValueError(f"{name} {time} has no time zone; write datetime(…, tzinfo=UTC)")
        self._session = session
        self._key = str(key_expr)
        self._from = 0 if since is None else instant_ns(since, now)
        self._until = None if until is None else TimeBound(TimeExpr(instant_ns(until, now)))
        self._pace = pace
        self._rows = FIRST_ROWS
        self._end: int | None = None  # of the log, when the replay began
        self._epoch: str | None = None
        self._seen: set[int] = set()  # positions that were fetched already, of the instant `_from`
        self._over = False
        self._fetched: deque[StoredSample] = deque()
        self._origin: tuple[float, int] | None = None  # when the first sample was given, and its time

    def __iter__(self) -> Iterator[StoredSample]:
        while self.is_ready or self.fetch():
            delay = self.delay()
            while delay > 0:
                threading.Event().wait(min(delay, NAP))
                if self._session.is_closed():
                    raise SessionClosed(text="the session was closed during a replay")
                delay = self.delay()
            yield self.take()

    @property
    def is_ready(self) -> bool:
        """Whether the next sample is here."""
        return bool(self._fetched)

    def fetch(self) -> bool:
        """Have the next samples here; False if there are none. Blocks while the store answers.

        Raises:
            StoreError, OperationTimeout: they cannot be had.
        """
        while not self._over and not self._fetched:
            self._fetch()
        return bool(self._fetched)

    def delay(self) -> float:
        """Seconds until the next sample is due; negative if it is late."""
        if self._pace is None:
            return 0.0
        now = self._session._node.loop.now()
        at = _ns(self._fetched[0])
        if self._origin is None:
            self._origin = now, at
        begun, first = self._origin
        return begun + (at - first) / SECOND_NS / self._pace - now

    def take(self) -> StoredSample:
        """The next sample."""
        return self._fetched.popleft()

    def _fetch(self) -> None:
        # Pieces of the range, since a query that lasted as long as the replay would time out.
        since = TimeBound(TimeExpr(self._from))
        wanted = TimeRange(since, self._until)
        reading = self._session.read(self._key, end=self._end, time=wanted, limit=self._rows, by_time=True)
        found: list[StoredSample] = []
        octets = 0
        for batch in reading:
            found += samples_of(batch)
            octets += batch.nbytes
        if self._epoch is None:
            self._end, self._epoch = reading.end, reading.epoch
        elif reading.epoch != self._epoch:
            raise StoreReplaced(reading.log or "", reading.epoch or "", self._epoch)
        self._over = len(found) < self._rows
        self._fetched.extend([sample for sample in found if sample.position not in self._seen])
        if found and not self._over:
            self._go_on(found, octets)

    def _go_on(self, found: list[StoredSample], octets: int) -> None:
        """The next range begins at the last instant again: there may be more samples of it."""
        last = _ns(found[-1])
        if last != self._from:
            self._seen.clear()
        self._from = last
        self._seen.update(sample.position for sample in found if _ns(sample) == last)
        # The range has room for those that come again, else one full of them would come for ever.
        self._rows = rows_after(self._rows, octets) + len(self._seen)


def _ns(sample: StoredSample) -> int:
    return ns_from_ntp64(sample._row[1])
