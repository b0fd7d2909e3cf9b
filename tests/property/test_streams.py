"""Streams cut anywhere: one octet at a time, at random, not at all; always the same messages and the same error."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elea.model.errors import DecodeError, FrameTooLarge, Oversize, Truncated
from elea.model.limits import MAX_PACKET, RESCAN_BYTES
from elea.wire import dialect_named
from elea.wire.early import Codec, Decorated, Packet, PacketStream, Stream, encode_stream
from elea.wire.zenoh1.batch import BatchStream
from elea.wire.zenoh2018.messages import KeepAlive, StreamData
from tests.strategies import batches, corrupted, cuts, packets, streams

EARLY = ("xrce2017", "zenoh2018")


class Outcome(NamedTuple):
    """What a reader gave: all it found, and how it ended."""

    found: list[object]
    error: tuple[str, int] | None


def codec_of(dialect: str) -> Codec:
    codec: Codec = dialect_named(dialect).codec  # type: ignore[attr-defined]
    return codec


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    """`data` cut at `places`."""
    ends = [*places, len(data)]
    return [data[start:end] for start, end in zip([0, *places], ends, strict=True)]


def feed_packets(codec: Codec, parts: list[bytes], limit: int = MAX_PACKET) -> Outcome:
    """Messages a PacketStream gives; the cut of a packet is theirs, that of an unbounded stream is the network's."""
    reader = PacketStream(codec, limit)
    found: list[object] = []
    loose: list[Decorated] = []
    try:
        for part in parts:
            before = reader.sized
            given = reader.feed(part)
            new = reader.sized - before
            found += given[:new]
            loose += [message for packet in given[new:] for message in packet.messages]
        reader.close()
    except DecodeError as error:
        return Outcome([*found, *loose], (error.code, error.at))
    return Outcome([*found, *loose], None)


def feed_batches(parts: list[bytes], *, prefix: int = 2, limit: int = 65_535) -> Outcome:
    reader = BatchStream(prefix, limit)
    found: list[object] = []
    try:
        for part in parts:
            found += reader.feed(part)
        reader.close()
    except DecodeError as error:
        return Outcome(found, (error.code, error.at))
    return Outcome(found, None)


# -- early dialects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
def test_stream_gives_its_messages_however_it_is_cut(dialect: str, data: st.DataObject) -> None:
    codec = codec_of(dialect)
    stream = data.draw(streams(dialect))
    assert isinstance(stream, Stream)
    octets = encode_stream(codec, stream)
    parts = pieces(octets, data.draw(cuts(len(octets))))

    outcome = feed_packets(codec, parts)

    loose = () if stream.unbounded is None else stream.unbounded.messages
    assert outcome == ([*stream.packets, *loose], None)


