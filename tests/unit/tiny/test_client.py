"""The tiny client against the full machines: sessions, declarations, samples, fragments, pulls, bad networks."""

from __future__ import annotations

import heapq
from random import Random
from typing import Any

import pytest

from elea.protocol.early.generation import GENERATIONS
from elea.protocol.early.numbered import plain_entry, stream_entry, write_entry
from elea.tiny import Client, Event, forget, publisher, resource, selection, subscriber, turn
from elea.tiny.client import CLOSED, GIVEN_UP, OPEN, OPENING
from elea.tiny.sleep import restore, save
from tests.unit.tiny.broker import Broker

BOTH = pytest.mark.parametrize("dialect", ["zenoh2018", "xrce2017"])


class World:
    """A client and a broker over datagrams, in virtual time; every packet of the client is also read by the codec."""

    def __init__(
        self, dialect: str = "zenoh2018", *, seed: int = 0, loss: float = 0.0, delay: float = 0.0, **client: Any
    ):
        mtu = client.get("mtu", 1472)
        self.client = Client(b"tiny", dialect, **{"lease": 0.0, **client})
        self.broker = Broker(dialect, mtu=mtu, window=client.get("window", 8))
        self.now = 0.0
        self.events: list[Event] = []
        self.largest = 0
        self.sent = 0
        self._chance = Random(seed)
        self._loss, self._delay = loss, delay
        self._flying: list[tuple[float, int, int, bytes]] = []
        self._order = 0

    def opened(self) -> World:
        self.client.open(self.now)
        self.run(lambda: self.client.is_open)
        return self

    def run(self, done: Any = lambda: False, seconds: float = 300.0) -> None:
        """Until it is done; or, if it never is, until nothing is on its way."""
        end = self.now + seconds
        while not done():
            self._flush()
            due = self.broker.session.next_deadline()
            due = min(self.client.deadline(), 1e18 if due is None else due)
            coming = self._flying[0][0] if self._flying else 1e18
            if min(due, coming) > end:
                return
            self.now = max(self.now, min(due, coming))
            if coming <= due:
                _, _, to, packet = heapq.heappop(self._flying)
                if to:
                    self.broker.receive(packet, self.now)
                else:
                    self.events += self.client.receive(packet, self.now)
            else:
                self.broker.ended += self.broker.session.on_deadline(self.now)
        self._flush()

    def _flush(self) -> None:
        for packet in self.client.poll(self.now):
            codec = GENERATIONS["xrce2017" if self.client.is_2017 else "zenoh2018"].codec
            assert codec.encode_packet(codec.decode_packet(packet)) == packet
            self.sent += 1
            self._send(1, packet)
        self.events += self.client.taken()
        for packet in self.broker.session.to_send(self.now):
            self._send(0, packet)

    def _send(self, to: int, packet: bytes) -> None:
        self.largest = max(self.largest, len(packet))
        for _ in range(2 if self._chance.random() < self._loss / 5 else 1):
            if self._chance.random() >= self._loss:
                self._order += 1
                when = self.now + self._delay * (0.5 + self._chance.random() / 2)
                heapq.heappush(self._flying, (when, self._order, to, packet))

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


@BOTH
def test_a_session_from_open_to_close(dialect: str) -> None:
    world = World(dialect).opened()
    assert world.broker.session.is_open

    world.client.close(world.now)
    world.run(lambda: world.client.state == CLOSED)

    assert [event.kind for event in world.events] == ["opened", "closed"]
    assert (world.client.reason, world.broker.session.is_open) == (0, False)


def test_open_is_said_again_and_given_up() -> None:
    client = Client(b"tiny")
    client.open(0.0)
    sent = 0
    for second in range(20):
        sent += len(client.poll(float(second)))

    assert (sent, client.state) == (11, CLOSED)
    assert [event.status for event in client.taken()] == [255]


