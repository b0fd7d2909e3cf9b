"""Two nodes that declare things to each other: commit floods, names and ids, announcements."""

from __future__ import annotations

from typing import Any

import pytest

from elea.model.errors import DeclarationRejected, RuleBroken
from elea.model.resource import Resource
from elea.protocol.early.declarations import Change
from elea.protocol.early.generation import XRCE2017, ZENOH2018, Generation
from elea.protocol.early.names import Address, Subject
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.numbered import plain_entry
from elea.protocol.early.session import Arrived, Ended, Session
from elea.protocol.early.terms import Offer

m = ZENOH2018.messages
PUSH = m.SubscriptionModeId.PushModeId


def linked(
    is_wanted: Any = None, generation: Generation = ZENOH2018, mode: int = 0, **offer: Any
) -> tuple[Neighbour, Neighbour]:
    """A client's view of a broker, and the reverse."""
    client = Session(generation, Offer(b"client", lease=0.0, **offer), initiates=True)
    broker = Session(
        generation, Offer(b"broker", lease=0.0, is_broker=True, commit_mode=mode, **offer), initiates=False
    )
    ends = Neighbour(client), Neighbour(broker, is_wanted=is_wanted)
    client.open(0.0)
    talk(*ends)
    return ends


def talk(one: Neighbour, other: Neighbour) -> tuple[list[Any], list[Any]]:
    events: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(20):
        for packet in one.session.to_send(0.0):
            events[1].extend(other.receive(packet, 0.0))
        for packet in other.session.to_send(0.0):
            events[0].extend(one.receive(packet, 0.0))
    return events


def commits(client: Neighbour, count: int, generation: Generation = ZENOH2018) -> None:
    messages = generation.messages
    for number in range(count):
        client.session.send(plain_entry(generation, messages.Declare(0, (messages.CommitDecl(number),))))


@pytest.mark.parametrize("generation", [ZENOH2018, XRCE2017], ids=lambda one: one.name)
@pytest.mark.parametrize(("mode", "most"), [(0, 2), (1, 2), (3, 4)])
def test_a_flood_of_commits_ends_the_session(generation: Generation, mode: int, most: int) -> None:
    client, broker = linked(generation=generation, mode=mode)
    commits(client, most, generation)
    assert not [event for event in talk(client, broker)[1] if isinstance(event, Ended)]

    commits(client, most + 1, generation)
    told, ended = talk(client, broker)

    assert [event.reason for event in ended if isinstance(event, Ended)] == [255]
    assert [event.reason for event in told if isinstance(event, Ended)] == [255]
    assert isinstance(broker.session.failure, RuleBroken)
    assert broker.session.failure.rule == "COMMIT_FLOOD"


def test_commits_of_a_node_that_acknowledges_no_result_are_bounded() -> None:
    client, broker = linked(window=4)
    ended: list[Any] = []
    for _ in range(20):
        commits(client, 1)
        for packet in client.session.to_send(0.0):
            ended += [event for event in broker.receive(packet, 0.0) if isinstance(event, Ended)]
        answers = broker.session.to_send(0.0)
        client.session.conduit().reliable.held.clear()  # as if acknowledged, and nothing else heard
        client.session.conduit().reliable.held_bytes = 0
        assert len(broker.session.conduit().queue(True)) <= 4
        if ended:
            break
    assert [event.reason for event in ended] == [255]
    assert answers


def test_more_than_the_window_of_commits_in_good_order_is_welcome() -> None:
    client, broker = linked(window=4)
    done: list[Any] = []
    for id in range(2, 202, 2):
        client.declare([m.ResourceDecl(id, b"zenoh://a/%d" % id)], done.append)
    for _ in range(30):
        talk(client, broker)

    assert done == [None] * 100
    assert len(broker.theirs.space(0).resources) == 100
    assert broker.session.is_open


def test_ids_and_names() -> None:
    client, broker = linked()
    client.declare(
        [
            m.ResourceDecl(2, b"zenoh://a/b"),
            m.ResourceDecl(4, b"zenoh://a/*"),
            m.SelectionDecl(1, b"zenoh://a/**?{x>1}"),
            *(m.SubscriberDecl(id, PUSH) for id in (1, 2, 4, 6)),
        ]
    )
    changes = [event for event in talk(client, broker)[1] if isinstance(event, Change)]
    near, far = Resource.parse("zenoh://a/b#transient"), Resource.parse("zenoh://a/c")

    for names in (broker.names, client.names):
        assert str(names.subject(0, 4)) == "zenoh://a/*"
        assert (names.subject(0, 6), names.subject(0, 3)) == (6, None)
        assert (names.id_of(0, near), names.id_of(0, far)) == (2, None)
    assert len(changes) == 7
    assert sorted(broker.names.listeners(0, near)) == [(0, 1), (0, 2), (0, 4)]
    assert sorted(broker.names.listeners(0, far)) == [(0, 1), (0, 4)]
    assert list(broker.names.listeners(0, 6)) == [(0, 6)]
    assert list(broker.names.listeners(7, near)) == []
    assert sorted(broker.names.listeners(1, far)) == [(0, 1), (0, 4)]  # names of brokers are those of space 0
    assert broker.names.address(0, 2, near) == Address(2)
    assert broker.names.address(0, 4, near) == Address(4, 2)
    assert broker.names.address(0, 4, far) == Address(None)
    assert broker.names.address(0, 6, 6) == Address(6)


