"""Programs of the papers' time, played from what was seen of them on the wire: see `protocol.early.profile`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

import elea
from elea.io.linkerrors import LocatorError
from elea.node.early.machine import EarlyMachine
from elea.protocol.early.generation import XRCE2017, ZENOH2018
from elea.protocol.early.numbered import vle
from elea.protocol.early.session import Session
from tests.unit.node.early.client import WAIT
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber, config

m = ZENOH2018.messages


class Wire:
    """A connection on which packets have their sizes before them, and nothing is done unasked."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.socket.settimeout(WAIT)

    def say(self, packet: str | bytes) -> None:
        octets = bytes.fromhex(packet) if isinstance(packet, str) else packet
        self.socket.sendall(vle(len(octets)) + octets)

    def hear(self) -> bytes:
        size = self._take(1)[0]
        assert size < 128
        return self._take(size)

    def _take(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += self.socket.recv(size - len(found)) or pytest.fail("the other end has closed")
        return found

    def hear_until(self, part: bytes) -> None:
        """Hear packets until one has these bytes."""
        while part not in self.hear():
            pass

    def is_silent(self, seconds: float = 0.15) -> bool:
        self.socket.settimeout(seconds)
        try:
            return not self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(WAIT)

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def listening() -> Iterator[Callable[[str], elea.Session]]:
    opened: list[elea.Session] = []

    def listen(options: str) -> elea.Session:
        opened.append(elea.open(config("router", listen__endpoints=["tcp/127.0.0.1:0", f"tcp/127.0.0.1:0?{options}"])))
        return opened[0]

    yield listen
    for session in opened:
        session.close()


def connected(broker: elea.Session, dialect: str) -> Wire:
    (locator,) = broker._runtime.links.locators(dialect)
    host, _, port = locator.partition("/")[2].partition("?")[0].rpartition(":")
    return Wire(socket.create_connection((host, int(port)), WAIT))


def robot_of(broker: elea.Session) -> elea.Session:
    return elea.open(config("client", connect__endpoints=broker._runtime.links.locators("zenoh1")))


def test_the_python_client_of_2018(listening: Callable[[str], elea.Session]) -> None:
    """One message a packet, no AckNack ever, names without a scheme, one counter for everything it sends."""
    broker = listening("dialect=zenoh2018;profile=zenoh-python2018")
    wire = connected(broker, "zenoh2018")
    with robot_of(broker) as robot, robot.declare_subscriber("demo/*") as subscriber:
        await_subscriber(broker, "demo/hello")
        wire.say(ZENOH2018.encode(m.Open(1, b"py", 0, ())))
        accept = ZENOH2018.codec.decode_packet(wire.hear()).messages
        assert [type(one.message).__name__ for one in accept] == ["Accept"]
        assert (accept[0].message.properties, accept[0].message.lease) == (None, 0)

        wire.say("06000301020c2f2f64656d6f2f68656c6c6f02020600")  # as it was recorded: //demo/hello
        assert wire.hear() == bytes.fromhex("060001070000")  # the result, alone
        assert wire.hear() == bytes.fromhex("460101030201")  # somebody listens to 2, alone

        wire.say(ZENOH2018.encode(m.StreamData(1, 2, b"best effort")))
        assert subscriber.handler.recv(timeout=WAIT).payload.to_bytes() == b"best effort"
        wire.say(
            ZENOH2018.encode(m.Declare(2, (m.ResourceDecl(4, b"//demo/in"), m.SubscriberDecl(4, 1), m.CommitDecl(1))))
        )
        assert wire.hear() == bytes.fromhex("060201070100")
        await_subscriber(broker, "demo/in")
        robot.put("demo/in", "x", congestion_control=elea.CongestionControl.BLOCK)
        assert wire.hear() == bytes.fromhex("470304 0178".replace(" ", ""))
        assert wire.is_silent(), "no Synch, no KeepAlive, no Ping, though it acknowledges nothing"
    wire.close()


def test_the_c_client(listening: Callable[[str], elea.Session]) -> None:
    """Ids without names, its own length of numbers, a commit in a Declare of its own; names begin with a slash."""
    broker = listening("dialect=xrce2017;profile=zhe")
    wire = connected(broker, "xrce2017")
    other = connected(broker, "xrce2017")
    c = XRCE2017.messages
    wire.say("23011033798526af2bce208a792d87be7923b032000204010b0c020203")  # recorded: 11 bits, property 12
    first = XRCE2017.codec.decode_packet(wire.hear()).messages
    assert [type(one.message).__name__ for one in first] == ["Accept", "Synch"]
    assert (first[1].message.sn, first[1].message.reliable, first[1].message.sync) == (0, True, True)

    other.say(XRCE2017.encode(c.Open(1, b"other", 0, ())))
    other.hear()
    for device, declaration in ((wire, c.PublisherDecl(2)), (other, c.SubscriberDecl(2, 1))):
        device.say(XRCE2017.encode(c.Declare(0, (declaration,))))
        device.say(XRCE2017.encode(c.Declare(1, (c.CommitDecl(0),), sync=True)))
        device.hear_until(b"\x07\x00\x00")  # a result
    wire.say("670202020130")  # recorded, but for the number: data of resource 2, which has no name
    other.hear_until(b"\x02\x02\x01\x30")

    wire.say(XRCE2017.encode(c.Declare(3, (c.ResourceDecl(8, b"/a/*"), c.SubscriberDecl(8, 1)))))
    wire.say(XRCE2017.encode(c.Declare(4, (c.CommitDecl(1),))))
    await_subscriber(broker, "a/b")
    broker.put("a/b", "x")
    wire.hear_until(b"\x04/a/b\x01x")
    wire.close()
    other.close()


def test_the_c_peer(listening: Callable[[str], elea.Session]) -> None:
    """It declares resources and subscribers, never a publisher, on conduit 1; at each Hello it would open anew."""
    broker = listening("dialect=xrce2017;profile=zhe")
    wire = connected(broker, "xrce2017")
    with robot_of(broker) as robot, robot.declare_subscriber("t/*") as subscriber:
        await_subscriber(broker, "t/data")
        wire.say("0105")
        wire.hear_until(b"\x02\x01\x01")  # Hello of a broker
        # Recorded: 14 bits, one locator, property 12.
        wire.say("2301108555ceadaf907dd2889d91720db7e4a232010d7463702f302e302e302e303a30010c020203")
        wire.hear()
        wire.say("0105")
        wire.say("9346000101" + "02072f742f64617461")  # recorded: resource 2 is /t/data, committed

        wire.hear_until(b"\x01\x03\x02\x01")  # somebody subscribes to 2
        wire.say("670002023031")
        assert subscriber.handler.recv(timeout=WAIT).payload.to_bytes() == b"01"
        (session,) = (one for one in early_sessions(broker) if one.dropped)
        assert (session.dropped, session.is_open) == (1, True)
    wire.close()


def early_sessions(broker: elea.Session) -> list[Session]:
    """The early sessions of a broker."""
    machines = [one.machine for one in broker._runtime.links.connections]
    return [one.session for one in machines if isinstance(one, EarlyMachine)]


def test_ids_of_our_own_are_none_that_a_c_peer_has() -> None:
    """There an id means the same resource at all nodes: with another name it is a conflict."""
    server = socket.create_server(("127.0.0.1", 0))
    where = f"tcp/127.0.0.1:{server.getsockname()[1]}?dialect=xrce2017;profile=zhe"
    c = XRCE2017.messages
    declared: list[int] = []

    def serve() -> None:
        wire = Wire(server.accept()[0])
        (opening,) = XRCE2017.codec.decode_packet(wire.hear()).messages
        wire.say(XRCE2017.encode(c.Accept(opening.message.pid, b"zhe", 0)))
        while not declared:
            for decorated in XRCE2017.codec.decode_packet(wire.hear()).messages:
                listed = getattr(decorated.message, "declarations", ())
                declared.extend(one.rid for one in listed if isinstance(one, c.ResourceDecl))
        wire.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with elea.open(config("peer", connect__endpoints=[where])) as session, session.declare_subscriber("t/*"):
        thread.join(WAIT)
    server.close()

    assert declared
    assert all(1 << 20 < id < 1 << 21 and id % 2 == 0 for id in declared)


def test_the_broker_of_2018() -> None:
    """It answers a Declare with S and C set, result and AckNack in one packet; its Close has the reason '0'."""
    server = socket.create_server(("127.0.0.1", 0))
    heard: list[str] = []

    def serve() -> None:
        wire = Wire(server.accept()[0])
        (opening,) = ZENOH2018.codec.decode_packet(wire.hear()).messages
        heard.append(repr(opening.message.properties))
        wire.say(ZENOH2018.encode(m.Accept(opening.message.pid, b"zenohd", 0)))
        acknowledged = False
        while len(heard) < 4:
            for decorated in ZENOH2018.codec.decode_packet(wire.hear()).messages:
                message = decorated.message
                if type(message).__name__ != "Declare":
                    continue
                (declaration,) = message.declarations  # one at a time
                heard.append(type(declaration).__name__)
                if not acknowledged and heard[-1] == "CommitDecl":
                    acknowledged = True
                    wire.say("660001070100" + "0f03")  # recorded, but for the number
        wire.say("6701020568656c6c6f")  # data under the subscriber's id
        wire.hear()
        wire.say(ZENOH2018.encode(m.Close(b"zenohd", 0x30)))
        wire.hear()
        wire.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    where = f"tcp/127.0.0.1:{server.getsockname()[1]}?dialect=zenoh2018;profile=zenohd2018"
    with elea.open(config("client", connect__endpoints=[where])) as session:
        with session.declare_subscriber("a/b") as subscriber:
            assert subscriber.handler.recv(timeout=WAIT).payload.to_string() == "hello"
            eventually(lambda: not session._runtime.links.connections, "its Close")
        thread.join(WAIT)
    server.close()
    assert heard == ["None", "ResourceDecl", "SubscriberDecl", "CommitDecl"]


def test_padded_numbers_are_taken_from_whom_they_are_expected(listening: Callable[[str], elea.Session]) -> None:
    broker = listening("dialect=zenoh2018;profile=zenohd2018")
    wire = connected(broker, "zenoh2018")
    octets = ZENOH2018.encode(m.Open(1, b"p", 0, ()))
    padded = octets[:2] + b"\x81\x00" + octets[3:]  # the length of the pid
    wire.socket.sendall(bytes([len(padded) | 0x80, 0]) + padded)
    assert wire.hear()[0] & 0x1F == 4
    wire.close()


@pytest.mark.parametrize("option", ["profile=nobody", "mtu=19", "sn=3", "sn=x", "conduits=0"])
def test_options_that_make_no_sense(option: str) -> None:
    with pytest.raises(LocatorError):
        elea.open(config("client", connect__endpoints=[f"tcp/127.0.0.1:1?dialect=zenoh2018;{option}"]))