@pytest.mark.parametrize("bits", [4, 7, 14, 28, 63])
@BOTH
def test_samples_go_both_ways(dialect: str, bits: int) -> None:
    world = World(dialect, sn_bits=bits).opened()
    client, broker = world.client, world.broker
    assert not client.put(2, b"x", 0.0)  # nobody listens yet
    scheme = b"xrce" if client.is_2017 else b"zenoh"
    client.declare(resource(2, scheme + b"://a"), publisher(2), subscriber(2), selection(3, scheme + b"://b"))
    world.run(lambda: client.is_settled and 2 in client.wanted)
    assert [event.status for event in world.kinds("declared")] == [0]

    for number in range(100):
        assert client.put(2, b"%d" % number, world.now)
        assert client.put(2, b"%d" % number, world.now, reliable=False)
        assert client.write(scheme + b"://c", b"%d" % number, world.now)
        world.run(lambda: client.is_settled)
        broker.session.send(stream_entry(2, b"%d" % number, reliable=True))
        broker.session.send(write_entry(scheme + b"://d", b"%d" % number, reliable=False), reliable=False)
        world.run(lambda: broker.session.is_settled)
    world.run(seconds=1.0)

    wanted = [b"%d" % number for number in range(100)]
    assert broker.payloads() == [one for one in wanted for _ in range(2)]
    assert broker.payloads(False) == wanted
    assert [event.payload for event in world.kinds("sample") if event.id == 2] == wanted
    assert [event.payload for event in world.kinds("sample") if event.name == scheme + b"://d"] == wanted


def test_what_is_taken_back_is_not_sent() -> None:
    world = World().opened()
    client = world.client
    client.declare(resource(2, b"zenoh://a"), publisher(2))
    world.run(lambda: client.is_settled and client.wanted)
    client.declare(forget(publisher(2)), forget(resource(2, b"zenoh://a")))
    world.run(lambda: client.is_settled and not client.wanted)

    assert not client.put(2, b"x", world.now)
    assert [change.kind for change in world.broker.changes if change.now is None] == ["publisher", "resource"]


def test_ids_that_a_broker_gives_are_told_with_their_names() -> None:
    world = World().opened()
    generation = GENERATIONS["zenoh2018"]
    m = generation.messages

    declare = m.Declare(0, (m.ResourceDecl(1 << 33, b"zenoh://a/b"),), committed=True)
    world.broker.session.send(plain_entry(generation, declare))
    world.run(lambda: world.broker.session.is_settled)

    told = [(one.id, one.name) for one in world.events if one.kind == "resource"]
    assert told == [(1 << 33, b"zenoh://a/b")]


@pytest.mark.parametrize("durability", [1, 2])
def test_a_publisher_says_how_durable_it_is(durability: int) -> None:
    world = World(mtu=20, sn_bits=7).opened()
    declared = publisher(2, durability)

    world.client.declare(resource(2, b"zenoh://a"), declared)
    world.run(lambda: world.client.is_settled)

    found = world.broker.neighbour.theirs.space(0).publishers[2]
    assert [(one.id, one.value) for one in found.properties] == [(8, bytes([durability]))]
    assert forget(declared) == forget(publisher(2))


def test_a_refused_declaration_is_told_with_its_id() -> None:
    world = World().opened()
    world.client.declare(resource(2, b"zenoh://a"), resource(3, b"zenoh://odd"))
    world.client.declare(resource(4, b"zenoh://b"))
    world.run(lambda: world.client.is_settled)

    assert [(event.status, event.id) for event in world.kinds("declared")] == [(5, 3), (0, 0)]


@pytest.mark.parametrize("final", [False, True])
@BOTH
def test_a_pull_brings_samples_and_the_end(dialect: str, final: bool) -> None:
    world = World(dialect).opened()
    client = world.client
    client.declare(subscriber(2, 2))
    world.run(lambda: client.is_settled)
    assert client.pull(2, world.now, 2)
    world.run(seconds=1.0)
    assert [event.payload for event in world.kinds("sample")] == [b"1", b"2"]
    assert client.pull(2, world.now, 9, final=final)
    world.run(seconds=1.0)

    assert [event.payload for event in world.kinds("sample")] == [b"1", b"2", b"3"]
    assert len(world.kinds("end")) == (dialect == "zenoh2018")
    pulls = [one.message for one in world.broker.got if type(one.message).__name__ == "Pull"]
    assert [pull.maxSamples for pull in pulls] == [2, 9]


