"""Subscribers that begin in the past and get their samples when they ask: a mode together with a cursor or history.

::

    with session.declare_subscriber("home/**", mode=elea.Pull(max_samples=100), cursor="report") as subscriber:
        while samples := subscriber.pull():
            ...

A pull reads the log from where the last one ended, up to where the log ends when it is asked. Between pulls nothing
crosses the network, nothing waits in memory and nothing is dropped: the log is what waits. The consumer is done with
the samples of a pull when it asks for more, or ends in order; then the cursor moves behind them.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, cast

from elea.api.consumer import Consumer
from elea.api.historysubscriber import COMMIT_SECONDS, PASSING, FollowingSubscriber, Loss, Start
from elea.api.pacedsubscriber import Periodic, Pull, check_count
from elea.api.sample import Sample
from elea.api.stored import StoredSample
from elea.io.timers import monotonic
from elea.model.errors import EleaError, OperationTimeout, StoreReplaced
from elea.model.keyexpr import KeyExpr
from elea.model.limits import PACED_SAMPLES
from elea.model.qos import Locality

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate

__all__ = ["PullingSubscriber"]

_log: Final = logging.getLogger("elea.api")

H = TypeVar("H")

LEAST_TIMEOUT: Final = 0.05
"""Seconds a broker has for an answer, however little time the puller has left."""


class PullingSubscriber(FollowingSubscriber[H]):
    """A subscriber declared with a mode that pulls, and with `history`, `since` or `cursor`; see the module."""

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        start: Start,
        mode: Pull | Periodic,
        *,
        auto_commit: bool = True,
        on_loss: Callable[[Loss], object] | None = None,
        where: SamplePredicate | None = None,
    ) -> None:
        self._max_samples = mode.max_samples
        self._pulling = threading.Lock()
        self._waiting: deque[StoredSample] = deque()  # what was pulled, and given back
        windows = mode.windows(session._node.loop) if isinstance(mode, Periodic) else None
        super().__init__(
            session,
            key_expr,
            _nothing,
            start,
            auto_commit=auto_commit,
            on_loss=on_loss,
            windows=windows,
            where=where,
        )

    @property
    def position(self) -> int:
        """The position behind the last sample that was pulled."""
        with self._moving:
            return self._waiting[0].position if self._waiting else self._next

    def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """The next samples of the log: so many at most, or as many as the mode says, else 10,000.

        None are there if the list is empty. In a periodic mode it waits for the next window.

        Raises:
            OperationTimeout: no window has opened, or no broker has answered, within `timeout` seconds.
            NotStored, StoreTrimmed, StoreCorrupt, StoreReplaced: see `elea.api.historysubscriber`.
            SessionClosed: the subscriber has ended.
        """
        most = self._max_samples if max_samples is None else max_samples
        check_count(most)
        until = None if timeout is None else monotonic() + timeout
        with self._pulling:
            self._raise()
            self._done_at = self.position  # who asks again is done with what came before
            self._commit_if_due()
            if not self._await_window(until):
                self._refuse()
                raise OperationTimeout(f"no window has opened within {timeout} s")
            try:
                return list(self._pulled(PACED_SAMPLES if most is None else most, until))
            except EleaError as error:
                if not isinstance(error, PASSING):
                    self.error = error
                raise

    def _put_back(self, samples: list[Sample]) -> None:
        """Samples of the last pull that nobody got: the next one brings them again."""
        with self._moving:
            self._waiting.extendleft(reversed(cast("list[StoredSample]", samples)))

    def _pulled(self, most: int, until: float | None) -> list[StoredSample]:
        with self._moving:
            found = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        try:
            self._read_on(found, most, until)
        except BaseException:
            self._put_back(list(found))
            raise
        return found

    def _read_on(self, found: list[StoredSample], most: int, until: float | None) -> None:
        """Add what lies between the last pull and the end of the log as it is now."""
        end: int | None = None
        while len(found) < most and (end is None or self._next < end):
            if until is not None:
                self._reader.timeout = max(until - monotonic(), LEAST_TIMEOUT)
            if self._barrier is None:
                self._barrier = end
            step = self._step(most - len(found))
            self._refuse()
            if step is not None:
                with self._moving:
                    self._next = step.next
                found += step.samples
                end = step.end if end is None else end
            elif self._trouble is not None:
                if found:
                    return
                if until is None or monotonic() >= until:
                    raise self._trouble

    def _refuse(self) -> None:
        if self._gone:
            self._session._refuse(f"subscriber on {self._key_expr} is undeclared")

    # -- what differs from one that is given its samples

    @property
    def _origin(self) -> Locality:
        return Locality.SESSION_LOCAL  # nobody need tell a sleeper that there is more to read

    def _begin(self, consumer: Callable[[Callable[[], None]], Consumer] | None) -> None:
        """Wait for the first pull; there is no thread."""
        self._done_at = self._next

    def _join(self) -> None:
        """There is none."""

    def _replaced(self, cause: StoreReplaced) -> None:
        super()._replaced(cause)
        self._done_at = self._next

    def _commit_if_due(self) -> None:
        now = monotonic()
        if not self._auto_commit or now - self._looked_at < COMMIT_SECONDS:
            return
        self._looked_at = now
        try:
            with self._committing:
                self._move(self._done_at)
        except PASSING as error:
            _log.warning("cursor not moved cursor=%s error=%s", self._cursor, error)

    def _settle(self, *, over: bool = False) -> int:
        return self.position if over else self._done_at


def _nothing(_: Sample) -> None: ...
