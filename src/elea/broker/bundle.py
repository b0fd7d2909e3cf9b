"""Samples that leave a node together: rewritten one run after the other, handed to their neighbours at once.

Handing over costs more than rewriting, and a batch of many keys is a batch of many runs. So runs are collected as long
as they go to the same neighbours with the same quality of service; where there are several neighbours the octets are
joined once for all of them. Spec: zenoh-1 §13.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elea.broker.relay import Stamper
from elea.broker.routes import Forwarder, Route
from elea.wire.zenoh1.samples import Pushed

__all__ = ["Bundle"]

JOINED: Final = 16_384
"""Octets of samples joined for several neighbours: a few of them fill a batch, and each is dropped or taken whole."""


class Bundle:
    """What one thread has collected for some neighbours; `flush` sends it."""

    __slots__ = ("_conduit", "_droppable", "_faces", "_parts", "_stamper")

    def __init__(self, stamper: Stamper | None) -> None:
        self._stamper = stamper
        self._faces: tuple[Forwarder, ...] = ()
        self._conduit = 0
        self._droppable = False
        self._parts: list[bytes] = []

    def add(self, route: Route, run: list[Pushed], reliable: bool, now_ns: int, *, is_stamped: bool = False) -> None:
        """Take a run of samples that have one key and one quality of service."""
        qos = run[0][3]
        conduit = (qos & 7) << 1 | reliable
        droppable = not reliable or not qos & 8
        if route.faces is not self._faces or conduit != self._conduit or droppable != self._droppable:
            self.flush()
            self._faces, self._conduit, self._droppable = route.faces, conduit, droppable
        if self._stamper is None or is_stamped:
            route.outgoing.rewrite(run, self._parts)
        else:
            route.outgoing.stamp(run, self._parts, self._stamper, now_ns)

    def flush(self) -> None:
        """Send what was collected."""
        parts = self._parts
        if not parts:
            return
        self._parts = []
        if len(self._faces) > 1 and len(parts) > 2:
            self._send_joined(parts)
        else:
            self._send(parts, len(parts) >> 1)

    def _send_joined(self, parts: list[bytes]) -> None:
        room = min(face.room for face in self._faces)
        step = max(1, JOINED * len(parts) // (sum(map(len, parts)) or 1)) & ~1 or 2
        for start in range(0, len(parts), step):
            some = parts[start : start + step]
            joined = b"".join(some)
            if len(joined) <= room:
                self._send((joined, b""), len(some) >> 1)
            else:
                self._send(some, len(some) >> 1)

    def _send(self, parts: Sequence[bytes], samples: int) -> None:
        size = sum(map(len, parts))
        for face in self._faces:
            face.forward(parts, size, self._conduit, self._droppable, samples)