@pytest.mark.parametrize(
    ("message", "origin"),
    [
        (m.StreamData(0, 2, b""), "zenoh://a/b"),
        (m.StreamData(0, 4, b"", prid=2), "zenoh://a/b"),
        (m.StreamData(0, 6, b""), "6"),
        (m.WriteData(0, b"zenoh://x#persistent", b""), "zenoh://x#persistent"),
        (m.StreamData(0, 4, b""), "None"),  # which of them?
        (m.StreamData(0, 8, b""), "None"),  # nobody has said what that is
        (m.StreamData(0, 3, b""), "None"),
        (m.WriteData(0, b"zenoh://x/*", b""), "None"),
        (m.WriteData(0, b"\xff", b""), "None"),
    ],
)
def test_origin_of_data(message: Any, origin: str) -> None:
    client, broker = linked()
    client.declare([m.ResourceDecl(2, b"zenoh://a/b"), m.ResourceDecl(4, b"zenoh://a/*"), m.PublisherDecl(6)])
    talk(client, broker)

    assert str(broker.names.origin(0, message)) == origin
    assert broker.names.unknown == (origin == "None")


def test_a_batch_with_ids_of_resources_passes() -> None:
    client, broker = linked()
    listed = (m.BatchedDataPayload(2, b"x" * 100), m.BatchedDataPayload(4, b"y"))

    def batch(sn: int) -> bytes:
        return ZENOH2018.encode(m.BatchedData(sn, 6, listed, reliable=True, hasPrid=True))

    assert broker.receive(batch(1), 0.0) == []  # too early
    assert broker.session.conduit().receiver._ahead_bytes == 101
    event, _ = broker.receive(batch(0), 0.0)

    assert isinstance(event, Arrived)
    assert event.message.payload == listed
    assert client.session.is_open


def test_a_publisher_is_told_who_listens() -> None:
    subscribers: list[Resource] = []

    def is_wanted(space: int, given: Subject) -> bool:
        return isinstance(given, Resource) and any(one.path == given.path for one in subscribers)

    client, broker = linked(is_wanted)
    resource = Resource.parse("zenoh://a")
    client.declare([m.ResourceDecl(2, b"zenoh://a"), m.PublisherDecl(2)])
    talk(client, broker)
    assert not client.names.is_wanted(0, resource)

    subscribers.append(resource)
    broker.announce()
    (packet,) = broker.session.to_send(0.0)
    assert packet.hex() == "6601 01 03 02 01".replace(" ", "")  # as captured from the papers' broker
    client.receive(packet, 0.0)
    assert client.names.is_wanted(0, resource)
    broker.announce()
    assert broker.session.to_send(0.0) == []

    subscribers.clear()
    broker.announce()
    talk(client, broker)
    assert not client.names.is_wanted(0, resource)


def test_a_publisher_of_a_selection_is_told_too() -> None:
    client, broker = linked(lambda space, given: True)
    client.declare([m.SelectionDecl(1, b"zenoh://a/*"), m.PublisherDecl(1)])
    talk(client, broker)

    assert client.session.is_open
    assert client.names.is_wanted(0, Resource.parse("zenoh://a/b"))

    client.declare([m.ForgetPublisherDecl(1)])
    talk(client, broker)
    assert not client.names.is_wanted(0, Resource.parse("zenoh://a/b"))


def test_announcements_fit_packets_of_20_octets() -> None:
    client, broker = linked(lambda space, given: True, mtu=20, batches=False)
    for id in range(2, 62, 2):
        client.declare([m.PublisherDecl(id)])
    for _ in range(10):
        talk(client, broker)

    assert len(client.theirs.space(0).subscribers) == 30
    assert broker.session.conduit().reliable.oversized == 0


def test_a_refused_declaration_gives_no_name() -> None:
    client, broker = linked()
    done: list[Any] = []
    client.declare([m.SelectionDecl(1, b"zenoh://a"), m.BindingDecl(5, 3)], done.append)
    talk(client, broker)

    assert isinstance(done[0], DeclarationRejected)
    assert not client.ours.spaces.get(0)
    with pytest.raises(RuleBroken):
        client.declare([m.ResourceDecl(3, b"zenoh://a")])


def test_a_packet_with_two_faults_ends_a_session_once() -> None:
    client, broker = linked()
    wrong = ZENOH2018.encode(m.Declare(0, (m.ForgetResourceDecl(0),), committed=True))

    found = broker.receive(wrong + b"\0", 0.0)

    assert [event.reason for event in found if isinstance(event, Ended)] == [255]
    assert [packet.hex() for packet in broker.session.to_send(0.0)] == ["050662726f6b6572ff"]
    assert client.session.is_open
