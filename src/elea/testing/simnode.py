"""A node of a simulated network: a real `elea.Session` whose waiting lets virtual time run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from elea.api.channels import Handler
from elea.api.config import Config
from elea.api.handle import Handle
from elea.api.sample import Sample
from elea.api.session import Session
from elea.api.settings import Settings
from elea.api.sinks import DefaultHandler, FifoChannel, RingChannel, Sink, into_handler
from elea.node.runtime import Runtime
from elea.testing.virtualnode import VirtualRuntime

__all__ = ["Clockwork", "Node"]

T = TypeVar("T")

UNBOUNDED: Final = 1 << 62
"""A real consumer takes while others send; a simulated one has no chance to before time has run, so all is kept."""

COUNTERS: Final = {
    "frames": "received_frames",
    "missing": "missing_numbers",
    "duplicates": "duplicates",
    "fragments": "received_fragments",
    "fragments_lost": "lost_fragments",
}

PATIENCE: Final = 3600.0
"""Virtual seconds that `recv` without a timeout waits: longer means that nothing will ever come."""


class Clockwork(Protocol):
    """What lets time run."""

    def run_until(self, condition: Callable[[], object], seconds: float) -> None:
        """Go on until the condition holds.

        Raises:
            OperationTimeout: it does not within these seconds.
        """


class VirtualChannel(Handler[T]):
    """A channel whose consumer waits in virtual time. A fifo channel is never full."""

    __slots__ = ("_clockwork",)

    def __init__(self, clockwork: Clockwork, capacity: int, *, ring: bool, of: str) -> None:
        super().__init__(capacity, ring=ring, of=of)
        self._clockwork = clockwork

    def _wait_for_item(self, timeout: float | None, until: float | None) -> None:
        """Let time run until there is an item."""
        self._clockwork.run_until(lambda: self._items or self._closed, PATIENCE if timeout is None else timeout)


class Node(Session):
    """A node of a simulated network, made by `Network.router`, `peer` or `client`; everything a session can do it can.

    Handlers that are functions are called while time runs. `recv` and iteration over a channel let time run until
    something comes; a handler must not do that.
    """

    _has_plain_channels = False
    _runtime: VirtualRuntime

    def __init__(self, name: str, config: Config, clockwork: Clockwork, start: Callable[[Settings], Runtime]) -> None:
        self.name = name
        self._clockwork = clockwork
        super().__init__(config, start=start)
        self._forgotten.detach()  # a node nobody has any more goes with its network, without a word and a thread

    def subscribe(self, key_expr: str) -> list[Sample]:
        """Declare a subscriber; the list grows with every sample that comes."""
        samples: list[Sample] = []
        self.declare_subscriber(key_expr, samples.append)
        return samples

    def counters(self) -> dict[str, int]:
        """What its open sessions have counted of what came in; `duplicates` are also those that came too late."""
        total = dict.fromkeys(COUNTERS, 0)
        for connection in self._runtime.links.connections:
            counted = {} if connection.face is None else connection.face.counters()
            for name, counter in COUNTERS.items():
                total[name] += counted.get(counter, 0)
        return total

    def close(self) -> None:
        """End the session in good order: the others are told before the links are closed."""
        # Handles are kept in a weak set, whose order depends on addresses in memory.
        for handle in sorted(self._handles, key=lambda handle: handle._eid):
            handle._finish()
        super().close()

    def _end_dropped(self, handle: Handle) -> None:
        def end() -> None:
            handle._finish()

        self._node.loop.soon(end)

    def kill(self) -> None:
        """End as a killed process does: nobody is told, but its machine closes the links.

        A machine that vanishes says nothing at all: that is `Network.part(node)`.
        """
        self._closed = True
        self._runtime.kill()

    def _handler(self, argument: object, of: str) -> tuple[Sink[Any], object]:
        if argument is None or isinstance(argument, DefaultHandler | FifoChannel | RingChannel):
            ring = isinstance(argument, RingChannel)
            capacity = argument.capacity if isinstance(argument, RingChannel) else UNBOUNDED
            channel: VirtualChannel[Any] = VirtualChannel(self._clockwork, capacity, ring=ring, of=of)
            return channel, channel
        return into_handler(argument, of)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Node {self.name}>"
