"""Captures: file formats, headers, reassembly. Every damaged file raises a typed error, never another."""

from __future__ import annotations

import io
import random
import struct

import pytest

from elea.model.errors import DecodeError, Malformed, Oversize, Truncated
from elea.model.limits import CAPTURE_BLOCK_BYTES, CAPTURE_INTERFACES, CAPTURE_PACKET_BYTES
from elea.wire.pcap import (
    Captured,
    Datagram,
    End,
    Gap,
    PacketCounters,
    Piece,
    Reassembler,
    Segment,
    Start,
    StreamEvent,
    looks_like_capture,
    parse_packet,
    read_capture,
)
from tests.unit.wire.frames import (
    block,
    conversation,
    datagram,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    pcapng,
    section,
    segment,
    tcp,
    udp,
)

TEXT = b"the quick brown fox jumps over the lazy dog"


def packets(file: bytes) -> list[Captured]:
    return list(read_capture(io.BytesIO(file)))


def parse(frame: bytes, link: int = 1, counters: PacketCounters | None = None) -> Datagram | Segment | None:
    return parse_packet(Captured(0, link, frame), counters or PacketCounters())


def streamed(frames: list[bytes], streams: Reassembler | None = None) -> list[StreamEvent]:
    streams = streams or Reassembler()
    events: list[StreamEvent] = []
    for frame in frames:
        found = parse(frame)
        assert isinstance(found, Segment)
        events += streams.feed(found)
    return [*events, *streams.finish()]


def octets(events: list[StreamEvent]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Piece))


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("nano", "step"), [(False, 1000), (True, 1)])
def test_pcap_gives_packets_with_times_in_nanoseconds(order: str, nano: bool, step: int) -> None:
    found = packets(pcap([b"one", b"two"], order=order, nano=nano, time=5))

    assert found == [Captured(5_000_000_000, 1, b"one"), Captured(5_000_000_000 + step, 1, b"two")]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_gives_packets_of_all_blocks(order: str) -> None:
    old = struct.pack(order + "HHIIII", 0, 0, 0, 7, 3, 3) + b"old"
    simple = struct.pack(order + "I", 6) + b"simple"
    file = section(order) + interface(order=order, link=101) + block(4, b"names", order)
    file += enhanced(b"new", ticks=1, order=order) + block(2, old, order) + block(3, simple, order)

    assert packets(file) == [
        Captured(1000, 101, b"new"),
        Captured(7000, 101, b"old"),
        Captured(None, 101, b"simple"),
    ]


@pytest.mark.parametrize(
    ("resolution", "offset", "ticks", "time"),
    [
        (None, 0, 3, 3000),
        (9, 0, 3, 3),
        (3, 0, 3, 3_000_000),
        (0x80 | 1, 0, 3, 1_500_000_000),
        (None, 10, 0, 10_000_000_000),
    ],
)
def test_pcapng_applies_resolution_and_offset(resolution: int | None, offset: int, ticks: int, time: int) -> None:
    file = section() + interface(resolution=resolution, offset=offset) + enhanced(b"x", ticks=ticks)

    assert packets(file)[0].time == time


def test_pcapng_section_numbers_its_interfaces_afresh_and_may_turn_byte_order() -> None:
    file = section("<") + interface(link=1) + enhanced(b"a") + section(">") + interface(link=113, order=">")
    file += enhanced(b"b", order=">")

    assert [(p.link_type, p.data) for p in packets(file)] == [(1, b"a"), (113, b"b")]


def test_reader_takes_short_reads_of_a_pipe() -> None:
    class Pipe:
        def __init__(self, data: bytes) -> None:
            self.data = io.BytesIO(data)

        def read(self, size: int, /) -> bytes:
            return self.data.read(min(size, 3))

    assert [p.data for p in read_capture(Pipe(pcap([b"one", b"two"])))] == [b"one", b"two"]


def test_captures_are_known_by_their_head() -> None:
    assert looks_like_capture(pcap([]))
    assert looks_like_capture(section(">"))
    assert not looks_like_capture(b"")
    assert not looks_like_capture(b"0102")