@BOTH
def test_packets_of_20_bytes_are_enough(dialect: str) -> None:
    """Section 8: 500 bytes both ways in packets of 20, with 20 % loss."""
    world = World(dialect, mtu=20, sn_bits=7, window=48, loss=0.2, delay=0.01, seed=7).opened()
    client = world.client
    client.declare(resource(2, b"xrce://a" if client.is_2017 else b"zenoh://a"), publisher(2), subscriber(2))
    world.run(lambda: client.is_settled and client.wanted)
    assert world.kinds("declared")[0].status == 0

    big = bytes(range(250)) * 2
    for payload in (b"1", big, b"", b"x" * 16, b"x" * 17):
        assert client.put(2, payload, world.now)
        world.broker.session.send(stream_entry(2, payload, reliable=True))
        world.run(lambda: client.is_settled and world.broker.session.is_settled)
    world.run(seconds=2.0)

    assert world.broker.payloads() == [b"1", big, b"", b"x" * 16, b"x" * 17]
    assert [event.payload for event in world.kinds("sample")] == [b"1", big, b"", b"x" * 16, b"x" * 17]
    assert world.largest <= 20


@pytest.mark.parametrize("seed", range(40))
def test_reliable_samples_survive_a_bad_network(seed: int) -> None:
    chance = Random(seed)
    dialect = chance.choice(["zenoh2018", "xrce2017"])
    bits, mtu = chance.choice([7, 8, 14, 28, 63]), chance.choice([24, 64, 1472])
    if bits > 14:
        mtu = max(mtu, 64)
    world = World(
        dialect,
        seed=seed,
        loss=chance.uniform(0, 0.5),
        delay=chance.choice([0.0, 0.05]),
        sn_bits=bits,
        mtu=mtu,
        window=8,
    ).opened()
    client, broker = world.client, world.broker
    assert client.is_open
    client.declare(publisher(2), subscriber(2))
    world.run(lambda: client.is_settled and client.wanted)
    put: list[bytes] = []
    said: list[bytes] = []
    for number in range(120):
        payload = number.to_bytes(2, "big") * chance.randrange(1, 4 if mtu < 64 else 40)
        while not client.put(2, payload, world.now):
            world.run(lambda: not client._held)
        put.append(payload)
        if chance.random() < 0.5:
            broker.session.send(stream_entry(2, payload, reliable=True))
            said.append(payload)
        client.put(2, payload, world.now, reliable=False)
        if chance.random() < 0.3:
            world.run(seconds=0.01)
    world.run(lambda: client.is_settled and broker.session.is_settled)
    world.run(seconds=1.0)

    assert broker.payloads() == put
    assert [event.payload for event in world.kinds("sample")] == said
    rest = iter(put)
    assert all(one in rest for one in broker.payloads(False))  # best effort: a part of it, in order
    assert not client._held
    assert not client._ahead


def test_a_stream_is_cut_however_it_comes() -> None:
    client = Client(b"tiny", streamed=True, lease=0.0)
    client.open(0.0)
    (packet,) = client.poll(0.0)
    assert packet.hex() == "0903010474696e790000"

    events: list[Event] = []
    for byte in bytes.fromhex("09040474696e79016200" + "06470002023132"):
        events += client.receive(bytes([byte]), 0.0)

    assert [(event.kind, event.payload) for event in events] == [("opened", b""), ("sample", b"12")]
    client.receive(b"\xff\xff\x7f", 0.0)
    assert (client.state, client.reason) == (CLOSED, 255)


def test_fragments_that_do_not_say_how_many_they_are() -> None:
    world = World().opened()

    found = world.client.receive(bytes.fromhex("12004700020161120047010201624702020163"), 0.0)

    assert [event.payload for event in found] == [b"ab", b"c"]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ("ff", 255),  # reserved
        ("0a00", 255),  # Query has no body
        ("478001", 255),  # cut off
        ("47808080808080808080027f", 255),  # a number of more than 64 bits
        ("4782000201", 255),  # padded
        ("47808001020161", 255),  # number 16384 of 14 bits
        ("134d470002", 255),  # conduit 77
        ("4b000205", 255),  # a pull: it keeps nothing
        ("5200014700020161", 255),  # one fragment is none
        ("52000347000201615200044701020161", 255),  # of three, no, of four
        ("5200030e00", 255),  # Synch is no fragment
        ("98134d470002", 255),  # markers in the wrong order
        ("060001ff", 255),  # no such declaration
        ("06000103020900", 255),  # no such mode
    ],
)
def test_what_cannot_be_ends_the_session(packet: str, reason: int) -> None:
    world = World().opened()

    found = world.client.receive(bytes.fromhex(packet), 0.0)

    assert [(event.kind, event.status) for event in found] == [("closed", reason)]
    (answer,) = world.client.poll(0.0)
    assert answer.hex() == f"050474696e79{reason:02x}"


