"""One port that hears by the first bytes which dialect a node speaks."""

from __future__ import annotations

import socket

import pytest

import elea
from elea.io.linkerrors import LocatorError
from tests.unit.node.early.client import WAIT, EarlyClient
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config


@pytest.mark.parametrize("early", ["zenoh2018", "xrce2017"])
def test_one_port_takes_nodes_of_all_generations(early: str) -> None:
    options = "dialect=any" if early == "zenoh2018" else "dialect=any;early=xrce2017"
    with elea.open(config("router", listen__endpoints=[f"tcp/127.0.0.1:0?{options}"])) as router:
        (locator,) = router._runtime.links.locators("zenoh1")
        assert router._runtime.links.locators(early) == [locator], "both can be told of it"
        where = locator.partition("?")[0]
        with (
            elea.open(config("client", connect__endpoints=[where])) as robot,
            elea.open(config("client", connect__endpoints=[locator])) as other,
            EarlyClient(f"{where}?dialect={early}") as device,
            robot.declare_subscriber("b/*") as subscriber,
        ):
            device.subscribe(2, f"{device.generation.scheme}a")
            await_subscriber(router, "a")
            await_subscriber(router, "b/1")
            other.put("a", "x", congestion_control=elea.CongestionControl.BLOCK)
            assert device.await_samples(1) == [b"x"]
            device.write_data(f"{device.generation.scheme}b/1", b"y")
            device.step(0.0)
            assert subscriber.handler.recv(timeout=WAIT).payload.to_bytes() == b"y"
            names = sorted(one.dialect.name for one in router._runtime.links.connections)
            assert names == sorted([early, "zenoh1", "zenoh1"])


def test_bytes_may_come_one_by_one_or_not_at_all() -> None:
    made = config("router", listen__endpoints=["tcp/127.0.0.1:0?dialect=any"], transport__unicast__accept_timeout=200)
    with elea.open(made) as router:
        (locator,) = router._runtime.links.locators()
        host, _, port = locator.partition("/")[2].partition("?")[0].rpartition(":")
        with socket.create_connection((host, int(port)), WAIT) as slow:
            for octet in bytes.fromhex("07 03 01 01 78 00 00 00".replace(" ", "")):
                slow.send(bytes([octet]))
            assert slow.recv(100)[1] & 0x1F == 4, "Accept"
        with socket.create_connection((host, int(port)), WAIT) as silent:
            silent.send(b"\7")
            assert silent.recv(100) == b"", "nobody waits for ever"
        eventually(lambda: not router._runtime.links._opening, "no link is left")


def test_datagrams_do_not_tell() -> None:
    with pytest.raises(LocatorError, match="datagrams"):
        elea.open(config("router", listen__endpoints=["udp/127.0.0.1:0?dialect=any"]))
    with pytest.raises(LocatorError, match="unknown early dialect"):
        elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0?dialect=any;early=zenoh1"]))
