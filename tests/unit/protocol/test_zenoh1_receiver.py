"""The receiving side of a running session: sequence numbers, fragments, the session's own messages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pushes import push_of

from elea.model.errors import (
    DecodeError,
    Malformed,
    NaturalOverflow,
    RuleBroken,
    Truncated,
    UnknownMandatoryExtension,
    UnknownMessage,
)
from elea.model.qos import Role
from elea.protocol.zenoh1 import Agreement, Receiver
from elea.protocol.zenoh1.reassembly import Reassembly
from elea.protocol.zenoh1.sender import Sender
from elea.wire.primitives import Unknown
from elea.wire.zenoh1.batch import FIRST_NETWORK_ID, encode_batch
from elea.wire.zenoh1.codec import read_network_message
from elea.wire.zenoh1.messages import (
    BodyForm,
    Close,
    Fragment,
    Frame,
    Init,
    Join,
    KeepAlive,
    NetworkMessage,
    NextSn,
    Open,
    Push,
    Put,
    TransportMessage,
    TransportOam,
    WireExpr,
)
from elea.wire.zenoh1.messages import Role as WireRole
from elea.wire.zenoh1.samples import Pushed

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1"

AGREEMENT = Agreement(
    peer_id=b"\xa1",
    peer_role=Role.ROUTER,
    batch_size=65535,
    sn_mask=0x7F,
    qos=True,
    lowlatency=False,
    compression=False,
    patch=1,
    own_sn=0,
    peer_sn=10,
    own_lease=10.0,
    peer_lease=8.0,
)


class Collector:
    """A sink that reads with the generated codec and keeps everything."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, bool, NetworkMessage]] = []
        self.closes: list[tuple[int, bool]] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        try:
            while at < len(buf) and buf[at] & 0x1F >= FIRST_NETWORK_ID:
                message, at = read_network_message(buf, at)
                self.taken.append((priority, reliable, message))
        except IndexError:
            raise Truncated("zenoh1", len(buf)) from None
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.taken.append((priority, reliable, push_of(sample)))

    def closed(self, reason: int, whole_session: bool) -> None:
        self.closes.append((reason, whole_session))


def put(n: int) -> Push:
    return Push(WireExpr(sender=True, scope=n), Put(payload=bytes((n,))))


def run(*messages: TransportMessage, agreement: Agreement = AGREEMENT) -> tuple[Receiver, Collector]:
    """A receiver that took each message in a batch of its own."""
    receiver, sink = Receiver(agreement, 0.0), Collector()
    for each in messages:
        receiver.receive(encode_batch((each,)), 0.0, sink)
    return receiver, sink


def scopes(sink: Collector) -> list[int]:
    return [message.wire_expr.scope for _, _, message in sink.taken if isinstance(message, Push)]


def frame(sn: int, *numbers: int, reliable: bool = True, qos: int | None = None) -> Frame:
    return Frame(sn, tuple(put(n) for n in numbers), reliable=reliable, qos=qos)


# -- frames ----------------------------------------------------------------------------------------------------------


def test_several_messages_of_several_frames_in_one_batch() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()
    batch = encode_batch((KeepAlive(), frame(10, 1, 2), KeepAlive(), frame(11), frame(12, 3), frame(10, 4, qos=0)))

    receiver.receive(batch, 5.0, sink)

    assert scopes(sink) == [1, 2, 3, 4]
    assert [(priority, reliable) for priority, reliable, _ in sink.taken] == [(5, True)] * 3 + [(0, True)]
    assert (receiver.frames, receiver.batches, receiver.octets) == (4, 1, len(batch))
    assert receiver.last_heard == 5.0
    assert receiver.expires_at == 13.0


@pytest.mark.parametrize(
    ("numbers", "taken", "duplicates", "missing"),
    [
        ([10, 11, 12], [0, 1, 2], 0, 0),
        ([10, 10, 11], [0, 2], 1, 0),
        ([9], [], 1, 0),
        ([12, 11, 13], [0, 2], 1, 2),
        ([72], [0], 0, 62),  # half the numbers ahead is the most that is taken
        ([73], [], 1, 0),
        ([72, 127, 0, 127], [0, 1, 2], 1, 116),
    ],
)
def test_numbers_that_go_forward_are_taken(numbers: list[int], taken: list[int], duplicates: int, missing: int) -> None:
    receiver, sink = run(*(frame(sn, index) for index, sn in enumerate(numbers)))

    assert scopes(sink) == taken
    assert (receiver.duplicates, receiver.missing) == (duplicates, missing)


