"""Subscribers that begin in the past: what a broker has kept, then what comes, in one sequence without gap or repeat.

::

    with session.declare_subscriber("home/**", history=100) as subscriber:
        for sample in subscriber:
            print(sample.position, sample.key_expr)

Everything is read from the log, by position; live samples of the key expression only say that there is more to read. So
the order is that of positions, and reconnections and restarts of the broker change nothing: the next read begins where
the last complete one ended.

====================  =================================================================================================
begins with           which is
====================  =================================================================================================
`history=n`           the last n samples of the whole key expression, deletions included
`since=position`      that position; 0 stands for the oldest sample left
`since=time`          the first position with a timestamp not before that: a `datetime` with zone, or a `timedelta` ago
`cursor="name"`       where the cursor of this name is; a new one is set by `history` or `since`, else to the end
====================  =================================================================================================

A cursor is kept by the broker and moved when the consumer is done with samples, so that one who crashes gets the last
few again (at least once). Done is: the function has returned; what was taken from the channel before, once the next is
asked for. With `auto_commit=False` it moves by `commit()` only.

A sample that cannot be had any more is never passed over in silence: see `Loss`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from elea.api.apierrors import ChannelClosed
from elea.api.channels import Handler
from elea.api.consumer import ChannelConsumer, Consumer, FunctionConsumer
from elea.api.handle import Items
from elea.api.logprogress import Progress
from elea.api.logreader import LogReader, Start, Step
from elea.api.sample import Sample
from elea.api.sinks import Sink
from elea.api.subscriber import Subscriber
from elea.io.dispatch import Mailbox
from elea.io.timers import monotonic
from elea.model.errors import (
    Congested,
    EleaError,
    NotStored,
    OperationTimeout,
    SessionClosed,
    StoreClosing,
    StoreCorrupt,
    StoreReplaced,
    StoreTrimmed,
)
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality
from elea.protocol.pacing import Windows

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate

__all__ = ["FollowingSubscriber", "Loss", "Start"]

H = TypeVar("H")

PASSING: Final = (OperationTimeout, NotStored, Congested, StoreClosing)
"""What may be over soon: a broker that restarts, or is too busy."""

BETWEEN_READS: Final = 0.001
"""Seconds between two reads at least, if live samples cause them: what comes in between is read at once."""

LEAST_PAUSE: Final = 0.001
"""Seconds until the next read if one has found nothing: a sample is heard of before it is on the disk."""

LONGEST_PAUSE: Final = 1.0
"""The pause doubles up to here while nothing is found. Then it is a safety net: live samples may be lost on the way."""

COMMIT_SECONDS: Final = 0.2
"""How often a cursor is moved, at most: each time it is a write to the disk of the broker."""

ENDING_SECONDS: Final = 2.0
"""How long an ending subscriber waits for its thread; a function of the user may take longer."""

SECOND_NS: Final = 1_000_000_000

_log = logging.getLogger("elea.api")


@dataclass(frozen=True, slots=True)
class Loss:
    """Samples that cannot be delivered: given to `on_loss`, and then the subscriber goes on at `resumed`.

    Without `on_loss` the subscriber ends: `recv` and iteration raise the cause, and `subscriber.error` has it.
    """

    cause: EleaError
    """`StoreTrimmed`: retention was quicker; `StoreCorrupt`: damaged; `StoreReplaced`: another log is in its place."""

    position: int
    """Where it would have gone on."""

    resumed: int
    """Where it goes on; after `StoreReplaced` in the new log."""

    positions: int
    """How many positions that leaves out, those of other keys included. Of a replaced log, those known to be unread."""


class FollowingSubscriber(Subscriber[H]):
    """A subscriber declared with `history`, `since` or `cursor`; see the module."""

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        handler: object,
        start: Start,
        *,
        auto_commit: bool = True,
        on_loss: Callable[[Loss], object] | None = None,
        windows: Windows | None = None,
        consumer: Callable[[Callable[[], None]], Consumer] | None = None,
        where: SamplePredicate | None = None,
    ) -> None:
        """See the module.

        Args:
            windows: when samples are given to the handler, on the clock of the node; not given, always.
            consumer: of the asyncio twin, which has another idea of who takes; given what to call when there is room.
        """
        self._reader = LogReader(session, str(key_expr), None if where is None else where.predicates[0])
        self._cursor = start.cursor
        self._auto_commit = auto_commit and start.cursor is not None
        self._on_loss = on_loss
        self._windows = windows
        self._loop = session._node.loop
        self._bell = threading.Event()
        self._moving = threading.Lock()  # for who counts
        self._committing = threading.Lock()  # for who moves the cursor
        self._barrier: int | None = None
        self._looked_at = 0.0
        self._is_reading = False
        self._is_done = True
        self.error: EleaError | None = None
        """Why it has ended by itself."""
        self.interruptions = 0
        """Reads that failed and were tried again."""
        self._trouble: EleaError | None = None  # why the last one failed, if it may be over soon
        self._next = self._committed = self._reader.begin(start)
        self._progress = Progress(self._next)
        super().__init__(session, key_expr, handler, self._origin, where)
        self._begin(consumer)

    @property
    def _origin(self) -> Locality:
        """Whose samples say that there is more to read."""
        return Locality.ANY

    def _begin(self, consumer: Callable[[Callable[[], None]], Consumer] | None) -> None:
        self._consumer: Consumer
        self._thread = threading.Thread(target=self._run, name="elea-follow", daemon=True)
        if consumer is not None:
            self._consumer = consumer(self._bell.set)
        elif isinstance(self._sink, Handler):
            self._consumer = ChannelConsumer(self._sink, self._bell.set)
        else:
            self._consumer = FunctionConsumer(self._sink)
        self._thread.start()

    @property
    def position(self) -> int:
        """The position behind the last sample that was handed out."""
        with self._moving:
            return self._progress.behind(self._consumer.handed())

    @property
    def epoch(self) -> str:
        """The identity of the log that positions belong to."""
        return self._reader.epoch

    def commit(self, position: int | None = None) -> None:
        """Move the cursor behind every sample that was handed out, or to a position; returns when that is safe.

        Raises:
            TypeError: it was declared without a cursor.
            StoreError, OperationTimeout: it could not be moved.
        """
        if self._cursor is None:
            super().commit()
        with self._committing:
            self._move(self.position if position is None else position)

    # -- what the consumer sees

    def recv(self) -> Any:
        """The next sample, waiting for it; raises the `error` when it has ended by itself."""
        try:
            return super().recv()
        except ChannelClosed:
            self._raise()
            raise

    def try_recv(self) -> Any:
        """The next sample, or None if there is none now."""
        try:
            return super().try_recv()
        except ChannelClosed:
            self._raise()
            raise

    def __iter__(self) -> Iterator[Any]:
        return Items(self, self._channel(), at_end=self._raise)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_done = kind is None  # else the consumer was not done with what it took last
        super().__exit__(kind, error, traceback)

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error

    # -- the thread that reads

    def _mailbox(self, sink: Sink[Sample]) -> Mailbox:
        return Mailbox(self._heard)

    def _heard(self, _: object) -> None:
        """A live sample: there will be more to read."""
        if not self._bell.is_set():
            self._bell.set()

    def _run(self) -> None:
        try:
            self._follow()
        except EleaError as error:
            if not self._gone:
                self.error = error
                _log.error("subscriber ended key=%s position=%d error=%s", self._key_expr, self._next, error)
        except Exception as error:  # noqa: BLE001 - a defect of ours, and still no reason for silence
            self.error = EleaError(f"the subscriber failed: {error!r}")
            _log.exception("subscriber failed key=%s position=%d", self._key_expr, self._next)
        self._sink.close()

    def _follow(self) -> None:
        pause = LEAST_PAUSE
        while self._await_window():
            begun = monotonic()
            self._bell.clear()
            step = self._step()
            if step is not None:
                self._deliver(step)
            self._commit_if_due()
            if step is not None and self._next < step.end:
                pause = LEAST_PAUSE
                continue
            pause = LEAST_PAUSE if step is not None and step.samples else min(pause * 2, LONGEST_PAUSE)
            if self._wait(pause):
                pause = LEAST_PAUSE
                threading.Event().wait(max(0.0, begun + BETWEEN_READS - monotonic()))

    def _wait(self, seconds: float) -> bool:
        """Wait for live samples; meanwhile the consumer may get done with what it has. Whether there were any."""
        until = monotonic() + seconds
        while True:
            left = until - monotonic()
            if self._bell.wait(max(0.0, min(left, COMMIT_SECONDS))):
                return True
            if left <= 0 or self._gone:
                return False
            self._commit_if_due()

    def _await_window(self, until: float | None = None) -> bool:
        """Wait until samples may be given; False if that is not wanted any more, or not before a time."""
        while not self._gone:
            now = int(self._loop.now() * SECOND_NS)
            if self._windows is None or self._windows.open_at(now):
                return True
            left = (self._windows.opening(now) - now) / SECOND_NS
            if until is not None:
                left = min(left, until - monotonic())
                if left <= 0:
                    return False
            self._commit_if_due()
            threading.Event().wait(min(left, COMMIT_SECONDS))
        return False

    def _step(self, most: int | None = None) -> Step | None:
        """The next samples, None if they could not be had now."""
        self._is_reading = True
        self._trouble = None
        try:
            step = self._reader.read(self._next, self._barrier, most)
            self._barrier = None
            return step
        except PASSING as error:
            self._trouble = error
            self.interruptions += 1
            _log.warning("read again key=%s position=%d error=%s", self._key_expr, self._next, error)
        except StoreTrimmed as error:
            self._lost(error, error.first, error.first - self._next)
        except StoreCorrupt as error:
            if error.position > self._next:
                self._barrier = error.position  # what lies before the damage is read first
            else:
                self._lost(error, error.last + 1, error.last + 1 - self._next)
        except StoreReplaced as error:
            self._replaced(error)
        finally:
            self._is_reading = False
        return None

    def _replaced(self, cause: StoreReplaced) -> None:
        unread = max(0, self._reader.end - self._next)
        first = self._next
        if self._on_loss is not None:
            try:
                first = self._reader.renew()
            except PASSING:
                return  # the next read finds the new log again
        self._lost(cause, first, unread)
        with self._committing, self._moving:
            self._progress.restart(self._next)
            self._committed = -1

    def _lost(self, cause: EleaError, resumed: int, positions: int) -> None:
        if self._on_loss is None:
            raise cause
        loss = Loss(cause, self._next, resumed, positions)
        _log.error("samples lost key=%s position=%d resumed=%d", self._key_expr, self._next, resumed)
        self._next = resumed
        with self._moving:
            self._progress.add([], resumed)
        self._on_loss(loss)

    def _deliver(self, step: Step) -> None:
        with self._moving:
            self._progress.add([sample.position for sample in step.samples], step.next)
        self._consumer.deliver(step.samples, self._pause)
        self._next = step.next

    def _pause(self, full: bool) -> bool:
        """While samples are delivered; False when they are not wanted any more."""
        if full:
            self._bell.wait(COMMIT_SECONDS)
            self._bell.clear()
        if monotonic() - self._looked_at >= COMMIT_SECONDS:
            self._commit_if_due()
        return not self._gone if self._windows is None else self._await_window()

    # -- the cursor

    def _commit_if_due(self) -> None:
        now = monotonic()
        if now - self._looked_at < COMMIT_SECONDS:
            return
        self._looked_at = now
        if not self._auto_commit:
            with self._moving:
                self._progress.forget(self._consumer.handed())
            return
        try:
            with self._committing:
                self._move(self._settle())
        except PASSING as error:
            _log.warning("cursor not moved cursor=%s error=%s", self._cursor, error)

    def _settle(self, *, over: bool = False) -> int:
        with self._moving:
            self._progress.forget(self._consumer.finished(over=over))
            return self._progress.behind(0)

    def _move(self, position: int, timeout: float | None = None) -> None:
        """Move the cursor, if that is news; `_committing` is held."""
        if position != self._committed:
            assert self._cursor is not None
            self._reader.move(self._cursor, position, timeout)
            self._committed = position

    def _leave(self) -> None:
        self._finish()  # while the session can still move the cursor

    def _join(self) -> None:
        if not self._is_reading and threading.current_thread() is not self._thread:
            self._thread.join(ENDING_SECONDS)

    def _end(self) -> None:
        super()._end()
        self._bell.set()
        self._join()
        if self._auto_commit:
            try:
                with self._committing:
                    self._move(self._settle(over=self._is_done), ENDING_SECONDS)
            except (*PASSING, SessionClosed) as error:
                # At least once: whoever comes next under this name gets some of it again.
                _log.warning("cursor not moved cursor=%s error=%s", self._cursor, error)
