"""The sockets of scouting: asking a multicast group, and listening on it. What is asked is up to others.

Neither side may fail because a machine has no multicast: what does not work is logged once, counted, and left out.
Spec: zenoh-1 section 7.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from elea.io.addresses import Interface, interfaces, is_multicast, written
from elea.io.linkerrors import LocatorError
from elea.io.locator import host_port
from elea.io.loop import Loop, Pollable
from elea.model.errors import ConfigError

__all__ = ["SCOUTING_GROUP", "Datagrams", "ScoutListener", "ScoutSender", "Source", "chosen_interfaces"]

SCOUTING_GROUP: Final = "224.0.0.224:7446"
"""Group and port where nodes ask for each other."""

_BUFFER: Final = 65_536
_log = logging.getLogger("elea.io")

Source: TypeAlias = tuple[str, int]
Datagrams: TypeAlias = Callable[[bytes, Source], None]
"""Told every datagram and where it came from, in a turn of the loop."""


def chosen_interfaces(names: Sequence[str] | str = "auto") -> list[Interface]:
    """The interfaces to scout on: those named, or all that have IPv4 and multicast; without any, loopback.

    A name may also be an address of this machine.

    Raises:
        ConfigError: an interface named does not exist or has no IPv4 address.
    """
    usable = [found for found in interfaces() if found.ipv4 is not None]
    if names == "auto":
        return [found for found in usable if found.multicast and not found.loopback] or usable[:1]
    wanted = names.split(",") if isinstance(names, str) else list(names)
    chosen = [found for found in usable if found.name in wanted or found.ipv4 in wanted]
    known = {word for found in chosen for word in (found.name, found.ipv4)}
    for name in wanted:
        if name not in known:
            hint = f"use auto or some of {', '.join(found.name for found in usable)}"
            raise ConfigError("scouting/multicast/interface", f"no interface {name!r} with an IPv4 address is up", hint)
    return chosen


class _PolledSocket(Pollable):
    """One socket in the loop."""

    def __init__(self, sock: socket.socket, on_ready: Callable[[socket.socket], None]) -> None:
        super().__init__()
        self._socket = sock
        self._receive = on_ready

    def on_ready(self, mask: int) -> None:
        self._receive(self._socket)


class _Sockets:
    """Hands what arrives on some sockets to a callback, in the turns of a loop."""

    def __init__(self, on_datagram: Datagrams, loop: Loop) -> None:
        self.received = 0
        self.failures = 0
        self._on_datagram = on_datagram
        self._loop = loop
        self._sockets: list[socket.socket] = []
        self._listening: list[_PolledSocket] = []
        self._gate = threading.Lock()
        self._closed = False

    def send_to(self, data: bytes, source: Source) -> bool:
        """Answer a datagram by unicast; False when it could not be sent."""
        with self._gate:
            if self._closed or not self._sockets:
                return False
            return self._send(self._sockets[0], data, source)

    def close(self) -> None:
        """Stop listening."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            for listening in self._listening:
                self._loop.remove(listening)
            for sock in self._sockets:
                sock.close()

    def _begin(self) -> None:
        for sock in self._sockets:
            sock.setblocking(False)
            listening = _PolledSocket(sock, self._receive)
            self._listening.append(listening)
            self._loop.add(listening, sock.fileno())

    def _send(self, sock: socket.socket, data: bytes, target: Source) -> bool:
        try:
            sock.sendto(data, target)
        except OSError as error:
            self._complain("scouting datagram not sent", written(target), error)
            return False
        return True

    def _complain(self, what: str, where: str, error: OSError) -> None:
        """Warn the first time and when the count doubles: scouting is repeated for ever."""
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            _log.warning("%s where=%s failures=%d error=%s", what, where, self.failures, error)

    def _receive(self, sock: socket.socket) -> None:
        try:
            data, source = sock.recvfrom(_BUFFER)
        except OSError as error:  # the network's answer to something sent
            if not isinstance(error, BlockingIOError) and not self._closed:
                self.failures += 1
            return
        self.received += 1
        try:
            self._on_datagram(data, source)
        except Exception:  # noqa: BLE001 - one bad datagram must not end scouting
            self.failures += 1
            _log.exception("scouting datagram not handled source=%s failures=%d", written(source), self.failures)


class ScoutSender(_Sockets):
    """Asks a group on some interfaces and hears the answers, which come by unicast to the asking sockets.

    Args:
        on_answer: gets each datagram that comes back and its source.
    """

    def __init__(
        self,
        on_answer: Datagrams,
        loop: Loop,
        *,
        group: str = SCOUTING_GROUP,
        names: Sequence[str] | str = "auto",
        ttl: int = 1,
    ) -> None:
        self._group = _group(group)
        super().__init__(on_answer, loop)
        for found in chosen_interfaces(names):
            try:
                self._sockets.append(_asking(found, ttl))
            except OSError as error:
                self._complain("cannot scout", found.name, error)
        if not self._sockets:
            _log.warning("no interface to scout on, nodes are found only by configured locators group=%s", group)
        self._begin()

    def ask(self, data: bytes) -> int:
        """Send a datagram to the group on every interface; returns on how many that worked."""
        with self._gate:
            if self._closed:
                return 0
            return sum(self._send(sock, data, self._group) for sock in self._sockets)


class ScoutListener(_Sockets):
    """Hears what is asked of a group on some interfaces; `send_to` answers.

    `joined` is on how many interfaces; 0 means that this machine cannot be found by multicast.
    """

    def __init__(
        self, on_datagram: Datagrams, loop: Loop, *, group: str = SCOUTING_GROUP, names: Sequence[str] | str = "auto"
    ) -> None:
        host, port = _group(group)
        self.joined = 0
        super().__init__(on_datagram, loop)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # every node of the machine listens here
            sock.bind((host, port))
        except OSError as error:
            sock.close()
            self._complain("cannot listen for scouts", group, error)
        else:
            self._sockets.append(sock)
            for found in chosen_interfaces(names):
                self._join(sock, host, found)
        self._begin()

    def _join(self, sock: socket.socket, host: str, found: Interface) -> None:
        request = struct.pack("4s4si", socket.inet_aton(host), socket.inet_aton(found.ipv4 or ""), found.index)
        try:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            self.joined += 1
        except OSError as error:
            self._complain("cannot join the scouting group", found.name, error)


def _asking(found: Interface, ttl: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((found.ipv4 or "", 0))
        request = struct.pack("4s4si", bytes(4), socket.inet_aton(found.ipv4 or ""), found.index)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    except BaseException:
        with contextlib.suppress(OSError):
            sock.close()
        raise
    return sock


def _group(text: str) -> Source:
    try:
        host, port = host_port(text, text)
        fits = is_multicast(host) and ":" not in host
    except LocatorError:
        fits = False
    if not fits:
        problem = f"{text!r} is no IPv4 multicast address with a port"
        raise ConfigError("scouting/multicast/address", problem, f"use {SCOUTING_GROUP}")
    return host, port
