"""The two kinds of simulated links, from dialling to the end: streams like TCP, datagrams like UDP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from elea.io.linkerrors import CannotConnect, ConnectRefused, ConnectTimeout
from elea.io.timers import Timer
from elea.testing.linkend import End
from elea.testing.networktrace import Fate, Form

if TYPE_CHECKING:
    from elea.testing.wire import Wire

__all__ = ["Datagrams", "DialAttempt", "Flow", "Stream"]

LEAST_HOLD: Final = 0.001
"""Seconds a reordered datagram is held back at least, so that others can overtake it where there is no delay."""


@dataclass(frozen=True, slots=True)
class DialAttempt:
    """An attempt to connect: one of the functions is called when it is known how it ended."""

    opened: Callable[[End], None]
    failed: Callable[[CannotConnect], None]
    timeout: float


class Flow(ABC):
    """One link over a wire; side 0 has dialled."""

    streamed = True

    def __init__(self, wire: Wire, number: int) -> None:
        self.wire = wire
        self.number = number
        self.ends: list[End | None] = [None, None]

    @abstractmethod
    def dial(self, dialling: DialAttempt) -> None:
        """Connect."""

    @abstractmethod
    def send(self, side: int, data: bytes, form: Form) -> None:
        """Bring bytes to the other side."""

    @abstractmethod
    def closed(self, side: int) -> None:
        """An end was closed by its node."""

    @abstractmethod
    def healed(self) -> None:
        """The wire is whole again."""

    def is_over(self) -> bool:
        """Whether nothing can come of it any more."""
        return all(end is not None and end.closed for end in self.ends)

    def new_end(self, side: int) -> End:
        end = self.ends[side] = End(self, side, self.wire.names, mtu=self.wire.mtu, streamed=self.streamed)
        return end

    def accepted(self) -> End | None:
        """A new end at the node that was called, if it takes one."""
        end = self.new_end(1)
        if self.wire.accept(end):
            return end
        end.closed = True
        return None


class Datagrams(Flow):
    """A link of datagrams: there is nothing to connect, and nobody is told of its end."""

    streamed = False

    def __init__(self, wire: Wire, number: int) -> None:
        super().__init__(wire, number)
        self._last = [0.0, 0.0]

    def dial(self, dialling: DialAttempt) -> None:
        dialling.opened(self.new_end(0))

    def send(self, side: int, data: bytes, form: Form) -> None:
        wire = self.wire
        chance, conditions = wire.chance, wire.conditions
        wire.sent += 1
        if wire.parted or chance.random() < conditions.loss:
            wire.record(wire.timeline.now, side, self.number, data, Fate.LOST, form)
            return
        late = chance.random() < conditions.reorder
        twice = chance.random() < conditions.duplicate
        wire.reordered += late
        wire.duplicated += twice
        self._bring(side, data, Fate.LATE if late else Fate.ARRIVED, form)
        if twice:
            self._bring(side, data, Fate.COPY, form)

    def closed(self, side: int) -> None:
        """Nobody is told."""

    def healed(self) -> None:
        """What was lost stays lost."""

    def _bring(self, side: int, data: bytes, fate: Fate, form: Form) -> None:
        wire = self.wire
        sent = wire.timeline.now
        if fate is Fate.ARRIVED:
            # Unless reordering is asked for, datagrams keep their order although each has its own delay.
            when = self._last[side] = max(self._last[side], sent + wire.delay())
        else:
            when = sent + wire.delay() + wire.chance.uniform(LEAST_HOLD, LEAST_HOLD + 3 * wire.conditions.delay[1])

        def come() -> None:
            wire.under_way -= 1
            end = None if wire.parted else self._target(1 - side)
            if wire.parted:
                wire.record(sent, side, self.number, data, Fate.LOST, form)
            elif end is None or end.closed:
                wire.record(sent, side, self.number, data, Fate.UNREAD, form)
            else:
                wire.record(sent, side, self.number, data, fate, form)
                end.arrive(data)

        wire.under_way += 1
        wire.timeline.at(when, come)

    def _target(self, side: int) -> End | None:
        """Who gets a datagram: a listener takes one of an unknown source for the first of a new link."""
        end = self.ends[side]
        return self.accepted() if side == 1 and (end is None or end.closed) else end


@dataclass(frozen=True, slots=True)
class _Sent:
    """Something in a stream. `data` is None for what the machines say to each other to connect, empty for its end."""

    ready: float
    sent: float
    data: bytes | None
    form: Form


class _Lane:
    """One direction of a stream: first in, first out."""

    def __init__(self, flow: Stream, side: int) -> None:
        self.queue: deque[_Sent] = deque()
        self._flow = flow
        self._side = side
        self._ready = 0.0
        self._pumping = False

    def push(self, data: bytes | None, form: Form = Form.PLAIN) -> None:
        wire = self._flow.wire
        now = wire.timeline.now
        self._ready = max(self._ready, now + wire.delay())
        self.queue.append(_Sent(self._ready, now, data, form))
        wire.under_way += 1
        if not self._pumping and not wire.parted:
            self._pump_at(self._ready)

    def healed(self) -> None:
        """What was held back leaves now, and what has been sent since follows it."""
        if self.queue and not self._pumping:
            wire = self._flow.wire
            when = max(self.queue[0].ready, wire.timeline.now + wire.delay())
            self._ready = max(self._ready, when)
            self._pump_at(when)

    def clear(self) -> None:
        """Nothing of it will ever arrive."""
        self._flow.wire.under_way -= len(self.queue)
        self.queue.clear()

    def _pump_at(self, when: float) -> None:
        self._pumping = True
        self._flow.wire.timeline.at(when, self._pump)

    def _pump(self) -> None:
        wire = self._flow.wire
        self._pumping = False
        if wire.parted or not self.queue:
            return
        item = self.queue.popleft()
        wire.under_way -= 1
        if self.queue:
            self._pump_at(self.queue[0].ready)
        self._flow.come(self._side, item)


class Stream(Flow):
    """A link like TCP: connected first, held up by a partition, and ended for both by whoever closes it."""

    def __init__(self, wire: Wire, number: int) -> None:
        super().__init__(wire, number)
        self._lanes = (_Lane(self, 0), _Lane(self, 1))
        self._dialling: DialAttempt | None = None
        self._timer: Timer | None = None

    def dial(self, dialling: DialAttempt) -> None:
        self._dialling = dialling
        self.new_end(0)
        self._lanes[0].push(None)
        problem = f"no answer in {dialling.timeout:.3g} s"
        error = ConnectTimeout(f"sim/{self.wire.names[1]}", problem, "heal the partition")
        self._timer = self.wire.timeline.after(dialling.timeout, lambda: self._fail(error))

    def send(self, side: int, data: bytes, form: Form) -> None:
        self.wire.sent += 1
        self._lanes[side].push(data, form)

    def closed(self, side: int) -> None:
        self._lanes[side].push(b"")

    def healed(self) -> None:
        for lane in self._lanes:
            lane.healed()

    def is_over(self) -> bool:
        dialled, accepted = self.ends
        given_up = dialled is not None and dialled.closed and accepted is None
        return (given_up or super().is_over()) and not any(lane.queue for lane in self._lanes)

    def come(self, side: int, item: _Sent) -> None:
        """Something arrives at the other side."""
        if item.data is None:
            self._connect(side)
            return
        end = self.ends[1 - side]
        fate = Fate.UNREAD if end is None or end.closed else Fate.ARRIVED
        self.wire.record(item.sent, side, self.number, item.data, fate, item.form)
        if end is not None and not end.closed:
            end.arrive(item.data)

    def _connect(self, side: int) -> None:
        if side == 1:
            self._opened()
        elif self.accepted() is not None:
            self._lanes[1].push(None)
        else:
            error = ConnectRefused(f"sim/{self.wire.names[1]}", "connection refused", "the node there is closed")
            self.wire.timeline.after(self.wire.delay(), lambda: self._fail(error))

    def _opened(self) -> None:
        dialling, end = self._over(), self.ends[0]
        if dialling is not None and end is not None:
            dialling.opened(end)

    def _fail(self, error: CannotConnect) -> None:
        dialling, end = self._over(), self.ends[0]
        if dialling is not None and end is not None:
            end.close()
            if self.ends[1] is None:
                self._lanes[0].clear()  # no machine goes on with a connection that nobody waits for
            dialling.failed(error)

    def _over(self) -> DialAttempt | None:
        """The attempt, unless it has ended already."""
        dialling, self._dialling = self._dialling, None
        if self._timer is not None:
            self._timer.cancel()
        return dialling
