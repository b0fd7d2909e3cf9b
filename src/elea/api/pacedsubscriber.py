"""Subscribers that get their samples when they ask for them, or in windows of time: `Pull` and `Periodic`.

The rules are those of `elea.protocol.pacing`, which the early dialects use too. In sessions of 1.x they are kept on
this side of the link, since that protocol has no words for them: samples come as to any subscriber, and wait here.
With a broker of 2018 they wait there (`elea.api.wirepulls`).
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from elea.api.handle import weakly
from elea.api.sample import Sample
from elea.api.sinks import Sink
from elea.api.subscriber import Subscriber
from elea.io.dispatch import Mailbox
from elea.io.loop import Loop
from elea.io.timers import Timer
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality
from elea.node.route import SampleRun
from elea.protocol import pacing

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate

__all__ = ["PacedSubscriber", "Periodic", "Pull", "check_count"]

H = TypeVar("H")

SECOND_NS: Final = 1_000_000_000
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = object()
"""In a mailbox: look at what is due."""


@dataclass(frozen=True, slots=True)
class Pull:
    """The mode of a subscriber that asks: samples wait until `subscriber.pull()`.

    10,000 samples wait at most; then the oldest gives way and is counted in `subscriber.dropped`.
    """

    max_samples: int | None = None
    """How many samples a pull asks for that does not say; None for all there are."""

    def __post_init__(self) -> None:
        check_count(self.max_samples)


@dataclass(frozen=True, slots=True)
class Periodic:
    """The mode of a subscriber that gets samples in windows of time only: for `duration`, once each `period`.

    What comes between windows waits for the next one, as with `Pull`. Times are seconds or `timedelta`. The first
    window opens at `origin`: a time with its zone, or so long after the declaration; not given, at once.
    """

    period: float | timedelta
    duration: float | timedelta
    origin: datetime | timedelta | float | None = None
    pull: bool = False
    """Whether samples wait for a pull as well; one outside of a window is answered when the next opens."""

    max_samples: int | None = None
    """As for `Pull`."""

    def __post_init__(self) -> None:
        check_count(self.max_samples)
        pacing.Windows(0, _ns(self.period), _ns(self.duration))

    def windows(self, loop: Loop) -> pacing.Windows:
        """The windows on the clock of a node, if declared now."""
        now = _now(loop)
        if self.origin is None:
            start = now
        elif isinstance(self.origin, datetime):
            start = now + (self.origin - _EPOCH) // _MICROSECOND * 1000 - loop.wall_ns()
        else:
            start = now + _ns(self.origin)
        return pacing.Windows(start, _ns(self.period), _ns(self.duration))


class PacedSubscriber(Subscriber[H]):
    """A subscriber declared with a mode.

    ::

        with session.declare_subscriber("home/**", mode=elea.Pull(max_samples=100)) as subscriber:
            samples = subscriber.pull()
    """

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        handler: object,
        origin: Locality,
        mode: Pull | Periodic,
        where: SamplePredicate | None = None,
    ) -> None:
        self._loop = session._node.loop
        self._max_samples = mode.max_samples
        windows = mode.windows(self._loop) if isinstance(mode, Periodic) else None
        asks = isinstance(mode, Pull) or mode.pull
        self._pacer: pacing.Pacer[Sample] = pacing.Pacer(pacing.Mode(asks, windows))
        self._pacing = threading.Lock()
        self._returns = asks and handler is None
        self._pulls: deque[tuple[int | None, Sink[Any]]] = deque()  # waiting for a window, if it returns samples
        self._timer: Timer | None = None
        super().__init__(session, key_expr, _nothing if self._returns else handler, origin, where)

    @property
    def dropped(self) -> int:
        """Samples lost because too many waited, here or in the handler."""
        return self._pacer.dropped + self._sink.dropped

    @property
    def waiting(self) -> int:
        """Samples that wait for a pull or a window."""
        return len(self._pacer)

    def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """Ask for samples that have come: so many at most, or as many as the mode says.

        Returns them; but nothing if there is a handler (a function or channel), which gets them. In a periodic mode
        it waits for the next window.

        Raises:
            OperationTimeout: no window has opened within `timeout` seconds.
            ChannelClosed: the subscriber has ended.
        """
        if self._gone:
            self._session._refuse(f"subscriber on {self._key_expr} is undeclared")
        most = self._max_samples if max_samples is None else max_samples
        check_count(most)
        node = self._session._node
        if not self._pacer.mode.pull:
            return super().pull()
        if not self._returns:
            with self._pacing:
                self._pacer.pull(most)
            node.dispatch.add(self._box, _TICK)
            node.deliver_soon()
            return []
        with self._pacing:
            now = _now(self._loop)
            windows = self._pacer.mode.windows
            if not self._pulls and (windows is None or windows.open_at(now)):
                self._pacer.pull(most)
                return self._pacer.due(now)
            sink, channel = self._session._handler(None, "list")
            self._pulls.append((most, sink))
            self._arm(now)
        return channel.recv(timeout=timeout)  # type: ignore[attr-defined, no-any-return]

    def _put_back(self, samples: list[Sample]) -> None:
        """Samples of the last pull that nobody got: the next one brings them again."""
        with self._pacing:
            self._pacer.put_back(samples)

    # -- in the thread that delivers

    def _mailbox(self, sink: Sink[Sample]) -> Mailbox:
        return Mailbox(weakly(self._deliver))

    def _deliver(self, item: object) -> None:
        now = _now(self._loop)
        with self._pacing:
            if isinstance(item, SampleRun):
                namespace = self._session._namespace
                key = item.key if namespace is None else namespace.own_expr(item.key)
                if key is not None:
                    run = item.run if self._where is None else self._where.chosen(str(key), item.run)
                    self._pacer.add_many([Sample(key, raw) for raw in run], now)
            if self._returns:
                due = self._answer(now)
            else:
                due = [(self._sink, found)] if (found := self._pacer.due(now)) else []
            self._arm(now)
        for sink, samples in due:
            if self._returns:
                sink.push(samples)
            else:
                sink.push_many(samples)

    def _answer(self, now: int) -> list[tuple[Sink[Any], list[Sample]]]:
        """What pulls get that have waited for a window."""
        windows = self._pacer.mode.windows
        answered: list[tuple[Sink[Any], list[Sample]]] = []
        while self._pulls and windows is not None and windows.open_at(now):
            most, sink = self._pulls.popleft()
            self._pacer.pull(most)
            answered.append((sink, self._pacer.due(now)))
        return answered

    def _arm(self, now: int) -> None:
        """Look again when something will be due; the lock is held."""
        windows = self._pacer.mode.windows
        due = windows.opening(now) if self._pulls and windows is not None else self._pacer.next_deadline(now)
        if due is not None and self._timer is None and not self._gone:
            self._timer = self._loop.at(due / SECOND_NS, weakly(self._tick))

    def _tick(self) -> None:
        with self._pacing:
            self._timer = None
        # Timers must be quick, and a handler need not be: it is called by whoever delivers.
        self._session._node.dispatch.add(self._box, _TICK)
        self._session._node.deliver_soon()

    def _end(self) -> None:
        with self._pacing:
            if self._timer is not None:
                self._timer.cancel()
            waiting, self._pulls = list(self._pulls), deque()
        super()._end()
        for _, sink in waiting:
            sink.close()


def _now(loop: Loop) -> int:
    return int(loop.now() * SECOND_NS)


def _ns(time: float | timedelta) -> int:
    if isinstance(time, timedelta):
        return time // _MICROSECOND * 1000
    return round(time * SECOND_NS)


def check_count(most: int | None) -> None:
    """Raise if a pull cannot ask for so many samples."""
    if most is not None and most < 1:
        raise ValueError(f"a pull asks for one sample at least, not {most}")


def _nothing(_: Sample) -> None: ...
