"""Early sessions, machine against machine: opening, closing, leases, refusals, channels, fragments, migration."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.early import Drawn, Run, run_seed

from elea.model.errors import DecodeError, LocalProtocolError, RuleBroken
from elea.protocol.early.automata import ACCEPTOR, INITIATOR, Automaton, Input, State
from elea.protocol.early.generation import XRCE2017, ZENOH2018, Generation
from elea.protocol.early.numbered import stream_entry, write_entry
from elea.protocol.early.profile import PROFILES
from elea.protocol.early.sending import MOST_SENT, Sender
from elea.protocol.early.session import MOST_WAITING, Arrived, Ended, Opened, Session
from elea.protocol.early.terms import Offer

BOTH = pytest.mark.parametrize("generation", [ZENOH2018, XRCE2017], ids=lambda one: one.name)


def pair(generation: Generation = ZENOH2018, **offer: Any) -> tuple[Session, Session]:
    offer = {"lease": 0.0, **offer}
    one = Session(generation, Offer(b"one", **offer), initiates=True)
    other = Session(generation, Offer(b"other", is_broker=True, **offer), initiates=False)
    return one, other


def talk(one: Session, other: Session, now: float = 0.0, rounds: int = 20) -> tuple[list[Any], list[Any]]:
    """Bring packets both ways until nobody has any; what happened at each."""
    events: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(rounds):
        for packet in one.to_send(now):
            events[1].extend(hear(other, packet, now))
        for packet in other.to_send(now):
            events[0].extend(hear(one, packet, now))
    return events


def hear(session: Session, packet: bytes, now: float) -> list[Any]:
    return list(session.receive(packet, now))


def opened(generation: Generation = ZENOH2018, **offer: Any) -> tuple[Session, Session]:
    one, other = pair(generation, **offer)
    one.open(0.0)
    talk(one, other)
    assert one.is_open
    assert other.is_open
    return one, other


@pytest.mark.parametrize("table", [INITIATOR, ACCEPTOR])
def test_every_pair_is_in_the_table_or_refused(table: Any) -> None:
    for state in State:
        for given in Input:
            automaton = Automaton(table)
            automaton.state = state
            if automaton.takes(given):
                assert automaton.step(given) is table[state, given]
            else:
                with pytest.raises(LocalProtocolError):
                    automaton.step(given)


@BOTH
def test_open_is_answered_by_accept(generation: Generation) -> None:
    one, other = pair(generation, sn_bits=28, conduits=3)
    one.open(0.0)

    mine, theirs = talk(one, other)

    assert isinstance(mine[0], Opened)
    assert isinstance(theirs[0], Opened)
    assert (mine[0].agreement.sn_bits, theirs[0].agreement.peer_conduits) == (28, 3)


@pytest.mark.requirement("Z18-SES-01")
def test_open_is_sent_again_and_given_up() -> None:
    one, _ = pair(open_retries=2)
    one.open(0.0)
    sent, ended = len(one.to_send(0.0)), []
    for second in range(1, 6):
        ended += one.on_deadline(float(second))
        sent += len(one.to_send(float(second)))

    assert sent == 3
    assert isinstance(ended[0], Ended)
    assert one.state is State.CLOSED


def test_a_repeated_open_is_accepted_again_a_bounded_number_of_times() -> None:
    one, other = pair(accept_resends=2)
    one.open(0.0)
    (packet,) = one.to_send(0.0)

    accepts = []
    for _ in range(4):
        hear(other, packet, 0.0)
        accepts.append(len(other.to_send(0.0)))

    assert accepts == [1, 1, 1, 0]
    assert other.state is State.CLOSED


def test_an_open_after_traffic_is_a_restart() -> None:
    one, other = pair()
    one.open(0.0)
    (packet,) = one.to_send(0.0)
    hear(other, packet, 0.0)
    talk(one, other)
    one.send(stream_entry(2, b"x", reliable=True))
    talk(one, other)

    (event,) = hear(other, packet, 1.0)

    assert isinstance(event, Ended)
    assert other.state is State.CLOSED


def test_a_late_copy_of_an_open_is_no_restart() -> None:
    one, other = pair(lifetime=2.0)
    one.open(0.0)
    (packet,) = one.to_send(0.0)
    hear(other, packet, 0.0)
    talk(one, other)
    one.send(stream_entry(2, b"x", reliable=True))
    talk(one, other, 0.5)

    assert hear(other, packet, 2.4) == []
    assert (other.is_open, other.dropped) == (True, 1)
    assert isinstance(hear(other, packet, 2.5)[0], Ended)


def test_an_open_with_a_nonce_is_a_restart_only_if_that_is_another() -> None:
    def opening(nonce: bytes) -> bytes:
        one = Session(ZENOH2018, Offer(b"one", nonce=nonce), initiates=True)
        one.open(0.0)
        return one.to_send(0.0)[0]

    other = Session(ZENOH2018, Offer(b"other"), initiates=False)
    hear(other, opening(b"1"), 0.0)
    assert hear(other, opening(b"1"), 9.0) == []
    assert isinstance(hear(other, opening(b"2"), 9.0)[0], Ended)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        ("030201610000", 2),  # version 2
        ("2301016100000104010 3".replace(" ", ""), 4),  # numbers of 3 bits
        ("030111" + "61" * 17 + "0000", 5),  # a pid of 17 octets
        ("03010000 00".replace(" ", ""), 5),  # no pid
    ],
)
def test_an_open_that_cannot_be_is_refused(octets: str, reason: int) -> None:
    _, other = pair()

    hear(other, bytes.fromhex(octets), 0.0)

    (packet,) = other.to_send(0.0)
    assert packet[0] == 5
    assert packet[-2 if reason == 255 else -1] == reason
    assert not other.is_open


@BOTH
def test_close_is_answered_by_close(generation: Generation) -> None:
    one, other = opened(generation)
    one.close(1.0)

    mine, theirs = talk(one, other, 1.0)

    assert mine == [Ended(0, None)]
    assert theirs == [Ended(0, None)]


def test_what_stands_behind_close_in_a_packet_is_not_answered() -> None:
    one, other = opened()
    one.close(1.0)
    (close,) = one.to_send(1.0)

    hear(other, close + bytes.fromhex("030201610000"), 1.0)  # an Open that would be refused

    (answer,) = other.to_send(1.0)
    assert len(ZENOH2018.codec.decode_packet(answer).messages) == 1
    assert other.dropped == 1


def test_silence_for_a_lease_ends_the_session_and_keep_alives_prevent_it() -> None:
    one, other = opened(lease=1.0)
    for tenth in range(1, 30):
        now = tenth / 10
        for end in (one, other):
            assert not end.on_deadline(now)
        talk(one, other, now)
    assert one.is_open
    assert other.is_open

    assert isinstance(one.on_deadline(5.0)[0], Ended)
    assert not one.is_open


def test_a_message_is_fragmented_as_the_example_says() -> None:
    """zenoh-2018 §7.7: 7-bit numbers, MTU 20, 30 octets from number 10."""
    one, other = opened(sn_bits=7, mtu=20)
    one.conduit().reliable.next = 10
    other.conduit().receiver.expected = 10
    one.send(stream_entry(2, bytes(range(30)), reliable=True))

    packets = one.to_send(0.0)
    events = [event for packet in packets for event in hear(other, packet, 0.0)]

    assert [packet[:7].hex() for packet in packets] == ["520a03470a020d", "520a03470b020d", "520a03670c0204"]
    assert [len(packet) for packet in packets] == [20, 20, 11]
    assert [event.message.payload for event in events] == [bytes(range(30))]


def test_stream_data_has_four_octets_of_overhead() -> None:
    one, _ = opened(sn_bits=7)
    one.send(stream_entry(2, b"x" * 100, reliable=False))

    (packet,) = one.to_send(0.0)

    assert len(packet) == 104


@pytest.mark.parametrize("count", [2, 10, 100])
def test_a_batch_has_four_octets_and_one_a_sample(count: int) -> None:
    one, other = opened(sn_bits=7, mtu=65_535)
    for _ in range(count):
        one.send(stream_entry(2, b"x", reliable=False))

    (packet,) = one.to_send(0.0)
    (event,) = hear(other, packet, 0.0)

    assert len(packet) == 4 + 2 * count
    assert event.message.payload == (b"x",) * count


def test_an_unsupported_conduit_ends_the_session() -> None:
    _one, other = opened()

    (event,) = hear(other, bytes.fromhex("93470002 0178".replace(" ", "")), 0.0)

    assert isinstance(event.error, RuleBroken)
    assert event.reason == 255
    assert other.to_send(0.0)[-1].endswith(b"\xff")


def test_octets_that_are_no_message_end_a_session_and_nothing_else() -> None:
    _one, other = opened()
    (event,) = hear(other, b"\x0d", 0.0)
    assert isinstance(event.error, DecodeError)
    assert event.reason == 255

    _, stranger = pair()
    assert hear(stranger, b"\x0d", 0.0) == []
    assert stranger.to_send(0.0) == []


def test_messages_before_an_error_keep_their_effect() -> None:
    _, other = opened()

    first, second = hear(other, bytes.fromhex("47000201780d"), 0.0)

    assert isinstance(first, Arrived)
    assert first.message.payload == b"x"
    assert isinstance(second, Ended)


def test_an_acknowledgement_is_held_back_until_it_is_released() -> None:
    one, other = opened()
    one.send(write_entry(b"zenoh://a#persistent", b"x", reliable=True))
    for packet in one.to_send(0.0):
        (event,) = hear(other, packet, 0.0)
        other.conduit().receiver.hold(event.sn)
    other.acknowledge()
    talk(one, other)

    assert not one.is_settled

    other.conduit().receiver.release(event.sn)
    other.acknowledge()
    talk(one, other)
    assert one.is_settled


def test_an_old_synch_does_not_bring_messages_twice() -> None:
    one, other = opened(batches=False)
    for _ in range(5):
        one.send(stream_entry(2, b"x", reliable=True))
    talk(one, other)

    hear(other, bytes.fromhex("ce0202"), 0.0)  # next 2, two available: overtaken long ago

    assert other.conduit().receiver.expected == one.conduit().reliable.next
    assert other.conduit().receiver.stale == 1


def test_migrated_traffic_waits_for_what_the_old_conduit_brings() -> None:
    one, other = opened(conduits=2, batches=False)
    one.send(stream_entry(2, b"old", reliable=True))
    late = one.to_send(0.0)
    one.migrate(0, 1)
    one.send(stream_entry(2, b"new", reliable=True), conduit=1)
    early = one.to_send(0.0)

    assert [event for packet in early for event in hear(other, packet, 0.0)] == []
    events = [event for packet in late for event in hear(other, packet, 0.0)]

    assert [event.message.payload for event in events] == [b"old", b"new"]


def test_a_node_that_never_acknowledges_is_given_up() -> None:
    one, _other = opened()
    one.send(stream_entry(2, b"x", reliable=True))
    one.to_send(0.0)
    ended: list[Any] = []
    for tenth in range(1, 200):
        ended += one.on_deadline(tenth / 10)
        one.to_send(tenth / 10)

    assert [event.reason for event in ended] == [255]


def test_a_crowd_of_acknacks_brings_no_crowd_of_repetitions() -> None:
    """Z18-REL-05: within a round trip only the first message is sent again, for each fourth request."""
    one, _ = opened(window=64, mtu=20)
    for _ in range(32):
        one.send(stream_entry(2, b"x" * 12, reliable=True))
    one.to_send(0.0)
    nack = bytes.fromhex("2f00") + b"\xff\xff\xff\xff\x07"  # 0, and the 31 behind it

    again = []
    for _ in range(40):
        hear(one, nack, 0.01)
        again.append(len(one.to_send(0.01)))
    assert again == [0, 0, 0, 1] * 10

    hear(one, nack, 1.0)
    packets = one.to_send(1.0)
    assert len(packets) == 32
    assert [bool(packet[0] & 0x20) for packet in packets] == [False] * 31 + [True]


def test_one_packet_of_acknacks_brings_a_bounded_number_of_repetitions() -> None:
    one, _ = opened(mtu=65_000)
    one.send(stream_entry(2, b"x" * 60_000, reliable=True))
    one.to_send(0.0)

    for _ in range(4):
        hear(one, bytes.fromhex("2f0001") * 4_000, 0.01)

    assert len(one._packets) <= 2 * MOST_WAITING
    assert len(one.conduit().reliable._sent) <= 2 * MOST_SENT


@pytest.mark.requirement("Z18-REL-01", "Z18-REL-02", "Z18-BEC-01", "Z18-FRM-04", "Z18-FRM-05")
@pytest.mark.parametrize("seed", range(300))
def test_bad_network(seed: int) -> None:
    run_seed(seed)


@pytest.mark.parametrize("seed", [393, 426, 430, 436, 528, 558, 575])
def test_bad_network_once_fatal(seed: int) -> None:
    """Storms of AckNacks and repetitions; 426 and 528: late copies of an Open, taken for restarts."""
    run_seed(seed, wide=False)


def test_the_simulated_networks_are_as_bad_as_they_should_be() -> None:
    drawn = Drawn()
    for seed in range(1000):
        drawn.add(Run(seed))

    assert drawn.bits == set(range(4, 64))
    assert drawn.dialects == {"zenoh2018", "xrce2017"}
    assert (drawn.smallest, drawn.largest) == (1, 65_536)
    assert drawn.loss > 0.58
    assert 1.9 < drawn.delay <= 2.0
    assert drawn.duplicates > 0.25
    assert drawn.bursts > 500


def test_what_is_asked_for_too_soon_is_sent_again_when_it_must_have_arrived() -> None:
    """Z18-REL-05: not at once, and not as late as the next Synch."""
    one, other = opened(sn_bits=7)
    one.send(stream_entry(2, b"lost", reliable=True))
    one.to_send(0.0)
    one.send(stream_entry(2, b"next", reliable=True))
    (packet,) = one.to_send(0.001)
    other.receive(packet, 0.002)
    for answer in other.to_send(0.002):
        one.receive(answer, 0.003)

    one.on_deadline(0.003)  # a ping
    assert [packet for packet in one.to_send(0.003) if b"lost" in packet] == []
    assert one.next_deadline() == pytest.approx(one.round_trip.timeout, abs=0.001)
    assert one.on_deadline(one.round_trip.timeout) == []
    assert [packet for packet in one.to_send(one.round_trip.timeout) if b"lost" in packet]


def test_what_arrived_late_is_not_sent_again() -> None:
    one, other = opened(sn_bits=7)
    one.send(stream_entry(2, b"late", reliable=True))
    (late,) = one.to_send(0.0)
    one.send(stream_entry(2, b"next", reliable=True))
    (packet,) = one.to_send(0.001)
    for overtaken in (packet, late):
        other.receive(overtaken, 0.002)
        for answer in other.to_send(0.002):
            one.receive(answer, 0.003)

    assert one.on_deadline(1.0) == []
    assert not [packet for packet in one.to_send(1.0) if b"late" in packet]
    assert one.conduit().reliable.resent == 0


@pytest.mark.parametrize(
    ("offer", "own"),
    [({"is_broker": True}, 1), ({"is_broker": True, "is_durable": True}, 3), ({"is_peer": True}, 4), ({}, 8)],
    ids=["broker", "broker that keeps data", "peer", "client"],
)
def test_a_scout_is_answered_by_those_it_looks_for(offer: dict[str, bool], own: int) -> None:
    """Z18-SCO-01, Z18-SCO-02."""
    for mask in range(16):
        session = Session(ZENOH2018, Offer(b"\x01", **offer), initiates=False)  # type: ignore[arg-type]
        session.receive(bytes([0x01, mask]), 0.0)

        assert session.to_send(0.0) == ([bytes([0x02, own, 0])] if mask & own else [])


def test_a_node_that_opens_at_every_hello_hears_none_in_its_session() -> None:
    offer = Offer(b"\x01", is_broker=True, profile=PROFILES["zhe"])
    session = Session(XRCE2017, offer, initiates=False)
    session.receive(bytes.fromhex("0105"), 0.0)
    assert session.to_send(0.0)
    session.receive(bytes.fromhex("030101023200"), 0.0)
    session.to_send(0.0)

    session.receive(bytes.fromhex("0105"), 0.0)

    assert session.to_send(0.0) == []
    assert session.dropped == 1


@pytest.mark.requirement("Z18-FRM-05", "Z18-FRM-09")
def test_small_messages_share_packets_and_none_is_split() -> None:
    one, _ = opened(mtu=100, batches=False)
    for number in range(30):
        one.send(stream_entry(2, bytes([number]) * 20, reliable=True))

    packets = one.to_send(0.0)

    assert [len(packet) for packet in packets] == [96] * 7 + [48]
    for packet in packets:  # each can be read by itself
        assert all(len(found.message.payload) == 20 for found in ZENOH2018.codec.messages(packet))


@pytest.mark.requirement("Z18-FRG-07")
def test_a_message_of_more_fragments_than_the_window_is_refused() -> None:
    one, other = opened(mtu=40, window=4, batches=False)
    one.send(stream_entry(2, bytes(1000), reliable=True))
    one.send(stream_entry(2, b"next", reliable=True))

    arrived = [event.message.payload for event in talk(one, other)[1] if isinstance(event, Arrived)]

    assert arrived == [b"next"]
    assert one.conduit().reliable.oversized == 1


@pytest.mark.requirement("Z18-LIV-04", "Z18-SES-05")
@pytest.mark.parametrize(("lease", "is_open"), [(2.0, True), (2.1, False), (0.0, True)])
def test_a_lease_above_the_bound_is_refused(lease: float, is_open: bool) -> None:
    one = Session(ZENOH2018, Offer(b"one", lease=lease), initiates=True)
    other = Session(ZENOH2018, Offer(b"other", lease=0.0, max_lease=2.0), initiates=False)
    one.open(0.0)
    told, _ = talk(one, other)

    assert one.is_open is is_open
    assert [type(event) for event in told] == [Opened if is_open else Ended]
    assert [event.reason for event in told if isinstance(event, Ended)] == ([] if is_open else [5])


def test_an_acknowledgement_is_asked_for_when_the_window_of_octets_fills() -> None:
    """Large packets fill it long before that of messages: if nobody asked then, all would wait for the next Synch."""
    sender = Sender(14, reliable=True, mtu=1_000, window_bytes=4_000)
    queue = [part for _ in range(10) for part in stream_entry(2, bytes(900), reliable=True)]

    packets, used, _ = sender.take(queue, len(queue), 0.0)

    assert used < len(queue)
    assert packets[-1][0] & 0x20, "the one that fills it asks"
    assert sum(packet[0] & 0x20 > 0 for packet in packets) <= 2