@pytest.mark.parametrize(
    ("file", "kind", "at"),
    [
        (b"", Truncated, 0),
        (b"abcdefgh", Malformed, 0),
        (pcap([])[:10], Truncated, 10),
        (pcap([b"one"])[:-1], Truncated, 42),
        (pcap([])[:4] + b"\x09" + pcap([])[5:], Malformed, 4),
        (pcap([]) + struct.pack("<IIII", 0, 0, CAPTURE_PACKET_BYTES + 1, 0), Oversize, 32),
        (pcap([]) + struct.pack("<IIII", 0, 0, 2**32 - 1, 0), Oversize, 32),
        (section()[:8] + b"zzzz" + section()[12:], Malformed, 8),
        (section()[:4] + bytes(4) + section()[8:], Malformed, 4),
        (section()[:12] + b"\x07" + section()[13:], Malformed, 12),
        (section()[:-1] + b"\x01", Malformed, 24),
        (section() + struct.pack("<II", 5, 4), Malformed, 32),
        (section() + struct.pack("<II", 5, 2**32 - 4), Truncated, 36),
        (section() + struct.pack("<II", 6, CAPTURE_BLOCK_BYTES + 4), Oversize, 32),
        (section() + block(1, b""), Malformed, 28),
        (section() + block(6, b""), Malformed, 28),
        (section() + enhanced(b"x"), Malformed, 36),
        (section() + interface() + block(6, struct.pack("<IIIII", 0, 0, 0, 5, 5)), Malformed, 52),
        (section() + interface() + block(6, struct.pack("<IIIII", 0, 0, 0, 2**31, 5)), Oversize, 52),
        (section() + interface() * (CAPTURE_INTERFACES + 1), Oversize, 28 + 24 * CAPTURE_INTERFACES),
    ],
)
def test_damaged_file_raises_a_typed_error(file: bytes, kind: type[DecodeError], at: int) -> None:
    with pytest.raises(kind) as caught:
        packets(file)

    assert type(caught.value) is kind
    assert (caught.value.dialect, caught.value.at) == ("pcap", at)


def test_any_cut_or_flipped_octet_gives_packets_or_a_typed_error() -> None:
    chance = random.Random(7)
    files = [pcap(conversation(TEXT, size=9)), pcapng(conversation(TEXT, size=9))]
    blamed = set()
    for _ in range(2000):
        file = bytearray(chance.choice(files))
        for _ in range(chance.randint(1, 4)):
            file[chance.randrange(len(file))] = chance.randrange(256)
        counters, streams = PacketCounters(), Reassembler()
        try:
            for packet in read_capture(io.BytesIO(file[: chance.randint(0, len(file))])):
                found = parse_packet(packet, counters)
                if isinstance(found, Segment):
                    streams.feed(found)
        except DecodeError as error:
            blamed.add(error.dialect)
        list(streams.finish())

    assert blamed == {"pcap"}


# -- headers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, ethernet(ipv4(udp(b"hi"), 17))),
        (1, bytes(12) + b"\x81\x00\x00\x05\x08\x00" + ipv4(udp(b"hi"), 17)),
        (113, bytes(14) + b"\x08\x00" + ipv4(udp(b"hi"), 17)),
        (276, b"\x08\x00" + bytes(18) + ipv4(udp(b"hi"), 17)),
        (101, ipv4(udp(b"hi"), 17)),
        (0, b"\x02\x00\x00\x00" + ipv4(udp(b"hi"), 17)),
        (0, b"\x00\x00\x00\x02" + ipv4(udp(b"hi"), 17)),
    ],
)
def test_datagram_is_found_under_every_link_type(link: int, frame: bytes) -> None:
    found = parse(frame, link)

    assert isinstance(found, Datagram)
    assert (found.data, found.missing) == (b"hi", 0)
    assert (found.flow.source_text, found.flow.target_text) == ("10.0.0.1:40000", "10.0.0.2:7447")


@pytest.mark.parametrize(
    "packet",
    [
        ipv6(udp(b"hi"), 17),
        ipv6(b"\x11\x00" + bytes(6) + udp(b"hi"), 0),
        ipv6(b"\x3c\x01" + bytes(14) + b"\x11\x00" + bytes(6) + udp(b"hi"), 43),
        ipv6(b"\x11\x00" + bytes(6) + udp(b"hi"), 44),
        ipv6(b"\x11\x04" + bytes(22) + udp(b"hi"), 51),
    ],
)
def test_datagram_is_found_behind_ipv6_extensions(packet: bytes) -> None:
    found = parse(ethernet(packet))

    assert isinstance(found, Datagram)
    assert (found.data, found.flow.source_text) == (b"hi", "[fe80::1]:40000")


