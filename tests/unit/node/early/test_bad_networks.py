"""Early sessions over networks that lose, double and reorder, in virtual time: all arrives, once and in order."""

from __future__ import annotations

from typing import Any

import pytest

import elea
from elea.testing import Network
from elea.testing.simnode import Node

BLOCK = elea.CongestionControl.BLOCK
CONDITIONS: dict[str, dict[str, Any]] = {
    "clean": {},
    "lossy": {"loss": 0.3, "duplicate": 0.05, "reorder": 0.25},
    "slow": {"delay": (0.05, 0.4), "loss": 0.1},
    "small": {"mtu": 64, "loss": 0.2},
}


def texts(samples: list[elea.Sample]) -> list[str]:
    return [sample.payload.to_string() for sample in samples]


def linked(net: Network, dialect: str = "zenoh2018", **conditions: Any) -> tuple[Node, Node, Node]:
    router, device, desk = net.router("router"), net.client("device"), net.client("desk")
    net.link(device, router, datagrams=True, dialect=dialect, **conditions)
    net.link(desk, router)
    return router, device, desk


@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
@pytest.mark.parametrize("name", list(CONDITIONS))
def test_everything_arrives_in_order(name: str, dialect: str) -> None:
    with Network(seed=11) as net:
        _, device, desk = linked(net, dialect, **CONDITIONS[name])
        up, down = desk.subscribe("up/**"), device.subscribe("down/**")
        net.run(10.0)

        for number in range(300):
            device.put("up/1", f"{number}", congestion_control=BLOCK)
            desk.put("down/1", f"{number}", congestion_control=BLOCK)
            net.run(0.004)  # so that they do not all travel together
        net.run_until(lambda: len(up) >= 300 and len(down) >= 300, 300.0)
        net.run(5.0)

        assert texts(up) == texts(down) == [str(number) for number in range(300)]
        assert [len(c.machine.session.conduit().reliable) for c in device._runtime.links.connections] == [0]  # type: ignore[attr-defined]


def test_a_large_sample_arrives_in_fragments_over_a_lossy_network() -> None:
    with Network(seed=5) as net:
        _, device, desk = linked(net, loss=0.2, reorder=0.2)
        up = desk.subscribe("up/**")
        net.run(5.0)
        device.put("up/1", bytes(300_000), congestion_control=BLOCK)
        net.run_until(lambda: up, 120.0)
        assert len(up[0].payload.to_bytes()) == 300_000


def test_a_silent_node_is_given_up_after_its_lease_and_comes_back() -> None:
    with Network(seed=3) as net:
        router, device, desk = linked(net)
        down = device.subscribe("down/**")
        net.run(2.0)
        assert router._node.route(router._node.local, "down/1").ways

        net.part(device, router)
        net.run(25.0)
        assert not router._node.route(router._node.local, "down/1").ways, "its lease is over"
        net.heal(device, router)
        net.run(30.0)
        desk.put("down/1", "again", congestion_control=BLOCK)
        net.run(2.0)

        assert texts(down) == ["again"]


def test_a_quiet_session_is_kept_alive_by_little() -> None:
    with Network(seed=4) as net:
        router, device, _ = linked(net)
        net.run(60.0)
        (connection,) = device._runtime.links.connections
        wire = net.wire(device, router)
        sent = wire.sent
        net.run(60.0)

        assert connection in device._runtime.links.connections
        assert 2 * 15 <= wire.sent - sent <= 2 * 25, "a KeepAlive each way every third of a lease of 10 s"
