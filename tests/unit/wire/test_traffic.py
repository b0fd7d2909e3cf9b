"""Units found in captures: framing that follows the handshake, boundaries lost and found, datagrams."""

from __future__ import annotations

import io
import struct

import pytest

from elea.model.errors import DecodeError
from elea.wire.dialect import Dialect
from elea.wire.traffic import CapturedUnit, Ports, Traffic
from tests.unit.wire.frames import conversation, datagram, ethernet, ipv4, ipv6, pcap, pcapng, segment, udp
from tests.unit.wire.toy import Toy1, ToyEarly


def u16(*units: bytes) -> bytes:
    return b"".join(struct.pack("<H", len(unit)) + unit for unit in units)


def u32(*units: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(unit)) + unit for unit in units)


def found(frames: list[bytes], dialect: Dialect | None = None, ports: Ports | None = None) -> list[CapturedUnit]:
    return list(Traffic(dialect or Toy1(), ports or Ports()).units(io.BytesIO(pcap(frames))))


def units(frames: list[bytes], dialect: Dialect | None = None, ports: Ports | None = None) -> list[tuple[str, bytes]]:
    """The units of a capture that must hold no error."""
    result = found(frames, dialect, ports)
    assert [unit.error for unit in result] == [None] * len(result)
    return [(unit.unit, unit.data) for unit in result]


def codes(result: list[CapturedUnit]) -> list[str]:
    return [unit.error.code if unit.error else unit.unit for unit in result]


def handshake(letters: str) -> list[bytes]:
    """Both sides open; both offer the extensions of `letters`."""
    init_syn, init_ack = u16(b"\x01" + letters.encode()), u16(b"\x21" + letters.encode())
    open_syn, open_ack = u16(b"\x02"), u16(b"\x22")
    return [
        segment(b"", seq=99, flags="S"),
        segment(b"", seq=499, flags="SA", reverse=True),
        segment(init_syn, seq=100),
        segment(init_ack, seq=500, reverse=True),
        segment(open_syn, seq=100 + len(init_syn)),
        segment(open_ack, seq=500 + len(init_ack), reverse=True),
    ]


