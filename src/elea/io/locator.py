"""Locators: `protocol/address?metadata#config`, the text that says where a node is (spec zenoh-1 section 2).

Metadata travels with the locator (`rel=0|1`, `prio=a-b`); config is advice to this node only and is never sent.
"""

from __future__ import annotations

from typing import Final

from elea.io.linkerrors import LocatorError, UnsupportedLink
from elea.model.limits import MAX_BATCH
from elea.model.values import value_class

__all__ = ["CONFIG_KEYS", "PROTOCOLS", "Locator", "host_port", "nearest"]

PROTOCOLS: Final = ("tcp", "tls", "udp", "unixsock-stream", "serial")
"""Kinds of link this node speaks."""

_KNOWN_BUT_NOT_SPOKEN: Final = {
    "ws": "WebSocket links",
    "wss": "WebSocket links",
    "quic": "QUIC links",
    "quic-datagram": "QUIC links",
    "unixpipe": "pipe links",
    "vsock": "vsock links",
}
_STREAMED: Final = frozenset({"tcp", "tls", "unixsock-stream", "serial"})
_FILES: Final = frozenset({"unixsock-stream", "serial"})
"""Their address is a path."""

CONFIG_KEYS: Final = frozenset(
    """iface bind mode so_sndbuf so_rcvbuf dscp mtu chunk baudrate exclusive
    root_ca_certificate_file listen_private_key_file listen_certificate_file enable_mtls
    connect_private_key_file connect_certificate_file verify_name_on_connect""".split()
)
"""Entries allowed after `#`; those of tls are read by `TlsSettings.for_locator`.

`mtu` bounds the batches of any link. `chunk`, `baudrate` and `exclusive` are for serial lines: bytes written at once,
speed, and whether no other program may use the line.
"""

_FOR_ALL: Final = "set it for all locators: connect/timeout_ms, connect/exit_on_failure, connect/retry"
_NOT_BUILT: Final = {
    "join": "there are no multicast links",
    "ttl": "there are no multicast links; scouting/multicast/ttl is that of scouting",
    "exit_on_failure": _FOR_ALL,
    "timeout_ms": _FOR_ALL,
    "retry_period_init_ms": _FOR_ALL,
    "retry_period_max_ms": _FOR_ALL,
    "retry_period_increase_factor": _FOR_ALL,
    "close_link_on_expiration": "links outlive their certificates",
}
"""Entries of eclipse-zenoh that no link here follows, with what to do instead."""

_NUMBERS: Final = ("so_sndbuf", "so_rcvbuf", "dscp", "baudrate")
_SIZES: Final = ("mtu", "chunk")
SMALLEST_MTU: Final = 20
"""Z18-FRM-08: with less no session can be opened."""


@value_class
class Locator:
    """One place where a node can be reached.

    >>> there = Locator.parse("tcp/[::1]:7447?rel=1;prio=1-3#iface=lo")
    >>> there.host, there.port, there.reliable, there.priorities
    ('::1', 7447, True, (1, 3))
    >>> there.wire
    'tcp/[::1]:7447?rel=1;prio=1-3'
    """

    protocol: str
    address: str
    metadata: tuple[tuple[str, str], ...] = ()
    config: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Locator:
        """Read a locator.

        Raises:
            LocatorError: the text is malformed; the hint says how to write it.
            UnsupportedLink: the text is fine, but this node does not speak that kind of link.
        """
        head, has_config, config_text = text.partition("#")
        head, has_metadata, metadata_text = head.partition("?")
        protocol, slash, address = head.partition("/")
        if not slash or not address:
            raise LocatorError(text, "no address", "write protocol/address, such as tcp/127.0.0.1:7447")
        if protocol in _KNOWN_BUT_NOT_SPOKEN:
            known = ", ".join(PROTOCOLS)
            raise UnsupportedLink(text, f"{_KNOWN_BUT_NOT_SPOKEN[protocol]} are not supported", f"use one of {known}")
        if protocol not in PROTOCOLS:
            raise LocatorError(text, f"unknown protocol {protocol!r}", nearest(protocol, PROTOCOLS))
        metadata = _pairs(text, metadata_text) if has_metadata else ()
        config = _pairs(text, config_text) if has_config else ()
        _check_metadata(text, metadata)
        _check_config(text, config)
        if protocol not in _FILES:
            host_port(text, address)
        return cls(protocol, address, metadata, config)

    @property
    def host(self) -> str:
        """The host name or address, without brackets; empty for a unix socket or a serial line."""
        return "" if self.protocol in _FILES else host_port(str(self), self.address)[0]

    @property
    def port(self) -> int:
        """The port; 0 for a unix socket or a serial line."""
        return 0 if self.protocol in _FILES else host_port(str(self), self.address)[1]

    @property
    def path(self) -> str:
        """The file of a unix socket, or the device of a serial line."""
        return self.address if self.protocol in _FILES else ""

    @property
    def streamed(self) -> bool:
        """Whether batches travel as one stream of bytes, and so need a length prefix."""
        return self.protocol in _STREAMED

    @property
    def reliable(self) -> bool:
        """Whether the link may carry reliable messages: what `rel` says, else what the protocol gives."""
        said = self.meta("rel")
        return self.streamed if said is None else said == "1"

    @property
    def priorities(self) -> tuple[int, int] | None:
        """The priorities this link is meant for, lowest and highest number; None for all."""
        said = self.meta("prio")
        if said is None:
            return None
        low, dash, high = said.partition("-")
        return int(low), int(high if dash else low)

    @property
    def mtu(self) -> int | None:
        """The largest batch to offer, if the locator says so: to this node alone (`#mtu=`) or to all (`?mtu=`)."""
        said = self.setting("mtu") or self.meta("mtu")
        return int(said) if said is not None and _is_size(said) else None

    @property
    def wire(self) -> str:
        """The text that may be told to other nodes: without config."""
        metadata = ";".join(f"{key}={value}" for key, value in self.metadata)
        return f"{self.protocol}/{self.address}" + (f"?{metadata}" if metadata else "")

    def meta(self, key: str) -> str | None:
        """The value of a metadata entry."""
        return dict(self.metadata).get(key)

    def setting(self, key: str) -> str | None:
        """The value of a config entry."""
        return dict(self.config).get(key)

    def number(self, key: str) -> int | None:
        """The value of a config entry that is a number."""
        value = self.setting(key)
        return None if value is None else int(value)

    def __str__(self) -> str:
        config = ";".join(f"{key}={value}" for key, value in self.config)
        return self.wire + (f"#{config}" if config else "")