def test_every_priority_and_reliability_has_its_own_numbers() -> None:
    batches = [frame(10, n, reliable=r, qos=n) for n in range(8) for r in (False, True)]

    receiver, sink = run(*batches, *batches)

    assert [(priority, reliable) for priority, reliable, _ in sink.taken] == [
        (n, r) for n in range(8) for r in (False, True)
    ]
    assert receiver.duplicates == 16


def test_frame_without_messages_takes_a_number() -> None:
    receiver, sink = run(frame(10), frame(11, 1))

    assert scopes(sink) == [1]
    assert (receiver.frames, receiver.missing) == (2, 0)


def test_unwanted_frame_is_passed_over_and_the_next_one_taken() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()

    receiver.receive(encode_batch((frame(9, 1, 2), frame(10, 3))), 0.0, sink)

    assert scopes(sink) == [3]


@pytest.mark.parametrize("message", [Frame(128, ()), Fragment(128, b"", first=True)])
def test_number_above_the_mask_drops_the_link(message: TransportMessage) -> None:
    with pytest.raises(RuleBroken):
        run(message)


@pytest.mark.parametrize("message", [Frame(10, (), qos=4), Fragment(10, b"", first=True, qos=0)])
def test_priority_without_qos_drops_the_link(message: TransportMessage) -> None:
    with pytest.raises(RuleBroken):
        run(message, agreement=replace(AGREEMENT, qos=False))


def test_default_priority_may_be_said_without_qos() -> None:
    _, sink = run(
        frame(10, 1, qos=5), frame(11, 2), frame(10, 3, reliable=False), agreement=replace(AGREEMENT, qos=False)
    )

    assert scopes(sink) == [1, 2, 3]


def test_only_three_bits_of_the_priority_count() -> None:
    _, sink = run(frame(10, 1, qos=0xF9))

    assert sink.taken[0][0] == 1


def test_unknown_extension_of_a_frame_is_passed_over() -> None:
    _, sink = run(Frame(10, (put(1),), qos=2, unknown=(Unknown(0x02, None), Unknown(0x44, b"abc"))))

    assert [(priority, reliable) for priority, reliable, _ in sink.taken] == [(2, False)]


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        ("25", Truncated),
        ("2580", Truncated),
        ("a50a", Truncated),
        ("a50a31", Truncated),
        ("a50a318002", NaturalOverflow),
        ("a50a52", UnknownMandatoryExtension),
        ("25ffffffffff0f", NaturalOverflow),
        ("250a7d", Truncated),
        ("25097d", Truncated),  # not wanted, and still to be read
        ("08", UnknownMessage),
        ("1d", UnknownMessage),  # a network message outside of a frame
        ("26", Truncated),
        ("03", Truncated),
        ("8412", UnknownMandatoryExtension),
        ("01", Truncated),
    ],
)
def test_undecodable_batch_drops_the_link(batch: str, error: type[DecodeError]) -> None:
    with pytest.raises(error):
        Receiver(AGREEMENT, 0.0).receive(bytes.fromhex(batch), 0.0, Collector())


def test_error_of_the_sink_is_not_taken_for_the_peers() -> None:
    class Broken(Collector):
        def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
            raise IndexError("a bug of ours")

    with pytest.raises(IndexError):
        Receiver(AGREEMENT, 0.0).receive(encode_batch((frame(10, 1),)), 0.0, Broken())
    with pytest.raises(IndexError):
        Receiver(AGREEMENT, 0.0).receive(encode_batch((Fragment(10, b"x", first=True),)), 0.0, Broken())


# -- the session's own messages --------------------------------------------------------------------------------------


def test_messages_without_meaning_are_counted() -> None:
    receiver, sink = run(
        Init(9, WireRole.peer, b"\x01"),
        Open(10, 1, cookie=b""),
        Join(9, WireRole.peer, b"\x01", 10, NextSn(0, 0)),
        TransportOam(BodyForm.ZBufForm, 3, body=b"abc"),
        KeepAlive(),
        KeepAlive((Unknown(0x01, None),)),
    )

    assert receiver.ignored == 4
    assert not sink.taken
    assert not sink.closes


@pytest.mark.parametrize("session", [False, True])
def test_nothing_is_taken_after_close(session: bool) -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()

    receiver.receive(encode_batch((frame(10, 1), Close(6, session=session), frame(11, 2))), 0.0, sink)
    receiver.receive(b"\xff\xff", 1.0, sink)

    assert scopes(sink) == [1]
    assert sink.closes == [(6, session)]
    assert receiver.closed
    assert receiver.last_heard == 0.0


# -- fragments -------------------------------------------------------------------------------------------------------

WHOLE = encode_batch((frame(0, 7),))[2:]