def after(letters: str) -> tuple[int, int]:
    """The sequence numbers behind such a handshake."""
    return 100 + len(u16(b"\x01" + letters.encode(), b"\x02")), 500 + len(u16(b"\x21" + letters.encode(), b"\x22"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_stream_is_cut_into_batches_whatever_the_segments(size: int) -> None:
    batches = [b"\x05one", b"\x04", b"\x05" + b"x" * 300]

    assert units(conversation(u16(*batches), size=size)) == [("batch", batch) for batch in batches]


def test_framing_turns_to_compressed_when_both_agreed() -> None:
    there, back = after("c")
    frames = [
        segment(u16(b"\x00\x05there"), seq=there),
        segment(u16(b"\x00\x05back"), seq=back, reverse=True),
    ]

    result = units(handshake("c") + frames)

    assert result[:2] == [("batch", b"\x01c"), ("batch", b"\x21c")]
    assert result[4:] == [("compressed", b"\x00\x05there"), ("compressed", b"\x00\x05back")]


def test_framing_turns_to_low_latency_when_both_agreed_and_back_after_close() -> None:
    there, back = after("l")
    frames = [
        segment(u32(b"\x05m", b"\x03!") + u16(b"\x03!"), seq=there),
        segment(u32(b"\x05r"), seq=back, reverse=True),
    ]

    result = units(handshake("l") + frames)

    assert result[4:] == [
        ("lowlatency", b"\x05m"),
        ("lowlatency", b"\x03!"),
        ("batch", b"\x03!"),
        ("lowlatency", b"\x05r"),
    ]


def test_framing_stays_when_only_one_side_wants_compression() -> None:
    frames = handshake("")
    frames[2] = segment(u16(b"\x01c"), seq=100)
    frames[4] = segment(u16(b"\x02", b"\x05x"), seq=100 + len(u16(b"\x01c")))

    assert units(frames)[-2:] == [("batch", b"\x05x"), ("batch", b"\x22")]


def test_framing_stays_when_the_opening_cannot_be_read() -> None:
    data = u16(b"\x01\xff", b"\x02", b"", b"\x05x")

    assert units(conversation(data, size=100)) == [
        ("batch", b"\x01\xff"),
        ("batch", b"\x02"),
        ("batch", b""),
        ("batch", b"\x05x"),
    ]


def test_framing_is_known_from_the_answer_alone() -> None:
    frames = handshake("c")
    there, _ = after("c")

    result = units([*frames[1:2], *frames[3:], segment(u16(b"\x00\x05x"), seq=there)])

    assert result[-1] == ("compressed", b"\x00\x05x")


def test_missing_segment_is_reported_and_the_next_boundary_found() -> None:
    frames = conversation(u16(b"\x05one", b"\x05two", b"\x05six"), size=6)

    result = found(frames[:2] + frames[3:])

    assert codes(result) == ["batch", "GAP", "batch"]
    assert (result[1].error and result[1].error.at, result[2].data) == (6, b"\x05six")


def test_octets_without_a_boundary_are_passed_over_and_told() -> None:
    frames = [
        segment(b"tail of a batch", seq=1),
        segment(u16(b"\x05new"), seq=16),
        segment(b"", seq=22, flags="FA"),
    ]

    result = found(frames)

    assert codes(result) == ["MALFORMED", "batch"]
    assert "15 octets passed over" in str(result[0].error)


def test_boundary_inside_a_segment_is_found() -> None:
    frames = [segment(b"tail of a batch" + u16(b"\x05one", b"\x04") + u16(b"\x05two"), seq=1)]

    result = found(frames)

    assert codes(result) == ["MALFORMED", "batch", "batch", "batch"]
    assert [unit.data for unit in result[1:]] == [b"\x05one", b"\x04", b"\x05two"]


@pytest.mark.parametrize(
    ("octets", "unit"),
    [(u16(b"\x05plain"), "batch"), (u16(b"\x00\x05packed"), "compressed"), (u32(b"\x05quick"), "lowlatency")],
)
def test_stream_met_in_the_middle_has_its_framing_guessed(octets: bytes, unit: str) -> None:
    assert [name for name, _ in units([segment(octets, seq=7)])] == [unit]


def test_stream_that_ends_inside_a_batch_is_truncated() -> None:
    assert codes(found(conversation(u16(b"\x05one") + b"\x09\x00\x05", size=100))) == ["batch", "TRUNCATED"]


def test_batch_above_the_limit_of_low_latency_is_an_error() -> None:
    there, _ = after("l")

    result = found([*handshake("l"), segment(struct.pack("<I", 70_000) + b"x", seq=there)])

    assert codes(result)[4:] == ["OVERSIZE", "MALFORMED"]


def test_ports_choose_the_streams() -> None:
    other = [segment(u16(b"\x04"), seq=1, flags="A", port=1883)]

    assert found(other) == []
    assert units(other, ports=Ports(frozenset({1883}))) == [("batch", b"\x04")]
    assert units(other, ports=Ports(every=True)) == [("batch", b"\x04")]
    assert found([segment(u16(b"\x04"), seq=1)], ports=Ports(frozenset({1883}))) == []


# -- datagrams ---------------------------------------------------------------------------------------------


def test_scouting_and_its_answer_are_known() -> None:
    scout = datagram(b"\x01", source=5000, target=7446)
    hello = ethernet(ipv4(udp(b"\x02", source=6000, target=5000), 17, source="10.0.0.2", target="10.0.0.1"))

    assert units([scout, hello]) == [("scouting", b"\x01"), ("scouting", b"\x02")]


def test_other_datagrams_are_batches_if_they_decode() -> None:
    frames = [datagram(b"\x04", target=9999), datagram(b"\x99dns", target=53), datagram(b"", target=7447)]
    traffic = Traffic(Toy1())

    result = list(traffic.units(io.BytesIO(pcap(frames))))

    assert [(unit.unit, unit.data) for unit in result] == [("batch", b"\x04")]
    assert traffic.passed_over == 1


def test_datagram_on_a_port_of_zenoh_is_a_unit_even_if_bad() -> None:
    assert units([datagram(b"\x99", target=7447)]) == [("batch", b"\x99")]
    assert units([datagram(b"\x99", target=53)], ports=Ports(frozenset({53}))) == [("batch", b"\x99")]


def test_datagram_cut_by_the_capture_is_truncated() -> None:
    assert codes(found([datagram(b"\x05text")[:-1]])) == ["TRUNCATED"]


def test_datagram_over_ipv6_is_found() -> None:
    result = found([ethernet(ipv6(udp(b"\x04"), 17))])

    assert result[0].flow.source_text == "[fe80::1]:40000"


# -- early dialects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_early_stream_is_cut_into_packets(size: int) -> None:
    long = b"\xc7" + bytes(199)
    data = b"\x04\x03one" + b"\xc8\x01" + long

    assert units(conversation(data, size=size), ToyEarly()) == [("packet", b"\x03one"), ("packet", long)]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_early_stream_without_sizes_is_cut_at_messages(size: int) -> None:
    bare = b"\x03one\x03two\x05three"

    result = units(conversation(b"\x02\x01a\x00" + bare, size=size), ToyEarly())

    assert result[0] == ("packet", b"\x01a")
    assert b"".join(data for _, data in result[1:]) == bare


def test_early_stream_with_a_bad_bare_message_shows_it_and_goes_on() -> None:
    frames = [
        segment(b"", seq=0, flags="S"),
        segment(b"\x00\x02!x", seq=1),
        segment(b"\xffjunk", seq=5),
        segment(b"\x02ok", seq=10),
    ]

    result = found(frames, ToyEarly())

    assert [(unit.data, unit.error and unit.error.code) for unit in result] == [
        (b"\x02!x", None),
        (b"", "MALFORMED"),
        (b"\x02ok", None),
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xff\x7f\x01x", "FRAME_TOO_LARGE"),
        (b"\xff" * 10 + b"\x01", "VLE_OVERFLOW"),
        (b"\x00\xff" + bytes(100), "TRUNCATED"),
        (b"\x80", "TRUNCATED"),
    ],
)
def test_early_stream_that_breaks_the_framing_is_an_error(data: bytes, code: str) -> None:
    assert codes(found(conversation(data, size=1000), ToyEarly()))[0] == code


def test_early_message_above_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.wire.framing.MAX_PACKET", 20)

    result = found(conversation(b"\x00\x40" + bytes(30), size=1000), ToyEarly())

    assert codes(result) == ["OVERSIZE", "MALFORMED"]


def test_early_bare_messages_sent_in_crumbs_are_complete_at_the_end() -> None:
    messages = (b"\xfa" + bytes(250)) * 3

    result = units(conversation(b"\x00" + messages, size=1), ToyEarly())

    assert b"".join(data for _, data in result) == messages


def test_addresses_that_scouted_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.wire.traffic.UDP_ENDPOINTS", 2)
    scouts = [datagram(b"\x01", source=port, target=7446) for port in (5000, 5001, 5002)]
    answers = [
        ethernet(ipv4(udp(b"\x04", source=6000, target=port), 17, source="10.0.0.2", target="10.0.0.1"))
        for port in (5000, 5002)
    ]

    assert [unit for unit, _ in units(scouts + answers)[3:]] == ["batch", "scouting"]


def test_cut_datagram_of_others_is_not_told() -> None:
    assert found([datagram(b"\x05text", target=53)[:-1]]) == []


def test_early_stream_finds_its_boundary_again() -> None:
    frames = [
        segment(b"\x99\x99", seq=1),
        segment(b"\x80", seq=3),
        segment(b"\xff" * 12, seq=4),
        segment(b"\x03\x02ok", seq=16),
    ]

    result = found(frames, ToyEarly())

    assert codes(result) == ["MALFORMED", "packet"]


def test_early_datagram_is_a_packet() -> None:
    assert units([datagram(b"\x02ok", target=7447)], ToyEarly()) == [("packet", b"\x02ok")]


def test_damaged_capture_tells_what_it_held_and_then_its_damage() -> None:
    file = pcapng([segment(u16(b"\x05one") + b"\x09", seq=1, flags="S")])
    seen: list[CapturedUnit] = []

    with pytest.raises(DecodeError) as caught:
        seen.extend(Traffic(Toy1()).units(io.BytesIO(file + b"\x06")))

    assert caught.value.dialect == "pcap"
    assert codes(seen) == ["batch", "TRUNCATED"]
