"""Samples that leave a node together: rewritten one run after the other, handed to their neighbours at once.

Handing over costs more than rewriting, and a batch of many keys is a batch of many runs. So runs are collected as long
as they go to the same neighbours with the same quality of service; where there are several neighbours the bytes are
joined once for all of them. Spec: zenoh-1 §13.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elea.io.loop import Loop
from elea.model.values import mypyc_attr
from elea.node.outboxface import OutboxFace
from elea.node.stamper import FIRST_OCTET, Stamper
from elea.node.zenoh1.namedroutes import NamedRoutes
from elea.node.zenoh1.pushes import OutgoingKey
from elea.space.way import Collector, Encoder, Way
from elea.wire.zenoh1.samples import Pushed

__all__ = ["Fanout", "Zenoh1Way"]

JOINED: Final = 16_384
"""Bytes of samples joined to one part: a few of them fill a batch."""

ALONE: Final = 2_048
"""Bytes of a payload above which it is cheaper to leave it where it is than to join it to others."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Zenoh1Way(Way):
    """Samples of one key to some 1.x neighbours; keys that go to the same ones have the same tuple of them."""

    def __init__(self, key: str, neighbours: tuple[OutboxFace, ...], encoder: Encoder, outgoing: OutgoingKey) -> None:
        super().__init__(key, neighbours, encoder)
        self.neighbours = neighbours
        self.outgoing = outgoing


class Fanout(Collector):
    """What one source has collected for some neighbours; `flush` sends it."""

    def __init__(self, loop: Loop, stamper: Stamper | None, waits: bool = True) -> None:
        self._loop = loop
        self._waits = waits
        self._stamper = stamper
        self._faces: tuple[OutboxFace, ...] = ()
        self._conduit = 0
        self._droppable = False
        self._parts: list[bytes] = []  # two for each sample, or for several joined
        self._extra = 0  # samples beyond one for every two parts

    def add(self, way: Way, run: list[Pushed], reliable: bool, now_ns: int, is_stamped: bool = False) -> None:
        assert isinstance(way, Zenoh1Way)  # its encoder is the one that has made this collector
        self._turn_to(way.neighbours, run[0][3], reliable)
        if self._stamper is None or is_stamped:
            way.outgoing.rewrite(run, self._parts)
        else:
            way.outgoing.stamp(run, self._parts, self._stamper, now_ns)

    def add_mixed(
        self, run: list[Pushed], start: int, routes: NamedRoutes, generation: int, reliable: bool, now_ns: int
    ) -> int:
        """Take plain samples of many keys from `start` on, to the first that differs in more than its key; where it is.

        What `add` does for a run is done here for each sample, without lists and calls, and the samples are joined
        here: four references a sample and one join, where two parts a sample are measured again and again
        on their way. Compiled, a broker takes 0.41 µs for a sample of a thousand keys in turn, before 0.70 µs
        (`bench/node`, router, in turn on a loaded machine).
        """
        stamper = self._stamper
        if stamper is None:
            return start
        at, count, qos = start, len(run), run[start][3]
        by_number = routes.by_number
        faces: tuple[OutboxFace, ...] | None = None
        pieces: list[bytes] = []
        octets, limit = 0, 0
        low, left, stamps = 0, 0, stamper.stamps
        sized, tail = -1, b""
        while at < count:
            header, scope, suffix, its_qos, meta, payload = run[at]
            size = len(payload)
            if meta is not None or its_qos != qos or suffix or size > ALONE:
                break
            route = by_number.get(scope << 7 | header & 0x60)
            if route is None or route.generation != generation or not route.only_passes:
                break
            way = route.ways[0]
            if not isinstance(way, Zenoh1Way):
                break
            if way.neighbours is not faces:
                self._join(pieces)
                octets = 0
                faces = way.neighbours
                self._turn_to(faces, qos, reliable)
                limit = min(JOINED, min([face.room for face in faces]))
            if left == 0:
                low, left, stamps = stamper.take(now_ns, count - at)
                sized = -1
            if size != sized:
                sized, tail = size, stamps.tails.get(size) or stamps.tail(size)
            before = way.outgoing.stamping(qos)
            octets += len(before) + 1 + len(tail) + size
            if octets > limit:
                self._join(pieces)
                octets = len(before) + 1 + len(tail) + size
            pieces.append(before)
            pieces.append(FIRST_OCTET[low])
            pieces.append(tail)
            pieces.append(payload)
            at += 1
            low += 1
            left -= 1
        self._join(pieces)
        return at

    def _join(self, pieces: list[bytes]) -> None:
        """Take samples of four pieces each as one part."""
        if pieces:
            self._parts.append(b"".join(pieces))
            self._parts.append(b"")
            self._extra += (len(pieces) >> 2) - 1
            pieces.clear()

    def _turn_to(self, faces: tuple[OutboxFace, ...], qos: int, reliable: bool) -> None:
        """Send what was collected if the next sample goes another way."""
        conduit = (qos & 7) << 1 | reliable
        droppable = not reliable or not qos & 8
        if faces is not self._faces or conduit != self._conduit or droppable != self._droppable:
            self.flush()
            self._faces, self._conduit, self._droppable = faces, conduit, droppable

    def flush(self) -> None:
        parts, extra = self._parts, self._extra
        if not parts:
            return
        self._parts, self._extra = [], 0
        if len(self._faces) > 1 and len(parts) > 2 and not extra:
            self._send_joined(parts)
        else:
            self._send(parts, (len(parts) >> 1) + extra)

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
        led = not self._waits or self._loop.is_led_here()
        for face in self._faces:
            face.forward(parts, size, self._conduit, self._droppable, samples, led)
