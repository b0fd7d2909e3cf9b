"""Accepting links at a locator."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from elea.io.addresses import Address, announced, resolve, written
from elea.io.halfopen import HalfOpen, Place
from elea.io.link import Link, SocketLink, TcpLink, UnixLink
from elea.io.linkerrors import CannotConnect, CannotListen, LinkError
from elea.io.locator import Locator
from elea.io.loop import IN, Loop, Pollable
from elea.io.sockets import apply_config, refuse_multicast
from elea.io.tls_settings import TlsSettings
from elea.io.udp import UdpListener

if TYPE_CHECKING:
    import ssl

    from elea.io.tls import ServerHandshake, Shaken

__all__ = ["Listener", "listen"]

_HANDSHAKE_SECONDS: Final = 10.0
ACCEPTED_AT_ONCE: Final = 16
"""Connections accepted in one turn; others are served between."""

SOCKET_MODE: Final = "600"
"""Who may use a unix socket, unless its locator says it: who runs this node."""

_log = logging.getLogger("elea.io")

OnLink: TypeAlias = Callable[[Link], None]


class Listener(Protocol):
    """Something that accepts links until it is closed."""

    def locators(self) -> list[str]:
        """Where other nodes can connect to, real ports and addresses, fit to be announced."""
        ...

    def close(self) -> None:
        """Accept no more. Links already made stay, except on udp, where they share the listener's socket."""
        ...


def listen(
    locator: Locator | str,
    *,
    on_link: OnLink,
    loop: Loop,
    tls: TlsSettings | None = None,
    half_open: HalfOpen | None = None,
    backlog: int = 4_096,
) -> Listener:
    """Accept links at a locator; port 0 takes any free one, `[::]` takes IPv4 too.

    Args:
        on_link: gets each new link, in a turn of the loop; it must return quickly.
        half_open: places for TLS handshakes, which may be shared with others.

    Raises:
        CannotListen: the address is taken, not of this machine, or not permitted.
        CertificateError, LocatorError, ConfigError: the settings cannot work.
    """
    where = Locator.parse(locator) if isinstance(locator, str) else locator
    if where.protocol == "unixsock-stream":
        return _StreamListener(where, _bound_unix(where), on_link, loop, context=None, backlog=backlog)
    if where.protocol == "serial":
        from elea.io.serial import SerialListener  # not with the module: few have such a line

        return SerialListener(where, on_link, loop)
    refuse_multicast(where)
    context = None
    if where.protocol == "tls":
        from elea.io.tls import server_context

        context = server_context((tls or TlsSettings()).for_locator(where), where.wire)
    kind = socket.SOCK_DGRAM if where.protocol == "udp" else socket.SOCK_STREAM
    sock = _bound(where, kind)
    if kind == socket.SOCK_DGRAM:
        return _DatagramListener(where, sock, on_link, loop)
    return _StreamListener(where, sock, on_link, loop, context=context, backlog=backlog, half_open=half_open)