def host_port(text: str, address: str) -> tuple[str, int]:
    """Split `host:port` or `[IPv6]:port`; `text` is the locator to name in errors."""
    host, colon, port_text = address.rpartition(":")
    if not colon or not port_text.isascii() or not port_text.isdigit():
        raise LocatorError(text, "no port", f"add one, such as {address.rstrip(':')}:7447")
    port = int(port_text)
    if port > 65_535:
        raise LocatorError(text, f"port {port} is above 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        import ipaddress  # not with the module: few locators have such an address

        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise LocatorError(text, f"{host!r} is not an IPv6 address") from None
    elif ":" in host:
        raise LocatorError(text, "an IPv6 address needs brackets", f"write [{host}]:{port}")
    if not host:
        raise LocatorError(text, "no host", f"write 0.0.0.0:{port} or [::]:{port} for every address of this machine")
    return host, port


def _pairs(text: str, listed: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for entry in listed.split(";"):
        if not entry:
            continue
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise LocatorError(text, f"{entry!r} is not key=value", "separate entries with ;")
        if any(key == known for known, _ in found):
            raise LocatorError(text, f"{key!r} is given twice", "keep one of them")
        found.append((key, value))
    return tuple(found)


def _check_metadata(text: str, metadata: tuple[tuple[str, str], ...]) -> None:
    """Other entries are kept as they are: they may come from nodes that know more."""
    for key, value in metadata:
        if key == "rel" and value not in ("0", "1"):
            raise LocatorError(text, f"rel={value} is neither 0 nor 1", "write rel=1 for a reliable link")
        if key == "prio":
            bounds = value.split("-")
            if len(bounds) > 2 or not all(bound in tuple("01234567") for bound in bounds) or bounds != sorted(bounds):
                raise LocatorError(text, f"prio={value} is no range of 0 to 7", "write prio=2-4, the smaller one first")


def _check_config(text: str, config: tuple[tuple[str, str], ...]) -> None:
    for key, value in config:
        if key in _NOT_BUILT:
            raise LocatorError(text, f"#{key} of a single locator is not built", _NOT_BUILT[key])
        if key not in CONFIG_KEYS:
            raise LocatorError(text, f"unknown config entry {key!r}", nearest(key, sorted(CONFIG_KEYS)))
        if key == "mode" and not (len(value) <= 4 and value.strip("01234567") == "" and value):
            raise LocatorError(text, f"mode is {value!r}", "write the permissions of the socket file, such as mode=660")
        if key in _NUMBERS and not (value.isascii() and value.isdigit() and int(value) < 1 << 31):
            raise LocatorError(text, f"{key}={value} is not a number below 2147483648")
        if key in _SIZES and not _is_size(value):
            raise LocatorError(text, f"{key}={value} is not a size from {SMALLEST_MTU} to {MAX_BATCH}")


def _is_size(value: str) -> bool:
    return value.isascii() and value.isdigit() and SMALLEST_MTU <= int(value) <= MAX_BATCH


def nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    import difflib  # 1 MB that only a mistake needs

    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}" if close else f"use one of {', '.join(known)}"
