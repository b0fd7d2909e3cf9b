"""Sessions of Zenoh 1.x: any two nodes agree, what is sent arrives, and no octets do anything undocumented."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from elea.model.errors import (
    AuthenticationFailed,
    DecodeError,
    RemoteProtocolError,
    RuleBroken,
    SessionRefused,
    Truncated,
)
from elea.model.limits import LEASE_LEAST, LEASE_MOST
from elea.model.qos import Role
from elea.protocol.zenoh1 import (
    SN_MASKS,
    Acceptor,
    Agreement,
    Initiator,
    Offer,
    Receiver,
    ScoutAnswerer,
    Scouter,
    Sender,
    State,
)
from elea.protocol.zenoh1.handshake import Handshake
from elea.wire.primitives import write_z
from elea.wire.zenoh1.batch import FIRST_NETWORK_ID, BatchStream, decode_batch, encode_batch, encode_low_latency
from elea.wire.zenoh1.codec import DIALECT, read_network_message
from elea.wire.zenoh1.messages import Close, Fragment, Frame, Init, KeepAlive, NetworkMessage, Open, Push, Put
from elea.wire.zenoh1.messages import Role as WireRole
from elea.wire.zenoh1.samples import Pushed
from tests.pushes import push_of
from tests.strategies import batches, corrupted, cuts, low_latency, messages

REFUSALS = (SessionRefused, RemoteProtocolError, AuthenticationFailed)
DROPS = (DecodeError, RuleBroken)


# -- opening ---------------------------------------------------------------------------------------------------------


@st.composite
def offers(draw: DrawFn, node_id: bytes) -> Offer:
    qos, lowlatency = draw(st.sampled_from([(True, False), (False, True), (False, False)]))
    return Offer(
        node_id,
        draw(st.sampled_from(Role)),
        batch_size=draw(st.sampled_from([32, 512, 4096, 49152, 65480, 65535])),
        sn_bits=draw(st.sampled_from([8, 16, 32])),
        qos=qos,
        lowlatency=lowlatency,
        compression=draw(st.booleans()),
        patch=draw(st.integers(0, 1)),
        lease_ms=draw(st.sampled_from([1, 999, 1000, 10_000, 1 << 40])),
        region_name=draw(st.none() | st.binary(min_size=1, max_size=32)),
        credentials=draw(st.none() | st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from([b"", b"x", b"y"]))),
    )


def pair(first: Offer, second: Offer, users: dict[bytes, bytes] | None = None) -> tuple[Initiator, Acceptor]:
    one = Initiator(first, 0.0)
    one.start()
    return one, Acceptor(second, 0.0, cookie_key=b"key", random=Random(1), users=users)


def shake(one: Handshake, other: Handshake) -> tuple[Agreement | None, Agreement | None]:
    found: list[Agreement | None] = [None, None]
    for turn in range(4):
        ends = (one, other)
        for batch in ends[turn % 2].to_send(0.0):
            found[1 - turn % 2] = ends[1 - turn % 2].receive(batch, 0.0) or found[1 - turn % 2]
    return found[0], found[1]


@given(offers(b"\xc1"), offers(b"\xa1"), st.none() | st.dictionaries(st.sampled_from([b"a", b"b"]), st.just(b"x")))
def test_any_two_nodes_agree_or_know_why_not(first: Offer, second: Offer, users: dict[bytes, bytes] | None) -> None:
    one, other = pair(first, second, users)
    wanted, given_ = users is not None, first.credentials is not None
    right = given_ and users is not None and users.get(first.credentials[0]) == first.credentials[1]  # type: ignore[index]

    try:
        seen, seen_back = shake(one, other)
    except AuthenticationFailed:
        assert wanted or given_
        assert not right
        return

    assert wanted == given_ == right
    assert seen is not None
    assert seen_back is not None
    assert (
        replace(
            seen_back,
            peer_id=seen.peer_id,
            peer_role=seen.peer_role,
            own_sn=seen_back.peer_sn,
            peer_sn=seen_back.own_sn,
            own_lease=seen.own_lease,
            peer_lease=seen.peer_lease,
        )
        == seen
    )
    for mine, theirs in ((seen, seen_back), (seen_back, seen)):
        assert mine.peer_lease == min(max(theirs.own_lease, LEASE_LEAST), LEASE_MOST)


def handshakes() -> list[Handshake]:
    """Machines in every state that listens, with and without passwords."""
    found: list[Handshake] = []
    for credentials, users in ((None, None), ((b"a", b"x"), {b"a": b"x"})):
        offer = Offer(b"\xc1", Role.CLIENT, credentials=credentials)
        one, other = pair(offer, Offer(b"\xa1", Role.ROUTER), users)
        (syn,) = one.to_send(0.0)
        waiting, fresh = pair(offer, Offer(b"\xa1", Role.ROUTER), users)
        waiting.to_send(0.0)
        other.receive(syn, 0.0)
        one.receive(other.to_send(0.0)[0], 0.0)
        one.to_send(0.0)
        found += [waiting, fresh, one, other]
    return found


OPENINGS: SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=40),
    batches(least=1).map(encode_batch),
    corrupted(messages("zenoh1", "Init").map(lambda each: encode_batch((each,)))),  # type: ignore[arg-type]
    messages("zenoh1", "Init").map(lambda each: encode_batch((each._replace(version=9),))),  # type: ignore[attr-defined]
    messages("zenoh1", "Open").map(lambda each: encode_batch((each,))),  # type: ignore[arg-type]
    corrupted(st.just(bytes.fromhex("c10902c10ac8ff81c301022701"))),
    corrupted(st.just(bytes.fromhex("620a8783cb60"))),
)


@given(OPENINGS)
@settings(max_examples=300)
def test_handshake_takes_any_octets(batch: bytes) -> None:
    for machine in handshakes():
        try:
            machine.receive(batch, 0.0)
        except REFUSALS:
            sent = machine.to_send(0.0)
            assert machine.state is State.FAILED
            assert len(sent) <= 1
            assert all(isinstance(decode_batch(each)[0], Close) for each in sent)
        else:
            for each in machine.to_send(0.0):
                assert isinstance(decode_batch(each)[0], Init | Open)


# -- running ---------------------------------------------------------------------------------------------------------


@st.composite
def agreements(draw: DrawFn, *, lossless: bool = True) -> Agreement:
    mask = SN_MASKS[draw(st.sampled_from([8, 16, 32]))]
    lowlatency = draw(st.sampled_from([False, False, False, True])) if lossless else False
    sn = draw(st.sampled_from([0, 1, mask - 1, mask, mask >> 1]))
    return Agreement(
        peer_id=b"\xa1",
        peer_role=Role.ROUTER,
        batch_size=draw(st.sampled_from([32, 33, 64, 512, 4096, 65535])),
        sn_mask=mask,
        qos=draw(st.booleans()) and not lowlatency,
        lowlatency=lowlatency,
        compression=draw(st.booleans()) and not lowlatency,
        patch=draw(st.integers(0, 1)) if lossless else 1,
        own_sn=sn,
        peer_sn=sn,
        own_lease=10.0,
        peer_lease=10.0,
    )


class Samples:
    """A sink that reads samples and keeps their payloads."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, bool, bytes]] = []
        self.closes = 0

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        while at < len(buf) and buf[at] & 0x1F >= FIRST_NETWORK_ID:
            message, at = read_network_message(buf, at)
            assert isinstance(message, Push)
            assert isinstance(message.body, Put)
            self.taken.append((priority, reliable, message.body.payload))
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.taken.append((priority, reliable, sample[5]))

    def closed(self, reason: int, whole_session: bool) -> None:
        self.closes += 1


