"""Packets and markers of the early dialects: what may stand where, and what comes out before an error."""

from __future__ import annotations

import pytest

from elea.model.errors import (
    DecodeError,
    EncodeError,
    MarkerOrder,
    MarkerTarget,
    PaddedNatural,
    Truncated,
    UnknownMessage,
)
from elea.wire import dialect_named
from elea.wire.early import Codec, Decorated, Packet, PacketStream, Stream, decode_stream, encode_stream
from elea.wire.markers import Conduit, RSpace
from elea.wire.zenoh2018.messages import Close, Frag, KeepAlive, Pull, Scout, StreamData, WriteData


def codec_of(dialect: str) -> Codec:
    codec: Codec = dialect_named(dialect).codec  # type: ignore[attr-defined]
    return codec


ZENOH = codec_of("zenoh2018")
XRCE = codec_of("xrce2017")

DATA = "07 01 02 00"
SCOUT = "01 05"
CONDUIT = "93"
FRAG = "12 00"
RSPACE = "98"


def packet(octets: str, codec: Codec = ZENOH) -> Packet:
    return codec.decode_packet(bytes.fromhex(octets))


# -- markers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("octet", "id_"), [("93", 1), ("b3", 2), ("d3", 3), ("f3", 4)])
def test_compact_conduit_counts_from_one(octet: str, id_: int) -> None:
    [decorated] = packet(f"{octet} {SCOUT}").messages

    assert decorated == Decorated(Scout(5), (Conduit(id_, True),))
    assert ZENOH.encode_packet(Packet((decorated,))).hex() == f"{octet}0105"


def test_conduit_with_a_number_ignores_the_bits_of_the_compact_form() -> None:
    [decorated] = packet(f"73 ac02 {SCOUT}").messages

    assert decorated.markers == (Conduit(300),)
    assert ZENOH.encode_packet(Packet((decorated,))).hex() == "13ac020105"


@pytest.mark.parametrize("id_", [0, 5])
def test_compact_marker_holds_one_to_four(id_: int) -> None:
    with pytest.raises(EncodeError):
        ZENOH.encode_packet(Packet((Decorated(Scout(5), (Conduit(id_, True),)),)))


def test_all_markers_in_their_order() -> None:
    [decorated] = packet(f"{CONDUIT} {FRAG} {RSPACE} {DATA}").messages

    assert decorated == Decorated(StreamData(1, 2, b""), (Conduit(1, True), Frag(0), RSpace(1, True)))


@pytest.mark.parametrize(
    ("octets", "at"),
    [
        (f"{CONDUIT} {CONDUIT} {DATA}", 1),
        (f"{FRAG} {CONDUIT} {DATA}", 2),
        (f"{RSPACE} {FRAG} {DATA}", 1),
        (f"{RSPACE} {CONDUIT} {DATA}", 1),
        (f"{CONDUIT} {RSPACE} {CONDUIT} {DATA}", 2),
    ],
)
def test_markers_out_of_order_are_refused(octets: str, at: int) -> None:
    with pytest.raises(MarkerOrder) as error:
        packet(octets)

    assert error.value.at == at


@pytest.mark.parametrize(("octets", "at"), [(f"{FRAG} {SCOUT}", 2), (f"{RSPACE} {SCOUT}", 1), (f"{FRAG} 0b0102", 2)])
def test_marker_on_a_message_that_cannot_have_it_is_refused(octets: str, at: int) -> None:
    with pytest.raises(MarkerTarget) as error:
        packet(octets)

    assert error.value.at == at


@pytest.mark.parametrize(
    ("octets", "target"),
    [(f"{FRAG} {DATA}", StreamData), (f"{FRAG} 09 01 00 00", WriteData), (f"{RSPACE} 0b 01 02", Pull)],
)
def test_marker_on_a_message_that_may_have_it(octets: str, target: type) -> None:
    assert isinstance(packet(octets).messages[0].message, target)


def test_unknown_message_behind_a_marker_is_the_fault_to_report() -> None:
    with pytest.raises(UnknownMessage):
        packet(f"{FRAG} 00")


