"""How a follower gives samples to its consumer: it drops none, and knows which ones the consumer is done with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from elea.api.channels import Handler
from elea.api.sample import Sample
from elea.api.sinks import Sink

__all__ = ["ChannelConsumer", "Consumer", "FunctionConsumer"]


class Consumer(Protocol):
    """Who gets the samples of a follower."""

    def deliver(self, samples: Sequence[Sample], pause: Callable[[bool], bool]) -> None:
        """Give it samples, however long that takes. `pause` is called now and then, with True to wait for room; when
        it returns False the rest is not wanted any more.
        """

    def handed(self) -> int:
        """How many samples it has got."""

    def finished(self, *, over: bool = False) -> int:
        """How many of them it is done with; `over` says that it will not ask for more."""


class FunctionConsumer:
    """A function, called with one sample after the other; done with one when it returns."""

    def __init__(self, sink: Sink[Sample]) -> None:
        self._push = sink.push
        self._handed = 0
        self._finished = 0

    def deliver(self, samples: Sequence[Sample], pause: Callable[[bool], bool]) -> None:
        push = self._push
        for sample in samples:
            self._handed += 1
            push(sample)
            self._finished += 1
            if not pause(False):
                return

    def handed(self) -> int:
        return self._handed

    def finished(self, *, over: bool = False) -> int:
        return self._finished


class ChannelConsumer:
    """A channel, and who takes from it: done with a sample when asking for the next."""

    def __init__(
        self,
        channel: Handler[Sample],
        on_room: Callable[[], None],
        *,
        is_idle: Callable[[], bool] | None = None,
        added: Callable[[], None] | None = None,
    ) -> None:
        """See the class.

        Args:
            on_room: called when the channel was full and is not any more.
            is_idle: whether whoever takes waits for the next sample, or has ended.
            added: called after samples were put into the channel.
        """
        self._channel = channel
        self._is_idle = is_idle or (lambda: bool(channel._takers))
        self._added = added
        channel.on_room = on_room

    def deliver(self, samples: Sequence[Sample], pause: Callable[[bool], bool]) -> None:
        # Not `push_many`, which gives up a consumer that has taken nothing for some seconds.
        at = 0
        while at < len(samples):
            before, at = at, self._channel.offer(samples, at)
            if at > before and self._added is not None:
                self._added()
            if at < len(samples) and not pause(True):
                return

    def handed(self) -> int:
        return self._channel._takes + self._channel.dropped

    def finished(self, *, over: bool = False) -> int:
        return self.handed() - (self._channel._takes > 0 and not over and not self._is_idle())
