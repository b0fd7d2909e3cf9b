"""Several links of one session: each channel over its own, the loss of one, nodes that have another address."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.io.linkerrors import LocatorError
from elea.io.locator import Locator
from elea.model.limits import EARLY_LATE_PACKETS, EARLY_LINKS
from elea.node.early.machine import EarlyMachine
from elea.node.early.options import options_of
from elea.protocol.early.numbered import vle
from tests.unit.node.early.client import WAIT, EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config

BLOCK = elea.CongestionControl.BLOCK
LOOSE = elea.Reliability.BEST_EFFORT


class Roamer(EarlyClient):
    """A device with further links; what came over each is counted by message and link."""

    def __init__(self, locator: str, pid: bytes = b"roamer", **offer: Any) -> None:
        self.further: list[tuple[socket.socket, bool]] = []
        self.came: list[tuple[str, int]] = []
        super().__init__(locator, pid, **offer)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for link, _ in self.further:
            link.close()

    @property
    def keep_alive(self) -> bytes:
        return self.generation.encode(self.m.KeepAlive(self.session.offer.pid))

    def join(self, locator: str) -> int:
        """One more link, over which a KeepAlive goes; its number."""
        where = Locator.parse(locator)
        is_streamed = where.protocol == "tcp"
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM if is_streamed else socket.SOCK_DGRAM)
        made.connect((where.host, where.port))
        self.further.append((made, is_streamed))
        self.write_over(len(self.further), self.keep_alive)
        return len(self.further)

    def write_over(self, number: int, packet: bytes) -> None:
        link, is_streamed = self.further[number - 1]
        link.send(vle(len(packet)) + packet if is_streamed else packet)

    def step(self, seconds: float) -> None:
        for number, (link, is_streamed) in enumerate(self.further, 1):
            while link.fileno() >= 0 and select.select([link], [], [], 0)[0]:
                data = link.recv(65_536)
                if not data:
                    link.close()
                    break
                while data:  # what comes in one go are whole packets, on loopback
                    size = data[0] if is_streamed else len(data)
                    packet, data = data[is_streamed : is_streamed + size], data[is_streamed + size :]
                    self._note(number, packet)
        if self.is_over:
            time.sleep(0.001)
            return
        super().step(seconds)

    def _note(self, number: int, packet: bytes) -> None:
        self.came += [(type(one.message).__name__, number) for one in self.generation.codec.messages(packet)]
        self._take(packet)
        for answer in self.session.to_send(self.now()):
            self.write_over(number, answer)

    def over(self, kind: str) -> set[int]:
        return {number for name, number in self.came if name == kind}


@pytest.fixture
def roamer(router: elea.Session) -> Iterator[Roamer]:
    with Roamer(locator_of(router)) as made:
        made.subscribe(2, "zenoh://a/1")
        yield made


def put_loosely(session: elea.Session, key: str, payload: str | bytes) -> None:
    with session.declare_publisher(key, reliability=LOOSE, congestion_control=BLOCK) as publisher:
        eventually(lambda: publisher.matching_status.matching, "somebody listens")
        publisher.put(payload)


def sessions(router: elea.Session) -> list[Any]:
    return [one for one in router._runtime.links.connections if isinstance(one.machine, EarlyMachine)]


@pytest.mark.requirement("Z18-SES-11", "Z18-REL-15")
def test_each_channel_goes_over_a_link_of_its_kind(router: elea.Session, roamer: Roamer) -> None:
    datagrams = roamer.join(locator_of(router, protocol="udp"))
    roamer.until(lambda: roamer.over("KeepAlive"))

    with router.declare_subscriber("b/**") as found:
        put_loosely(router, "a/1", b"loose")
        roamer.until(lambda: roamer.payloads() == [b"loose"])
        assert roamer.over("StreamData") == {datagrams}
        roamer.came.clear()
        router.put("a/1", b"safe", congestion_control=BLOCK)
        roamer.until(lambda: roamer.payloads() == [b"loose", b"safe"])
        assert roamer.over("StreamData") == set(), "it came over the first link"

        roamer.write_over(datagrams, roamer.generation.encode(roamer.m.WriteData(0, b"zenoh://b/1", b"up")))
        assert found.handler.recv(timeout=WAIT).payload.to_bytes() == b"up"
    assert len(sessions(router)) == 1


@pytest.mark.requirement("Z18-SES-11")
def test_a_session_outlives_all_its_links_but_one(router: elea.Session, roamer: Roamer) -> None:
    datagrams = roamer.join(locator_of(router, protocol="udp"))
    roamer.until(lambda: roamer.over("KeepAlive"))
    (session,) = sessions(router)

    roamer.socket.close()
    roamer.is_over = True
    eventually(lambda: session.machine.paths.first.is_lost, "the first link is lost")
    router.put("a/1", b"still here", congestion_control=BLOCK)
    roamer.until(lambda: roamer.payloads() == [b"still here"])

    assert roamer.over("StreamData") == {datagrams}
    assert sessions(router) == [session]
    stream = roamer.join(locator_of(router))  # and it may come back
    roamer.until(lambda: stream in roamer.over("KeepAlive"))
    router.put("a/1", b"again", congestion_control=BLOCK)
    roamer.until(lambda: roamer.payloads() == [b"still here", b"again"])
    assert stream in roamer.over("StreamData")
    for link, _ in roamer.further[:1]:
        link.close()  # nobody tells of the end of a datagram link
    roamer.further[stream - 1][0].close()
    eventually(lambda: len(session.machine.paths) == 1, "the stream is gone")
    assert not session.ended.is_set()


@pytest.mark.requirement("Z18-SES-11")
def test_the_session_ends_with_its_last_link(router: elea.Session, roamer: Roamer) -> None:
    stream = roamer.join(locator_of(router))
    roamer.until(lambda: roamer.over("KeepAlive"))
    (session,) = sessions(router)
    roamer.further[stream - 1][0].close()
    eventually(lambda: len(session.machine.paths) == 1, "one is gone")
    assert not session.ended.is_set()

    roamer.socket.close()

    eventually(session.ended.is_set, "the last is gone")
    assert not sessions(router)


@pytest.mark.requirement("Z18-SES-10")
def test_a_node_is_where_its_pid_came_from_last(router: elea.Session) -> None:
    with Roamer(locator_of(router, protocol="udp")) as roamer:
        roamer.subscribe(2, "zenoh://a/1")
        (session,) = sessions(router)
        first = roamer.join(locator_of(router, protocol="udp"))
        roamer.until(lambda: roamer.over("KeepAlive") == {first})
        second = roamer.join(locator_of(router, protocol="udp"))
        roamer.until(lambda: second in roamer.over("KeepAlive"))
        roamer.came.clear()

        router.put("a/1", b"to its new address", congestion_control=BLOCK)
        roamer.until(lambda: roamer.payloads() == [b"to its new address"])

        assert roamer.over("StreamData") == {second}
        assert sessions(router) == [session]
        assert len(session.machine.paths) == 1


def test_a_session_has_not_more_than_so_many_links(router: elea.Session, roamer: Roamer) -> None:
    joined = [roamer.join(locator_of(router)) for _ in range(EARLY_LINKS - 1)]
    roamer.until(lambda: roamer.over("KeepAlive") == set(joined))
    (session,) = sessions(router)

    roamer.join(locator_of(router))
    roamer.write_over(1, roamer.generation.encode(roamer.m.PingPong(7)))
    roamer.until(lambda: ("PingPong", 3) in roamer.came or ("PingPong", 1) in roamer.came)

    assert len(session.machine.paths) == EARLY_LINKS
    assert roamer.over("KeepAlive") == set(joined)


def test_packets_wait_while_another_link_is_read(router: elea.Session, roamer: Roamer) -> None:
    roamer.join(locator_of(router))
    roamer.until(lambda: roamer.over("KeepAlive"))
    (session,) = sessions(router)
    machine = session.machine
    ping = roamer.generation.encode(roamer.m.PingPong(9))
    before = machine.refused_packets

    with machine.lock:  # as if a thread had something to do for long with what came over the other link
        machine._is_handling = True
        for _ in range(EARLY_LATE_PACKETS + 3):
            machine.receive(ping, roamer.now())
        machine._is_handling = False

    assert (len(machine._late), machine.refused_packets - before) == (EARLY_LATE_PACKETS, 3)
    roamer.write_over(1, ping)
    roamer.until(lambda: not machine._late)


def test_a_link_of_nobody_gets_nothing(router: elea.Session, roamer: Roamer) -> None:
    stranger = Roamer(locator_of(router), b"stranger", opens=False)
    with stranger:
        stranger.write(stranger.generation.encode(stranger.m.KeepAlive(b"nobody")))
        stranger.write(stranger.generation.encode(stranger.m.PingPong(3)))
        assert stranger.socket.recv(100) == bytes.fromhex("022c03")
    assert len(sessions(router)) == 1


def test_where_nodes_need_a_password_a_pid_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("robot:secret\n")
    made = config(
        "router",
        listen__endpoints=["tcp/127.0.0.1:0?dialect=zenoh2018"],
        transport__auth__usrpwd={"dictionary_file": str(tmp_path / "users")},
    )
    with elea.open(made) as broker:
        (locator,) = broker._runtime.links.locators()
        with Roamer(locator, authentication=b"robot:secret") as roamer:
            number = roamer.join(locator)
            roamer.write_over(number, roamer.generation.encode(roamer.m.PingPong(7)))
            roamer.until(lambda: roamer.came)
            assert roamer.came == [("PingPong", number)]
            (session,) = sessions(broker)
            assert session.machine.paths is None


@pytest.mark.requirement("Z18-SES-11", "Z18-REL-15")
def test_a_program_uses_several_links(router: elea.Session, robot: elea.Session) -> None:
    datagrams = locator_of(router, protocol="udp").partition("?")[0]
    locator = f"{locator_of(router)};also={datagrams}"
    with elea.open(config("client", connect__endpoints=[locator])) as program:
        (own,) = program._runtime.links.connections
        machine = own.machine
        assert isinstance(machine, EarlyMachine)
        eventually(lambda: machine.paths is not None and machine.paths.of(False), "two links")
        mine = machine.paths
        assert mine is not None
        (session,) = sessions(router)
        with program.declare_subscriber("a/**") as found, robot.declare_subscriber("b/**") as others:
            await_subscriber(router, "a/1")
            await_subscriber(router, "b/1")
            put_loosely(robot, "a/1", "loose")
            assert found.handler.recv(timeout=WAIT).payload.to_string() == "loose"
            put_loosely(program, "b/1", "loose")
            assert others.handler.recv(timeout=WAIT).payload.to_string() == "loose"

            session.machine.paths.first.under.close()  # as if a cable was pulled
            eventually(lambda: mine.first.is_lost and session.machine.paths.first.is_lost, "it is noticed")
            for number in range(100):
                robot.put("a/1", str(number) * 100, congestion_control=BLOCK)
                program.put("b/1", str(number) * 100, congestion_control=BLOCK)
            for number in range(100):
                assert found.handler.recv(timeout=WAIT).payload.to_string() == str(number) * 100
                assert others.handler.recv(timeout=WAIT).payload.to_string() == str(number) * 100
        assert not own.ended.is_set()
    eventually(lambda: session.ended.is_set(), "the broker is told of the end")


def test_large_samples_go_over_a_second_stream(router: elea.Session, robot: elea.Session) -> None:
    locator = f"{locator_of(router)};also={locator_of(router).partition('?')[0]}"
    big = bytes(300_000)
    with elea.open(config("client", connect__endpoints=[locator])) as program, robot.declare_subscriber("big") as heard:
        await_subscriber(router, "big")
        (own,) = program._runtime.links.connections
        home = own.machine
        assert isinstance(home, EarlyMachine)
        eventually(lambda: home.paths is not None and home.paths.of(True), "the second link is used")
        program.put("big", big, congestion_control=elea.CongestionControl.BLOCK)
        assert heard.handler.recv(timeout=20).payload.to_bytes() == big


def test_locators_name_further_links() -> None:
    told = options_of("tcp/h:1?dialect=xrce2017;also=udp/h:2,tcp/[::1]:3").also
    assert told == ("udp/h:2?dialect=xrce2017", "tcp/[::1]:3?dialect=xrce2017")
    for text in ("udp/h:1?also=udp/h:2", "tcp/h:1?also=udp/h:2,udp/h:3", "tcp/h:1?also=nonsense"):
        with pytest.raises(LocatorError):
            options_of(text)