def test_ethernet_padding_is_not_payload() -> None:
    found = parse(ethernet(ipv4(tcp(b"hi", seq=1), 6)) + bytes(6))

    assert isinstance(found, Segment)
    assert (found.data, found.missing) == (b"hi", 0)


def test_length_zero_of_an_offloaded_packet_means_all_there_is() -> None:
    packet = bytearray(ipv4(tcp(b"hi", seq=1), 6))
    packet[2:4] = bytes(2)

    found = parse(ethernet(bytes(packet)))

    assert isinstance(found, Segment)
    assert found.data == b"hi"


def test_octets_cut_by_the_capture_are_counted_as_missing() -> None:
    found = parse(datagram(b"hello")[:-2])

    assert isinstance(found, Datagram)
    assert (found.data, found.missing) == (b"hel", 2)


@pytest.mark.parametrize(
    ("frame", "counter"),
    [
        (ethernet(ipv4(udp(b"hi"), 17, fragment=0x2000)), "fragments"),
        (ethernet(ipv4(udp(b"hi"), 17, fragment=3)), "fragments"),
        (ethernet(ipv6(b"\x11\x00\x00\x09" + bytes(4) + udp(b"hi"), 44)), "fragments"),
        (b"", "other"),
        (bytes(12) + b"\x08\x06" + bytes(28), "other"),
        (ethernet(ipv4(b"ping", 1)), "other"),
        (ethernet(b"\x50" + bytes(40)), "other"),
        (ethernet(ipv4(udp(b"hi"), 17))[:30], "malformed"),
        (ethernet(ipv4(b"", 17)), "malformed"),
        (ethernet(b"\x41" + ipv4(udp(b"hi"), 17)[1:]), "malformed"),
        (ethernet(ipv4(struct.pack("!HHHH", 1, 2, 3, 0), 17)), "malformed"),
        (ethernet(ipv4(struct.pack("!HHHH", 1, 2, 99, 0), 17)), "malformed"),
        (ethernet(ipv4(bytes(12) + b"\x10" + bytes(7), 6)), "malformed"),
        (ethernet(ipv4(bytes(12) + b"\xf0" + bytes(7), 6)), "malformed"),
    ],
)
def test_packet_of_no_use_is_counted_and_passed_over(frame: bytes, counter: str) -> None:
    counters = PacketCounters()

    assert parse(frame, counters=counters) is None
    assert getattr(counters, counter) == 1
    assert counters.packets == 1


def test_unknown_link_type_is_counted() -> None:
    counters = PacketCounters()

    assert parse(datagram(b"hi"), link=147, counters=counters) is None
    assert counters.other == 1


# -- reassembly --------------------------------------------------------------------------------------------


def test_stream_in_order_starts_whole_and_ends_once() -> None:
    events = streamed(conversation(TEXT, size=10))

    assert octets(events) == TEXT
    assert [type(event) for event in events[:1] + events[-1:]] == [Start, End]
    assert isinstance(events[0], Start)
    assert events[0].whole
    assert sum(isinstance(event, End) for event in events) == 1


@pytest.mark.parametrize("seed", range(20))
def test_stream_out_of_order_with_copies_is_put_together(seed: int) -> None:
    chance = random.Random(seed)
    syn, *rest = conversation(TEXT, size=5, start=2**32 - 20)
    rest += chance.choices(rest, k=10)
    chance.shuffle(rest)

    events = streamed([syn, *rest])

    assert octets(events) == TEXT
    assert not any(isinstance(event, Gap) for event in events)


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_segments_are_put_together(seed: int) -> None:
    chance = random.Random(seed)
    cuts = [(at, min(len(TEXT), at + chance.randint(1, 15))) for at in range(len(TEXT))]
    chance.shuffle(cuts)

    events = streamed([segment(b"", seq=99, flags="S"), *(segment(TEXT[a:b], seq=100 + a) for a, b in cuts)])

    assert octets(events) == TEXT


def test_sequence_numbers_wrap() -> None:
    data = bytes(range(256)) * 4

    events = streamed(conversation(data, size=100, start=2**32 - 300))

    assert octets(events) == data


def test_missing_segment_is_a_gap_when_the_stream_ends() -> None:
    frames = conversation(TEXT, size=10)
    streams = Reassembler()

    events = streamed(frames[:2] + frames[3:], streams)

    gaps = [event for event in events if isinstance(event, Gap)]
    assert [(gap.at, gap.size) for gap in gaps] == [(10, 10)]
    assert octets(events) == TEXT[:10] + TEXT[20:]
    assert (streams.gaps, streams.missing) == (1, 10)


