"""One connection: sending bytes, receiving bytes, and an end that wakes everybody who waits on it.

A link knows nothing of what it carries. Stream links (tcp, tls, unix, serial) carry batches behind a length prefix,
which `elea.io.batchreader` cuts; a datagram link (udp) carries one batch per datagram. Any number of threads may send,
close and look; one thread reads. Neither waits, except `send`, for what is said before a session begins.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Protocol, TypeAlias

from elea.io.linkerrors import LinkClosed
from elea.model.limits import MAX_BATCH
from elea.model.values import mypyc_attr

__all__ = [
    "DescriptorLink",
    "Link",
    "Octets",
    "SocketLink",
    "TcpLink",
    "UnixLink",
    "after",
    "peer_name",
    "stream_mtu",
    "undelivered",
]

Octets: TypeAlias = bytes | bytearray | memoryview

_LINGER_MS: Final = 10_000
_IOV_MAX: Final = 1_024
_DONTWAIT: Final = socket.MSG_DONTWAIT
_SINGLE: Final = (bytes, bytearray, memoryview)


class Link(Protocol):
    """One connection; `local` and `remote` are locator texts, `mtu` the largest batch to offer, prefix included."""

    on_arrival: Callable[[], None] | None
    """Called when there is something to read, by links without a descriptor."""

    @property
    def local(self) -> str: ...
    @property
    def remote(self) -> str: ...
    @property
    def mtu(self) -> int: ...
    @property
    def streamed(self) -> bool: ...
    @property
    def reliable(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def drains(self) -> bool:
        """Whether it must be read until nothing is left: the poller does not see all that it has."""
        ...

    @property
    def held(self) -> bool:
        """Whether `try_send` took bytes that are not with the kernel yet; any later send writes them first."""
        ...

    def send(self, data: Octets | Sequence[Octets]) -> None:
        """Write everything, however long it takes; on a datagram link all of it is one batch."""
        ...

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        """Write what the kernel takes at once and return how many bytes that was; 0 when it takes none."""
        ...

    def receive_ready(self, view: memoryview) -> int:
        """Take what has arrived and return how many bytes that is, on a datagram link those of one batch.

        0 when the other side will send no more or the link is closed, -1 if nothing has arrived.
        """
        ...

    def fileno(self) -> int:
        """The descriptor to poll; -1 if it has none of its own."""
        ...

    def close(self) -> None:
        """End the link; threads blocked on it return or raise `LinkClosed`. May be called by anyone, repeatedly."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class DescriptorLink:
    """What links over a descriptor of their own share: their end.

    The file descriptor is closed by whoever leaves last: closing it under a blocked call would let that call touch
    the next file that gets the same number. Who enters says so first and then looks whether the link is closed; who
    closes it does the opposite, so one of them sees the other, without a lock on the way of every message.
    """

    streamed: ClassVar[bool] = True
    reliable: ClassVar[bool] = True
    drains: ClassVar[bool] = False
    held: ClassVar[bool] = False

    def __init__(self, local: str, remote: str, mtu: int = MAX_BATCH) -> None:
        self.local = local
        self.remote = remote
        self.mtu = mtu
        self.closed = False
        self.on_arrival: Callable[[], None] | None = None
        self._ending = threading.Lock()
        self._inside: list[None] = []  # one for each call under way: adding to a list and taking from it are atomic
        self._finished = False

    def limit(self, mtu: int | None) -> None:
        """Offer no larger batches than that, if it is given."""
        if mtu is not None and mtu < self.mtu:
            self.mtu = mtu

    def fileno(self) -> int:
        return -1

    def receive_ready(self, view: memoryview) -> int:
        return self._receive(view, _DONTWAIT)

    def _receive(self, view: memoryview, flags: int) -> int:
        # `_enter` and `_leave`, written out, as in `try_send`.
        self._inside.append(None)
        try:
            return 0 if self.closed else self._take(view, flags)
        except BlockingIOError:
            return -1
        except OSError as error:
            if self.closed:
                return 0
            raise self._broken(error) from error
        finally:
            self._inside.pop()
            if self.closed:
                self._finish_if_last()

    def _take(self, view: memoryview, flags: int) -> int:
        """Take what has arrived; raises BlockingIOError if nothing has."""
        return 0

    def close(self) -> None:
        with self._ending:
            if self.closed:
                return
            self.closed = True
        self._wake()
        self._finish_if_last()

    def peer_name(self) -> str | None:
        """The name in the other side's certificate; None when it showed none."""
        return None

    def undelivered(self) -> int:
        """Bytes given to the kernel that the other side has not taken; 0 where the kernel does not say."""
        try:
            self._enter()
        except LinkClosed:
            return 0
        try:
            return int.from_bytes(fcntl.ioctl(self.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        except OSError:
            return 0
        finally:
            self._leave()

    def _enter(self) -> None:
        self._inside.append(None)
        if self.closed:
            self._leave()
            raise LinkClosed(self.remote)

    def _leave(self) -> None:
        self._inside.pop()
        if self.closed:
            self._finish_if_last()

    def _finish_if_last(self) -> None:
        with self._ending:
            if self._inside or self._finished:
                return
            self._finished = True
        self._finish()

    def _wake(self) -> None:
        """End the calls that wait; the link is closed."""

    def _finish(self) -> None:
        """Close the descriptor; called once, when nobody is inside."""

    def _broken(self, error: OSError) -> LinkClosed:
        if self.closed:
            return LinkClosed(self.remote)
        if isinstance(error, ConnectionResetError):
            return LinkClosed(self.remote, "reset by the other side")
        if isinstance(error, BrokenPipeError):
            return LinkClosed(self.remote, "closed by the other side")
        if isinstance(error, TimeoutError):
            return LinkClosed(self.remote, "no answer from the other machine")
        return LinkClosed(self.remote, os.strerror(error.errno).lower() if error.errno else str(error))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.local} to {self.remote}{' closed' if self.closed else ''}>"


@mypyc_attr(allow_interpreted_subclasses=True)
class SocketLink(DescriptorLink):
    """What links over a connected socket share."""

    def __init__(self, sock: socket.socket, local: str, remote: str, mtu: int = MAX_BATCH) -> None:
        super().__init__(local, remote, mtu)
        self._socket = sock

    def send(self, data: Octets | Sequence[Octets]) -> None:
        self._enter()
        try:
            if isinstance(data, _SINGLE):
                self._socket.sendall(data)
            else:
                self._send_pieces(list(data))
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._leave()

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        # `_enter` and `_leave`, written out: it is called for every message of an idle link.
        self._inside.append(None)
        try:
            if self.closed:
                raise LinkClosed(self.remote)
            if type(data) is bytes or isinstance(data, _SINGLE):
                return self._socket.send(data, _DONTWAIT)
            return self._socket.sendmsg(data[:_IOV_MAX], (), _DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._inside.pop()
            if self.closed:
                self._finish_if_last()

    def receive_into(self, view: memoryview) -> int:
        """The same as `receive_ready`, waiting for it."""
        return self._receive(view, 0)

    def _take(self, view: memoryview, flags: int) -> int:
        return self._socket.recv_into(view, 0, flags)

    def fileno(self) -> int:
        return self._socket.fileno()

    def _send_pieces(self, pieces: list[Octets]) -> None:
        while pieces:
            sent = self._socket.sendmsg(pieces[:_IOV_MAX])
            pieces = after(pieces, sent)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the other side may have gone first
            self._socket.shutdown(socket.SHUT_RDWR)

    def _finish(self) -> None:
        """Close the descriptor; called once, when nobody is inside."""
        # The kernel resets the connection when unread bytes are left, and may drop our last words with it.
        with contextlib.suppress(OSError):
            for _ in range(16):
                if not self._socket.recv(65_536, _DONTWAIT):
                    break
        self._socket.close()


@mypyc_attr(allow_interpreted_subclasses=True)
class TcpLink(SocketLink):
    """A TCP connection."""

    def __init__(self, sock: socket.socket, local: str, remote: str) -> None:
        tune_tcp(sock)
        super().__init__(sock, local, remote, stream_mtu(sock))

    def _finish(self) -> None:
        # SO_LINGER would make close() itself wait for up to 10 s. Closing in the background delivers the same
        # bytes; the user timeout bounds for how long the kernel tries, as eclipse-zenoh's linger of 10 s does.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _LINGER_MS)
        super()._finish()


class UnixLink(SocketLink):
    """A connection over a unix socket."""


def tune_tcp(sock: socket.socket) -> None:
    """Send at once, and notice machines that vanished while nothing was said."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def stream_mtu(sock: socket.socket) -> int:
    """The batch size to offer on a TCP connection: what eclipse-zenoh 1.10.2 offers on the same one.

    65535 less the headers, then the largest multiple of half the segment size below that.
    """
    bound = MAX_BATCH - (40 if sock.family == socket.AF_INET else 60)
    try:
        half = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) // 2
    except OSError:
        return bound
    if half <= 0 or half >= bound:
        return bound
    return (bound - 1) // half * half


def peer_name(link: Link) -> str | None:
    """The name in the certificate that the other side has shown; None if it has shown none."""
    return link.peer_name() if isinstance(link, DescriptorLink) else None


def undelivered(link: Link) -> int:
    """Bytes of a link that have left this process and not arrived; 0 for links that cannot tell.

    On TCP that means acknowledged by the other machine, on a unix socket read by the other process, on a serial line
    sent.
    """
    return link.undelivered() if isinstance(link, DescriptorLink) else 0


def after(pieces: Sequence[Octets], sent: int) -> list[Octets]:
    """What is left of some pieces when their first `sent` bytes are gone."""
    for index, piece in enumerate(pieces):
        if sent < len(piece):
            rest: list[Octets] = list(pieces[index:])
            if sent:
                rest[0] = memoryview(piece)[sent:]
            return rest
        sent -= len(piece)
    return []
