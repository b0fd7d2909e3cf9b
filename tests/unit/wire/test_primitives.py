"""Octets every dialect shares: naturals of both families at their borders, regions, text, extensions."""

from __future__ import annotations

import pytest

from elea.model.errors import (
    BadText,
    DecodeError,
    EncodeError,
    Malformed,
    NaturalOverflow,
    Oversize,
    PaddedNatural,
    TrailingBytes,
    Truncated,
    UnknownMandatoryExtension,
)
from elea.model.limits import MAX_EXTENSIONS
from elea.wire.primitives import (
    Unknown,
    bits,
    read_extension,
    read_nat,
    read_text,
    read_z,
    sized,
    sized_bytes,
    whole,
    write_extensions,
    write_nat,
    write_sized,
    write_z,
)

TOP = (1 << 64) - 1

BOTH = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    ((1 << 32) - 1, "ffffffff0f"),
    ((1 << 56) - 1, "ffffffffffffff7f"),
]
NAT = [*BOTH, (1 << 56, "808080808080808001"), (1 << 63, "80808080808080808001"), (TOP, "ffffffffffffffffff01")]
Z64 = [*BOTH, (1 << 56, "808080808080808001"), (1 << 63, "808080808080808080"), (TOP, "ffffffffffffffffff")]


def nat(octets: str) -> tuple[int, int]:
    return read_nat(bytes.fromhex(octets), 0, "toy")


def z(octets: str, limit: int = 64) -> tuple[int, int]:
    return read_z(bytes.fromhex(octets), 0, limit, "toy")


# -- naturals of the early dialects -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "octets"), NAT)
def test_natural_at_its_borders(value: int, octets: str) -> None:
    out = bytearray()

    write_nat(out, value, "n")

    assert out.hex() == octets
    assert nat(octets + "ff") == (value, len(out))


@pytest.mark.parametrize(
    ("octets", "at"),
    [("ffffffffffffffffff02", 9), ("80808080808080808080", 9), ("ffffffffffffffffffff01", 9)],
)
def test_natural_above_64_bits_is_refused(octets: str, at: int) -> None:
    with pytest.raises(NaturalOverflow) as error:
        nat(octets)

    assert error.value.at == at


@pytest.mark.parametrize(("octets", "at"), [("8000", 1), ("ff00", 1), ("808000", 2), ("80808080808080808000", 9)])
def test_natural_with_needless_octets_is_refused(octets: str, at: int) -> None:
    with pytest.raises(PaddedNatural) as error:
        nat(octets)

    assert error.value.at == at


@pytest.mark.parametrize("octets", ["", "80", "ff", "ffffffffffffffffff"])
def test_natural_cut_short_runs_off_the_end(octets: str) -> None:
    with pytest.raises(Truncated) as error:
        whole(bytes.fromhex(octets), lambda buf, at: read_nat(buf, at, "toy"), "toy")

    assert error.value.at == len(octets) // 2


@pytest.mark.parametrize("value", [-1, 1 << 64, 1 << 200])
def test_natural_out_of_bounds_is_not_written(value: int) -> None:
    out = bytearray()

    with pytest.raises(EncodeError):
        write_nat(out, value, "n")

    assert out == b""


# -- naturals of Zenoh 1.x --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "octets"), Z64)
def test_bounded_natural_at_its_borders(value: int, octets: str) -> None:
    out = bytearray()

    write_z(out, value, 64, "z")

    assert out.hex() == octets
    assert z(octets + "ff") == (value, len(out))


@pytest.mark.parametrize("bits_", [8, 16, 32])
def test_bounded_natural_keeps_its_bound(bits_: int) -> None:
    out = bytearray()
    write_z(out, (1 << bits_) - 1, bits_, "z")
    above = bytearray()
    write_z(above, 1 << bits_, 64, "z")

    assert z(out.hex(), bits_) == ((1 << bits_) - 1, len(out))
    with pytest.raises(NaturalOverflow) as error:
        z(above.hex(), bits_)
    assert error.value.at == len(above) - 1
    with pytest.raises(EncodeError):
        write_z(bytearray(), 1 << bits_, bits_, "z")