def test_missing_last_segment_is_a_gap_before_the_end() -> None:
    frames = conversation(TEXT, size=10)

    events = streamed(frames[:-2] + frames[-1:])

    assert [type(event) for event in events[-2:]] == [Gap, End]


def test_missing_segment_is_a_gap_when_too_much_is_held() -> None:
    streams = Reassembler(pending=2000)
    frames = [segment(b"", seq=0, flags="S"), *(segment(bytes(100), seq=1 + 100 * i) for i in range(1, 30))]

    events = [event for frame in frames if isinstance(found := parse(frame), Segment) for event in streams.feed(found)]

    gaps = [event for event in events if isinstance(event, Gap)]
    assert [(gap.at, gap.size) for gap in gaps] == [(0, 100)]
    assert len(octets(events)) == 2900


def test_held_octets_of_all_streams_are_bounded() -> None:
    streams = Reassembler(total=1000)
    held = 0

    for port in range(1000, 1020):
        for seq in (0, 50):
            found = parse(segment(bytes(100), seq=1 + seq, flags="SA" if not seq else "A", port=port))
            assert isinstance(found, Segment)
            held += sum(isinstance(event, Gap) for event in streams.feed(found._replace(sequence=seq * 9)))

    assert held > 0


def test_longest_idle_stream_gives_way() -> None:
    streams = Reassembler(flows=3)
    events: list[StreamEvent] = []

    for port in (1, 2, 3, 1, 4):
        found = parse(segment(b"x", seq=port, port=port))
        assert isinstance(found, Segment)
        events += streams.feed(found)

    assert [event.flow.target_port for event in events if isinstance(event, End)] == [2]


def test_stream_met_in_the_middle_is_not_whole() -> None:
    events = streamed([segment(b"", seq=499), segment(b"abc", seq=500), segment(b"def", seq=503)])

    assert isinstance(events[0], Start)
    assert not events[0].whole
    assert octets(events) == b"abcdef"


def test_reset_ends_a_stream_and_what_follows_is_ignored() -> None:
    frames = conversation(TEXT, size=10)

    events = streamed([*frames[:3], segment(b"", seq=1021, flags="R"), *frames[3:]])

    assert octets(events) == TEXT[:20]
    assert isinstance(events[-1], End)


def test_new_connection_on_the_same_ports_is_a_new_stream() -> None:
    events = streamed(conversation(b"first", size=9) + conversation(b"second", size=9, start=77))

    assert [type(event) for event in events] == [Start, Piece, End, Start, Piece, End]


def test_new_connection_ends_one_that_was_never_closed() -> None:
    events = streamed(conversation(b"first", size=9)[:-1] + conversation(b"second", size=9, start=77))

    assert [type(event) for event in events] == [Start, Piece, End, Start, Piece, End]


def test_repeated_syn_is_not_a_new_connection() -> None:
    frames = conversation(b"first", size=9)

    events = streamed([frames[0], *frames])

    assert [type(event) for event in events] == [Start, Piece, End]


def test_data_on_the_syn_is_taken() -> None:
    events = streamed([segment(b"early", seq=10, flags="S"), segment(b"late", seq=16)])

    assert octets(events) == b"earlylate"


def test_segment_far_outside_the_window_is_stray() -> None:
    streams = Reassembler()

    events = streamed([segment(b"ab", seq=10), segment(b"zz", seq=10 + 2**31 - 5), segment(b"cd", seq=12)], streams)

    assert octets(events) == b"abcd"
    assert streams.stray == 1


def test_segments_cut_by_the_capture_are_gaps_at_once() -> None:
    frames = [segment(b"", seq=0, flags="S"), segment(b"0123456789", seq=1)[:-4], segment(b"abc", seq=11)]

    events = streamed(frames)

    assert [type(event) for event in events] == [Start, Piece, Gap, Piece, End]
    assert octets(events) == b"012345abc"


def test_last_segment_cut_by_the_capture_is_a_gap() -> None:
    events = streamed([segment(b"", seq=0, flags="S"), segment(b"0123456789", seq=1, flags="FA")[:-4]])

    assert [type(event) for event in events] == [Start, Piece, Gap, End]