def piece(sn: int, at: int, *, of: int = 3, **fields: Any) -> Fragment:
    """Piece `at` of the message cut into `of`."""
    cut = len(WHOLE) // of
    chunk = WHOLE[at * cut :] if at == of - 1 else WHOLE[at * cut : (at + 1) * cut]
    fields = {"reliable": True, "more": at < of - 1, "first": at == 0, **fields}
    return Fragment(sn, chunk, **fields)


def test_fragments_become_their_message() -> None:
    receiver, sink = run(piece(10, 0), piece(11, 1), piece(12, 2), frame(13, 1), piece(14, 0, of=1, qos=5))

    assert scopes(sink) == [7, 1, 7]
    assert (receiver.fragments, receiver.fragments_lost) == (4, 0)


@pytest.mark.parametrize("settled", [False, True])
def test_large_fragments_may_be_views_of_a_buffer_that_changes(settled: bool) -> None:
    payload = bytes(n * 7 & 0xFF for n in range(150_000))
    sent = Sender(replace(AGREEMENT, batch_size=60_000, own_sn=10), prefix=False).batches(
        5, True, [b"\x1d\x07\x01" + b"\xf0\x93\x09", payload]
    )
    assert len(sent) == 3
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()

    buffer = bytearray(3 * 60_000)
    for number, batch in enumerate(sent):
        at = 0 if settled else number * 60_000
        if settled:
            receiver.settle()
        buffer[at : at + len(batch)] = batch
        receiver.receive(memoryview(buffer)[at : at + len(batch)], 0.0, sink)
    buffer[:] = bytes(len(buffer))

    ((_, _, message),) = sink.taken
    assert isinstance(message, Push)
    assert message.body == Put(payload)


def test_a_view_that_is_no_fragment_is_taken_like_octets() -> None:
    batch = encode_batch((frame(10, *range(1, 5)),))
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()

    receiver.receive(memoryview(batch), 0.0, sink)

    assert scopes(sink) == [1, 2, 3, 4]


def test_a_large_fragment_with_long_extensions_is_taken() -> None:
    unknown = (Unknown(0x4E, bytes(200)),)
    batch = encode_batch((Fragment(10, WHOLE, reliable=True, first=True, unknown=unknown),))
    receiver, sink = Receiver(AGREEMENT, 0.0), Collector()

    receiver.receive(memoryview(batch), 0.0, sink)

    assert scopes(sink) == [7]


def test_fragments_of_several_conduits_do_not_mix() -> None:
    _, sink = run(*(piece(10 + at, at, qos=priority) for at in range(3) for priority in range(8)))

    assert scopes(sink) == [7] * 8
    assert [priority for priority, _, _ in sink.taken] == list(range(8))


@pytest.mark.parametrize(
    ("pieces", "taken", "lost"),
    [
        ([piece(11, 1), piece(12, 2)], 0, 2),  # no first
        ([piece(10, 0), piece(12, 2)], 0, 2),  # a hole
        ([piece(10, 0), piece(12, 1), piece(13, 2)], 0, 3),
        ([piece(10, 0), piece(11, 0), piece(12, 1), piece(13, 2)], 1, 1),  # started anew
        ([piece(10, 0), Fragment(11, b"", reliable=True, drop=True), piece(12, 1), piece(13, 2)], 0, 4),
        ([piece(10, 0), frame(11, 1), piece(12, 1), piece(13, 2)], 1, 3),  # the frame takes a number
        ([piece(10, 0), piece(11, 1), piece(11, 1), piece(12, 2)], 1, 0),  # the duplicate does not count
        ([piece(10, 0), piece(11, 1), piece(13, 0), piece(14, 1), piece(15, 2)], 1, 2),
    ],
)
def test_fragments_that_do_not_fit_are_lost_with_patch(pieces: list[TransportMessage], taken: int, lost: int) -> None:
    receiver, sink = run(*pieces)

    assert len(sink.taken) == taken
    assert receiver.fragments_lost == lost


def unmarked(sn: int, at: int) -> Fragment:
    return piece(sn, at, first=False)


@pytest.mark.parametrize(
    ("numbers", "taken", "lost"),
    [
        ([(10, 0), (11, 1), (12, 2), (13, 0), (14, 1), (15, 2)], 2, 0),
        ([(10, 0), (12, 2), (13, 0), (14, 1), (15, 2)], 1, 2),
        ([(10, 0), (12, 1), (13, 2), (14, 0), (15, 1), (16, 2)], 1, 3),
    ],
)
def test_without_patch_what_follows_a_message_starts_the_next(
    numbers: list[tuple[int, int]], taken: int, lost: int
) -> None:
    receiver, sink = run(*(unmarked(sn, at) for sn, at in numbers), agreement=replace(AGREEMENT, patch=0))

    assert scopes(sink) == [7] * taken
    assert receiver.fragments_lost == lost