def test_marker_without_a_message_is_truncated() -> None:
    with pytest.raises(Truncated) as error:
        packet(CONDUIT)

    assert error.value.at == 1


def test_rspace_is_unknown_in_2017() -> None:
    with pytest.raises(UnknownMessage):
        packet(f"{RSPACE} {DATA}", XRCE)
    assert packet(f"{CONDUIT} {FRAG} {DATA}", XRCE).messages[0].markers[0] == Conduit(1, True)


# -- packets ----------------------------------------------------------------------------------------------------------


def test_packet_is_messages_back_to_back() -> None:
    assert [d.message for d in packet(f"{SCOUT} {CONDUIT} {SCOUT} {DATA}").messages] == [
        Scout(5),
        Scout(5),
        StreamData(1, 2, b""),
    ]
    assert packet("") == Packet(())


def test_messages_before_an_error_come_out_first() -> None:
    found: list[Decorated] = []

    with pytest.raises(UnknownMessage) as error:
        found.extend(ZENOH.messages(bytes.fromhex(f"{SCOUT} {SCOUT} 00")))

    assert error.value.at == 4
    iterator = ZENOH.messages(bytes.fromhex(f"{SCOUT} {SCOUT} 00"))
    assert [next(iterator).message, next(iterator).message] == [Scout(5), Scout(5)]


def test_values_compare_only_within_their_class() -> None:
    conduit: object = Conduit(1)
    keep_alive: object = KeepAlive(b"a")

    assert conduit != RSpace(1)
    assert hash(Conduit(1)) != hash(RSpace(1))
    assert Decorated(Scout(1)) == Decorated(Scout(1))
    assert keep_alive != Close(b"a", 0)


# -- streams ----------------------------------------------------------------------------------------------------------


def test_stream_is_packets_with_their_sizes() -> None:
    stream = Stream((Packet((Decorated(Scout(5)),)), Packet((Decorated(Scout(6)), Decorated(Scout(7))))))

    octets = encode_stream(ZENOH, stream)

    assert octets.hex() == "020105" + "0401060107"
    assert decode_stream(ZENOH, octets) == stream


def test_size_of_zero_starts_an_unbounded_stream() -> None:
    stream = Stream((Packet((Decorated(Scout(5)),)),), Packet((Decorated(Scout(6)),)))

    octets = encode_stream(ZENOH, stream)

    assert octets.hex() == "020105" + "00" + "0106"
    assert decode_stream(ZENOH, octets) == stream


def test_empty_packet_is_not_written() -> None:
    with pytest.raises(EncodeError):
        encode_stream(ZENOH, Stream((Packet(()),)))


def test_unbounded_stream_waits_for_the_rest_of_a_message() -> None:
    reader = PacketStream(ZENOH)

    assert reader.feed(bytes.fromhex("00 01")) == []
    assert reader.feed(bytes.fromhex("05 01")) == [Packet((Decorated(Scout(5)),))]
    with pytest.raises(Truncated) as error:
        reader.close()

    assert error.value.at == 4


@pytest.mark.parametrize(
    ("octets", "code", "at"),
    [
        ("8000", "VLE_NONCANONICAL", 1),
        ("ffffffffffffffffff02", "VLE_OVERFLOW", 9),
        ("02 0105 02 0000", "UNKNOWN_MESSAGE", 4),
        ("02 0105 01 01", "TRUNCATED", 5),
        ("00 0105 00", "UNKNOWN_MESSAGE", 3),
        ("ffff04 00", "FRAME_TOO_LARGE", 0),
    ],
)
def test_error_in_a_stream_has_its_place_in_the_stream(octets: str, code: str, at: int) -> None:
    with pytest.raises(DecodeError) as error:
        decode_stream(ZENOH, bytes.fromhex(octets))

    assert (error.value.code, error.value.at) == (code, at)


def test_size_with_needless_octets_is_refused_as_a_number_is() -> None:
    with pytest.raises(PaddedNatural):
        PacketStream(ZENOH).feed(b"\x82\x00")
