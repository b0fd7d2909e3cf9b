"""The sending side of a running session: batches as eclipse-zenoh cuts them, and as our receiver takes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pushes import octets_of

from elea.model.errors import LocalProtocolError
from elea.model.qos import Role
from elea.protocol.zenoh1 import Agreement, Receiver, Sender
from elea.wire.zenoh1.batch import BatchStream, decode_batch
from elea.wire.zenoh1.messages import Fragment, Frame
from elea.wire.zenoh1.samples import Pushed

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1"

AGREEMENT = Agreement(
    peer_id=b"\xa1",
    peer_role=Role.ROUTER,
    batch_size=512,
    sn_mask=0xFFFFFFF,
    qos=True,
    lowlatency=False,
    compression=False,
    patch=1,
    own_sn=115181617,
    peer_sn=115181617,
    own_lease=10.0,
    peer_lease=10.0,
)
PLAIN = replace(AGREEMENT, qos=False, sn_mask=0x7F, own_sn=0, peer_sn=0)


class Octets:
    """A sink that keeps the octets of every run."""

    def __init__(self) -> None:
        self.runs: list[bytes] = []
        self.closes: list[tuple[int, bool]] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        self.runs.append(buf[at:])
        return len(buf)

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.runs.append(octets_of(sample))

    def closed(self, reason: int, whole_session: bool) -> None:
        self.closes.append((reason, whole_session))


def records(file: str, group: str) -> list[dict[str, Any]]:
    found = json.loads((VECTORS / file).read_text())
    return [record for record in found if record["name"].startswith(group)]


def pattern(size: int) -> bytes:
    return bytes((i * 7 + 3) & 0xFF for i in range(size))


def stripped(batches: list[bytes], prefix: int = 2) -> list[bytes]:
    """Batches without their length, which is right."""
    stream = BatchStream(prefix)
    found = [each for batch in batches for each in stream.feed(batch)]
    stream.close()
    return found


# -- as recorded -----------------------------------------------------------------------------------------------------


def test_reliable_fragments_as_recorded() -> None:
    head = bytes.fromhex("7d000964656d6f2f6672616701940a")

    batches = Sender(AGREEMENT).batches(5, True, [head, pattern(1300)])

    assert [batch.hex() for batch in stripped(batches)] == [
        record["hex"] for record in records("fragment.json", "frag_small/put/")
    ]


def test_best_effort_fragments_of_another_priority_as_recorded() -> None:
    head = bytes.fromhex("dd012106018a05")

    batches = Sender(AGREEMENT).batches(6, False, [head, pattern(650)])

    assert [batch.hex() for batch in stripped(batches)] == [
        record["hex"] for record in records("fragment.json", "frag_small/put2/")
    ]


def test_fragments_of_200_kb_as_recorded() -> None:
    head = bytes.fromhex("7d000864656d6f2f62696701c09a0c")
    sender = Sender(replace(AGREEMENT, batch_size=49152))

    batches = stripped(sender.batches(5, True, [head, pattern(200_000)]))

    expected = records("fragment.json", "frag_200k/put/")[:-1]
    assert [len(batch) for batch in batches] == [record["len"] for record in expected]
    assert [hashlib.sha256(batch).hexdigest() for batch in batches] == [record["sha256"] for record in expected]
    assert stripped([sender.close()]) == [bytes.fromhex(records("fragment.json", "frag_200k/put/c2s6")[0]["hex"])]


def test_compressed_batches_as_recorded() -> None:
    sender = Sender(replace(AGREEMENT, compression=True, batch_size=49152))
    kept = [record for record in records("compression.json", "compression/") if "/open/" not in record["name"]]
    sent = []
    for record in kept[:-1]:
        (message,) = decode_batch(bytes.fromhex(record["decompressed_hex"]))
        assert isinstance(message, Frame)
        start = 7 if message.qos is not None else 5
        body = bytes.fromhex(record["decompressed_hex"])[start:]
        priority = 5 if message.qos is None else message.qos
        sent += sender.batches(priority, message.reliable, [body, b""])
    sent.append(sender.close())

    plain = [Receiver(replace(AGREEMENT, compression=True), 0.0) for _ in range(2)]
    ours, theirs = Octets(), Octets()
    for batch in stripped(sent):
        plain[0].receive(batch, 0.0, ours)
    for record in kept:
        plain[1].receive(bytes.fromhex(record["hex"]), 0.0, theirs)
    assert ours.runs == theirs.runs
    assert [batch[:1] for batch in stripped(sent)] == [bytes.fromhex(record["hex"])[:1] for record in kept]
    assert stripped(sent)[-1].hex() == "000300"


def test_low_latency_batches_as_recorded() -> None:
    sender = Sender(replace(AGREEMENT, lowlatency=True, qos=False))
    expected = [
        bytes.fromhex(record["hex"])
        for record in records("lowlatency.json", "lowlatency/")
        if "/open/" not in record["name"] and "close" not in record["name"]
    ]

    batches = sender.batches(0, True, [part for each in expected for part in (each, b"")])

    assert stripped(batches, 4) == expected
    assert sender.close().hex() == "020000000300"
    assert sender.keep_alive().hex() == "0100000004"


# -- frames ----------------------------------------------------------------------------------------------------------


def test_frames_carry_priority_unless_it_is_the_default() -> None:
    sender = Sender(AGREEMENT)

    assert sender.batches(5, True, [b"\x1d", b"a"])[0].hex() == "070025b190f6361d61"
    assert sender.batches(5, False, [b"\x1d", b"a"])[0].hex() == "070005b190f6361d61"
    assert sender.batches(0, True, [b"\x1d", b"a"])[0].hex() == "0900a5b190f63631001d61"
    assert sender.batches(5, True, [b"\x1d", b"a"])[0].hex() == "070025b290f6361d61"


def test_without_qos_all_priorities_share_their_numbers() -> None:
    sender = Sender(PLAIN)

    assert sender.batches(0, True, [b"\x1d", b""])[0].hex() == "030025001d"
    assert sender.batches(7, True, [b"\x1d", b""])[0].hex() == "030025011d"
    assert sender.batches(7, False, [b"\x1d", b""])[0].hex() == "030005001d"


@pytest.mark.parametrize(
    ("mask", "start", "numbers"),
    [
        (0x7F, 126, ["7e", "7f", "00"]),
        (0x3FFF, 0x3FFE, ["fe7f", "ff7f", "00"]),
        (0xFFFFFFF, 0xFFFFFFF, ["ffffff7f", "00", "01"]),
        (0xFFFFFFF, 127, ["7f", "8001", "8101"]),
        (0xFFFFFFF, 0x3FFF, ["ff7f", "808001", "818001"]),
        (0xFFFFFFF, 0x1FFFFF, ["ffff7f", "80808001", "81808001"]),
    ],
)
def test_numbers_wrap_at_the_mask(mask: int, start: int, numbers: list[str]) -> None:
    sender = Sender(replace(PLAIN, sn_mask=mask, own_sn=start), prefix=False)

    assert [sender.batches(5, True, [b"\x1d", b""])[0].hex() for _ in range(3)] == [f"25{sn}1d" for sn in numbers]


@pytest.mark.parametrize("size", [5_000, 60_000, 200_000])
def test_large_payloads_are_left_to_a_scatter_write(size: int) -> None:
    agreement = replace(AGREEMENT, batch_size=65_000)
    queue, payload = [b"\x1d", pattern(size)], pattern(size)

    batches, count, octets = Sender(agreement).take(5 << 1 | 1, queue, 1 + size)

    assert (count, octets) == (2, 1 + size)
    assert all(len(batch) >= 2 for batch in batches)
    assert list(map(b"".join, batches)) == Sender(agreement).batches(5, True, [b"\x1d", payload])
    assert queue == [b"\x1d", payload]


def test_datagrams_are_one_piece() -> None:
    batches, _, _ = Sender(replace(AGREEMENT, batch_size=9_000), prefix=False).take(11, [b"\x1d", bytes(8_000)], 8_001)

    assert [len(batch) for batch in batches] == [1]


@pytest.mark.parametrize("compression", [False, True])
def test_a_wrong_word_about_the_queue_makes_no_wrong_batch(compression: bool) -> None:
    agreement = replace(AGREEMENT, compression=compression)
    queue = [b"\x1d", bytes(10), b"\x1d", pattern(400), b"\x1d", pattern(300)]

    batches, count, size = Sender(agreement).take(11, queue, 33)

    assert (count, size) == (4, 412)
    assert list(map(b"".join, batches)) == Sender(agreement).batches(5, True, queue[:4])


def test_half_a_message_is_our_own_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        Sender(AGREEMENT).batches(5, True, [b"\x1d"])


def test_nothing_to_send_makes_no_batch() -> None:
    assert Sender(AGREEMENT).batches(5, True, []) == []
    assert Sender(replace(AGREEMENT, lowlatency=True)).batches(5, True, []) == []


@pytest.mark.parametrize("compression", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
def test_batches_are_filled_to_the_last_octet_and_not_beyond(compression: bool, prefix: bool) -> None:
    sender = Sender(replace(AGREEMENT, compression=compression), prefix=prefix)
    overhead = 2 * prefix + compression + 5
    fits = 512 - overhead
    noise = hashlib.shake_128(b"noise").digest(fits + 1)

    (exact,) = sender.batches(5, True, [noise[:1], noise[1:fits]])
    two = sender.batches(5, True, [noise[:1], noise[1:]])
    both = sender.batches(5, True, [b"\x1d", noise[: fits - 3], b"\x1d", b"a", b"\x1d", b""])

    assert len(exact) == 512
    assert len(two) == 2
    assert len(two[0]) == 512
    assert [len(batch) for batch in both] == [512, overhead + 1]


def test_small_messages_are_cut_at_their_borders() -> None:
    parts = [part for n in range(1000) for part in (b"\x1d" + n.to_bytes(2, "big"), bytes(n % 5))]

    sink = Octets()
    receiver = Receiver(AGREEMENT, 0.0)
    batches = Sender(AGREEMENT).batches(5, True, parts)
    for batch in stripped(batches):
        receiver.receive(batch, 0.0, sink)

    assert b"".join(sink.runs) == b"".join(parts)
    assert all(run[0] == 0x1D for run in sink.runs)
    assert max(map(len, batches)) <= 512
    assert sum(map(len, batches)) / len(batches) > 495


def test_first_message_may_mislead_about_the_size_of_the_others() -> None:
    small, large = [b"\x1d", b"a"], [b"\x1d", bytes(300)]
    parts = small * 100 + large * 30 + [b"\x1d", bytes(3000)] + small * 300

    batches = stripped(Sender(AGREEMENT).batches(5, True, parts))
    sink = Octets()
    receiver = Receiver(AGREEMENT, 0.0)
    for batch in batches:
        receiver.receive(batch, 0.0, sink)

    assert b"".join(sink.runs) == b"".join(parts)
    assert max(map(len, batches)) <= 510
    assert receiver.missing == receiver.duplicates == receiver.fragments_lost == 0


def test_messages_without_octets_do_no_harm() -> None:
    assert [batch.hex() for batch in Sender(PLAIN).batches(5, True, [b""] * 200)] == ["02002500"]


# -- fragments -------------------------------------------------------------------------------------------------------


def fragments(batches: list[bytes]) -> list[Fragment]:
    found = []
    for batch in stripped(batches):
        (message,) = decode_batch(batch)
        assert isinstance(message, Fragment)
        found.append(message)
    return found


def test_no_marks_without_patch() -> None:
    sender = Sender(replace(PLAIN, patch=0))

    found = fragments(sender.batches(5, True, [b"\x1d", bytes(1200)]))

    assert [each.first for each in found] == [False] * 3
    assert [each.more for each in found] == [True, True, False]
    assert sender.abandon(5, True) is None


def test_header_longer_than_a_batch_is_cut_too() -> None:
    found = fragments(Sender(PLAIN).batches(5, True, [bytes(range(256)) * 4, b"payload"]))

    assert b"".join(each.chunk for each in found) == bytes(range(256)) * 4 + b"payload"


@pytest.mark.parametrize("size", [0, 1, 65_528, 65_529, 1_000_000, 5_000_000])
@pytest.mark.parametrize("batch_size", [512, 4096, 65_535])
@pytest.mark.parametrize("compression", [False, True])
def test_large_messages_arrive(size: int, batch_size: int, compression: bool) -> None:
    agreement = replace(AGREEMENT, batch_size=batch_size, compression=compression, sn_mask=0x3FFF, own_sn=9, peer_sn=9)
    payload = hashlib.shake_128(b"payload").digest(size)
    sink, receiver = Octets(), Receiver(agreement, 0.0)

    for batch in stripped(Sender(agreement).batches(2, False, [b"\x1d", payload])):
        assert len(batch) <= batch_size - 2
        receiver.receive(batch, 0.0, sink)

    assert sink.runs == [b"\x1d" + payload]


def test_abandoned_message_is_dropped_by_the_receiver() -> None:
    sender, receiver, sink = Sender(AGREEMENT), Receiver(AGREEMENT, 0.0), Octets()
    begun = sender.batches(3, True, [b"\x1d", bytes(2000)])[:2]

    drop = sender.abandon(3, True)
    assert drop is not None
    after = sender.batches(3, True, [b"\x1d", bytes(600)])
    for batch in stripped([*begun, drop, *after]):
        receiver.receive(batch, 0.0, sink)

    assert sink.runs == [b"\x1d" + bytes(600)]
    assert receiver.fragments_lost == 3


# -- low latency, and the session's own messages -----------------------------------------------------------------------


def test_low_latency_counts_what_it_cannot_send() -> None:
    sender = Sender(replace(AGREEMENT, lowlatency=True))

    batches = sender.batches(5, True, [b"\x1d", bytes(507), b"\x1d", bytes(508), b"\x1d", b""])

    assert [len(each) for each in stripped(batches, 4)] == [508, 1]
    assert sender.oversized == 1
    assert sender.room == 0
    assert sender.abandon(5, True) is None
    assert sender.batches(5, True, [b"\x1d", bytes(600)]) == []


def test_low_latency_datagrams_hold_one_message_each() -> None:
    sender = Sender(replace(AGREEMENT, lowlatency=True), prefix=False)

    assert sender.batches(5, True, [b"\x1d", b"a", b"\x1d", b"b"]) == [b"\x1da", b"\x1db"]


def test_keep_alive_and_close() -> None:
    assert Sender(AGREEMENT).keep_alive().hex() == "010004"
    assert Sender(AGREEMENT, prefix=False).keep_alive().hex() == "04"
    assert Sender(replace(AGREEMENT, compression=True)).keep_alive().hex() == "02000004"
    assert Sender(replace(AGREEMENT, compression=True), prefix=False).close(6).hex() == "000306"
    assert Sender(AGREEMENT).close(4, whole_session=True).hex() == "02002304"
