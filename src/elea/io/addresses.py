"""Addresses of this machine and of others: interfaces, resolution, and how they are written in locators."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Final

from elea.io.linkerrors import ConnectTimeout, NameUnknown
from elea.model.values import value_class

__all__ = [
    "Address",
    "Interface",
    "announced",
    "interfaces",
    "interfaces_of_address",
    "is_loopback",
    "is_multicast",
    "resolve",
    "source_of",
    "written",
]

_SIOCGIFFLAGS: Final = 0x8913
_SIOCGIFADDR: Final = 0x8915
_IFF_UP: Final = 0x1
_IFF_LOOPBACK: Final = 0x8
_IFF_MULTICAST: Final = 0x1000
_MAPPED: Final = "::ffff:"
_MAPPED_OCTETS: Final = bytes(10) + b"\xff\xff"
_LOOPBACK_OCTETS: Final = bytes(15) + b"\1"


@value_class
class Interface:
    """A network interface that is up."""

    name: str
    index: int
    loopback: bool
    multicast: bool
    ipv4: str | None
    ipv6: tuple[str, ...]


@value_class
class Address:
    """An address a socket can use: family and what `bind` or `connect` want."""

    family: socket.AddressFamily
    sockaddr: tuple[str, int] | tuple[str, int, int, int]


def interfaces() -> list[Interface]:
    """The interfaces that are up; on systems other than Linux only what the host name resolves to."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on Linux
        return []
    found: list[Interface] = []
    ipv6 = _ipv6_addresses()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for index, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                flags = struct.unpack_from("H", fcntl.ioctl(probe, _SIOCGIFFLAGS, request), 16)[0]
            except OSError:  # gone since it was listed
                continue
            if not flags & _IFF_UP:
                continue
            ipv4 = None
            with contextlib.suppress(OSError):  # an interface without IPv4
                ipv4 = socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, request)[20:24])
            loopback, multicast = bool(flags & _IFF_LOOPBACK), bool(flags & _IFF_MULTICAST)
            found.append(Interface(name, index, loopback, multicast, ipv4, tuple(ipv6.get(name, ()))))
    return found


def interfaces_of_address(locator: str) -> tuple[str, ...]:
    """The network interfaces that have the address of a locator of this machine; one of loopback has any of 127/8."""
    host = locator.partition("/")[2].rpartition(":")[0].strip("[]").partition("%")[0].removeprefix("::ffff:")
    if not host:
        return ()
    is_local = host.startswith("127.")
    return tuple(
        found.name
        for found in interfaces()
        if host == found.ipv4 or host in found.ipv6 or (is_local and found.loopback)
    )


def announced(host: str, iface: str | None = None) -> list[str]:
    """The addresses to tell others for a listener bound to `host`: itself, or for 0.0.0.0 and :: those of the machine.

    As eclipse-zenoh does: `::` stands for IPv4 too, loopback and link-local addresses are left out. Unlike it, a
    machine that has loopback only announces that, so that programs on it still find each other.
    """
    if host not in ("0.0.0.0", "::"):
        return [host]
    chosen = [found for found in interfaces() if iface is None or found.name == iface]
    for loopback in (False, True):
        ipv4 = [found.ipv4 for found in chosen if found.ipv4 and found.loopback is loopback]
        ipv6 = [text for found in chosen if found.loopback is loopback for text in found.ipv6]
        addresses = ipv4 + ([text for text in ipv6 if not _is_link_local(text)] if host == "::" else [])
        if addresses:
            return addresses
    return []


def resolve(locator: str, host: str, port: int, *, kind: socket.SocketKind, timeout: float) -> list[Address]:
    """Every address of a host, in the order the system prefers.

    A name is looked up in a thread of its own: the system gives no other way to stop waiting.

    Raises:
        NameUnknown: the name has no address.
        ConnectTimeout: the lookup took longer than `timeout`.
    """
    found = _lookup(host, port, kind, socket.AI_NUMERICHOST)
    if isinstance(found, list):
        return found
    answers: list[list[Address] | OSError] = []
    worker = threading.Thread(
        target=lambda: answers.append(_lookup(host, port, kind, 0)), name="elea-resolve", daemon=True
    )
    worker.start()
    worker.join(timeout)
    if not answers:
        raise ConnectTimeout(locator, f"looking up {host} took longer than {timeout:g} s", "try an address instead")
    answer = answers[0]
    if isinstance(answer, OSError):
        raise NameUnknown(locator, f"host name {host!r} is unknown", "check the spelling or use an address") from answer
    return answer


def written(sockaddr: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """`host:port` or `[host]:port` for a socket's address; IPv4 inside IPv6 is written as IPv4."""
    host, port = sockaddr[0], sockaddr[1]
    if host.startswith(_MAPPED) and "." in host:
        host = host.removeprefix(_MAPPED)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def source_of(remote: str) -> str:
    """Whom the other end of a link belongs to, as far as its locator tells: an address, or 64 bits of an IPv6 one.

    >>> source_of("tcp/10.0.0.1:7447"), source_of("tls/[2001:db8:1:2:aa::1]:7447")
    ('10.0.0.1', '20010db800010002/64')
    """
    protocol, _, address = remote.partition("/")
    if protocol == "unixsock-stream":
        return protocol
    host = (address.rpartition(":")[0] or address).strip("[]").partition("%")[0]
    octets = _octets(host)
    return f"{octets[:8].hex()}/64" if octets is not None and len(octets) == 16 else host


def is_multicast(host: str) -> bool:
    """Whether a host is the address of a group; names are none."""
    octets = _octets(host)
    return octets is not None and (octets[0] == 0xFF if len(octets) == 16 else octets[0] >> 4 == 0xE)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host; of names, only `localhost` is known to be such.

    >>> [is_loopback(host) for host in ("127.0.0.7", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0", "::")]
    [True, True, True, True, False, False]
    """
    octets = _octets(host)
    if octets is None:
        return host.lower() == "localhost"
    if len(octets) == 16:
        if octets[:12] != _MAPPED_OCTETS:
            return octets == _LOOPBACK_OCTETS
        octets = octets[12:]
    return octets[0] == 127


def _is_link_local(host: str) -> bool:
    """Whether an IPv6 address is in fe80::/10."""
    octets = _octets(host) or b"\0\0"
    return octets[0] == 0xFE and octets[1] >> 6 == 0b10


def _octets(host: str) -> bytes | None:
    """An address as it travels; None for names. `ipaddress` could tell as well, but is slow to import."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):  # the latter for what is not ASCII or has a NUL
            return socket.inet_pton(family, host.partition("%")[0])
    return None


def _lookup(host: str, port: int, kind: socket.SocketKind, flags: int) -> list[Address] | OSError:
    try:
        # As bytes, because text goes through the codec for international names, which takes 3 ms to import.
        entries = socket.getaddrinfo(host.encode() if host.isascii() else host, port, type=kind, flags=flags)
    except (OSError, UnicodeError) as error:
        return error if isinstance(error, OSError) else OSError(str(error))
    usable = (socket.AF_INET, socket.AF_INET6)
    return [Address(family, sockaddr) for family, _, _, _, sockaddr in entries if family in usable]  # type: ignore[arg-type]


def _ipv6_addresses() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with contextlib.suppress(OSError), open("/proc/net/if_inet6") as lines:  # not there without IPv6
        for line in lines:
            fields = line.split()
            found.setdefault(fields[5], []).append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0])))
    return found
