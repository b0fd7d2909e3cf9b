"""Making links: connecting to a locator. Listening on one is in `elea.io.listener`, which clients need not import."""

from __future__ import annotations

import socket

from elea.io.addresses import Address, resolve, written
from elea.io.link import Link, SocketLink, TcpLink, UnixLink
from elea.io.linkerrors import CannotConnect, ConnectRefused, ConnectTimeout, LinkError, NameUnknown, Unreachable
from elea.io.locator import Locator
from elea.io.sockets import apply_config, refuse_multicast, tls_linked
from elea.io.timers import monotonic
from elea.io.tls_settings import TlsSettings

__all__ = ["connect"]


def connect(locator: Locator | str, *, timeout: float = 10.0, tls: TlsSettings | None = None) -> Link:
    """Make a link, trying every address of the host within `timeout` seconds.

    Raises:
        ConnectRefused, ConnectTimeout, Unreachable, NameUnknown, CertificateError: the last address's problem.
        LocatorError, ConfigError: the locator or the settings cannot work.
    """
    where = Locator.parse(locator) if isinstance(locator, str) else locator
    deadline = monotonic() + timeout
    if where.protocol == "unixsock-stream":
        return _connect_unix(where, timeout)
    if where.protocol == "serial":
        from elea.io.serial import connect_serial  # not with the module: few have such a line

        return connect_serial(where)
    kind = socket.SOCK_DGRAM if where.protocol == "udp" else socket.SOCK_STREAM
    refuse_multicast(where)
    addresses = resolve(where.wire, where.host, where.port, kind=kind, timeout=timeout)
    problem: LinkError = NameUnknown(where.wire, f"host {where.host!r} has no address", "use an address")
    for index, address in enumerate(addresses):
        share = max(deadline - monotonic(), 0.001) / (len(addresses) - index)
        try:
            sock = _connected(where, address, kind=kind, timeout=share)
            link = _linked(where, sock, tls or TlsSettings(), max(deadline - monotonic(), 0.001))
            link.limit(where.mtu)
            return link
        except CannotConnect as error:
            problem = error
    raise problem


def _connected(where: Locator, address: Address, *, kind: socket.SocketKind, timeout: float) -> socket.socket:
    sock = socket.socket(address.family, kind)
    try:
        apply_config(sock, where)
        bind = where.setting("bind")
        if bind is not None:
            host, _, port = bind.rpartition(":")
            sock.bind((host.strip("[]"), int(port)) if host else (bind.strip("[]"), 0))
        sock.settimeout(timeout)
        sock.connect(address.sockaddr)
        sock.settimeout(None)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError | ValueError):
            raise _cannot_connect(where, error, timeout) from error
        raise
    return sock


def _linked(where: Locator, sock: socket.socket, tls: TlsSettings, timeout: float) -> SocketLink:
    try:
        if where.protocol == "tls":
            from elea.io.tls import client_context

            return tls_linked(sock, client_context(tls.for_locator(where), where.wire), where.host, timeout)
        local, remote = (
            f"{where.protocol}/{written(sock.getsockname())}",
            f"{where.protocol}/{written(sock.getpeername())}",
        )
        if where.protocol == "udp":
            from elea.io.udp import UdpLink

            return UdpLink(sock, local, remote)
        return TcpLink(sock, local, remote)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError) and not isinstance(error, LinkError):  # gone already
            raise _cannot_connect(where, error, timeout) from error
        raise


def _connect_unix(where: Locator, timeout: float) -> UnixLink:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(where.path)
        sock.settimeout(None)
    except OSError as error:
        sock.close()
        if isinstance(error, FileNotFoundError):
            raise ConnectRefused(where.wire, "no such file", "start the listener first, or check the path") from error
        raise _cannot_connect(where, error, timeout) from error
    link = UnixLink(sock, f"{where.wire}-client", where.wire)
    link.limit(where.mtu)
    return link


def _cannot_connect(where: Locator, error: Exception, timeout: float) -> CannotConnect:
    text = (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return ConnectRefused(where.wire, text, "start a node that listens there, or check the port")
    if isinstance(error, TimeoutError):
        return ConnectTimeout(where.wire, f"no answer in {timeout:.3g} s", "check address, port and firewall")
    return Unreachable(where.wire, text, "check the address, the network and the iface and bind entries")
