"""Early nodes find a broker: a Scout is answered with Hello, on the group and on a connection."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import elea
from elea.model.qos import Role
from elea.node.discovery import DiscoverySettings
from elea.node.early.scouting import EARLY_GROUP, EarlyDiscovery, mask_of
from elea.protocol.early.generation import ZENOH2018
from tests.unit.node.early.client import EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.test_dialect import config

m = ZENOH2018.messages


def hello(octets: bytes | None) -> tuple[int, list[str]]:
    assert octets is not None
    ((message, _),) = ZENOH2018.codec.messages(octets)
    return message.mask, [one.decode() for one in message.locators]


def test_masks() -> None:
    assert [mask_of(role, is_durable=False) for role in (Role.ROUTER, Role.PEER, Role.CLIENT)] == [1, 4, 8]
    assert mask_of(Role.ROUTER, is_durable=True) == 3


def test_a_scout_is_answered_by_whom_it_asks_for(router: elea.Session) -> None:
    discovery = EarlyDiscovery(router._runtime.links, DiscoverySettings())

    mask, locators = hello(discovery.answer(ZENOH2018.encode(m.Scout(1))))
    assert mask == 3, "a broker that keeps something"
    wanted = [locator_of(router, d, p).partition("?")[0] for d in ("zenoh2018", "xrce2017") for p in ("tcp", "udp")]
    assert locators == wanted
    assert hello(discovery.answer(ZENOH2018.encode(m.Scout(2))))[0] == 3
    for packet in (m.Scout(4), m.Scout(1 << 14), m.PingPong(1)):
        assert discovery.answer(ZENOH2018.encode(packet)) is None
    assert discovery.answer(b"\xff") is None
    discovery.heard(b"\xff", ("127.0.0.1", 1))
    assert (discovery.ignored, discovery.answered) == (1, 0)


def test_a_scout_on_a_connection_is_answered_there(router: elea.Session) -> None:
    with EarlyClient(locator_of(router), opens=False) as device:
        device.write(ZENOH2018.encode(m.Scout(1)))
        mask, locators = hello(device.socket.recv(1000)[1:])
        assert (mask & 1, len(locators)) == (1, 2)


def test_a_scout_to_the_group_is_answered() -> None:
    made = elea.Config.from_json5("{mode: 'router', scouting: {multicast: {interface: 'lo'}, delay: 1}}")
    made.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0", "udp/127.0.0.1:0?dialect=zenoh2018"]')
    with elea.open(made) as broker, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        discovery = broker._runtime.links.dialect("zenoh2018")._discovery  # type: ignore[attr-defined]
        if not discovery._listener.joined:
            return  # a machine without multicast: `test_a_scout_is_answered_by_whom_it_asks_for` has shown the rest
        host, _, port = EARLY_GROUP.partition(":")
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        asking.settimeout(5.0)
        asking.sendto(ZENOH2018.encode(m.Scout(1)), (host, int(port)))
        own = [one.partition("?")[0] for one in broker._runtime.links.locators("zenoh2018")]
        while hello(asking.recv(1000))[1] != own:  # another node of this machine may answer, too
            pass
    assert discovery._listener is None, "the node has ended"


@pytest.mark.parametrize(
    ("given", "reason"), [(None, 1), (b"robot:wrong", 1), (b"nobody:", 1), (b"robot:secret", None)]
)
def test_a_password_is_asked_for_as_in_1x(tmp_path: Path, given: bytes | None, reason: int | None) -> None:
    users = tmp_path / "users"
    users.write_text("robot:secret\n")
    made = config(
        "router",
        listen__endpoints=["tcp/127.0.0.1:0?dialect=zenoh2018"],
        transport__auth__usrpwd={"dictionary_file": str(users)},
    )
    with elea.open(made) as broker:
        (locator,) = broker._runtime.links.locators()
        with EarlyClient(locator, authentication=given) as device:
            assert (None if device.ended is None else device.ended.reason) == reason
        client = config(
            "client",
            connect__endpoints=[locator],
            transport__auth__usrpwd={"user": "robot", "password": "secret"},
        )
        with elea.open(client) as session:
            assert session.info.routers_zid()
            assert {one.face.subject.user for one in broker._runtime.links.connections if one.face} == {"robot"}
