"""Locators: what is read, what is written back, and what the errors tell."""

from __future__ import annotations

import pytest

from elea.io.linkerrors import LocatorError, UnsupportedLink
from elea.io.locator import Locator


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("tcp/127.0.0.1:7447", "127.0.0.1", 7447),
        ("tcp/[::]:7447", "::", 7447),
        ("tls/example.org:0", "example.org", 0),
        ("udp/[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
    ],
)
def test_address_is_read_and_written_back(text: str, host: str, port: int) -> None:
    locator = Locator.parse(text)

    assert (locator.host, locator.port) == (host, port)
    assert str(locator) == locator.wire == text


def test_config_is_kept_but_never_told_to_others() -> None:
    locator = Locator.parse("tcp/127.0.0.1:7447?rel=1;prio=2-4#iface=lo;so_sndbuf=65536")

    assert locator.wire == "tcp/127.0.0.1:7447?rel=1;prio=2-4"
    assert str(locator) == "tcp/127.0.0.1:7447?rel=1;prio=2-4#iface=lo;so_sndbuf=65536"
    assert (locator.setting("iface"), locator.number("so_sndbuf"), locator.number("so_rcvbuf")) == ("lo", 65536, None)


def test_metadata_says_what_a_link_is_for() -> None:
    plain, marked = Locator.parse("udp/127.0.0.1:1"), Locator.parse("udp/127.0.0.1:1?rel=1;prio=3;other=x")

    assert (plain.reliable, plain.priorities, plain.streamed) == (False, None, False)
    assert (marked.reliable, marked.priorities, marked.meta("other")) == (True, (3, 3), "x")


def test_unix_socket_has_a_path_and_no_port() -> None:
    locator = Locator.parse("unixsock-stream//tmp/a.sock")

    assert (locator.path, locator.host, locator.port, locator.streamed) == ("/tmp/a.sock", "", 0, True)
    assert Locator.parse("tcp/h:1").path == ""


@pytest.mark.parametrize("text", ["ws/127.0.0.1:7447", "unixpipe//tmp/a", "quic/127.0.0.1:1", "vsock/1:2"])
def test_links_not_spoken_are_named(text: str) -> None:
    with pytest.raises(UnsupportedLink, match="not supported"):
        Locator.parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no address"),
        ("tcp", "write protocol/address"),
        ("tcp/", "no address"),
        ("tpc/127.0.0.1:1", "did you mean 'tcp'"),
        ("zigzag/127.0.0.1:1", "use one of tcp"),
        ("tcp/127.0.0.1", "add one, such as 127.0.0.1:7447"),
        ("tcp/127.0.0.1:", "no port"),
        ("tcp/127.0.0.1:x", "no port"),
        ("tcp/127.0.0.1:65536", "above 65535"),
        ("tcp/:7447", "for every address"),
        ("tcp/::1:7447", r"write \[::1\]:7447"),
        ("tcp/[::zz]:7447", "not an IPv6 address"),
        ("tcp/h:1?rel=2", "neither 0 nor 1"),
        ("tcp/h:1?prio=5-2", "smaller one first"),
        ("tcp/h:1?prio=1-2-3", "no range"),
        ("tcp/h:1?prio=8", "no range"),
        ("tcp/h:1?rel", "not key=value"),
        ("tcp/h:1?rel=1;rel=0", "given twice"),
        ("tcp/h:1#ifcae=lo", "did you mean 'iface'"),
        ("tcp/h:1#so_sndbuf=many", "not a number"),
        ("tcp/h:1#so_sndbuf=99999999999", "not a number below"),
    ],
)
def test_error_tells_what_to_write(text: str, told: str) -> None:
    with pytest.raises(LocatorError, match=told) as caught:
        Locator.parse(text)

    assert caught.value.text == text
