"""One end of a simulated link: what `elea.io.link` has for sockets, for a node that reads when it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from elea.io.link import Octets
from elea.io.linkerrors import LinkClosed
from elea.testing.networktrace import Form

__all__ = ["Carrier", "End"]


class Carrier(Protocol):
    """What lies between two ends."""

    number: int

    def send(self, side: int, data: bytes, form: Form) -> None:
        """Bring bytes to the other side."""

    def closed(self, side: int) -> None:
        """An end was closed by its node."""


class End:
    """A link, of a stream or of datagrams. It takes whatever it is given, at once."""

    def __init__(self, carrier: Carrier, side: int, names: tuple[str, str], *, mtu: int, streamed: bool) -> None:
        self.local = f"sim/{names[side]}"
        self.remote = f"sim/{names[1 - side]}"
        self.mtu = mtu
        self.streamed = streamed
        self.reliable = streamed
        self.closed = False
        self.held = False
        self.drains = True
        self.number = carrier.number
        self.form = Form.PLAIN
        """How the batches of the session are written, once there is one."""
        self.on_arrival: Callable[[], None] | None = None
        self._carrier = carrier
        self._side = side
        self._arrived: deque[bytes] = deque()
        self._over = False

    def send(self, data: Octets | Sequence[Octets]) -> None:
        """Send in the form of the handshake, which is always plain."""
        self._send(data, Form.PLAIN)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        """Send in the form that was agreed; everything is taken."""
        return self._send(data, self.form)

    def _send(self, data: Octets | Sequence[Octets], form: Form) -> int:
        if self.closed:
            raise LinkClosed(self.remote)
        whole = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
        self._carrier.send(self._side, whole, form)
        return len(whole)

    def receive_ready(self, view: memoryview) -> int:
        if self.closed or (self._over and not self._arrived):
            return 0
        if not self._arrived:
            return -1
        octets = self._arrived.popleft()
        size = min(len(octets), len(view))
        view[:size] = octets[:size]
        if size < len(octets):
            self._arrived.appendleft(octets[size:])
        return size

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """End the link; what was sent before still arrives."""
        if not self.closed:
            self.closed = True
            self._arrived.clear()
            self._carrier.closed(self._side)

    def arrive(self, octets: bytes) -> None:
        """Something has come; nothing at all is the end of a stream."""
        if octets:
            self._arrived.append(octets)
        else:
            self._over = True
        if self.on_arrival is not None:
            self.on_arrival()

    def __repr__(self) -> str:
        return f"<End {self.local} to {self.remote} #{self.number}{' closed' if self.closed else ''}>"
