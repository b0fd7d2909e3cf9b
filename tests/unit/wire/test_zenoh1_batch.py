"""Batches of zenoh1: plain, compressed (and bombs), low latency, cut from a stream."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
from lz4 import block

from elea.model.errors import EncodeError, LocalProtocolError, Malformed, Oversize, Truncated, UnknownMessage
from elea.model.limits import MAX_BATCH
from elea.wire.zenoh1.batch import (
    BatchStream,
    compress,
    decode_batch,
    decode_low_latency,
    decompress,
    encode_batch,
    encode_low_latency,
)
from elea.wire.zenoh1.messages import Close, Fragment, Frame, KeepAlive, Push, Put, WireExpr

PUSH = Push(WireExpr(1), Put(b"x" * 300))
BATCH = (Frame(1, reliable=True, messages=(PUSH, PUSH)), KeepAlive())


# -- plain ------------------------------------------------------------------------------------------------------------


def test_batch_is_messages_back_to_back() -> None:
    octets = encode_batch(BATCH)

    assert octets[-1:] == b"\x04"
    assert decode_batch(octets) == BATCH
    assert decode_batch(b"") == ()


def test_frame_ends_where_no_network_message_starts() -> None:
    assert decode_batch(bytes.fromhex("25 01 1d 01 01 00 25 02 04")) == (
        Frame(1, reliable=True, messages=(Push(WireExpr(1), Put(b"")),)),
        Frame(2, reliable=True, messages=()),
        KeepAlive(),
    )


def test_fragment_takes_the_rest_of_its_batch() -> None:
    assert decode_batch(bytes.fromhex("66 01 04 04")) == (Fragment(1, b"\x04\x04", reliable=True, more=True),)


def test_batch_cut_short_is_truncated() -> None:
    with pytest.raises(Truncated) as error:
        decode_batch(encode_batch(BATCH)[:-2])

    assert error.value.at == len(encode_batch(BATCH)) - 2


def test_unknown_message_is_refused_with_its_place() -> None:
    with pytest.raises(UnknownMessage) as error:
        decode_batch(b"\x04\x18")

    assert error.value.at == 1


# -- compressed -------------------------------------------------------------------------------------------------------


def test_batch_is_compressed_when_that_is_smaller() -> None:
    octets = encode_batch(BATCH)

    squeezed = compress(octets)

    assert squeezed[0] == 1
    assert len(squeezed) < len(octets)
    assert decompress(squeezed) == octets


def test_batch_stays_as_it_is_when_compression_does_not_help() -> None:
    assert compress(b"\x04") == b"\x00\x04"
    assert decompress(b"\x00\x04") == b"\x04"
    assert decompress(b"\x00") == b""


def test_empty_octets_have_no_compression_header() -> None:
    with pytest.raises(Truncated):
        decompress(b"")


@pytest.mark.parametrize(("size", "fits"), [(999, True), (1000, True), (1001, False), (60_000, False)])
def test_plain_batch_is_at_most_as_large_as_the_limit(size: int, fits: bool) -> None:
    squeezed = b"\x01" + block.compress(bytes(size), store_size=False)

    if fits:
        assert decompress(squeezed, limit=1000) == bytes(size)
        return
    with pytest.raises(Malformed):
        decompress(squeezed, limit=1000)


def test_compression_bomb_costs_no_more_than_a_batch() -> None:
    bomb = b"\x01" + block.compress(bytes(1 << 26), store_size=False)
    assert len(bomb) > MAX_BATCH  # what a link would refuse before; it must not cost more here
    small = b"\x01" + block.compress(bytes(1 << 23), store_size=False)
    assert len(small) < MAX_BATCH

    tracemalloc.start()
    with pytest.raises(Oversize):
        decompress(bomb)
    with pytest.raises(Malformed):
        decompress(small)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < len(bomb) + 4 * MAX_BATCH


@pytest.mark.parametrize("octets", ["01", "01ff", "01f0ffffff", "0110", "01" + "00" * 20])
def test_octets_that_are_no_block_are_malformed(octets: str) -> None:
    with pytest.raises(Malformed) as error:
        decompress(bytes.fromhex(octets))

    assert error.value.at == 1


def test_compression_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)

    assert decompress(b"\x00\x04") == b"\x04"
    with pytest.raises(LocalProtocolError, match=r"\.\[compression\]"):
        decompress(b"\x01\x04")
    with pytest.raises(LocalProtocolError, match=r"\.\[compression\]"):
        compress(b"\x04")


# -- low latency ------------------------------------------------------------------------------------------------------


def test_low_latency_batch_is_bare_messages() -> None:
    batch = (PUSH, KeepAlive(), PUSH, Close(reason=1, session=True))

    octets = encode_low_latency(batch)

    assert octets[0] & 0x1F == 0x1D
    assert decode_low_latency(octets) == batch


@pytest.mark.parametrize(("octets", "at"), [("1d", 1), ("1d 01 01 05 00", 5), ("03", 1)])
def test_low_latency_batch_cut_short_is_truncated(octets: str, at: int) -> None:
    with pytest.raises(Truncated) as error:
        decode_low_latency(bytes.fromhex(octets))

    assert error.value.at == at


def test_low_latency_batch_takes_only_messages() -> None:
    with pytest.raises(EncodeError):
        encode_low_latency((WireExpr(1),))  # type: ignore[arg-type]


# -- streams ----------------------------------------------------------------------------------------------------------


def test_stream_gives_batches_by_their_length() -> None:
    reader = BatchStream()

    assert reader.feed(b"\x01\x00\x04\x00\x00\x02\x00\x04") == [b"\x04", b""]
    assert reader.feed(b"\x04") == [b"\x04\x04"]
    reader.close()
    assert reader.consumed == 9


def test_prefix_may_be_wider() -> None:
    reader = BatchStream(prefix=4)

    assert reader.feed(b"\x01\x00\x00\x00\x04") == [b"\x04"]
    with pytest.raises(Oversize) as error:
        reader.feed(b"\x00\x00\x01\x00")
    assert (error.value.at, error.value.size, error.value.limit) == (5, 65_536, MAX_BATCH)