def check_same_end(one: Outcome, other: Outcome) -> None:
    """The same error, and the same messages before it as far as both give them.

    A reader that meets an error throws away what the same call found in front of it: see `test_messages_in_front_…`.
    """
    assert one.error == other.error
    if one.error is None:
        assert one.found == other.found
    common = min(len(one.found), len(other.found))
    assert one.found[:common] == other.found[:common]


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
@settings(max_examples=200)
def test_bad_stream_ends_in_the_same_way_however_it_is_cut(dialect: str, data: st.DataObject) -> None:
    codec = codec_of(dialect)
    octets = data.draw(corrupted(streams(dialect).map(lambda stream: dialect_named(dialect).encode("stream", stream))))
    assume(len(octets) < 8_000)  # beyond that 500 crumbs meet the limit on reading again first

    whole = feed_packets(codec, [octets])

    # Crumbs of a long message are bigger: the limit on reading again would be met first.
    crumbs = pieces(octets, list(range(1, len(octets), 1 + len(octets) // 500)))
    check_same_end(feed_packets(codec, crumbs), whole)
    check_same_end(feed_packets(codec, pieces(octets, data.draw(cuts(len(octets))))), whole)


@pytest.mark.parametrize("octets", ["020100 0100", "00 0100 00"], ids=["sized", "unbounded"])
def test_messages_in_front_of_an_error_are_given_however_the_stream_is_cut(octets: str) -> None:
    codec = codec_of("zenoh2018")
    data = bytes.fromhex(octets)

    assert feed_packets(codec, [data]) == feed_packets(codec, pieces(data, list(range(1, len(data)))))


def test_batches_in_front_of_an_error_are_given_however_the_stream_is_cut() -> None:
    data = b"\x01\x00\x04\x09\x00"

    assert feed_batches([data], limit=8) == feed_batches(pieces(data, list(range(1, len(data)))), limit=8)


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
def test_stream_cut_short_is_truncated_where_it_ends(dialect: str, data: st.DataObject) -> None:
    codec = codec_of(dialect)
    octets = encode_stream(codec, Stream((data.draw(packets(dialect, least=1)),)))
    cut = data.draw(st.integers(1, len(octets) - 1))

    assert feed_packets(codec, [octets[:cut]], limit=max(1 << 20, len(octets))) == ([], ("TRUNCATED", cut))


@pytest.mark.parametrize("dialect", EARLY)
@given(octets=st.binary(max_size=60), data=st.data())
def test_any_octets_end_in_the_same_way_however_they_are_cut(dialect: str, octets: bytes, data: st.DataObject) -> None:
    codec = codec_of(dialect)

    whole = feed_packets(codec, [octets])
    loose = feed_packets(codec, [b"\0" + octets])

    check_same_end(feed_packets(codec, pieces(octets, data.draw(cuts(len(octets))))), whole)
    check_same_end(feed_packets(codec, [b"\0", *pieces(octets, data.draw(cuts(len(octets))))]), loose)


# -- limits of the early dialects -------------------------------------------------------------------------------------


def keep_alive(size: int) -> bytes:
    """A message of that many octets (three or more)."""
    codec = codec_of("zenoh2018")
    body = size - 2 if size < 130 else size - 3
    return codec.encode_packet(Packet((Decorated(KeepAlive(b"k" * body)),)))


@pytest.mark.parametrize(("size", "fits"), [(200, True), (201, False), (1 << 40, False)])
def test_frame_above_the_limit_is_refused_before_it_arrives(size: int, fits: bool) -> None:
    codec = codec_of("zenoh2018")
    reader = PacketStream(codec, 200)
    head = dialect_named("zenoh2018").encode("vle", size)

    if fits:
        assert reader.feed(head) == []
        return
    with pytest.raises(FrameTooLarge) as error:
        reader.feed(head)
    assert (error.value.at, error.value.size, error.value.limit) == (0, size, 200)


def test_frame_above_the_limit_is_told_with_its_place() -> None:
    codec = codec_of("zenoh2018")
    reader = PacketStream(codec, 200)
    first = dialect_named("zenoh2018").encode("vle", 200) + keep_alive(200)

    assert len(reader.feed(first)) == 1
    with pytest.raises(FrameTooLarge) as error:
        reader.feed(b"\xc9\x01")
    assert error.value.at == len(first)


@pytest.mark.parametrize(("size", "fits"), [(200, True), (201, False), (5000, False)])
def test_unbounded_message_above_the_limit_is_refused_however_it_is_cut(size: int, fits: bool) -> None:
    codec = codec_of("zenoh2018")
    octets = b"\0" + keep_alive(5) + keep_alive(size)

    whole = feed_packets(codec, [octets], 200)
    crumbs = feed_packets(codec, pieces(octets, list(range(1, len(octets)))), 200)

    check_same_end(whole, crumbs)
    assert whole.error == (None if fits else ("FRAME_TOO_LARGE", 6))


def feed_all(reader: PacketStream, data: bytes, size: int) -> list[Packet]:
    """Feed `data` in parts of that size."""
    return [packet for at in range(0, len(data), size) for packet in reader.feed(data[at : at + size])]


def test_unbounded_stream_in_crumbs_is_read_again_only_so_often() -> None:
    codec = codec_of("zenoh2018")
    reader = PacketStream(codec)
    message = codec.encode_packet(Packet((Decorated(StreamData(1, 2, b"p" * 60_000)),)))
    reader.feed(b"\0")

    with pytest.raises(Oversize) as error:
        feed_all(reader, message, 2)

    assert error.value.limit == RESCAN_BYTES
    assert error.value.at == 1


def test_rescan_is_forgiven_when_a_message_arrives() -> None:
    codec = codec_of("zenoh2018")
    reader = PacketStream(codec)
    message = keep_alive(5000)
    reader.feed(b"\0")

    for _ in range(RESCAN_BYTES // (5000 * 5000 // 200) + 2):
        assert len(feed_all(reader, message, 100)) == 1

    assert reader.consumed % 5000 == 1


def test_reader_counts_what_it_is_done_with() -> None:
    codec = codec_of("zenoh2018")
    reader = PacketStream(codec)

    reader.feed(b"\x05" + keep_alive(5) + b"\x05\x10")

    assert (reader.consumed, reader.sized, reader.unbounded) == (6, 1, False)
    with pytest.raises(Truncated) as error:
        reader.close()
    assert error.value.at == 8


# -- zenoh1 -----------------------------------------------------------------------------------------------------------


@given(st.lists(batches(), max_size=3), st.data())
def test_batches_come_whole_however_the_stream_is_cut(found: list[tuple[object, ...]], data: st.DataObject) -> None:
    zenoh1 = dialect_named("zenoh1")
    octets = zenoh1.encode("stream", tuple(found))
    parts = pieces(octets, data.draw(cuts(len(octets))))

    outcome = feed_batches(parts)

    assert outcome == ([zenoh1.encode("batch", batch) for batch in found], None)


@given(st.binary(max_size=80), st.sampled_from((1, 2, 4)), st.sampled_from((3, 30, 65_535)), st.data())
@settings(max_examples=300)
def test_any_octets_give_the_same_batches_however_they_are_cut(
    octets: bytes, prefix: int, limit: int, data: st.DataObject
) -> None:
    whole = feed_batches([octets], prefix=prefix, limit=limit)
    parts = pieces(octets, data.draw(cuts(len(octets))))

    check_same_end(feed_batches(parts, prefix=prefix, limit=limit), whole)


@pytest.mark.parametrize(("size", "fits"), [(200, True), (201, False), (65_535, False)])
def test_batch_above_the_limit_is_refused_before_it_arrives(size: int, fits: bool) -> None:
    reader = BatchStream(limit=200)
    reader.feed(b"\x01\x00\x04")

    if fits:
        assert reader.feed(size.to_bytes(2, "little")) == []
        return
    with pytest.raises(Oversize) as error:
        reader.feed(size.to_bytes(2, "little"))
    assert (error.value.at, error.value.size, error.value.limit) == (3, size, 200)


def test_batch_cut_short_is_truncated_where_the_stream_ends() -> None:
    reader = BatchStream()

    assert reader.feed(b"\x01\x00\x04\x05\x00\x04") == [b"\x04"]

    with pytest.raises(Truncated) as error:
        reader.close()
    assert error.value.at == 6
