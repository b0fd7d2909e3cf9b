"""What lies between two nodes of a simulated network, and what it does to what they send.

A wire outlives the links made over it. On a *stream* nothing is lost, doubled or overtaken, as TCP sees to that; a
partition holds everything back until it is healed. Of *datagrams* each has its own fate. Links take whatever they are
given: a full socket buffer is not simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from elea.io.udp import UDP_MTU
from elea.model.limits import MAX_BATCH
from elea.testing.flows import Datagrams, DialAttempt, Flow, Stream
from elea.testing.linkend import End
from elea.testing.networktrace import Crossing, Fate, Form, Trace
from elea.testing.timeline import Timeline

__all__ = ["Conditions", "Wire"]

MIN_MTU: Final = 64


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a wire does: seconds of delay from the least to the most, and the share of datagrams that suffer."""

    delay: tuple[float, float] = (0.001, 0.001)
    loss: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0
    datagrams: bool = False
    mtu: int = MAX_BATCH

    def __post_init__(self) -> None:
        least, most = self.delay
        if not 0 <= least <= most < float("inf"):
            raise ValueError(f"no delay lies between {least} s and {most} s")
        for name, share in (("loss", self.loss), ("reorder", self.reorder), ("duplicate", self.duplicate)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} is a share from 0 to 1, {share} is not")
            if share and not self.datagrams:
                raise ValueError(f"no {name} on a stream, as TCP hides it: say datagrams=True, or use part()")
        if not MIN_MTU <= self.mtu <= MAX_BATCH:
            raise ValueError(f"an mtu is from {MIN_MTU} to {MAX_BATCH} bytes, {self.mtu} is not")


class Wire:
    """What joins two nodes; made by `Network.link`.

    `sent`, `arrived`, `lost`, `reordered` and `duplicated` count datagrams, or writes on a stream, in both directions.
    """

    def __init__(
        self, timeline: Timeline, trace: Trace, names: tuple[str, str], conditions: Conditions, chance: Random
    ) -> None:
        self.names = names
        self.conditions = conditions
        self.mtu = min(conditions.mtu, UDP_MTU) if conditions.datagrams else conditions.mtu
        self.timeline = timeline
        self.chance = chance
        self.parted = False
        self.sent = 0
        self.arrived = 0
        self.lost = 0
        self.reordered = 0
        self.duplicated = 0
        self.dials: list[float] = []
        """When the first node tried to connect; once, unless the link was lost or refused."""
        self.under_way = 0
        """What has been sent and has neither arrived nor been lost."""
        self.accept: Callable[[End], bool] = lambda end: False
        """What the second node does with a link that the first one makes: whether it takes it."""
        self._trace = trace
        self._flows: list[Flow] = []

    def dial(self, dialling: DialAttempt) -> None:
        """The first node makes a link to the second."""
        self.dials.append(self.timeline.now)
        flow = (Datagrams if self.conditions.datagrams else Stream)(self, len(self.dials))
        self._flows = [known for known in self._flows if not known.is_over()]
        self._flows.append(flow)
        flow.dial(dialling)

    def part(self) -> None:
        """Let nothing through any more."""
        self.parted = True

    def heal(self) -> None:
        """Let everything through again; streams bring what they have held back."""
        if self.parted:
            self.parted = False
            for flow in self._flows:
                flow.healed()

    def delay(self) -> float:
        """How long something takes that leaves now."""
        least, most = self.conditions.delay
        return least if least == most else self.chance.uniform(least, most)

    def record(self, sent: float, side: int, link: int, data: bytes, fate: Fate, form: Form) -> None:
        """Something has come to its end."""
        source, target = self.names[side], self.names[1 - side]
        streamed = not self.conditions.datagrams
        self._trace.add(Crossing(sent, self.timeline.now, source, target, link, fate, data, streamed, form))
        if data:
            self.lost += fate is Fate.LOST
            self.arrived += fate is not Fate.LOST

    def __repr__(self) -> str:
        kind = "datagrams" if self.conditions.datagrams else "stream"
        return f"<Wire {self.names[0]} to {self.names[1]}, {kind}{', parted' if self.parted else ''}>"
