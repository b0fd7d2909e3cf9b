"""What connecting and listening share: the settings of a locator on a socket, and TLS on a connected one."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from elea.io.addresses import is_multicast, written
from elea.io.linkerrors import UnsupportedLink
from elea.io.locator import Locator

if TYPE_CHECKING:
    import ssl

    from elea.io.tls import TlsLink

__all__ = ["apply_config", "refuse_multicast", "tls_linked"]


def apply_config(sock: socket.socket, where: Locator) -> None:
    """Buffers, class of service and interface, as the locator wants them."""
    if sock.type == socket.SOCK_DGRAM:
        from elea.io.udp import enlarge

        enlarge(sock)
    for key, option in (("so_sndbuf", socket.SO_SNDBUF), ("so_rcvbuf", socket.SO_RCVBUF)):
        value = where.number(key)
        if value is not None:
            sock.setsockopt(socket.SOL_SOCKET, option, value)
    dscp = where.number("dscp")
    if dscp is not None:
        level, name = (
            (socket.IPPROTO_IP, socket.IP_TOS)
            if sock.family == socket.AF_INET
            else (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
        )
        sock.setsockopt(level, name, dscp << 2)
    iface = where.setting("iface")
    if iface is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, iface.encode() + b"\0")


def refuse_multicast(where: Locator) -> None:
    """A group has no link in the sense of this layer."""
    if is_multicast(where.host):
        raise UnsupportedLink(str(where), "multicast links are not supported", "use a unicast address")


def tls_linked(sock: socket.socket, context: ssl.SSLContext, name: str, timeout: float) -> TlsLink:
    """Shake hands on a connected socket; `name` is what the other side's certificate must be for."""
    from elea.io.tls import TlsLink, shake_hands

    local, remote = f"tls/{written(sock.getsockname())}", f"tls/{written(sock.getpeername())}"
    tls, incoming, outgoing = shake_hands(sock, remote, context=context, server_name=name, timeout=timeout)
    return TlsLink(sock, local, remote, tls=tls, incoming=incoming, outgoing=outgoing)