def test_message_above_the_limit_is_lost_and_the_link_stays() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0, max_message=len(WHOLE) - 1), Collector()

    for each in (piece(10, 0), piece(11, 1), piece(12, 2), frame(13, 1)):
        receiver.receive(encode_batch((each,)), 0.0, sink)

    assert scopes(sink) == [1]
    assert receiver.fragments_lost == 3


def test_message_at_the_limit_is_taken() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0, max_message=len(WHOLE)), Collector()

    for each in (piece(10, 0), piece(11, 1), piece(12, 2)):
        receiver.receive(encode_batch((each,)), 0.0, sink)

    assert scopes(sink) == [7]


def test_messages_in_the_making_share_the_room_of_their_session() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0, max_message=len(WHOLE), budget=len(WHOLE)), Collector()

    def take(*pieces: Fragment) -> None:
        for each in pieces:
            receiver.receive(encode_batch((each,)), 0.0, sink)

    take(piece(10, 0), piece(11, 1), piece(10, 0, reliable=False), piece(11, 1, reliable=False))
    assert receiver.oversized == 0
    take(piece(12, 2))  # it would be whole, but not beside the other
    assert (sink.taken, receiver.oversized, receiver.fragments_lost) == ([], 1, 3)
    take(piece(12, 2, reliable=False))
    take(piece(13, 0), piece(14, 1), piece(15, 2))
    assert (scopes(sink), receiver.oversized, receiver.fragments_lost) == ([7, 7], 1, 3)


def test_the_room_of_a_session_holds_its_largest_message() -> None:
    receiver, sink = Receiver(AGREEMENT, 0.0, max_message=len(WHOLE), budget=1), Collector()

    for each in (piece(10, 0), piece(11, 1), piece(12, 2)):
        receiver.receive(encode_batch((each,)), 0.0, sink)

    assert scopes(sink) == [7]


def test_limit_holds_without_marks_too() -> None:
    reassembly = Reassembly(mask=0x7F, marked=False, limit=4)

    found = [
        reassembly.add(sn, chunk, more=more, first=False, drop=False)
        for sn, (chunk, more) in enumerate(
            [(b"abc", True), (b"de", True), (b"f", False), (b"gh", True), (b"ij", False)]
        )
    ]

    assert [each if each is None else b"".join(each) for each in found] == [None, None, None, None, b"ghij"]
    assert reassembly.lost == 3


@pytest.mark.parametrize("chunk", [b"", b"\x05\x01"])
def test_fragments_that_are_no_message_drop_the_link(chunk: bytes) -> None:
    with pytest.raises(Malformed):
        run(Fragment(10, chunk, first=True))


def test_drop_of_nothing_is_harmless() -> None:
    receiver, sink = run(Fragment(10, b"", reliable=True, drop=True), frame(11, 1))

    assert scopes(sink) == [1]
    assert receiver.fragments_lost == 1


# -- compressed and low-latency sessions -----------------------------------------------------------------------------


def load(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / name).read_text())
    return found


RECORDED = replace(AGREEMENT, sn_mask=0xFFFFFFF, peer_sn=115181617, batch_size=49152)


def test_recorded_compressed_batches() -> None:
    receiver, sink = Receiver(replace(RECORDED, compression=True), 0.0), Collector()

    for record in load("compression.json"):
        if "/open/" not in record["name"]:
            receiver.receive(bytes.fromhex(record["hex"]), 0.0, sink)

    assert len(sink.taken) == 4
    assert sink.closes == [(0, False)]


def test_recorded_low_latency_batches() -> None:
    receiver, sink = Receiver(replace(RECORDED, lowlatency=True, qos=False), 0.0), Collector()
    receiver.receive(b"\x04", 0.0, sink)

    for record in load("lowlatency.json"):
        if "/open/" not in record["name"]:
            receiver.receive(bytes.fromhex(record["hex"]), 0.0, sink)

    assert [(priority, reliable) for priority, reliable, _ in sink.taken] == [(5, True)] * 3
    assert sink.closes == [(0, False)]


@pytest.mark.parametrize("batch", ["2501", "26", "01", "18"])
def test_low_latency_session_has_no_frames(batch: str) -> None:
    with pytest.raises(UnknownMessage):
        Receiver(replace(AGREEMENT, lowlatency=True), 0.0).receive(bytes.fromhex(batch), 0.0, Collector())


def test_low_latency_message_the_sink_does_not_know_drops_the_link() -> None:
    class Refusing(Collector):
        def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
            return at

    with pytest.raises(UnknownMessage):
        Receiver(replace(AGREEMENT, lowlatency=True), 0.0).receive(b"\x1d", 0.0, Refusing())