@pytest.mark.parametrize(
    ("octets", "value"),
    [("8000", 0), ("8100", 1), ("ff8000", 127), ("808080808080808000", 0), ("ffffffffffffffff00", (1 << 56) - 1)],
)
def test_bounded_natural_may_be_padded(octets: str, value: int) -> None:
    assert z(octets) == (value, len(octets) // 2)


def test_bounded_natural_ends_with_its_ninth_octet() -> None:
    assert z("808080808080808080" + "ff") == (1 << 63, 9)


@pytest.mark.parametrize("octets", ["", "80", "ffffffffffffffff"])
def test_bounded_natural_cut_short_runs_off_the_end(octets: str) -> None:
    with pytest.raises(Truncated):
        whole(bytes.fromhex(octets), lambda buf, at: read_z(buf, at, 64, "toy"), "toy")


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_bounded_natural_out_of_bounds_is_not_written(value: int) -> None:
    with pytest.raises(EncodeError):
        write_z(bytearray(), value, 64, "z")


# -- regions, text, bits ----------------------------------------------------------------------------------------------


def test_text_is_utf8() -> None:
    assert read_text("xé".encode(), 1, 2, "toy") == ("é", 3)


def test_text_that_is_not_utf8_is_refused_where_it_breaks() -> None:
    with pytest.raises(BadText) as error:
        read_text(b"xab\xffc", 1, 4, "toy")

    assert error.value.at == 3


def test_text_beyond_the_end_is_truncated() -> None:
    with pytest.raises(Truncated) as error:
        read_text(b"abc", 1, 3, "toy")

    assert (error.value.at, error.value.need, error.value.have) == (3, 3, 2)


def test_sized_octets() -> None:
    assert sized_bytes(b"\x02abc", 0, "toy") == (b"ab", 3)
    with pytest.raises(Truncated) as error:
        sized_bytes(b"\xff\xff\xff\xff\x0fabc", 0, "toy")
    assert (error.value.at, error.value.need, error.value.have) == (8, (1 << 32) - 1, 3)
    with pytest.raises(NaturalOverflow):
        sized_bytes(b"\xff\xff\xff\xff\x10abc", 0, "toy")


def test_region_must_be_filled() -> None:
    def read(buf: bytes, at: int) -> tuple[int, int]:
        return read_z(buf, at, 64, "toy")

    assert sized(b"x\x02\xac\x02y", 1, read, "toy") == (300, 4)
    with pytest.raises(TrailingBytes) as trailing:
        sized(b"x\x02\x01\x02y", 1, read, "toy")
    assert trailing.value.at == 3
    with pytest.raises(Truncated) as short:
        sized(b"x\x01\xac\x02y", 1, read, "toy")
    assert short.value.at == 3
    assert str(short.value).endswith("at octet 3")


def test_sized_octets_are_written_with_their_length() -> None:
    out = bytearray()

    write_sized(out, b"k" * 128, "body")

    assert out == b"\x80\x01" + b"k" * 128


@pytest.mark.parametrize(
    ("value", "width", "fits"), [(0, 1, True), (1, 1, True), (2, 1, False), (-1, 8, False), (255, 8, True)]
)
def test_bits_must_hold_their_value(value: int, width: int, fits: bool) -> None:
    if fits:
        assert bits(value, width, "f") == value
        return
    with pytest.raises(EncodeError):
        bits(value, width, "f")


# -- extensions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "body", "found"),
    [(0x0F, "", None), (0x2F, "ac02", 300), (0x4F, "02aabb", b"\xaa\xbb"), (0x4F, "00", b"")],
)
def test_unknown_extension_keeps_its_body(header: int, body: str, found: int | bytes | None) -> None:
    octets = bytes([header]) + bytes.fromhex(body)

    unknown, at = read_extension(octets, 1, header, (), "toy")

    assert (unknown, at) == ((Unknown(header, found),), len(octets))
    out = bytearray()
    assert write_extensions(out, unknown, -1) == 0
    assert out == bytes([header | 0x80]) + bytes.fromhex(body)


@pytest.mark.parametrize(
    ("header", "error"), [(0x1F, UnknownMandatoryExtension), (0x7F, UnknownMandatoryExtension), (0x6F, Malformed)]
)
def test_extension_that_cannot_be_passed_over_is_refused(header: int, error: type[DecodeError]) -> None:
    with pytest.raises(error) as raised:
        read_extension(bytes([header]), 1, header, (), "toy")

    assert raised.value.at == 0


def test_unknown_extensions_have_a_limit() -> None:
    before = (Unknown(0x0F, None),) * MAX_EXTENSIONS

    assert len(read_extension(b"\x0f", 1, 0x0F, before[1:], "toy")[0]) == MAX_EXTENSIONS
    with pytest.raises(Oversize) as error:
        read_extension(b"\x0f", 1, 0x0F, before, "toy")
    assert (error.value.size, error.value.limit) == (MAX_EXTENSIONS + 1, MAX_EXTENSIONS)
