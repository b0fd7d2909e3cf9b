"""Early nodes find a broker: a Scout is answered with Hello, on the group and on a connection."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import elea
from elea.model.errors import SessionClosed
from elea.model.qos import Role
from elea.node.discovery import DiscoverySettings
from elea.node.early import scouting
from elea.node.early.scouting import EarlyDiscovery, mask_of
from elea.node.early.seeking import PeerSeeker
from elea.protocol.early.generation import ZENOH2018
from elea.protocol.early.scouting import Scouter
from tests.unit.node.early.client import EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.storage.serving import eventually
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


def test_a_scout_to_the_group_is_answered(group: str) -> None:
    with listening(group) as broker, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        discovery = broker._runtime.links.dialect("zenoh2018")._discovery  # type: ignore[attr-defined]
        host, _, port = group.partition(":")
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        asking.settimeout(10.0)
        own = [
            one.partition("?")[0] for name in ("zenoh2018", "xrce2017") for one in broker._runtime.links.locators(name)
        ]
        asking.sendto(ZENOH2018.encode(m.Scout(1)), (host, int(port)))
        assert hello(asking.recv(1000)) == (1, own)
        said = (m.Property(5, b"xrce2017"),)
        asking.sendto(ZENOH2018.encode(m.Scout(1, said)), (host, int(port)))
        assert hello(asking.recv(1000)) == (1, own[1:]), "to who says what it speaks"
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


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> str:
    """A group of this test alone, on loopback."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.bind(("127.0.0.1", 0))
        found = f"239.255.0.1:{probe.getsockname()[1]}"
    finally:
        probe.close()
    monkeypatch.setattr(scouting, "EARLY_GROUP", found)
    return found


def listening(group: str, mode: str = "router") -> elea.Session:
    """A node that answers Scouts to the group."""
    made = elea.Config.from_json5("{scouting: {multicast: {interface: 'lo', autoconnect: []}, delay: 0}}")
    made.insert_json5("mode", f'"{mode}"')
    made.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0?dialect=zenoh2018", "udp/127.0.0.1:0?dialect=xrce2017"]')
    session = elea.open(made)
    discovery = session._runtime.links.dialect("zenoh2018")._discovery  # type: ignore[attr-defined]
    if not discovery._listener.joined:
        session.close()
        pytest.skip("this machine has no multicast on loopback")
    return session


@pytest.mark.requirement("Z18-SCO-05")
@pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])
def test_a_client_finds_a_broker_and_finds_it_again(group: str, dialect: str) -> None:
    locator = f"udp/{group}?dialect={dialect}#iface=lo"
    with listening(group) as broker, elea.open(config("client", connect__endpoints=[locator])) as client:
        (found,) = client._runtime.links.connections
        assert found.dialect.name == dialect
        assert found.locator.startswith("tcp/" if dialect == "zenoh2018" else "udp/127.0.0.1")
        assert [str(one) for one in client.info.routers_zid()] == [str(broker.zid())]
        found.end(SessionClosed(text="a test ends it"))
        eventually(lambda: [one for one in client._runtime.links.connections if one is not found], "it is back")


@pytest.mark.requirement("Z18-SCO-05")
def test_two_peers_that_look_for_each_other_have_one_session(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.protocol.early.scouting.SCOUT_SECONDS", 0.05)
    locator = f"udp/{group}?dialect=zenoh2018#iface=lo"
    with listening(group, "peer") as one, listening(group, "peer") as other:
        homes = [each._runtime.links.dialect("zenoh2018") for each in (one, other)]
        connection = other._runtime.links.connect(one._runtime.links.locators("zenoh2018")[0])
        eventually(lambda: list(one.info.peers_zid()), "both have the session")
        seekers = [PeerSeeker(home, locator) for home in homes]  # type: ignore[arg-type]
        told = [home._discovery.answered for home in homes]  # type: ignore[attr-defined]
        for home, before in zip(homes, told, strict=True):
            eventually(lambda home=home, before=before: home._discovery.answered > before + 10, "told again and again")  # type: ignore[misc]
        for seeker in seekers:
            seeker.close()

        assert not connection.ended.is_set()
        assert len(one._runtime.links.connections) == len(other._runtime.links.connections) == 1


@pytest.mark.requirement("Z18-SCO-05")
def test_a_peer_goes_on_looking(group: str) -> None:
    locator = f"udp/{group}?dialect=zenoh2018#iface=lo"
    with listening(group, "peer") as one, elea.open(config("peer", connect__endpoints=[locator])) as peer:
        eventually(lambda: len(peer._runtime.links.connections) == 1, "the first")
        with listening(group, "peer") as other:
            eventually(lambda: len(peer._runtime.links.connections) == 2, "the second")
            told = {str(zid) for zid in peer.info.peers_zid()}
            assert told == {str(one.zid()), str(other.zid())}


def test_nobody_answers(group: str) -> None:
    made = config("client", connect__endpoints=[f"udp/{group}?dialect=zenoh2018#iface=lo"], connect__timeout_ms=0)
    made.insert_json5("transport/unicast/open_timeout", "200")
    with pytest.raises(elea.ZError, match="no node has answered a Scout within"):
        elea.open(made)


@pytest.mark.requirement("Z18-SCO-05", "Z18-SCO-04")
def test_scouts_repeat_until_there_is_a_session() -> None:
    scouter = Scouter(ZENOH2018, 1, 0.0, own=frozenset({"tcp/127.0.0.1:1"}))

    sent = [now for now in range(10) if scouter.to_send(float(now))]
    assert sent == [0, 3, 6, 9]
    assert scouter.next_deadline() == 12.0
    hello = ZENOH2018.encode(m.Hello(3, (b"tcp/127.0.0.1:2", b"udp/127.0.0.1:3")))
    assert scouter.heard(hello, "udp/127.0.0.1:3") == (b"", ["tcp/127.0.0.1:2", "udp/127.0.0.1:3"])
    assert scouter.heard(hello, "udp/10.0.0.1:9")[1][-1] == "udp/10.0.0.1:9"
    named = m.Hello(1, (b"serial//dev/ttyS0", b"tcp/127.0.0.1:2"), (m.Property(5, b"pid"),))
    assert scouter.heard(ZENOH2018.encode(named), "udp/127.0.0.1:3") == (b"pid", ["tcp/127.0.0.1:2", "udp/127.0.0.1:3"])
    for packet in (m.Hello(4, (b"tcp/127.0.0.1:2",)), m.Hello(1, (b"tcp/127.0.0.1:1",)), m.PingPong(1)):
        assert scouter.heard(ZENOH2018.encode(packet), "udp/127.0.0.1:3") == (b"", [])
    assert scouter.heard(b"\xff", "udp/127.0.0.1:3") == (b"", [])
    assert scouter.ignored == 4
    scouter.is_stopped = True
    assert (scouter.to_send(100.0), scouter.next_deadline()) == ([], None)