class _StreamListener(Pollable):
    """Accepts in the turns of a loop, where TLS handshakes are served too."""

    def __init__(
        self,
        where: Locator,
        sock: socket.socket,
        on_link: OnLink,
        loop: Loop,
        *,
        context: ssl.SSLContext | None,
        backlog: int,
        half_open: HalfOpen | None = None,
    ) -> None:
        super().__init__()
        self.failures = 0
        self._where = where
        self._socket = sock
        self._on_link = on_link
        self._loop = loop
        self._context = context
        self._closed = False
        self._half_open = half_open or HalfOpen()
        self._shaking: dict[ServerHandshake, Place] = {}
        self._unnamed = 0
        try:
            sock.listen(backlog)
            sock.setblocking(False)
            self._locators = _announcements(where, sock)
        except OSError as error:
            sock.close()
            raise CannotListen(where.wire, (error.strerror or str(error)).lower()) from error
        loop.add(self, sock.fileno())

    def locators(self) -> list[str]:
        return list(self._locators)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove(self)
        self._socket.close()
        for handshake in list(self._shaking):
            handshake.close()
        if self._where.path:
            with contextlib.suppress(OSError):
                os.unlink(self._where.path)

    def on_ready(self, mask: int) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._cannot_accept(error)
                return
            sock.setblocking(True)
            if self._context is None:
                self._hand_over(sock, self._link)
            else:
                self._shake_hands(sock, self._context)

    def _cannot_accept(self, error: OSError) -> None:
        if self._closed:
            return
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            _log.warning("accept failed locator=%s failures=%d error=%s", self._where.wire, self.failures, error)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            self._half_open.make_room(ACCEPTED_AT_ONCE)
        self._loop.change(self, 0)  # most likely out of descriptors: let some be closed
        self._loop.after(0.05, lambda: self._loop.change(self, IN))

    def _link(self, sock: socket.socket) -> SocketLink:
        if self._where.path:
            self._unnamed += 1
            return UnixLink(sock, self._where.wire, f"{self._where.wire}-{self._unnamed}")
        return TcpLink(sock, f"tcp/{written(sock.getsockname())}", f"tcp/{written(sock.getpeername())}")

    def _shake_hands(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        from elea.io.tls import ServerHandshake

        try:
            remote = f"tls/{written(sock.getpeername())}"
        except OSError as error:
            self._no_link(sock, error)
            return
        handshake = ServerHandshake(sock, remote, context, self._loop, self._shaken, _HANDSHAKE_SECONDS)
        self._shaking[handshake] = self._half_open.take(remote, lambda limit: handshake.close(str(limit)))

    def _shaken(self, handshake: ServerHandshake, result: Shaken | LinkError) -> None:
        place = self._shaking.pop(handshake, None)
        if place is not None:
            place.leave()
        sock = handshake.socket
        if isinstance(result, LinkError):
            self._no_link(sock, result)
        else:
            self._hand_over(sock, partial(_tls_link, result))

    def _no_link(self, sock: socket.socket, error: Exception) -> None:
        sock.close()
        if not self._closed:
            self.failures += 1
            if self.failures & (self.failures - 1) == 0:
                _log.warning(
                    "caller gave no link locator=%s failures=%d error=%s", self._where.wire, self.failures, error
                )

    def _hand_over(self, sock: socket.socket, make: Callable[[socket.socket], SocketLink]) -> None:
        try:
            link = make(sock)
            link.limit(self._where.mtu)
        except (LinkError, OSError) as error:
            self._no_link(sock, error)
            return
        if self._closed:
            link.close()
            return
        try:
            self._on_link(link)
        except Exception:  # noqa: BLE001 - whatever the owner does, the next caller must be accepted
            self.failures += 1
            _log.exception("link owner failed remote=%s", link.remote)
            link.close()


def _tls_link(shaken: Shaken, sock: socket.socket) -> SocketLink:
    from elea.io.tls import TlsLink

    tls, incoming, outgoing = shaken
    local, remote = f"tls/{written(sock.getsockname())}", f"tls/{written(sock.getpeername())}"
    return TlsLink(sock, local, remote, tls=tls, incoming=incoming, outgoing=outgoing)


class _DatagramListener(UdpListener):
    def __init__(self, where: Locator, sock: socket.socket, on_link: OnLink, loop: Loop) -> None:
        self._locators = _announcements(where, sock)
        super().__init__(sock, on_link, loop)
        self.mtu = min(self.mtu, where.mtu or self.mtu)

    def locators(self) -> list[str]:
        return list(self._locators)


def _bound(where: Locator, kind: socket.SocketKind) -> socket.socket:
    try:
        addresses = resolve(where.wire, where.host, where.port, kind=kind, timeout=_HANDSHAKE_SECONDS)
    except CannotConnect as error:
        raise CannotListen(where.wire, error.problem, error.hint) from error
    if where.host == "::" and not socket.has_ipv6:  # pragma: no cover - a Python built without IPv6
        addresses = [Address(socket.AF_INET, ("0.0.0.0", where.port))]
    problem: OSError = OSError(errno.EADDRNOTAVAIL, "no address")
    for address in addresses:
        try:
            return _bound_to(where, address, kind)
        except OSError as error:
            problem = error
    if where.host == "::" and problem.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
        _log.warning("no ipv6 on this machine, listening on 0.0.0.0 locator=%s", where.wire)
        return _bound_to(where, Address(socket.AF_INET, ("0.0.0.0", where.port)), kind)
    hints = {
        errno.EADDRINUSE: "another program listens there: stop it or take another port",
        errno.EADDRNOTAVAIL: "this machine has no such address: use one of its own, 0.0.0.0 or [::]",
        errno.EACCES: "ports below 1024 need permission: take a higher one",
        errno.EPERM: "iface needs permission on this system",
        errno.ENODEV: "there is no such interface",
    }
    hint = hints.get(problem.errno or 0, "")
    raise CannotListen(where.wire, (problem.strerror or str(problem)).lower(), hint) from problem


def _bound_to(where: Locator, address: Address, kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(address.family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if where.host == "::" else 1)
        apply_config(sock, where)
        sock.bind(address.sockaddr)
    except BaseException:
        sock.close()
        raise
    return sock


def _bound_unix(where: Locator) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(where.path)
        mode = int(where.setting("mode") or SOCKET_MODE, 8)
        os.fchmod(sock.fileno(), mode)  # Linux makes the file with it, so that it is never open wider
        sock.bind(where.path)
        os.chmod(where.path, mode)
    except OSError as error:
        sock.close()
        hint = "another program listens there" if error.errno == errno.EADDRINUSE else "check the directory"
        raise CannotListen(where.wire, (error.strerror or str(error)).lower(), hint) from error
    return sock


def _remove_stale(path: str) -> None:
    """A socket file nobody listens on is what a killed program leaves behind; anything else is not ours to remove."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def _announcements(where: Locator, sock: socket.socket) -> list[str]:
    if where.path:
        return [where.wire]
    port = sock.getsockname()[1]
    suffix = where.wire[len(f"{where.protocol}/{where.address}") :]
    hosts = announced(where.host, where.setting("iface")) or [where.host]
    return [f"{where.protocol}/{written((host, port))}{suffix}" for host in hosts]