def test_random_bytes_do_no_harm() -> None:
    chance = Random(1)
    for number in range(3000):
        world = Client(b"t", chance.choice(["zenoh2018", "xrce2017"]), streamed=number % 2 == 0, lease=0.0)
        world.open(0.0)
        if number % 3:
            world.receive((b"\x06" if world._streamed else b"") + bytes.fromhex("040174016200")[:6], 0.0)
        for _ in range(4):
            world.receive(chance.randbytes(chance.randrange(1, 40)), 0.0)
            world.poll(0.0)
        assert len(world._ahead) <= 8
        assert len(world._results) <= 8


def test_a_lease_is_kept_and_watched() -> None:
    world = World(lease=3.0).opened()
    before = world.sent
    world.run(seconds=30.0)
    assert 29 <= world.sent - before <= 31  # one third of a lease each
    assert world.broker.session.is_open

    client = Client(b"tiny")
    client.open(0.0)
    client.receive(bytes.fromhex("040474696e7901620a"), 0.0)
    assert client.state == OPEN
    client.poll(1.1)
    assert (client.state, client.taken()[-1].kind) == (CLOSED, "closed")


@pytest.mark.parametrize(("lease", "said"), [(0.0, "00"), (0.01, "01"), (1.0, "0a")])
def test_a_lease_is_told_in_tenths_of_a_second(lease: float, said: str) -> None:
    client = Client(b"t", lease=lease)
    client.open(0.0)

    assert client.poll(0.0)[0].hex() == f"03010174{said}00"


def test_a_node_that_acknowledges_nothing_is_given_up() -> None:
    world = World().opened()
    client = world.client
    assert client.write(b"zenoh://a", b"x", 0.0)
    now = 0.0
    for _ in range(GIVEN_UP + 2):
        now = max(now, client.deadline())
        client.poll(now)

    assert client.state == CLOSED


def test_a_session_outlives_the_memory() -> None:
    world = World(sn_bits=7, window=4).opened()
    client = world.client
    client.declare(publisher(2), subscriber(2))
    world.run(lambda: client.is_settled and client.wanted)
    for number in range(3):
        client.put(2, b"%d" % number, world.now)
    client.poll(world.now)  # and all three are lost

    kept = save(client)
    world.client = Client(b"tiny", sn_bits=7, window=4, lease=0.0)
    restore(world.client, kept, world.now)
    world.run(lambda: world.client.is_settled)
    assert world.client.put(2, b"3", world.now)
    world.run(lambda: world.client.is_settled)

    assert world.broker.payloads() == [b"0", b"1", b"2", b"3"]
    with pytest.raises(ValueError, match="7 bits"):
        restore(Client(b"tiny"), kept, 0.0)


def test_arguments_that_cannot_work() -> None:
    for wrong in ({"dialect": "zenoh1"}, {"sn_bits": 3}, {"mtu": 19}):
        with pytest.raises(ValueError, match="is"):
            Client(b"t", **wrong)
    with pytest.raises(ValueError, match="16 bytes"):
        Client(b"")
    client = World(mtu=20).opened().client
    assert client.state != OPENING
    with pytest.raises(ValueError, match="does not fit a packet of 20"):
        client.declare(resource(2, b"zenoh://a/b/c/d"))
    with pytest.raises(ValueError, match="do not fit 8 packets"):
        client.write(b"zenoh://a", bytes(200), 0.0)
    with pytest.raises(ValueError, match="window"):
        subscriber(2, 3)


def test_a_small_blocking_loop() -> None:
    """`turn` is all that a program without a loop of its own needs."""
    broker = Broker()
    answers: list[bytes] = []

    def write(packet: bytes) -> None:
        broker.receive(packet, 0.0)
        answers.extend(broker.session.to_send(0.0))

    client = Client(b"tiny", lease=0.0)
    client.open(0.0)
    events = turn(client, write, lambda seconds: answers.pop(0) if answers else None, lambda: 0.0)

    assert [event.kind for event in events] == ["opened"]