def parts_of(payloads: list[bytes]) -> list[bytes]:
    """Samples as a queue holds them."""
    found = []
    for payload in payloads:
        before = bytearray(b"\x1d\x01\x01")
        write_z(before, len(payload), 32, "payload")
        found += [bytes(before), payload]
    return found


SIZES = st.one_of(st.integers(0, 80), st.integers(0, 1200), st.sampled_from([4085, 65535, 200_000]))


@st.composite
def payloads(draw: DrawFn) -> list[bytes]:
    """Messages told apart by their first octets; sometimes very many of about one size."""
    if draw(st.booleans()):
        size, count = draw(st.integers(0, 70)), draw(st.integers(60, 1500))
        found = [bytes((n & 0xFF,)) * size for n in range(count)]
        found[draw(st.integers(0, count - 1))] *= draw(st.integers(0, 9))
        return found
    return [bytes((n & 0xFF,)) * size for n, size in enumerate(draw(st.lists(SIZES, max_size=12)))]


@given(agreements(), st.integers(0, 7), st.booleans(), payloads(), st.data())
def test_what_is_sent_arrives_however_it_is_split(
    agreement: Agreement, priority: int, reliable: bool, sent: list[bytes], data: st.DataObject
) -> None:
    prefix = 4 if agreement.lowlatency else 2
    sender, receiver, sink = Sender(agreement), Receiver(agreement, 0.0), Samples()
    stream = BatchStream(prefix, agreement.batch_size - prefix)
    at = data.draw(st.integers(0, len(sent)))

    written = sender.batches(priority, reliable, parts_of(sent[:at]))
    written += sender.batches(priority, reliable, parts_of(sent[at:]))
    written += [sender.keep_alive(), sender.close(3)]
    octets = b"".join(written)
    places = [0, *data.draw(cuts(len(octets))), len(octets)]
    for start, end in pairwise(places):
        for batch in stream.feed(octets[start:end]):
            receiver.receive(batch, 1.0, sink)

    stream.close()
    fits = agreement.batch_size - prefix
    large = [each for each in sent if agreement.lowlatency and sum(map(len, parts_of([each]))) > fits]
    expected = [each for each in sent if each not in large]
    lane = (priority if agreement.qos else 5, reliable or agreement.lowlatency)
    assert sink.taken == [(*lane, each) for each in expected]
    assert sender.oversized == len(sent) - len(expected)
    assert sink.closes == 1
    assert receiver.duplicates == receiver.missing == receiver.fragments_lost == 0


