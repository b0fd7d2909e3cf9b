"""Links over UDP: one batch per datagram, and a listener that tells the senders apart by their address."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from elea.io.addresses import written
from elea.io.link import Octets, SocketLink
from elea.io.linkerrors import BatchTooLarge, LinkClosed
from elea.io.loop import Loop, Pollable
from elea.model.limits import UDP_QUEUE, UDP_SOURCES

__all__ = ["UDP_MTU", "UDP_QUEUE", "UDP_SOURCES", "UdpLink", "UdpListener", "UdpSourceLink", "enlarge", "path_mtu"]

UDP_MTU: Final = 65_487
"""What eclipse-zenoh 1.10.2 offers (spec zenoh-1 section 2)."""

_BUFFER: Final = 65_536
_SOCKET_BUFFER: Final = 1 << 21
RECEIVED_AT_ONCE: Final = 64
"""Datagrams received in one turn; others are served between."""

_log = logging.getLogger("elea.io")


class UdpLink(SocketLink):
    """A socket of our own that talks to one address."""

    streamed = False
    reliable = False

    drains = True

    def __init__(self, sock: socket.socket, local: str, remote: str) -> None:
        super().__init__(sock, local, remote, UDP_MTU)

    def send(self, data: Octets | Sequence[Octets]) -> None:
        super().send(_one(data, self.remote))

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        return super().try_send(_one(data, self.remote))

    def receive_ready(self, view: memoryview) -> int:
        count = super().receive_ready(view)
        return -1 if not count and not self.closed else count  # an empty datagram says nothing


class UdpSourceLink:
    """One of the addresses that write to a listener; it shares the listener's socket."""

    streamed = False
    reliable = False
    drains = True
    held = False

    def __init__(self, listener: UdpListener, local: str, address: tuple[str, int]) -> None:
        self.local = local
        self.mtu = listener.mtu
        self.remote = f"udp/{written(address)}"
        self.closed = False
        self.dropped = 0
        self.on_arrival: Callable[[], None] | None = None
        self._address = address
        self._listener = listener
        self._arrived: deque[bytes] = deque()

    def send(self, data: Octets | Sequence[Octets]) -> None:
        self._listener.send_to(self, _one(data, self.remote), self._address)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        return self._listener.send_to(self, _one(data, self.remote), self._address)

    def receive_ready(self, view: memoryview) -> int:
        if self.closed:
            return 0
        if not self._arrived:
            return -1
        batch = self._arrived.popleft()
        view[: len(batch)] = batch
        return len(batch)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._listener.forget(self._address, self)

    def arrive(self, batch: bytes) -> None:
        """A datagram has come."""
        if len(self._arrived) >= UDP_QUEUE:  # its owner reads no more for a while
            self.dropped += 1
            self._listener.dropped += 1
        else:
            self._arrived.append(batch)
            if self.on_arrival is not None:
                self.on_arrival()

    def __repr__(self) -> str:
        return f"<UdpSourceLink {self.local} to {self.remote}{' closed' if self.closed else ''}>"


class UdpListener(Pollable):
    """Receives on one socket and gives each source a link. Links that fall silent are closed by their owner."""

    def __init__(self, sock: socket.socket, on_link: Callable[[UdpSourceLink], None], loop: Loop) -> None:
        super().__init__()
        self.dropped = 0
        self.refused = 0
        self.failures = 0
        self.mtu = UDP_MTU
        """The largest batch its links offer."""
        self._local = f"udp/{written(sock.getsockname())}"
        self._socket = sock
        self._on_link = on_link
        self._loop = loop
        self._links: dict[tuple[str, int], UdpSourceLink] = {}
        self._gate = threading.Lock()
        self._closed = False
        self._sending = 0
        sock.setblocking(False)
        loop.add(self, sock.fileno())

    def send_to(self, link: UdpSourceLink, data: Octets, address: tuple[str, int]) -> int:
        """Send one datagram for a link; 0 if the kernel has no room for it now."""
        with self._gate:
            if self._closed or link.closed:
                raise LinkClosed(link.remote)
            self._sending += 1
        try:
            return self._socket.sendto(data, address)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                raise BatchTooLarge(link.remote, len(data), link.mtu) from error
            raise LinkClosed(link.remote, str(error.strerror or error).lower()) from error
        finally:
            with self._gate:
                self._sending -= 1
                if self._closed and not self._sending:
                    self._socket.close()

    def forget(self, address: tuple[str, int], link: UdpSourceLink) -> None:
        """A link was closed: the next datagram from its address starts a new one."""
        with self._gate:
            if self._links.get(address) is link:
                del self._links[address]

    def close(self) -> None:
        """Stop receiving and close every link."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            links = list(self._links.values())
        self._loop.remove(self)
        for link in links:
            link.close()
        with self._gate:
            if not self._sending:  # else who sends closes it
                self._socket.close()

    def on_ready(self, mask: int) -> None:
        for _ in range(RECEIVED_AT_ONCE):
            try:
                batch, source = self._socket.recvfrom(_BUFFER)
            except BlockingIOError:
                return
            except OSError:  # an answer of the network to something we sent; it says nothing about the socket
                self.failures += not self._closed
                return
            if batch:
                link = self._links.get(source) or self._new(source)
                if link is not None:
                    link.arrive(batch)
                    if not self._loop.is_led_here():
                        return  # what was brought holds up this thread: another one leads, and reads on

    def _new(self, source: tuple[str, int]) -> UdpSourceLink | None:
        with self._gate:
            if self._closed:
                return None
            if len(self._links) >= UDP_SOURCES:
                self.refused += 1
                if self.refused & (self.refused - 1) == 0:  # 1, 2, 4, 8 … so that a flood does not fill the log
                    _log.warning("udp source refused limit=%d refused=%d", UDP_SOURCES, self.refused)
                return None
            link = self._links[source] = UdpSourceLink(self, self._local, source)
        try:
            self._on_link(link)
        except Exception:  # noqa: BLE001 - whatever the owner does, the next source must be heard
            self.failures += 1
            _log.exception("link owner failed remote=%s", link.remote)
            link.close()
            return None
        return link


def enlarge(sock: socket.socket) -> None:
    """Ask for room for some dozen full datagrams; the default holds three, and a burst of fragments would be lost."""
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        if sock.getsockopt(socket.SOL_SOCKET, option) < _SOCKET_BUFFER:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)


def path_mtu(remote: str) -> int:
    """The largest datagram that the way to a locator carries in one piece, as far as the system knows; else 0."""
    protocol, _, address = remote.partition("/")
    if protocol != "udp" or not sys.platform.startswith("linux"):
        return 0
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    is_six = ":" in host
    # IPV6_MTU and IP_MTU, which `socket` has no names for; without the headers of IP and UDP.
    level, option, headers = (socket.IPPROTO_IPV6, 24, 48) if is_six else (socket.IPPROTO_IP, 14, 28)
    try:
        with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, int(port)))  # sends nothing
            return max(0, probe.getsockopt(level, option) - headers)
    except (OSError, ValueError):
        return 0


def _one(data: Octets | Sequence[Octets], remote: str) -> Octets:
    """A batch in one piece, refused when no datagram can hold it."""
    whole = data if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
    if len(whole) > UDP_MTU:
        raise BatchTooLarge(remote, len(whole), UDP_MTU)
    return whole