@given(agreements(), st.integers(0, 15), payloads(), st.integers(0, 100_000))
def test_what_is_taken_is_the_same_whatever_the_caller_believes(
    agreement: Agreement, key: int, sent: list[bytes], believed: int
) -> None:
    parts = parts_of(sent)
    assume(parts)

    batches_, count, size = Sender(agreement).take(key, parts, believed)
    exact = Sender(agreement).take(key, parts, sum(map(len, parts)))

    assert [b"".join(batch) for batch in batches_] == [b"".join(batch) for batch in exact[0]]
    assert (count, size) == exact[1:] == (count, sum(map(len, parts[:count])))


@given(agreements(lossless=False), payloads(), st.randoms(use_true_random=False))
def test_lossy_link_delivers_whole_messages_in_order(agreement: Agreement, sent: list[bytes], chance: Random) -> None:
    numbered = [n.to_bytes(2, "big") + each for n, each in enumerate(sent)]
    batches_ = Sender(agreement, prefix=False).batches(5, False, parts_of(numbered))
    # The window of 7-bit numbers is 63: what is lost in one go must stay within, as it does on a real link.
    arriving = [batch for batch in batches_ for _ in range(chance.choice((0, 1, 1, 1, 2)))]
    for at in range(0, len(arriving) - 1, 3):
        if chance.random() < 0.2:
            arriving[at], arriving[at + 1] = arriving[at + 1], arriving[at]

    receiver, sink = Receiver(agreement, 0.0), Samples()
    for batch in arriving:
        receiver.receive(batch, 0.0, sink)

    taken = [int.from_bytes(each[:2], "big") for _, _, each in sink.taken]
    assert taken == sorted(set(taken))
    assert all(each == numbered[n] for n, (_, _, each) in zip(taken, sink.taken, strict=True))


# -- against the generated codec -------------------------------------------------------------------------------------


class Collector:
    """A sink that reads with the generated codec."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, bool, NetworkMessage]] = []
        self.closes: list[tuple[int, bool]] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        try:
            while at < len(buf) and buf[at] & 0x1F >= FIRST_NETWORK_ID:
                message, at = read_network_message(buf, at)
                self.taken.append((priority, reliable, message))
        except IndexError:
            raise Truncated(DIALECT, len(buf)) from None
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.taken.append((priority, reliable, push_of(sample)))

    def closed(self, reason: int, whole_session: bool) -> None:
        self.closes.append((reason, whole_session))


def plainly(agreement: Agreement, batch: bytes) -> Collector | None:
    """What a session gets from one batch, by the letter of the spec; None if the link is dropped."""
    sink = Collector()
    last: dict[tuple[int, bool], int] = {}
    for message in decode_batch(batch):
        if isinstance(message, Close):
            sink.closed(message.reason, message.session)
            return sink
        if not isinstance(message, Frame | Fragment):
            continue
        priority = 5 if message.qos is None else message.qos % 8
        conduit = (priority, message.reliable)
        if message.sn > agreement.sn_mask or (priority != 5 and not agreement.qos):
            return None
        gap = (message.sn - last.get(conduit, agreement.peer_sn - 1)) % (agreement.sn_mask + 1)
        if gap == 0 or gap > agreement.sn_mask // 2:
            continue
        last[conduit] = message.sn
        if isinstance(message, Frame):
            sink.taken += [(*conduit, each) for each in message.messages]
        elif not message.drop and not message.more and (message.first or not agreement.patch):
            sink.network(message.chunk, 0, *conduit)
    return sink


@given(batches(), agreements(), st.integers(0, 2))
@settings(max_examples=300)
def test_receiver_is_its_plain_twin(messages_: tuple[Any, ...], agreement: Agreement, near: int) -> None:
    agreement = replace(agreement, lowlatency=False, compression=False)
    renumbered = tuple(
        each._replace(sn=(agreement.peer_sn + each.sn % 5 - 1) & agreement.sn_mask if near else each.sn)
        if isinstance(each, Frame | Fragment)
        else each
        for each in messages_
    )
    batch = encode_batch(renumbered)
    sink = Collector()

    try:
        Receiver(agreement, 0.0).receive(batch, 0.0, sink)
    except RuleBroken:
        assert plainly(agreement, batch) is None
    except DecodeError:
        # Only fragments whose octets are no message: the batch itself is well formed.
        assert any(isinstance(each, Fragment) for each in renumbered)
    else:
        expected = plainly(agreement, batch)
        assert expected is not None
        assert sink.taken == expected.taken
        assert sink.closes == expected.closes


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            corrupted(batches(least=1).map(encode_batch)),
            st.binary(max_size=20).map(lambda rest: b"\x66\x01" + rest),
            st.binary(max_size=20).map(lambda rest: b"\xa5\x01\x31" + rest),
        ),
        max_size=4,
    ),
    agreements(),
)
@settings(max_examples=300)
def test_receiver_takes_any_octets(octets: list[bytes], agreement: Agreement) -> None:
    receiver, sink = Receiver(agreement, 0.0), Collector()

    for batch in octets:
        try:
            receiver.receive(batch, 0.0, sink)
        except DROPS:
            return


@given(low_latency())
def test_low_latency_messages_arrive(messages_: tuple[Any, ...]) -> None:
    agreement = Agreement(b"\xa1", Role.PEER, 65535, 0x7F, False, True, False, 1, 0, 0, 10.0, 10.0)
    expected: list[NetworkMessage] = []
    receiver, sink = Receiver(agreement, 0.0), Collector()
    for message in messages_:
        if isinstance(message, Close):
            break
        if not isinstance(message, KeepAlive):
            expected.append(message)

    receiver.receive(encode_low_latency(messages_), 0.0, sink)

    assert [message for _, _, message in sink.taken] == expected


# -- scouting --------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=60) | corrupted(st.just(bytes.fromhex("220900a101137463702f3132372e302e302e313a3238303636"))))
def test_scouting_takes_any_octets(datagram: bytes) -> None:
    scouter, answerer = Scouter(7, 0.0, own_id=b"\xa1"), ScoutAnswerer(b"\xa2", Role.PEER)

    found = scouter.receive(datagram)
    answerer.receive(datagram)

    assert found is None or (found.node_id and found.role in Role)


def test_wire_roles_and_ours_have_the_same_numbers() -> None:
    assert [Role.from_code(role) for role in WireRole] == [Role.ROUTER, Role.PEER, Role.CLIENT]
